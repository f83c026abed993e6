"""Speculation by query: rich in retractions when fed out of order, and with the history that its meaning demands."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.engines.local import LocalEngine
from streamproof.errors import PlanError
from streamproof.events.physical import from_batches, to_batches, to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.generate.describe import describe
from streamproof.generate.facets import Facets, Values
from streamproof.generate.speculative import make_duplicates, make_speculative
from streamproof.generate.stream import generated
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.nodes import AdvanceTime, Join, Let, Plan, Ref, Select, Source, TopK, Union, walk
from streamproof.plan.windows import Tumbling
from streamproof.query.aggregates import sum as total
from streamproof.query.stream import source
from streamproof.workbench.evaluator.evaluate import evaluate
from tests.reference.compare import difference

SCHEMA = Schema.of({"k": "string", "v": "int64"})
SOURCE = Source("S", SCHEMA)
CROWDED = {"overlap": 16, "columns": {"k": Values(keys=3), "v": Values(keys=1000)}, "liveliness": "eager"}
OUT_OF_ORDER = Facets(disorder="highly", **CROWDED)  # type: ignore[arg-type]  # as Facets names them


def output(plan: Plan, stream: PhysicalStream) -> PhysicalStream:
    """What the local engine emits on the way, checked to be legal."""
    typed = check(plan, {"S": SCHEMA})
    batches = LocalEngine().run(typed, {"S": list(to_batches(stream))}, Settings())
    emitted = from_batches(batches, schema=typed.schema)
    Validator().check(emitted)
    return emitted


def evaluated(plan: Plan, stream: PhysicalStream) -> list[Any]:
    """What the plan means, by the evaluator."""
    rows = [(row.le, row.re, row.payload) for row in to_history(stream).to_rows()]
    return evaluate(check(plan, {"S": SCHEMA}), {"S": rows})


def rows_of(stream: PhysicalStream) -> list[Any]:
    return [(row.le, row.re, row.payload) for row in to_history(stream).to_rows()]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("k", [1, 3])
def test_late_events_become_retractions_and_the_history_is_what_the_plan_means(seed: int, k: int) -> None:
    stream = generated(SCHEMA, 60, seed, OUT_OF_ORDER)
    plan = make_speculative(SOURCE, k=k)
    emitted = output(plan, stream)
    figures = describe(emitted)
    assert figures.retractions > 10
    assert figures.taken_back > 0
    assert not difference(evaluated(plan, stream), rows_of(emitted))


def test_disorder_makes_the_corrections() -> None:
    in_order = Facets(**CROWDED)  # type: ignore[arg-type]  # as Facets names them
    streams = (generated(SCHEMA, 300, 1, facets) for facets in (in_order, OUT_OF_ORDER))
    calm, wild = (describe(output(make_speculative(SOURCE), stream)) for stream in streams)
    assert calm.taken_back == 0  # in order, values are only cut short by what comes next
    assert wild.taken_back > 100
    assert wild.retraction_ratio > Fraction(1, 2)


@pytest.mark.parametrize("seed", range(3))
def test_a_multicast_and_a_union_above_it_double_every_retraction(seed: int) -> None:
    stream = generated(SCHEMA, 60, seed, OUT_OF_ORDER)
    once, twice = make_speculative(SOURCE), make_speculative(make_duplicates(SOURCE))
    figures, doubled = describe(output(once, stream)), describe(output(twice, stream))
    assert (doubled.inserts, doubled.retractions) == (2 * figures.inserts, 2 * figures.retractions)
    assert not difference(evaluated(twice, stream), rows_of(output(twice, stream)))


def test_the_oracle_says_the_same_of_a_query_above_the_fragment() -> None:
    query = source("S", schema=SCHEMA).group_by("k").tumbling(20).aggregate(total=total("v")).plan
    plan = make_speculative(query)
    stream = generated(SCHEMA, 300, 5, OUT_OF_ORDER)
    judged = on(plan, "duckdb").run({"S": stream}).history
    assert to_history(output(plan, stream)) == judged
    assert len(judged) > 20


def test_every_source_gets_its_fragment_and_columns_keep_their_order() -> None:
    other = Schema.of({"x": "int64", "y": "bool", "z": "string"})
    plan = Join(SOURCE, Source("R"))
    changed = make_speculative(plan, schemas={"R": other})
    typed = check(changed, {"S": SCHEMA, "R": other})
    assert typed.schema == check(plan, {"S": SCHEMA, "R": other}).schema
    assert sum(isinstance(node, TopK) for node in walk(changed)) == 2


def test_advance_time_stays_on_its_source() -> None:
    plan = AdvanceTime(SOURCE, every=5)
    changed = make_duplicates(make_speculative(plan))
    (advance,) = (node for node in walk(changed) if isinstance(node, AdvanceTime))
    assert advance.input == SOURCE
    check(changed, {"S": SCHEMA})


def test_keys_windows_and_single_columns() -> None:
    wide = Schema.of({"a": "int64", "b": "int64", "c": "int64"})
    plan = make_speculative(Source("S", wide), key=["c", "a"], k=2, window=Tumbling(10))
    (top,) = (node for node in walk(plan) if isinstance(node, TopK))
    assert (top.k, top.window, [expr for expr, _ in top.by]) == (2, Tumbling(10), [Col("b")])
    assert check(plan, {"S": wide}).schema == wide
    narrow = Schema.of({"v": "int64"})
    assert isinstance(make_speculative(Source("S", narrow)), TopK)


def test_names_of_multicasts_do_not_collide() -> None:
    plan = Let(
        (("S_twice", SOURCE),), Union((Ref("S_twice"), Select(Ref("S_twice"), (("k", Col("k")), ("v", Col("v"))))))
    )
    changed = make_duplicates(plan)
    names = [name for node in walk(changed) if isinstance(node, Let) for name, _ in node.bind]
    assert sorted(names) == ["S_twice", "S_twice2"]
    check(changed, {"S": SCHEMA})


@pytest.mark.parametrize(
    ("plan", "options", "what"),
    [
        (Source("S"), {}, 'the schema of the source "S" is not known, and speculation ranks its events'),
        (Source("S", Schema()), {}, 'the schema of the source "S" has no columns, and speculation ranks its events'),
        (SOURCE, {"key": ["key"]}, 'unknown column "key"'),
        (SOURCE, {"k": 0}, "k must be positive, got 0"),
    ],
)
def test_what_cannot_be_made_speculative(plan: Plan, options: Any, what: str) -> None:
    with pytest.raises(PlanError) as raised:
        make_speculative(plan, **options)
    assert raised.value.what == what
