"""A restart on a checkpoint never changes a result without a word: every setting is claimed, or listed as free."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.cli.honoured import CONDITIONS
from streamproof.cli.run import run as run_command
from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.sinks import CallSink, FileSink, Sink
from streamproof.engines.spark.sources import ChangeFeed
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.engines.spark.stream.query import StreamQuery, StreamQueryOptions, make_query
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module
from streamproof.thresholds import lowered
from tests.spark.stream.tables import write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = {"availableNow": True}
S = sp.source("S")
PLAN = S.group_by("k").tumbling(10).aggregate(n=sp.count(), t=sp.sum("v"))
TIMED = S.advance_time(every=2).group_by("k").tumbling(10).aggregate(n=sp.count())
OFTEN = S.advance_time(every=3).group_by("k").tumbling(10).aggregate(n=sp.count())
COUNTS = S.group_by("k").tumbling(10).aggregate(n=sp.count())
CALLED = S.group_by("k").apply(lambda group: group.tumbling(10).uda("scaled", "v"))
REKEYED = PLAN.tumbling(20).aggregate(m=sp.max("n"))


def scaled(by: int, version: str = "1") -> Module:
    """A module whose results depend on a number in its closure."""
    return sp.uda("scaled", returns="int64", takes="int64", version=version)(lambda values: sum(values) * by)


def at(column: str = "at", **more: Any) -> ColumnMapping:
    return ColumnMapping(start=column, **more)


Given = Mapping[str, Any]
CASES: dict[str, tuple[Given, Given, str | None]] = {
    "plan": ({}, {"plan": PLAN.where("n > 1")}, 'the checkpoint belongs to another plan: it was taken with plan.op='),
    "plan: advance_time": ({"plan": TIMED}, {"plan": OFTEN}, "every=2"),
    "plan: no advance_time": ({"plan": TIMED}, {"plan": COUNTS}, ".op="),
    "emission": ({"emission": "final"}, {}, 'emission="final", this run has emission="speculative"'),
    "buckets": ({}, {"buckets": 3}, "the checkpoint is cut into 2 buckets, and 3 are asked for"),
    "stages": ({"plan": REKEYED, "stages": "chained"}, {"plan": REKEYED, "stages": "fused"}, "stages are chained"),
    "on_error": ({"on_error": "drop"}, {"on_error": "fail"}, 'was taken with on_error="drop"'),
    "on_error: more": ({}, {"on_error": "dead_letter"}, None),
    "in_order": ({"in_order": True}, {}, "in_order=true, this run has in_order=false"),
    "horizon": ({"horizon": 50}, {}, "horizon=50, this run has horizon=null"),
    "limits": ({}, {"limits": Limits(windows_per_event=5)}, "limits.windows_per_event=1000000"),
    "optimise": ({}, {"optimise": False}, "optimise=true"),
    "modules": ({"plan": CALLED, "modules": [scaled(2)]}, {"plan": CALLED, "modules": [scaled(3)]}, "uda scaled.code"),
    "modules: version": ({"plan": CALLED, "modules": [scaled(2)]}, {"plan": CALLED, "modules": [scaled(2, "2")]},
                         "uda scaled.version"),
    "modules: not called": ({"modules": [scaled(2)]}, {"modules": [scaled(3)]}, None),
    "time": ({"plan": COUNTS, "time": at(payload=("k",))}, {"plan": COUNTS, "time": at("v", payload=("k",))},
             'sources.S.mapping.start="at", this run has sources.S.mapping.start="v"'),
    "time: form": ({"plan": COUNTS, "time": at()}, {"plan": COUNTS, "time": ChangeFeed(mapping=at(), change="v")},
                   "sources.S"),
    "inputs: columns": ({}, {"types": "at bigint, k string, v double"}, "sources.S.columns"),
    "inputs: place": ({}, {"place": "elsewhere"}, "sources.S.from.0.path="),
    "inputs: format": ({}, {"format": "orc"}, 'sources.S.from.0.format="parquet"'),
    "inputs: options": ({}, {"reader": {"recursiveFileLookup": "true"}}, "recursivefilelookup"),
    "inputs: when files come": ({"reader": {"maxFilesPerTrigger": "3"}}, {"reader": {"maxFilesPerTrigger": "1"}}, None),
    "sink": ({}, {"sink": CallSink(print)}, 'sink="FileSink", this run has sink="CallSink"'),
    "emit": ({"sink": CallSink(print)}, {"sink": CallSink(print, emit="rows")}, 'emit="events"'),
    "content: of events": ({}, {"content": "cht"}, 'emit="events", this run has emit="rows"'),
    "content": ({"content": "rows"}, {"content": "cht"}, 'content="rows", this run has content="cht"'),
    "format": ({}, {"file_format": "jsonl"}, 'format="parquet", this run has format="jsonl"'),
    "compact": ({}, {"compact": False}, None),
    "keep_in_memory": ({}, {"keep_in_memory": False}, None),
    "function": ({"sink": CallSink(print)}, {"sink": CallSink(repr)}, None),
    "session": ({}, {"session": {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false",
                                 "spark.sql.shuffle.partitions": "7", "spark.sql.caseSensitive": "true"}}, None),
}  # fmt: skip
OF_MAPPINGS: dict[str, Any] = {
    "end": "v", "duration": 5, "id": "v", "kind": "v", "payload": ("k",), "rename": {"v": "w"},
    "unit": "ms", "assume_zone": "UTC", "ambiguous": "earlier",
}  # fmt: skip
for _name, _value in OF_MAPPINGS.items():
    CASES[f"time: {_name}"] = (
        {"plan": COUNTS, "time": at()}, {"plan": COUNTS, "time": at(**{_name: _value})}, "sources.S",
    )  # fmt: skip

FREE = {
    "trigger", "name", "watcher", "metrics",  # of start: when Spark runs, and who looks on
    "on_step",  # who looks on
    "final",  # a folder that grew is complete at last; what comes after that is refused
    "files_per_batch",  # from 1 to more is `in_order`
    "folder",  # where the sink's folder is: it must be the one that was written
}  # fmt: skip
NOT_SETTINGS = {
    "self",
    "session",
    "spark",
    "options",
    "settings",
    "checkpoint",
    "extra",
    "sink",
    "run",
    "plan",
    "query",
}
OF_MAIN = {  # option of `run` → what it sets
    "plan": "plan", "input": "inputs", "growing": "final", "emit": "content", "out": "folder", "horizon": "horizon",
    "map": "time", "on_error": "on_error", "modules": "modules", "max_windows": "limits", "emission": "emission",
}  # fmt: skip
SHOWN = {"json", "metrics", "quiet", "limit", "engine", "mode", "checkpoint"}


def settings_of_streams() -> set[str]:
    """Everything that a streaming run can be told, by anybody."""
    ways = (on, SparkEngine, make_query, StreamQuery.start, run_files, FileSink, CallSink)
    found = {name for way in ways for name in inspect.signature(way).parameters} - {"engine_name"}
    return found | {field.name for kind in (StreamQueryOptions, FileRun, Settings) for field in fields(kind)} - {
        "registry"
    }


def test_every_setting_is_claimed_or_free() -> None:
    covered = {name.partition(":")[0] for name in CASES} | FREE | NOT_SETTINGS
    told = settings_of_streams() | {field.name for field in fields(ColumnMapping)}
    parts = {*OF_MAPPINGS, "start", "new_end", "cti"}  # the last two only beside ``kind``
    assert told - covered - parts - {"on_module_error"} == set(), "say it in CASES"
    refused = {name for name, needs in CONDITIONS["run"].items() if "without --mode stream" in needs.words}
    local = {name for name, needs in CONDITIONS["run"].items() if needs.words.startswith("with --engine local")}
    told = set(inspect.signature(run_command).parameters) - refused - (local - {"emission", "metrics"})
    assert told - set(OF_MAIN) - SHOWN - {"dsn", "overwrite", "module_letters"} == set(), "say in OF_MAIN what it sets"
    assert set(OF_MAIN.values()) <= {name.partition(":")[0] for name in CASES} | FREE


def test_what_may_change_is_in_the_docs() -> None:
    text = (Path(__file__).parents[3] / "docs/spark-streaming.md").read_text()
    section = text.partition("### What may change")[2].partition("\n#")[0]
    listed = set(re.findall(r"`(\w+)=?`", section))
    free = FREE | {name.partition(":")[0] for name, case in CASES.items() if case[2] is None}
    assert free - listed - {"inputs", "modules", "session", "folder"} == set()


def laid(folder: Path, *, files: range = range(2)) -> Path:
    """Files of twenty rows each, with times that never go back by much."""
    tables = []
    for number in files:
        rows = range(20 * number, 20 * number + 20)
        tables.append(pa.table({"at": [n - n % 3 for n in rows], "k": [f"k{n % 3}" for n in rows], "v": list(rows)}))
    return write_files(folder, tables, first=files.start)


def query_of(spark: SparkSession, folder: Path, given: Given) -> tuple[StreamQuery, Sink]:
    """A query as it is told, and its sink."""
    told = dict(given)
    for name, value in told.pop("session", {}).items():
        spark.conf.set(name, value)
    place = laid(folder / told.pop("place", "in"))
    reader = spark.readStream.schema(told.pop("types", "at bigint, k string, v bigint"))
    reader = reader.format(told.pop("format", "parquet")).options(**told.pop("reader", {}))
    settings = {name: told.pop(name) for name in ("horizon", "modules", "limits", "optimise") if name in told}
    stream = told.pop("plan", PLAN)
    content, compact, kind = (
        told.pop("content", "events"),
        told.pop("compact", True),
        told.pop("file_format", "parquet"),
    )
    sink = told.pop("sink", None) or FileSink(folder / "out", content=content, format=kind, compact=compact)
    job = on(stream.plan, "spark", session=spark, **settings)
    options = {"time": "at", "buckets": 2, **told}
    return job.stream({"S": reader.load(str(place))}, checkpoint=folder / "cp", **options), sink


@pytest.mark.parametrize("name", CASES)
def test_what_differs_is_refused_in_words(name: str, spark: SparkSession, folder: Path) -> None:
    before, now, words = CASES[name]
    kept = {key: spark.conf.get(key, None) for key in now.get("session", {})}
    try:
        first, sink = query_of(spark, folder, before)
        sink.open(first._sink_context(first.claim(sink).run))
        second, other = query_of(spark, folder, now)
        if words is None:
            other.open(second._sink_context(second.claim(other).run))
            return
        with pytest.raises(InputError) as raised:
            other.open(second._sink_context(second.claim(other).run))
        assert words in raised.value.what
        assert raised.value.fix
        assert ('give the sink content="events"' in raised.value.fix) == ('emit="events"' in words)
        assert str(folder) in str(raised.value.at)
    finally:
        for key, value in kept.items():
            spark.conf.unset(key) if value is None else spark.conf.set(key, value)


def wanted(folder: Path) -> sp.History:
    """What comes out of everything, on another engine."""
    pq.write_table(pa.concat_tables(pq.read_table(file) for file in sorted(folder.glob("*.parquet"))), folder / "_all")
    return PLAN.on("duckdb").run({"S": sp.read(folder / "_all", mapping=at(), format="parquet")}).history


def test_what_may_change_is_harmless(spark: SparkSession, folder: Path) -> None:
    laid(folder / "in", files=range(3))
    told: Any = {"buckets": 2}
    run = FileRun(PLAN.plan, {"S": folder / "in"}, folder / "cp", Settings(), "at", 2, final=False, options=told)
    run_files(spark, run, FileSink(folder / "out", content="rows", compact=False))
    laid(folder / "in", files=range(3, 7))
    changed = {"buckets": 2, "keep_in_memory": False, "on_error": "fail"}
    with lowered({"journal.least": 0, "journal.piece": 16, "journal.kept": 0, "ports.rows": 4}):
        settings = Settings(on_module_error="dead_letter")
        run = FileRun(PLAN.plan, {"S": folder / "in"}, folder / "cp", settings, "at", 3, options=changed)
        sink = FileSink(folder / "out", content="rows", on_step=lambda _step, _number: None)
        run_files(spark, run, sink, watcher=lambda _batch, _metrics: None)
    assert read_output(folder / "out") == wanted(folder / "in")


def test_state_is_that_of_its_query_whoever_starts_it(spark: SparkSession, folder: Path) -> None:
    """The output as a table is started by others, with a checkpoint of which we know nothing."""

    def start(given: Given) -> None:
        query, _ = query_of(spark, folder, given)
        writer = query.frame("rows").writeStream.option("checkpointLocation", str(folder / "cp2"))
        writer.trigger(availableNow=True).start(str(folder / "table")).awaitTermination()

    start({})
    laid(folder / "in", files=range(2, 3))
    for given, words in (({"plan": PLAN.where("n > 1")}, "plan.op="), ({"emission": "eager"}, 'emission=\\"eager')):
        with pytest.raises(Exception, match="the state in the checkpoint") as raised:
            start(given)
        assert words in str(raised.value)
    start({"keep_in_memory": False})
    found = spark.read.parquet(str(folder / "table")).select("le", "re", "w", "k", "n", "t").toArrow()
    history = sp.History.from_table(wanted(folder / "in").schema, found)
    assert [row for row in history.to_rows() if row.le < 50] == [
        row for row in wanted(folder / "in").to_rows() if row.le < 50
    ]
