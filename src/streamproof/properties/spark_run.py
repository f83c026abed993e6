"""Running a PySpark function over micro-batches: one streaming query per output, or once over everything as a batch.

After the data comes a sentinel: a clone of a row far in the future, on every input, which moves the watermark so that
the last windows arrive. What it leaves in the output is cut off by time.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import tempfile
import time as clock
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.engines.spark.rows import without_empty_chunks
from streamproof.errors import InputError, RunError
from streamproof.events.time import Span, duration
from streamproof.properties.runs import BatchRecord, SubjectOutput, instants, time_column
from streamproof.properties.streams import STAMP, WEEK, event_times

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

Subject = Callable[..., Any]
FOLDER: Final = "STREAMPROOF_FOLDER"  # where files go; on a cluster, a folder that all machines see
_DELAY = re.compile(r"EventTimeWatermark .*?, (?:INTERVAL ')?([0-9][^\n']*?)'?(?:\s*\[[^\n]*)?$", re.M)
_CAUSE = re.compile(r"[\w.]*(?:Error|Exception)\b[^:]*: .")
SECONDS: Final = 600
PARTS: Final = 8  # of a large file


@dataclass(frozen=True)
class Setting:
    """How to run a subject."""

    output_mode: str = "append"
    watermark: str | None = None  # put on every input before the subject, which else does it itself
    restart_after: int | None = None  # stop after so many micro-batches and go on from the checkpoint
    flush: bool = True
    reach: Span = "1 week"  # how far beyond its inputs a subject may look


@dataclass(frozen=True, eq=False)
class InputFeed:
    """One input: its micro-batches, its event-time column, and where its rows end."""

    batches: list[pa.Table]
    time: str
    end: int
    schema: pa.Schema


@dataclass(frozen=True, eq=False)
class SparkOutcome:
    """What came out."""

    outputs: tuple[SubjectOutput, ...]
    triggers: tuple[BatchRecord, ...]
    notes: tuple[str, ...] = ()


@contextmanager
def scratch() -> Iterator[Path]:
    """A folder for inputs and checkpoints, gone afterwards."""
    base = os.environ.get(FOLDER)
    memory = "/dev/shm" if os.path.isdir("/dev/shm") and os.access("/dev/shm", os.W_OK) else None  # noqa: S108
    folder = Path(tempfile.mkdtemp(prefix="streamproof-", dir=base or memory))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def gap_of(frames: Sequence[DataFrame], reach: Span) -> int:
    """How far apart unrelated rows must lie: beyond what the subject looks at and the watermark waits for."""
    delays = [0]
    for frame in frames:
        plan = frame._jdf.queryExecution().analyzed().toString()
        for text in _DELAY.findall(plan):
            try:
                delays.append(duration(re.sub(r"(\d+(?:\.\d+)?) (\w+?)s?\b", r"\1 \2", text.strip()), "us"))
            except Exception:  # noqa: S112  # an interval we cannot read is no reason to stop
                continue
    wanted = duration(reach, "us") + max(delays)
    return max(1, -(-wanted // WEEK)) * WEEK


def frames_of(subject: Subject, inputs: Sequence[DataFrame]) -> tuple[DataFrame, ...]:
    """The subject's outputs for these inputs."""
    from pyspark.sql import DataFrame  # noqa: PLC0415

    __tracebackhide__ = True
    given = subject(*inputs)
    frames = tuple(given) if isinstance(given, tuple | list) else (given,)
    for frame in frames:
        if not isinstance(frame, DataFrame):
            raise InputError(
                f"a subject gives a DataFrame, or two, not {type(frame).__name__}",
                at=getattr(subject, "__name__", repr(subject)),
                fix="return the streaming DataFrame; do not start the query",
            )
    return frames


def clone(feed: InputFeed, moment: int) -> pa.Table:
    """One row at a moment: like one of the feed's own, or made up where it has none."""
    rows = next((batch for batch in feed.batches if batch.num_rows), None)
    row = (
        rows.slice(rows.num_rows - 1)
        if rows is not None
        else pa.table([_filler(f) for f in feed.schema], schema=feed.schema)
    )
    at = feed.schema.get_field_index(feed.time)
    return row.set_column(at, feed.time, pa.array([moment], type=STAMP))


def _filler(column: pa.Field) -> pa.Array:
    """A harmless value of a type."""
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return pa.array([0], type=kind)
    if pa.types.is_string(kind):
        return pa.array([""], type=kind)
    if pa.types.is_boolean(kind):
        return pa.array([False])
    return pa.nulls(1, kind)


def write_feed(feed: InputFeed, folder: Path) -> None:
    """The micro-batches as files, in order of their times of change, which is the order Spark reads them in."""
    folder.mkdir(parents=True)
    first = clock.time() - len(feed.batches) - 10
    for number, batch in enumerate(feed.batches):
        file = folder / f"{number:06d}.parquet"
        rows = max(1000, -(-batch.num_rows // PARTS))  # in parts, so that Spark can read them at once
        pq.write_table(
            batch, file, compression="none", use_dictionary=False, write_statistics=False, row_group_size=rows
        )
        os.utime(file, (first + number, first + number))


def spark_schema(spark: SparkSession, schema: pa.Schema) -> Any:
    """The schema as Spark has it."""
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    return from_arrow_schema(schema)


def streamed(spark: SparkSession, feeds: Sequence[InputFeed], subject: Subject, setting: Setting) -> SparkOutcome:
    """Run as streaming queries, one after another for each output, until every last window has arrived."""
    __tracebackhide__ = True  # pytest shows the line of the test, and that of the subject
    with scratch() as folder, quick(spark):
        sources = [source_of(spark, feed, folder / f"in{n}", setting) for n, feed in enumerate(feeds)]
        frames = frames_of(subject, sources)
        wide = gap_of(frames, setting.reach)
        end = max(feed.end for feed in feeds)
        flush = setting.flush
        notes: list[str] = []
        on = [output_time(frame, feeds) for frame in frames]
        if flush and None in on:
            flush = False
            notes.append("no flush: the output has no time column to cut the flush by")
        for n, feed in enumerate(feeds):
            sentinel = [clone(feed, end + wide)] if flush else []
            full = InputFeed(feed.batches + sentinel, feed.time, feed.end, feed.schema)
            shutil.rmtree(folder / f"in{n}")
            write_feed(full, folder / f"in{n}")
        outputs, triggers = [], []
        with held(spark, _state_store(frames)):
            for n, frame in enumerate(frames):
                output, seen = _query(frame, folder / f"check{n}", setting)
                outputs.append(cut(output, on[n], end + wide // 2) if flush else output)
                triggers.append(seen)
        return SparkOutcome(tuple(outputs), triggers[0], tuple(notes))


def source_of(spark: SparkSession, feed: InputFeed, folder: Path, setting: Setting) -> DataFrame:
    folder.mkdir(parents=True)
    frame = (
        spark.readStream.schema(spark_schema(spark, feed.schema)).option("maxFilesPerTrigger", 1).parquet(str(folder))
    )
    return frame.withWatermark(feed.time, setting.watermark) if setting.watermark else frame


def output_time(frame: DataFrame, feeds: Sequence[InputFeed]) -> str | None:
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    return time_column(to_arrow_schema(frame.schema, timezone="UTC"), [feed.time for feed in feeds])


def cut(output: SubjectOutput, on: str | None, end: int) -> SubjectOutput:
    """Without what the sentinel left behind."""
    if on is None or not output.table.num_rows:
        return output
    kept = np.flatnonzero(instants(output.table, on) < end)
    return SubjectOutput(output.table.take(pa.array(kept)), output.batch[kept])


_held: dict[str, tuple[str | None, int]] = {}  # settings for a while: what they were, and for how many
_holding = Lock()
_QUICK: Final = {
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.streaming.minBatchesToRetain": "2",
    "spark.sql.session.timeZone": "UTC",
    # the usual one asks the shell about every file; what survives a crash of the machine does not matter here
    "spark.sql.streaming.checkpointFileManagerClass": (
        "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
    ),
}


@contextmanager
def quick(spark: SparkSession) -> Iterator[None]:
    """For a while, what makes short queries quick and times unambiguous."""
    bridge = logging.getLogger("py4j.clientserver")  # logs what is raised here as well
    level = bridge.level
    bridge.setLevel(logging.CRITICAL)
    try:
        with held(spark, _QUICK):
            yield
    finally:
        bridge.setLevel(level)


@contextmanager
def held(spark: SparkSession, wanted: Mapping[str, str]) -> Iterator[None]:
    """For a while, other settings; with queries at once, until the last of them is done."""
    with _holding:
        for name, value in wanted.items():
            before, holders = _held.get(name) or (spark.conf.get(name, None), 0)
            _held[name] = (before, holders + 1)
            spark.conf.set(name, value)
    try:
        yield
    finally:
        with _holding:
            for name in wanted:
                _let_go(spark, name)


def _let_go(spark: SparkSession, name: str) -> None:
    before, holders = _held[name]
    if holders > 1:
        _held[name] = (before, holders - 1)
        return
    del _held[name]
    if before is None:
        spark.conf.unset(name)
    else:
        spark.conf.set(name, before)


def _state_store(frames: Sequence[DataFrame]) -> dict[str, str]:
    """The settings that a subject's state needs: `transformWithState` works with RocksDB alone."""
    newest = any("TransformWithState" in frame._jdf.queryExecution().analyzed().toString() for frame in frames)
    package = "org.apache.spark.sql.execution.streaming.state"
    return {"spark.sql.streaming.stateStore.providerClass": f"{package}.RocksDBStateStoreProvider"} if newest else {}


def _query(frame: DataFrame, checkpoint: Path, setting: Setting) -> tuple[SubjectOutput, tuple[BatchRecord, ...]]:
    """Run one query to its end, killing and restarting it where asked."""
    __tracebackhide__ = True
    found: dict[int, pa.Table] = {}
    triggers: list[BatchRecord] = []
    killed: list[int] = []  # the micro-batch that the kill came in; it is done again after the restart

    def collect(batch: DataFrame, number: int) -> None:
        if number == setting.restart_after and not killed:
            killed.append(number)
            raise KilledError
        found[number] = batch.toArrow()

    while True:
        before = len(killed)
        query = _started(frame, collect, checkpoint, setting)
        try:
            _finish(query)
        except Exception:
            if len(killed) == before:
                raise
        triggers += [_trigger(progress) for progress in query.recentProgress]
        if len(killed) == before:
            return _joined(found, frame), tuple(triggers)


class KilledError(Exception):
    """The kill of a restart."""


def _started(frame: DataFrame, collect: Callable[..., None], checkpoint: Path, setting: Setting) -> StreamingQuery:
    __tracebackhide__ = True
    writer = frame.writeStream.foreachBatch(collect).outputMode(setting.output_mode)
    try:
        return writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    except Exception as error:
        raise _explained(error) from error


def _finish(query: StreamingQuery) -> None:
    __tracebackhide__ = True
    try:
        if not query.awaitTermination(SECONDS):
            query.stop()
            raise RunError(f"the streaming query did not end within {SECONDS} s", fix="draw smaller streams")
    except RunError:
        raise
    except Exception as error:
        raise _explained(error) from error


def _explained(error: Exception) -> RunError:
    """Spark's error with its cause first: the last line that names one."""
    text = str(error).strip().split("\n\nJVM stacktrace", maxsplit=1)[0]
    causes = [line.strip() for line in text.splitlines() if _CAUSE.match(line.strip())]
    fix = None
    if "watermark" in text:
        fix = 'call withWatermark in the subject, or give run_stream(…, watermark="10 minutes")'
    cause = (causes or [text])[-1][:500]
    return RunError(f"the subject broke off: {cause}", at=None if text.startswith(cause) else text[:1500], fix=fix)


def _trigger(progress: Any) -> BatchRecord:
    given = (
        progress if isinstance(progress, dict) else progress.jsonValue if hasattr(progress, "jsonValue") else progress
    )
    operators = given["stateOperators"] or []
    late = sum(int(_get(operator, "numRowsDroppedByWatermark")) for operator in operators)
    return BatchRecord(
        int(given["batchId"]), int(given["numInputRows"]), (given["eventTime"] or {}).get("watermark"), late
    )


def _get(operator: Any, name: str) -> int:
    return int(operator[name] if isinstance(operator, dict) else getattr(operator, name, 0))


def _joined(found: dict[int, pa.Table], frame: DataFrame) -> SubjectOutput:
    from pyspark.sql.pandas.types import to_arrow_schema  # noqa: PLC0415

    numbers = sorted(number for number in found if found[number].num_columns)
    tables = [found[number] for number in numbers]
    if not tables:
        return SubjectOutput(to_arrow_schema(frame.schema, timezone="UTC").empty_table(), np.zeros(0, dtype=np.int64))
    batch = np.repeat(np.array(numbers, dtype=np.int64), [table.num_rows for table in tables])
    return SubjectOutput(pa.concat_tables(tables, promote_options="permissive").combine_chunks(), batch)


LARGE: Final = 20_000  # rows that are rather read from a file


def batched(spark: SparkSession, feeds: Sequence[InputFeed], subject: Subject, setting: Setting) -> SparkOutcome:
    """Run once over everything, as a batch job does: the same function over finished tables."""
    with scratch() as folder, quick(spark):
        inputs = []
        for number, feed in enumerate(feeds):
            table = pa.concat_tables(feed.batches) if feed.batches else feed.schema.empty_table()
            frame = _table(spark, table, folder / f"{number}.parquet")
            inputs.append(frame.withWatermark(feed.time, setting.watermark) if setting.watermark else frame)
        try:
            tables = [frame.toArrow() for frame in frames_of(subject, inputs)]
        except InputError:
            raise
        except Exception as error:
            raise _explained(error) from error
    return SparkOutcome(
        tuple(SubjectOutput(t.combine_chunks(), np.zeros(t.num_rows, dtype=np.int64)) for t in tables), ()
    )


def _table(spark: SparkSession, table: pa.Table, file: Path) -> DataFrame:
    if table.num_rows <= LARGE:
        return spark.createDataFrame(without_empty_chunks(table))
    pq.write_table(table, file, compression="none")
    return spark.read.schema(spark_schema(spark, table.schema)).parquet(str(file))


def later(table: pa.Table, time: str, by: int) -> pa.Table:
    """The rows with their event time moved by so many microseconds."""
    at = table.schema.get_field_index(time)
    return table.set_column(at, time, pa.array(event_times(table, time) + by, type=STAMP))
