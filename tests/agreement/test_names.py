"""A payload column may have any name: the answer is the same, whatever columns are called."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import streamproof as sp
from streamproof.engines.inputs import load
from streamproof.events.history import History
from streamproof.language.sql import loads
from streamproof.plan import event_nodes, nodes
from tests.agreement.naming import PLAIN, PLANS, SQL, events, inputs, names, unnamed

CLASHES = [
    ("w", "W", "le"),
    ("id", "kind", "re"),
    ("start", "end", "new_end"),
    ("c0", "g0", "re_new"),
    ("le", "re", "w"),
]


def run(stream: sp.Stream, columns: tuple[str, str, str], engine: str, **options: Any) -> list[Any]:
    wanted = {name: part for name, part in inputs(columns).items() if name in nodes.sources(stream.plan)}
    history = stream.on(engine, **options).run(wanted).history
    return [history.schema.names, *unnamed(history)]


def renamed(answer: list[Any], columns: tuple[str, str, str]) -> list[Any]:
    """What the answer under plain names is under others."""
    new = dict(zip(PLAIN, columns, strict=True))
    return [tuple(new.get(name, name) for name in answer[0]), *answer[1:]]


def test_every_kind_of_node_has_a_plan() -> None:
    made = {type(node) for plan in PLANS.values() for node in nodes.walk(plan(*PLAIN).plan)}
    assert set(event_nodes.NODES) == made


@pytest.mark.parametrize("name", PLANS)
def test_the_answer_is_the_same_under_names_of_ours(name: str) -> None:
    plain = run(PLANS[name](*PLAIN), PLAIN, "local")
    assert len(plain[1])
    for number, columns in enumerate(CLASHES):
        for engine in ("local", "duckdb")[: 2 - bool(number)]:
            assert run(PLANS[name](*columns), columns, engine) == renamed(plain, columns)


@settings(max_examples=30)
@given(names, st.sampled_from(list(PLANS)), st.sampled_from(["local", "duckdb"]))
@example(("le", "re", "w"), "udo", "duckdb")
def test_the_answer_is_the_same_under_any_names(columns: tuple[str, str, str], name: str, engine: str) -> None:
    assume(name not in ("times", "twice", "join times") or not set(columns) & {"streamproof_le", "streamproof_re"})
    answer = run(PLANS[name](*columns), columns, engine)
    assert answer == renamed(run(PLANS[name](*PLAIN), PLAIN, "local"), columns)


@settings(max_examples=30)
@given(names, st.sampled_from(list(SQL)))
@example(("le", "id", "w"), "sql group")
def test_sql_reads_any_names(columns: tuple[str, str, str], name: str) -> None:
    answer = run(sp.Stream(loads(SQL[name](*columns))), columns, "local")
    assert answer == renamed(run(sp.Stream(loads(SQL[name](*PLAIN))), PLAIN, "local"), columns)


@settings(max_examples=30)
@given(names, st.sampled_from(["jsonl", "csv", "parquet", "arrow"]), st.booleans())
@example(("le", "re", "w"), "csv", True)
@example(("kind", "id", "re_new"), "csv", True)
@example(("kind", "id", "re_new"), "parquet", False)
@example(("payload.le", "streamproof_le", "payload.streamproof_le"), "csv", True)
def test_what_is_written_is_read_back(columns: tuple[str, str, str], form: str, as_history: bool) -> None:
    history = events(columns)
    twice = History.from_batches(history.schema, [history.to_batch(), history.to_batch()])
    for given_rows in (history, twice):
        content = given_rows if as_history else sp.from_batches([given_rows.to_batch()])
        with tempfile.TemporaryDirectory() as folder:
            path = sp.write(content, Path(folder) / f"f.{form}")
            assert (
                sp.read(path, schema=None if form in ("parquet", "arrow") else history.schema).history() == given_rows
            )
    table = twice.expand()
    assert load("S", table).history() == twice
    assert History.from_table(twice.schema, twice.rows) == twice
