"""Stream mode over real streaming tables, from the public port to files: mappings, policies, errors, sinks."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.output import Content, Format, read_output
from streamproof.engines.spark.sinks import CallSink, FileSink, OutputBatch
from streamproof.engines.spark.sources import ChangeFeed
from streamproof.errors import InputError, RunError, StreamproofError
from streamproof.events.history import History
from streamproof.events.validate import Validator
from streamproof.plan.library import installed
from streamproof.plan.modules import Registry, uda
from tests.spark.stream.tables import events_table, table_stream, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
SALES = sp.source("S").group_by("k").apply(lambda group: group.tumbling(10).aggregate(n=sp.count(), m=sp.max("v")))


def job(spark: SparkSession, stream: sp.Stream, *modules: Any) -> Job:
    registry = Registry([*installed(), *modules])
    return Job(stream.plan, SparkEngine(session=spark), Settings(registry=registry))


def local(stream: sp.Stream, inputs: dict[str, Any]) -> History:
    result: History = stream.on("local").run(inputs).history
    return result


def sales(count: int = 120, files: int = 4) -> list[sp.PhysicalStream]:
    """Events with CTIs between them, one chunk per file; now and then one is shortened or taken back."""
    events: list[Any] = []
    for n in range(count):
        payload = {"k": f"k{n % 5}", "v": n * 7 % 11}
        events.append(sp.Insert(f"e{n}", n, n + 6, payload))
        if n % 4 == 0:
            events.append(sp.Retract(f"e{n}", n, n + 6, n + 3 * (n % 3), payload))
        if n % 10 == 9:
            events.append(sp.Cti(n - 4))
    whole = sp.PhysicalStream.from_events([*events, sp.Cti(sp.FOREVER)])
    size = -(-len(whole) // files)
    return [whole.slice(start, size) for start in range(0, len(whole), size)]


def dead_letters(folder: Path) -> list[dict[str, Any]]:
    files = sorted((folder / "_dead_letters").iterdir())
    return [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("events", "parquet"),
        pytest.param("events", "jsonl", marks=pytest.mark.slow),
        pytest.param("rows", "jsonl", marks=pytest.mark.slow),
        ("cht", "parquet"),
    ],
)
def test_files_hold_the_result(spark: SparkSession, folder: Path, content: Content, kind: Format) -> None:
    chunks = sales()
    frame = table_stream(spark, write_files(folder / "in", [events_table(chunk) for chunk in chunks]))
    query = job(spark, SALES).stream({"S": frame}, checkpoint=folder / "cp", buckets=3)
    assert (query.buckets, query.splitting) == (3, {"S": ("k",)})
    running = query.start(FileSink(folder / "out", content=content, format=kind), trigger=NOW)
    running.wait()
    wanted = local(SALES, {"S": sp.PhysicalStream.concat(chunks)})
    assert read_output(folder / "out") == wanted
    counted = running.metrics.as_dict()
    assert counted["batches"] == 4
    assert counted["events"] == 150
    assert counted["cti"] == "inf"
    assert counted["live"] == 0
    if content == "events":  # every file is a legal continuation of those before it
        validator = Validator()
        for file in sorted((folder / "out").glob("batch-*")):
            validator.check(sp.read(file, schema=wanted.schema).stream())
        assert validator.cti == sp.FOREVER


def test_a_restart_goes_on_where_the_last_run_ended(spark: SparkSession, folder: Path) -> None:
    chunks = sales()
    for number, chunk in enumerate(chunks):
        write_files(folder / "in", [events_table(chunk)], first=number)
        frame = table_stream(spark, folder / "in")
        query = job(spark, SALES).stream({"S": frame}, checkpoint=folder / "cp", buckets=2)
        query.start(FileSink(folder / "out", content="cht"), trigger=NOW).wait()
    assert read_output(folder / "out") == local(SALES, {"S": sp.PhysicalStream.concat(chunks)})
    sink = FileSink(folder / "out", content="cht")
    again = job(spark, SALES).stream({"S": frame}, checkpoint=folder / "cp", buckets=5)
    with pytest.raises(InputError, match="is cut into 2 buckets, and 5 are asked for"):
        again.start(sink)
    other = job(spark, sp.source("S").where("v > 1")).stream({"S": frame}, checkpoint=folder / "cp", buckets=2)
    with pytest.raises(InputError, match="belongs to another plan"):
        other.start(sink)
    anew = job(spark, SALES).stream({"S": frame}, checkpoint=folder / "new")
    with pytest.raises(InputError, match="holds the output of another run"):
        anew.start(sink)


def test_a_join_of_two_tables_and_the_table_that_comes_out(spark: SparkSession, folder: Path) -> None:
    left = pa.table({"le": [0, 5, 10, 12], "re": [8, 9, 20, 13], "k": ["a", "b", "a", None], "v": [1, 2, 3, 4]})
    right = pa.table({"le": [2, 6, 11], "re": [7, 30, 12], "name": ["a", "b", None], "u": [10.5, math.nan, 1.0]})
    stream = sp.source("S").join(sp.source("R"), on="l.k = r.name", select={"k": "l.k", "x": "r.u", "v": "l.v"})
    frames = {name: table_stream(spark, write_files(folder / name, [t.slice(0, 2), t.slice(2)]))
              for name, t in (("S", left), ("R", right))}  # fmt: skip
    query = job(spark, stream).stream(frames, buckets=4)
    assert query.splitting == {"S": ("k",), "R": ("name",)}
    writer = query.frame("rows").writeStream.format("memory").queryName("joined").outputMode("append")
    writer.trigger(**NOW).option("checkpointLocation", str(folder / "cp")).start().awaitTermination()
    rows = spark.table("joined").drop("bucket").toArrow()
    wanted = local(stream, {"S": left, "R": right})
    assert History.from_batches(wanted.schema, [sp.Batch(wanted.schema, rows.cast(wanted.schema.arrow_rows))]) == wanted


def test_plain_tables_are_points_and_intervals(spark: SparkSession, folder: Path) -> None:
    start = datetime(2024, 5, 1, tzinfo=UTC)
    times = [start + timedelta(seconds=n * 20) for n in range(12)]
    ends = [None if n % 5 == 0 else t + timedelta(minutes=1) for n, t in enumerate(times)]
    table = pa.table({
        "at": pa.array(times, pa.timestamp("us", "UTC")),
        "until": pa.array(ends, pa.timestamp("us", "UTC")),
        "price": pa.array([Decimal(n).scaleb(-2) for n in range(12)], pa.decimal128(10, 2)),
        "small": pa.array(range(12), pa.int16()),
        "a.b`c": pa.array([f"{n}" for n in range(12)]),
        "w": pa.array([1.5] * 12),
    })  # fmt: skip
    frame = table_stream(spark, write_files(folder / "in", [table.slice(0, 7), table.slice(7)]))
    mapping = sp.ColumnMapping(start="at", end="until", unit="s", rename={"w": "weight"})
    seen: list[OutputBatch] = []
    query = job(spark, sp.source("S")).stream({"S": frame}, time=mapping, checkpoint=folder / "cp", buckets=1)
    query.start(CallSink(seen.append, emit="rows"), trigger=NOW).wait()
    found = pa.concat_tables([batch.rows for batch in seen]).sort_by("le").to_pylist()
    first = int(start.timestamp())
    assert [row["le"] for row in found] == [first + 20 * n for n in range(12)]
    assert [row["re"] for row in found[:2]] == [sp.FOREVER, first + 80]
    assert found[3] | {"le": 0, "re": 0} == {
        "le": 0, "re": 0, "w": 1, "price": Decimal("0.03"), "small": 3, "a.b`c": "3", "weight": 1.5,
    }  # fmt: skip
    points = job(spark, sp.source("S")).stream({"S": frame}, time=sp.ColumnMapping(start="at", payload=["price"]))
    assert points.typed.schema.unit == "us"


def test_a_change_feed_is_inserts_and_deletes(spark: SparkSession, folder: Path) -> None:
    table = pa.table({
        "day": [1, 2, 1, 1, 3], "v": [10, 20, 10, 11, 30],
        "_change_type": ["insert", "insert", "update_preimage", "update_postimage", "insert"],
        "_commit_version": [0, 0, 1, 1, 1],
    })  # fmt: skip
    frame = table_stream(spark, write_files(folder / "in", [table.slice(0, 2), table.slice(2)]))
    feed = ChangeFeed(mapping=sp.ColumnMapping(start="day"))
    query = job(spark, sp.source("S")).stream({"S": frame}, time=feed, checkpoint=folder / "cp")
    query.start(FileSink(folder / "out", content="cht"), trigger=NOW).wait()
    assert [(r.le, r.payload["v"]) for r in read_output(folder / "out").to_rows()] == [(1, 11), (2, 20), (3, 30)]


@pytest.mark.parametrize("word", ["upsert", None])
def test_a_change_that_the_feed_does_not_name_is_not_lost(spark: SparkSession, folder: Path, word: str | None) -> None:
    table = pa.table({"day": [1, 2], "v": [10, 20], "_change_type": ["insert", word]})
    frame = table_stream(spark, write_files(folder / "in", [table]))
    feed = ChangeFeed(mapping=sp.ColumnMapping(start="day"))
    query = job(spark, sp.source("S")).stream({"S": frame}, time=feed, checkpoint=folder / "cp")
    with pytest.raises(InputError, match="it has no weight, or a change that the feed does not name") as raised:
        query.start(FileSink(folder / "out"), trigger=NOW).wait()
    assert '"payload": {"v": 20}' in str(raised.value.at)


MARKED = pa.table({
    "kind": pa.array([0, 0, 2, 0, 2], pa.int8()), "at": [1, 4, 5, 7, sp.FOREVER], "until": [9, 6, None, 8, None],
    "v": [10, 20, None, 30, None],
})  # fmt: skip
MARKS = sp.ColumnMapping(start="at", end="until", kind="kind")


def test_a_table_with_kinds_alone_has_inserts_and_ctis(spark: SparkSession, folder: Path) -> None:
    frame = table_stream(spark, write_files(folder / "in", [MARKED.slice(0, 3), MARKED.slice(3)]))
    stream = sp.source("S").tumbling(5).aggregate(n=sp.count(), s=sp.sum("v"))
    query = job(spark, stream).stream({"S": frame}, time=MARKS, checkpoint=folder / "cp")
    assert [(port.form, port.is_even) for port in query.ports] == [("marked", True)]
    running = query.start(FileSink(folder / "out", content="cht"), trigger=NOW)
    running.wait()
    found = [(r.le, r.payload["n"], r.payload["s"]) for r in read_output(folder / "out").to_rows()]
    assert found == [(0, 2, 30), (5, 3, 60)]
    assert running.metrics.as_dict()["cti"] == "inf"


def refused(
    spark: SparkSession, folder: Path, kinds: pa.Array, why: str
) -> tuple[str, list[int], list[dict[str, Any]]]:
    """Where a table with these kinds is refused, and, where it need not be right, what comes through and what not."""
    frame = table_stream(spark, write_files(folder / "in", [MARKED.set_column(0, "kind", kinds)]))
    strict = job(spark, sp.source("S")).stream({"S": frame}, time=MARKS, checkpoint=folder / "cp")
    with pytest.raises(InputError, match=why) as raised:
        strict.start(FileSink(folder / "out"), trigger=NOW).wait()
    lenient = job(spark, sp.source("S")).stream(
        {"S": frame}, time=MARKS, checkpoint=folder / "lenient", on_error="dead_letter"
    )
    lenient.start(FileSink(folder / "rest"), trigger=NOW).wait()
    through = [row.payload["v"] for row in read_output(folder / "rest").to_rows()]
    return str(raised.value.at), through, dead_letters(folder / "rest")


def test_a_retraction_needs_a_new_end(spark: SparkSession, folder: Path) -> None:
    at, through, letters = refused(spark, folder, pa.array([0, 0, 1, 0, 2], pa.int8()), "its new end is missing")
    assert "source S" in at
    assert through == [10, 20, 30]
    assert [letter["why"] for letter in letters] == ["its new end is missing"]


@pytest.mark.parametrize(
    "kinds", [pa.array(["insert", "insrt", "CTI", None, "cti"]), pa.array([0, 300, 2, None, 2], pa.int32())]
)
def test_a_kind_that_is_none_is_not_lost(spark: SparkSession, folder: Path, kinds: pa.Array) -> None:
    at, through, letters = refused(spark, folder, kinds, "its kind is none of insert, retract and cti")
    assert '"payload": {"v": 20}' in at
    assert through == [10]
    assert [letter["event"]["payload"]["v"] for letter in letters] == [20, 30]


def test_retractions_without_ids_cannot_be_let_go(spark: SparkSession, folder: Path) -> None:
    table = MARKED.append_column("new", pa.nulls(5, pa.int64()))
    frame = table_stream(spark, write_files(folder / "in", [table]))
    mapping = sp.ColumnMapping(start="at", end="until", kind="kind", new_end="new")
    with pytest.raises(InputError, match="a source of retractions has no ids"):
        job(spark, sp.source("S")).stream({"S": frame}, time=mapping, checkpoint=folder / "cp", on_error="drop")


LATE = [sp.Insert("a", 1, 20, {"v": 1}), sp.Cti(10)], [
    sp.Insert("late", 5, 12, {"v": 2}), sp.Retract("late", 5, 12, 11, {"v": 2}), sp.Retract("a", 1, 20, 15, {"v": 1}),
    sp.Cti(sp.FOREVER),
]  # fmt: skip


def test_what_comes_too_late_is_an_error(spark: SparkSession, folder: Path) -> None:
    chunks = [sp.PhysicalStream.from_events(part, schema=sp.Schema.of({"v": "int64"})) for part in LATE]
    frame = table_stream(spark, write_files(folder / "in", [events_table(chunk) for chunk in chunks]))
    query = job(spark, sp.source("S")).stream({"S": frame}, checkpoint=folder / "cp")
    with pytest.raises(
        InputError, match="a change from 5 on, but the CTI before it promised no change before 10"
    ) as raised:
        query.start(FileSink(folder / "out"), trigger=NOW).wait()
    assert raised.value.name == "cti_violation"
    assert raised.value.at == "source S, bucket 1, event 1 (insert late [5, 12)); last CTI 10"


def test_what_comes_too_late_can_be_let_go(spark: SparkSession, folder: Path) -> None:
    chunks = [sp.PhysicalStream.from_events(part, schema=sp.Schema.of({"v": "int64"})) for part in LATE]
    frame = table_stream(spark, write_files(folder / "in", [events_table(chunk) for chunk in chunks]))
    query = job(spark, sp.source("S")).stream({"S": frame}, checkpoint=folder / "cp", on_error="dead_letter")
    running = query.start(FileSink(folder / "out"), trigger=NOW)
    running.wait()
    assert [(r.le, r.re) for r in read_output(folder / "out").to_rows()] == [(1, 15)]
    assert running.metrics.as_dict()["dropped"] == 2
    letters = dead_letters(folder / "out")
    assert [letter["event"]["id"] for letter in letters] == ["late", "late"]


def test_advance_time_makes_ctis_and_counts_what_is_late(spark: SparkSession, folder: Path) -> None:
    table = pa.table({"t": [0, 10, 20, 5, 30, 28, 40, 2], "v": list(range(8))})
    frame = table_stream(spark, write_files(folder / "in", [table.slice(0, 3), table.slice(3)]))
    stream = sp.source("S").advance_time(every=2, delay=5).tumbling(10).aggregate(n=sp.count())
    query = job(spark, stream).stream(
        {"S": frame}, time="t", checkpoint=folder / "cp", buckets=4, on_error="dead_letter"
    )
    assert query.buckets == 1
    running = query.start(FileSink(folder / "out", content="cht"), trigger=NOW)
    running.wait()
    assert [(r.le, r.payload["n"]) for r in read_output(folder / "out").to_rows()] == [
        (0, 2),
        (10, 1),
        (20, 2),
        (30, 1),
    ]
    assert running.metrics.as_dict()["dropped"] == 1
    letters = dead_letters(folder / "out")
    assert [letter["event"]["payload"]["v"] for letter in letters] == [7]


@uda("picky_sum", returns="int64", takes="int64")
def picky_sum(values: list[int]) -> int:
    """A sum that does not like 13."""
    if 13 in values:
        raise ValueError("unlucky")
    return sum(values)


def test_an_error_of_a_module_comes_back_whole(spark: SparkSession, folder: Path) -> None:
    table = pa.table({"le": [1, 2, 11], "re": [2, 3, 12], "v": [1, 2, 13]})
    frame = table_stream(spark, write_files(folder / "in", [table, pa.table({"le": [30], "re": [31], "v": [1]})]))
    stream = sp.source("S").tumbling(10).uda("picky_sum", "v", as_="s")
    query = job(spark, stream, picky_sum).stream({"S": frame}, checkpoint=folder / "cp")
    with pytest.raises(RunError) as raised:
        query.start(FileSink(folder / "out"), trigger=NOW).wait()
    assert raised.value.what == "uda picky_sum@1 failed: ValueError: unlucky"
    assert str(raised.value.at).startswith("window [10, 20) with [11, 12) 13")


@pytest.mark.parametrize(
    ("table", "time", "text"),
    [
        (pa.table({"t": ["2024-01-01"]}), "t", "times of type string cannot be read"),
        (pa.table({"t": pa.array([0], pa.timestamp("us"))}), "t", "times of type timestamp_ntz cannot be read"),
        (pa.table({"t": [1], "x": [[1]]}), "t", "columns of type array<bigint> are not supported"),
        (pa.table({"t": [1]}), None, "it is not clear when its events happen"),
    ],
)
def test_tables_that_cannot_be_read(
    spark: SparkSession, folder: Path, table: pa.Table, time: str | None, text: str
) -> None:
    frame = table_stream(spark, write_files(folder / "in", [table]))
    with pytest.raises(StreamproofError, match=text):
        job(spark, sp.source("S")).stream({"S": frame}, time=time).frame()


def test_a_row_without_a_time_is_refused(spark: SparkSession, folder: Path) -> None:
    table = pa.table({"t": pa.array([1, None]), "v": ["a", "b"]})
    frame = table_stream(spark, write_files(folder / "in", [table]))
    query = job(spark, sp.source("S")).stream({"S": frame}, time="t", checkpoint=folder / "cp")
    with pytest.raises(InputError, match="an event is refused: its time is missing") as raised:
        query.start(FileSink(folder / "out"), trigger=NOW).wait()
    assert '"v": "b"' in str(raised.value.at)


def test_equal_keys_have_one_bucket_whatever_they_look_like(spark: SparkSession, folder: Path) -> None:
    values = [0.0, -0.0, math.nan, -math.nan, float.fromhex("0x1p-1074"), None]
    table = pa.table({"le": [0] * 6, "re": [5] * 6, "f": values})
    pq.write_table(table, folder / "x.parquet")
    rows = spark.read.parquet(str(folder)).selectExpr("xxhash64(f)").collect()
    assert rows[0] == rows[1]
    assert rows[2] == rows[3]


def test_a_source_is_read_with_and_without_advance_time(spark: SparkSession, folder: Path) -> None:
    """What is late for one branch is not for the other; it counts as two sources."""
    source = sp.source("S")
    plan = source.join(source.advance_time(every=1), "true", select={"a": "l.v", "b": "r.v"})
    events = sp.PhysicalStream.from_events(
        [sp.Insert("first", 9, 10, {"v": 1}), sp.Insert("late", 0, 20, {"v": 2})], schema=sp.Schema.of({"v": "int64"})
    )
    write_files(folder / "in", [events_table(events)])
    query = job(spark, plan).stream({"S": table_stream(spark, folder / "in")}, checkpoint=folder / "cp", buckets=2)
    running = query.start(FileSink(folder / "out", content="cht"), trigger=NOW)
    running.wait()
    found = [(row.le, row.re, row.payload) for row in read_output(folder / "out").to_rows()]
    assert sorted(found, key=str) == [(9, 10, {"a": 1, "b": 1}), (9, 10, {"a": 2, "b": 1})]
    assert (running.metrics.as_dict()["events"], running.metrics.as_dict()["dropped"]) == (4, 1)
