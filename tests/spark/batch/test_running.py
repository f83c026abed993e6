"""Plans over DataFrames, and what lies behind a result: bins, ranges, counts."""

from __future__ import annotations

import random
import re
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.joins import chosen
from streamproof.engines.spark.rows import frame_of
from streamproof.errors import InputError
from streamproof.events.history import History
from streamproof.events.schema import INT64, Schema
from streamproof.events.time import FOREVER
from streamproof.language.notation import from_document
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.parse import parse

SUM = {
    "op": "agg", "in": {"op": "source", "name": "S"}, "window": {"type": "tumbling", "size": 10},
    "aggs": {"n": ["count", None], "total": ["sum", "v"]},
}  # fmt: skip


def frame(engine: SparkEngine, rows: list[tuple[Any, ...]], columns: str) -> Any:
    return engine.session.createDataFrame(rows, columns)


def test_a_plan_over_a_dataframe_is_a_dataframe(spark_engine: SparkEngine) -> None:
    given = frame(spark_engine, [(0, 1, 5), (3, 4, 6), (12, 13, 7)], "le bigint, re bigint, v int")
    result = on(from_document(SUM), "spark", session=spark_engine.session).batch({"S": given})
    assert result.columns == ["le", "re", "n", "total"]
    assert sorted(map(tuple, result.collect())) == [(0, 10, 2, 11), (10, 20, 1, 7)]


def test_fluent_queries_reach_batch_mode(spark_engine: SparkEngine) -> None:
    given = frame(spark_engine, [(0, 5, "a b"), (3, 9, "c")], "le bigint, re bigint, `odd.name` string")
    query = sp.source("S").where("\"odd.name\" <> 'c'")
    result = query.on("spark", session=spark_engine.session).batch({"S": given})
    assert result.columns == ["le", "re", "odd.name"]
    assert [tuple(row) for row in result.collect()] == [(0, 5, "a b")]


def test_weights_are_counts(spark_engine: SparkEngine) -> None:
    rows = [(0, 1, 2, 5), (0, 1, 1, 5), (3, 4, 1, 6), (3, 4, -1, 6)]
    given = frame(spark_engine, rows, "le bigint, re bigint, w bigint, v bigint")
    result = on(from_document(SUM), "spark", session=spark_engine.session).batch({"S": given})
    assert [tuple(row) for row in result.collect()] == [(0, 10, 3, 15)]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ((5, 5, 1), "an event without a lifetime\x1f at: [5, 5) 1%'s=1\x1f fix: give it an end after its start"),
        ((5, FOREVER + 1, 1), "a lifetime lies outside ±2^62 ticks\x1f at: [5, 4611686018427387905) 1%'s=1\x1f"),
        ((5, None, None), "an event without a start or an end\x1f at: [5, null) 1%'s=null\x1f"),
        (
            (5, FOREVER, 1),
            "has infinitely many windows over a lifetime without an end or a beginning\x1f at: [5, inf) ",
        ),
        (
            (-FOREVER, 9, 1),
            "has infinitely many windows over a lifetime without an end or a beginning\x1f at: [-inf, 9) ",
        ),
        (
            (5, 2_000_000, 1),
            "into 1999999 windows; the limit windows_per_event is 1000000\x1f at: [5, 2000000) 1%'s=1 in hop",
        ),
    ],
)
def test_events_with_errors_are_named(row: tuple[Any, ...], text: str, spark_engine: SparkEngine) -> None:
    given = frame(spark_engine, [row], "le bigint, re bigint, `1%'s` bigint")
    plan = sp.source("S").hopping(5, 1).aggregate(n=sp.count())
    with pytest.raises(PySparkException, match=re.escape(text)):
        plan.on("spark", session=spark_engine.session).batch({"S": given}).collect()


def test_times_must_be_ticks(spark_engine: SparkEngine) -> None:
    given = frame(spark_engine, [(0, 1)], "le bigint, re bigint").withColumn("le", f.timestamp_seconds("le"))
    with pytest.raises(InputError, match='"le" is timestamp, not ticks') as raised:
        on(nodes.Source("S"), "spark", session=spark_engine.session).batch({"S": given})
    assert raised.value.fix == 'make whole numbers of it, e.g. functions.unix_micros("le")'


def test_a_missing_input_is_named(spark_engine: SparkEngine) -> None:
    with pytest.raises(InputError, match='no input is given for the source "S"'):
        on(nodes.Source("S"), "spark", session=spark_engine.session).batch({})


def test_other_engines_have_no_batch_mode() -> None:
    with pytest.raises(InputError, match="the engine duckdb does not read DataFrames"):
        on(nodes.Source("S"), "duckdb").batch({})


# --- ranges and bins --------------------------------------------------------------------------------------------------


def events(count: int, seed: int, *, longest: int = 50) -> History:
    draw = random.Random(seed)
    rows = []
    for n in range(count):
        le = draw.randrange(400)
        length = draw.choice([1, draw.randrange(1, longest), FOREVER - le if draw.random() < 0.02 else 3])
        rows.append((le, le + length, {"k": draw.randrange(4), "v": n % 7}))
    return History.from_rows(Schema.of({"k": "int64", "v": "int64"}), rows)


def same_in_parts(engine: SparkEngine, plan: nodes.Plan, stream: History, parts: int) -> None:
    """Over several partitions as over one, and as on DuckDB."""
    typed = check(plan, {"S": stream.schema})
    before = engine.session.conf.get("spark.sql.shuffle.partitions")
    engine.session.conf.set("spark.sql.shuffle.partitions", parts)
    try:
        found = History.from_batches(typed.schema, engine.run(typed, {"S": [stream.to_batch()]}, Settings()))
    finally:
        engine.session.conf.set("spark.sql.shuffle.partitions", before or "1")
    assert found == on(plan, "duckdb").run({"S": stream}).history


SWEPT = {
    "snapshot": '{"op": "agg", "window": {"type": "snapshot"}, "aggs": {"n": ["count", null], "s": ["sum", "v"]}}',
    "snapshot members": '{"op": "agg", "window": {"type": "snapshot"}, "aggs": {"m": ["max", "v"]}}',
    "count": '{"op": "agg", "window": {"type": "count_start", "n": 3}, "aggs": {"n": ["count", null]}}',
    "session": '{"op": "session", "timeout": 4, "max": 9}',
}


@pytest.mark.parametrize("name", SWEPT)
def test_a_sweep_in_ranges_is_a_sweep(name: str, spark_engine: SparkEngine) -> None:
    import json

    plan = from_document({**json.loads(SWEPT[name]), "in": {"op": "source", "name": "S"}})
    same_in_parts(spark_engine, plan, events(60, 1), 3)


def test_clip_in_ranges(spark_engine: SparkEngine) -> None:
    source = nodes.Source("S")
    same_in_parts(spark_engine, nodes.Clip(source, source), events(60, 2), 3)


def test_short_and_endless_lifetimes_meet(spark_engine: SparkEngine) -> None:
    source = nodes.Source("S")
    select = (("a", parse("l.v")), ("b", parse("r.v")))
    same_in_parts(spark_engine, nodes.Join(source, source, parse("l.k = r.k"), select), events(80, 3, longest=5000), 2)


@given(st.dictionaries(st.tuples(st.integers(0, 1), st.integers(0, 63)), st.integers(1, 1000)))
def test_every_lifetime_has_a_level(counts: dict[tuple[int, int], int]) -> None:
    found = chosen(counts)
    assert list(found.bits) == sorted(set(found.bits))
    assert all(bits <= found.bits[-1] for _, bits in counts)
    assert found.left | found.right <= set(range(len(found.bits)))


def test_nothing_is_lost_after_an_empty_chunk(spark_engine: SparkEngine) -> None:
    rows = pa.table({"le": [0, 1], "re": [2, 3], "v": [5, 6]})
    history = frame_of(spark_engine.session, Schema((("v", INT64),)), pa.concat_tables([rows, rows[:0], rows]))
    assert history.count() == 4
