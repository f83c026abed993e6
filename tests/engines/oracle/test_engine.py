"""The engine as a whole: what it shows, what it refuses, and what it leaves behind."""

from __future__ import annotations

import string
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.engines.base import Engine, Settings
from streamproof.engines.base import engine as engine_by_name
from streamproof.engines.oracle import duckdb_engine, postgres_engine
from streamproof.engines.oracle.duckdb import DuckDbServer
from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import InfrastructureError, InputError, PlanError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.event_nodes import NODES
from streamproof.plan.expr import Col, Lit, literal
from streamproof.plan.parse import parse
from tests.engines.oracle.running import S, history, run, spans, typed

AWKWARD = string.printable + "`´„\u00a0\u2028é日😀\x1b\x7f"


def test_it_is_an_engine_found_by_name() -> None:
    found: Engine = engine_by_name("duckdb")
    assert found.name == "duckdb"
    assert isinstance(found, Oracle)


def test_every_node_is_supported(engine: Oracle) -> None:
    assert engine.supports() == {node.__name__: True for node in NODES}


# --- names and constants ----------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    names=st.lists(st.text(AWKWARD, min_size=1, max_size=80), min_size=1, max_size=3, unique=True),
    text=st.text(AWKWARD),
)
def test_any_name_and_any_text_comes_through(names: list[str], text: str, engine: Oracle) -> None:
    names = [name for name in names if name not in ("le", "re", "w", "out")] or ["x"]
    stream = history(dict.fromkeys(names, "string"), [(0, 1, dict.fromkeys(names, text))])
    exprs = (*((name, Col(name)) for name in names), ("out", literal(text)))
    plan = nodes.GroupApply(
        nodes.Select(nodes.Source("S"), exprs), (names[0],), nodes.Select(nodes.GroupInput(), (("out", Col("out")),))
    )
    assert spans(run(engine, plan, S=stream)) == [(0, 1, text, text)]


@pytest.mark.parametrize("char", string.printable)
def test_every_printable_character_in_a_name_and_a_constant(char: str, duckdb: Oracle) -> None:
    name = f"a{char}b"
    stream = history({name: "string"}, [(0, 1, {name: name})])
    plan = nodes.Where(nodes.Source("S"), parse("1 = 1"))
    assert spans(run(duckdb, plan, S=stream)) == [(0, 1, name)]
    assert name not in duckdb.show_sql(typed(plan, S=stream), Settings()).replace(f"c0 = {name}", "")


def test_nul_is_text_on_duckdb_and_refused_on_postgres(duckdb: Oracle, postgres: Oracle) -> None:
    constant = nodes.Select(nodes.Source("S"), (("out", literal("a\x00b")),))
    empty = history({}, [(0, 1, {})])
    assert spans(run(duckdb, constant, S=empty)) == [(0, 1, "a\x00b")]
    held = history({"s": "string"}, [(0, 1, {"s": "a\x00b"})])
    assert spans(run(duckdb, S, S=held)) == [(0, 1, "a\x00b")]
    for plan, stream in ((constant, empty), (S, held)):
        with pytest.raises(InputError, match="PostgreSQL cannot hold the character U\\+0000"):
            run(postgres, plan, S=stream)


def test_a_lone_surrogate_is_refused(engine: Oracle) -> None:
    plan = nodes.Select(nodes.Source("S"), (("out", literal("\ud800")),))
    with pytest.raises(PlanError, match="not Unicode text"):
        run(engine, plan, S=history({}, [(0, 1, {})]))


# --- safety -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    ["SELECT * FROM read_csv('/etc/passwd')", "COPY (SELECT 1) TO '/tmp/streamproof_must_not_exist'",
        "ATTACH '/tmp/x.db'",
     "SET enable_external_access = true", "SET threads = 3", "INSTALL httpfs", "LOAD httpfs"],
)  # fmt: skip
def test_duckdb_has_no_way_out(statement: str) -> None:
    database = DuckDbServer().connect()
    with pytest.raises(InfrastructureError, match="DuckDB failed"):
        database.execute(statement)
    database.close()


def test_runs_do_not_see_each_other(duckdb: Oracle) -> None:
    one, other = (history({"v": "int64"}, [(0, 1, {"v": v})]) for v in (1, 2))
    assert [spans(run(duckdb, S, S=stream)) for stream in (one, other, one)] == [[(0, 1, 1)], [(0, 1, 2)], [(0, 1, 1)]]


def test_postgres_keeps_nothing(postgres: Oracle, postgres_dsn: str) -> None:
    with psycopg.connect(postgres_dsn) as connection:
        count = "SELECT (SELECT count(*) FROM pg_class) + (SELECT count(*) FROM pg_proc)"
        before = connection.execute(count).fetchone()
        connection.rollback()
        plan = nodes.Select(nodes.Source("S"), (("out", parse("lower(s) || cast(1.5 as varchar)")),))
        run(postgres, plan, S=history({"s": "string"}, [(0, 1, {"s": "A"})]))
        with pytest.raises(StreamproofError):
            run(
                postgres,
                nodes.Select(nodes.Source("S"), (("out", parse("cast(s as bigint)")),)),
                S=history({"s": "string"}, [(0, 1, {"s": "A"})]),
            )
        assert connection.execute(count).fetchone() == before


@pytest.mark.parametrize(
    "dsn",
    ["postgresql://me:s3cret@localhost:1/nowhere", "host=/nowhere dbname=nowhere password=s3cret", "garbage s3cret"],
)
def test_a_server_that_is_not_there_is_an_infrastructure_error_without_the_password(dsn: str) -> None:
    with pytest.raises(InfrastructureError) as caught:
        run(postgres_engine(dsn=dsn), S, S=history({}, []))
    assert caught.value.name == "infrastructure"
    assert caught.value.exit_code == 3
    assert "s3cret" not in str(caught.value)
    assert "nowhere" in str(caught.value) or "dsn" in str(caught.value)


# --- inputs and outputs -----------------------------------------------------------------------------------------------


def test_a_missing_input_is_named(engine: Oracle) -> None:
    plan = typed(S, S=history({"v": "int64"}, []))
    with pytest.raises(InputError, match='no input is given for the source "S"'):
        list(engine.run(plan, {"T": []}, Settings()))


def test_weights_are_copies_and_retractions_cancel(engine: Oracle) -> None:
    schema = Schema.of({"v": "int64"})
    batches = [
        Batch.from_rows(schema, [(0, 9, 3, {"v": 1}), (0, 5, 1, {"v": 2})]),
        Batch.from_rows(schema, [(0, 9, -1, {"v": 1}), (0, 5, -1, {"v": 2})]),
    ]
    plan = typed(
        {"op": "agg", "in": S, "window": {"type": "snapshot"}, "aggs": {"n": ["count", None]}},
        S=history({"v": "int64"}, []),
    )
    (result,) = engine.run(plan, {"S": batches}, Settings())
    assert result.rows.to_pylist() == [{"le": 0, "re": 9, "w": 1, "n": 2}]


def test_every_type_goes_in_and_out(engine: Oracle) -> None:
    columns: dict[str, Any] = {
        "i": "int64",
        "x": "float64",
        "s": "string",
        "b": "bool",
        "d": "decimal(38,10)",
        "day": "date",
        "at": "timestamp",
        "z": "null",
    }
    plan: dict[str, Any] = {"op": "union", "ins": [S, {"op": "where", "in": S, "expr": "1 = 1"}]}
    stream = history(columns, [(0, 1, {}), (2, 3, {"s": "a\tb\\N\n\r\"'\\.", "x": float("nan"), "i": -(2**63)})])
    found = run(engine, plan, S=stream)
    assert found.schema == stream.schema
    assert repr([row.payload for row in found.to_rows()[::2]]) == repr([row.payload for row in stream.to_rows()])


def test_empty_inputs_give_empty_results(engine: Oracle) -> None:
    plan = {"op": "join", "left": S, "right": {"op": "source", "name": "R"}, "on": "l.a = r.b"}
    assert spans(run(engine, plan, S=history({"a": "int64"}, []), R=history({"b": "decimal(5,2)"}, []))) == []


def test_a_shared_stream_is_computed_once(duckdb: Oracle) -> None:
    plan = {"op": "let", "bind": {"big": {"op": "where", "in": S, "expr": "v > 1"}},
            "in": {"op": "union", "ins": [{"op": "ref", "name": "big"}, {"op": "ref", "name": "big"}]}}  # fmt: skip
    shown = duckdb.show_sql(typed(plan, S=history({"v": "int64"}, [])), Settings())
    assert shown.count("(c0 > ") == 1


# --- the SQL, shown ---------------------------------------------------------------------------------------------------


def test_the_sql_names_its_nodes_and_columns(engine: Oracle) -> None:
    plan = {
        "op": "agg",
        "in": {"op": "where", "in": S, "expr": "v > 1"},
        "window": {"type": "tumbling", "size": 10},
        "aggs": {"mean": ["avg", "v / 2"]},
    }
    shown = engine.show_sql(typed(plan, S=history({"v": "int64"}, [])), Settings())
    assert "-- source(S)" in shown
    assert "-- where(v > 1)" in shown
    assert "c0 = v" in shown
    assert "-- in Python: the exact avg of each list" in shown
    assert shown.splitlines()[-1].startswith("SELECT")


def test_no_name_or_text_ends_a_comment(duckdb: Oracle) -> None:
    name = "x\nDROP TABLE t; --"
    plan = nodes.Select(nodes.Source("S"), ((name, Lit("y\nDROP TABLE u", Schema.of({"a": "string"})["a"])),))
    shown = duckdb.show_sql(typed(plan, S=history({}, [])), Settings())
    comments = [line for line in shown.splitlines() if "DROP TABLE t" in line]
    assert comments
    assert all(line.startswith("--") for line in comments)


def test_what_duckdb_shows_can_be_run_again() -> None:
    """The shown text is the SQL that ran: loaded by hand it gives the same rows."""
    stream = history({"v": "int64"}, [(0, 5, {"v": 1}), (3, 9, {"v": 4})])
    plan = {"op": "agg", "in": S, "window": {"type": "snapshot"}, "aggs": {"n": ["sum", "v"]}}
    oracle = duckdb_engine()
    shown = oracle.show_sql(typed(plan, S=stream), Settings())
    database = DuckDbServer().connect()
    database.execute(
        "CREATE TEMP TABLE source_1 AS SELECT * FROM (VALUES (0, 0, 5, 1), (0, 3, 9, 4)) AS t(g, le, re, c0)"
    )
    *statements, last = [part for part in _without_comments(shown).split(";") if part.strip()]
    for statement in statements:
        database.execute(statement)
    found = database.fetch(last, (("g", Schema.of({"a": "int64"})["a"]),) * 4)
    assert sorted(zip(*(column.to_pylist() for column in found.columns[1:]), strict=True)) == spans(
        run(oracle, plan, S=stream)
    )
    database.close()


def _without_comments(shown: str) -> str:
    return "\n".join(line for line in shown.splitlines() if not line.startswith("--"))
