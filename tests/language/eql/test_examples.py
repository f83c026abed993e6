"""The eight queries of the examples, on engines, against the meaning straight from the definition."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import streamproof as sp
from streamproof.language.eql import dumps, loads, loads_all
from streamproof.plan.check import check
from streamproof.plan.nodes import sources
from tests.reference.compare import difference
from tests.reference.eql import World, ordered_rows

FOLDER = Path(__file__).parents[3] / "examples" / "eql"
QUERIES = loads_all((FOLDER / "queries.eql").read_text(encoding="utf-8"))


def inputs(plan: Any) -> dict[str, Any]:
    mapping = sp.ColumnMapping(start="time", unit="s")
    return {name: sp.read(FOLDER / f"{name.lower()}.csv", mapping=mapping).stream() for name in sources(plan)}


@pytest.mark.parametrize("number", QUERIES)
def test_the_examples_say_what_they_mean(number: str) -> None:
    plan: Any = QUERIES[number]
    assert loads(dumps(plan)) == plan
    streams = inputs(plan)
    schemas = {name: stream.schema for name, stream in streams.items()}
    histories = {
        name: [(row.le, row.re, row.payload) for row in sp.to_history(stream).to_rows()]
        for name, stream in streams.items()
    }
    typed = check(plan, schemas)
    expected = ordered_rows(plan.query, World(plan.query, schemas, histories).results(), typed.schema.names)
    assert expected
    for engine in ("local", "duckdb"):
        rows = sp.on(plan, engine).run(streams).history.to_rows()
        assert difference(expected, [(row.le, row.re, row.payload) for row in rows]) is None
