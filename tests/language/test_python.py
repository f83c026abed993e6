"""Plans as Python: what the text looks like."""

from __future__ import annotations

import pytest

from streamproof.errors import PlanError
from streamproof.language import python
from streamproof.query.aggregates import avg, count
from streamproof.query.stream import let, ref, source


def test_short_chains_take_one_line() -> None:
    stream = source("S").where("v > 1").tumbling(10).aggregate(c=count())
    assert stream.to_python() == 'source("S").where("v > 1").tumbling(10).aggregate(c=count())'


def test_long_chains_take_one_line_per_call() -> None:
    stream = (
        source("orders", {"customer": "string", "price": "decimal(10,2)"}, unit="ms")
        .where("price > 100")
        .join(source("customers"), "l.customer = r.name", select={"country": "r.country", "price": "l.price"})
        .group_by("country")
        .hopping("1 hour", hop="5 minutes")
        .aggregate(orders=count(), mean=avg("price"), output="point_end")
    )
    assert stream.to_python() == (
        "(\n"
        '    source("orders", {"customer": "string", "price": "decimal(10,2)"}, unit="ms")\n'
        '    .where("price > 100")\n'
        "    .join(\n"
        '        source("customers"),\n'
        '        "l.customer = r.name",\n'
        '        select={"country": "r.country", "price": "l.price"},\n'
        "    )\n"
        '    .group_by("country")\n'
        '    .hopping("1 hour", hop="5 minutes")\n'
        '    .aggregate(orders=count(), mean=avg("price"), output="point_end")\n'
        ")"
    )


def test_branches_of_groups_are_functions() -> None:
    stream = source("S").group_apply("k", apply=lambda g: g.select("v").coalesce())
    assert stream.to_python() == 'source("S").group_apply("k", apply=lambda g: g.select("v").coalesce())'


def test_bindings_are_let() -> None:
    stream = let(M=source("S")).in_(ref("M").clip(ref("M")))
    assert stream.to_python() == 'let(M=source("S")).in_(ref("M").clip(ref("M")))'


def test_names_that_are_no_python_names_come_in_a_mapping() -> None:
    stream = source("S").select({"two words": "v", "class": "v"}).snapshot().aggregate({"output": count()})
    assert stream.to_python() == (
        'source("S").select({"two words": "v", "class": "v"}).snapshot().aggregate({"output": count()})'
    )


def test_python_is_never_read() -> None:
    with pytest.raises(PlanError, match="a plan in Python is code, and plan files are never run as code") as caught:
        python.loads('source("S")')
    assert caught.value.fix == "import it and name it as module:object, or write it as JSON or XML"
