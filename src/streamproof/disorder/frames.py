"""DataFrames of Spark: measured as they are, or watched as they stream.

A DataFrame is measured in the order of an arrival column, or partition by partition as it gives its rows. A running
stream is watched in memory that does not grow: lateness is counted in bins that are at most 1/64 wide, so that a
quantile is at most that much too large; counts of events and of late events are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from streamproof.arguments import door
from streamproof.disorder.analysis import Analysis, AnalyzedStream, analyze_stream
from streamproof.disorder.array_store import ArrayStore, FolderStore, SubStore
from streamproof.disorder.external_sort import sort_stream
from streamproof.disorder.figures import LOSSES, QUANTILES
from streamproof.disorder.layout import OFFSET_BITS, SourceLayout
from streamproof.disorder.records import LOWEST
from streamproof.disorder.rows import table_columns
from streamproof.disorder.runner import OnSpark, workplace
from streamproof.disorder.scanning import GOOD, NO_TIME
from streamproof.disorder.units import TimeUnit, shown, spark_interval
from streamproof.errors import InputError, did_you_mean
from streamproof.events.order import Ints

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

_NUMBERS = ("tinyint", "smallint", "int", "bigint")


@door
def analyze_frame(
    frame: DataFrame, event_time: str, *, arrival: str | None = None, unit: TimeUnit | None = None,
    key: str | None = None, more: bool = False, duplicates: bool = True, batch_rows: int | None = None,
    delay: int | str | None = None, window: int | str | None = None, zone: str | None = None, work: Path | None = None,
) -> Analysis:  # fmt: skip
    """Measure a DataFrame. Without ``arrival`` its rows arrive partition by partition, as it gives them."""
    runner = OnSpark(frame.sparkSession)
    layout = frame_layout(frame, event_time, arrival, key, unit, zone)
    with workplace(work, runner) as (_, store):
        assert isinstance(store, FolderStore)
        rows = _read(frame, layout, store, duplicates)
        if not sum(count for count, *_ in rows):
            raise InputError("the DataFrame holds no events", at=event_time, fix="give one with at least one event")
        stream = _stream(layout, store, rows, runner, event_time)
        return analyze_stream(stream, runner, more=more, duplicates=duplicates, simulation=(batch_rows, delay, window))


def frame_layout(  # noqa: PLR0917
    frame: DataFrame, event_time: str, arrival: str | None, key: str | None, unit: TimeUnit | None, zone: str | None
) -> SourceLayout:
    """Which columns of a DataFrame matter."""
    names = [name for name in (event_time, arrival, key) if name is not None]
    for name in names:
        if name not in frame.columns:
            raise InputError(
                f'there is no column "{name}"', at="analyze(df, …)", fix=did_you_mean(name, frame.columns),
                name="unknown_column",
            )  # fmt: skip
    kind = frame.schema[event_time].dataType.simpleString()
    if kind in _NUMBERS and unit is None:
        raise InputError(
            "the times are numbers, and nothing says how long a tick is",
            at=event_time,
            fix='say unit="s" (ps, ns, us, ms, s)',
        )
    return SourceLayout(
        files=(), named=Path("DataFrame"), format="frame", separator=0, names=tuple(names), has_header=False,
        header=b"",
        time=0, arrival=None if arrival is None else 1, key=None if key is None else len(names) - 1,
        unit=unit or "us", zone=zone, quote=True, multiline=False,
    )  # fmt: skip


def _read(
    frame: DataFrame, layout: SourceLayout, store: FolderStore, duplicates: bool
) -> list[tuple[int, int, int, int]]:
    """Put the times into the store; rows, highest time, nulls and other rejects of each partition."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = [F.col("`" + name.replace("`", "``") + "`").alias(f"c{n}") for n, name in enumerate(layout.names)]
    if duplicates:
        columns.append(F.xxhash64(*[F.col("`" + n.replace("`", "``") + "`") for n in frame.columns]).alias("row"))
    found = frame.select(*columns).mapInArrow(
        _PartitionReader(layout, store.folder), "piece int, rows bigint, highest bigint, nulls bigint, bad bigint"
    )
    rows = sorted(tuple(row) for row in found.collect())
    return [(count, highest, nulls, bad) for _, count, highest, nulls, bad in rows]


class _PartitionReader:
    """What a task does with its partition."""

    def __init__(self, layout: SourceLayout, folder: Path) -> None:
        self._layout, self._folder = layout, folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        found = scan_batches(FolderStore(self._folder), number, self._layout, list(batches))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([value], kind)
                for value, kind in zip((number, *found), (pa.int32(), *[pa.int64()] * 4), strict=True)
            ],
            ["piece", "rows", "highest", "nulls", "bad"],
        )


def scan_batches(
    store: ArrayStore, number: int, layout: SourceLayout, batches: list[pa.RecordBatch]
) -> tuple[int, int, int, int]:
    """Put the times of a partition into the store."""
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        for name in ("t", "id", "length"):
            store.put(f"{name}/{number}", np.zeros(0, np.int64))
        for name, wanted in (("arrival", layout.arrival), ("key", layout.key)):
            if wanted is not None:
                store.put(f"{name}/{number}", np.zeros(0, np.int64))
        store.put(f"row/{number}", np.zeros(0, np.uint64))
        return 0, -(2**62), 0, 0
    table = pa.Table.from_batches(filled)
    status, columns = table_columns(layout, table)
    good = status == GOOD
    store.put(f"t/{number}", columns.times[good])
    store.put(f"id/{number}", (np.int64(number) << OFFSET_BITS) | np.flatnonzero(good).astype(np.int64))
    store.put(f"length/{number}", np.zeros(int(good.sum()), np.int32))
    if columns.arrivals is not None:
        store.put(f"arrival/{number}", columns.arrivals[good])
    if columns.keys is not None:
        store.put(f"key/{number}", columns.keys[good])
    if "row" in table.column_names:
        hashes = table.column("row").to_numpy().astype(np.int64).view(np.uint64)
        store.put(f"row/{number}", hashes[good])
    highest = int(columns.times[good].max()) if good.any() else -(2**62)
    nulls = int((status == NO_TIME).sum())
    return int(good.sum()), highest, nulls, int((~good).sum())


def _stream(layout: SourceLayout, store: FolderStore, rows: Any, runner: OnSpark, event_time: str) -> AnalyzedStream:
    counts, highest = [count for count, *_ in rows], [high for _, high, *_ in rows]
    place: ArrayStore = store
    if layout.arrival is not None:
        highest = sort_stream(store, runner, len(rows), "arrival", "sorted")
        place = SubStore(store, "sorted")
        counts = [len(place.get(f"t/{piece}")) for piece in range(len(highest))]
    return AnalyzedStream(
        place, counts, highest, layout.unit, "DataFrame", event_time, rejected=sum(row[3] for row in rows),
        nulls=sum(row[2] for row in rows), keyed=layout.key is not None,
    )  # fmt: skip


FINE: Final = 6  # bits of a bin's place within its power of two
BINS: Final = (64 - FINE) << FINE


def bins_of(values: Ints) -> Ints:
    """The bin of each number that is not negative.

    >>> bins_of(np.array([0, 5, 63, 64, 127, 128])).tolist()
    [0, 5, 63, 64, 127, 128]
    """
    powers = np.maximum(np.frexp(values.astype(np.float64))[1] - FINE - 1, 0).astype(np.int64)
    return np.asarray((powers << FINE) + (values >> powers))


def highest_in(bin_number: int) -> int:
    """The largest number of a bin."""
    power = max(0, (bin_number >> FINE) - 1)
    return ((bin_number - (power << FINE) + 1) << power) - 1


class RunningDisorder:
    """Figures of a stream so far."""

    def __init__(self, event_time: str, unit: TimeUnit) -> None:
        self.event_time, self.unit = event_time, unit
        self.events = self.late = self.batches = self.rejected = 0
        self.highest = LOWEST  # the latest time so far
        self.latest = 0  # the longest lateness so far
        self._bins = np.zeros(BINS, np.int64)

    def update(self, times: Ints) -> None:
        """Count the events of one micro-batch, in the order of their arrival."""
        self.batches += 1
        if not len(times):
            return
        highest = np.maximum(np.maximum.accumulate(times), self.highest)
        before = np.concatenate([[self.highest], highest[:-1]])
        late = times < before
        lateness = (before - times)[late]
        self.events += len(times)
        self.late += len(lateness)
        self.highest = int(highest[-1])
        if len(lateness):
            self.latest = max(self.latest, int(lateness.max()))
            self._bins += np.bincount(bins_of(lateness), minlength=BINS)

    def lateness(self, rank: int) -> int:
        """About the lateness with this rank among the late events, counted from 0; never less than it."""
        found = int(np.searchsorted(np.cumsum(self._bins), rank, side="right"))
        return min(self.latest, highest_in(found))

    def as_dict(self) -> dict[str, Any]:
        """The figures under the names that an analysis uses."""
        shares = {name: max(0, -int(-(q * self.late) // 1) - 1) for name, q in QUANTILES.items()}
        lost = {name: int(share * self.events // 1) for name, share in LOSSES.items()}
        return {
            "event_time": self.event_time, "unit": self.unit, "batches": self.batches, "events": self.events,
            "out_of_order": self.late, "factor": 100 * self.late / self.events if self.events else 0.0,
            "lateness": {
                **{name: self.lateness(rank) if self.late else None for name, rank in shares.items()},
                "max": self.latest if self.late else None,
            },
            "delay_for_loss": {
                name: 0 if self.late <= allowed else self.lateness(self.late - allowed - 1)
                for name, allowed in lost.items()
            },
            "rejected": self.rejected,
        }  # fmt: skip

    def __str__(self) -> str:
        figures = self.as_dict()
        wait = figures["delay_for_loss"]["0.1%"]
        return (
            f"{self.events:,} events in {self.batches:,} micro-batches, {figures['factor']:.4g} % out of order, "
            f"the latest by {shown(self.latest, self.unit)}; to lose at most 0.1 %: "
            f'.withWatermark("{self.event_time}", "{spark_interval(wait, self.unit)}")'
        )


class DisorderMonitor:
    """A running query that watches a stream; ``figures()`` at any time, ``stop()`` at the end."""

    def __init__(self, query: StreamingQuery, running: RunningDisorder, lock: Lock) -> None:
        self.query, self._running, self._lock = query, running, lock

    def figures(self) -> dict[str, Any]:
        with self._lock:
            return self._running.as_dict()

    def __str__(self) -> str:
        with self._lock:
            return str(self._running)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the stream ends, at most so long; whether it has ended. What failed in it is raised here."""
        ended = self.query.awaitTermination(None if seconds is None else max(1, round(seconds)))
        return True if ended is None else bool(ended)

    def stop(self) -> dict[str, Any]:
        """Stop watching; the last figures."""
        self.query.stop()
        return self.figures()


@door
def watch(
    frame: DataFrame, event_time: str, *, unit: TimeUnit | None = None, zone: str | None = None,
    on_update: Callable[[dict[str, Any]], None] | None = None, checkpoint: str | Path | None = None,
    available_now: bool = False, **unknown: Any,
) -> DisorderMonitor:  # fmt: skip
    """Watch a streaming DataFrame; ``on_update`` gets the figures after every micro-batch."""
    if unknown:
        raise InputError(
            f"a running monitor has no {', '.join(unknown)}", at="analyze(streaming DataFrame)",
            fix="it takes unit, zone, on_update, checkpoint and available_now",
        )  # fmt: skip
    layout = frame_layout(frame, event_time, None, None, unit, zone)
    running, lock = RunningDisorder(event_time, layout.unit), Lock()

    def count(batch: DataFrame, number: int) -> None:
        table = batch.select(batch["`" + event_time.replace("`", "``") + "`"]).toArrow()
        status, columns = table_columns(layout, table)
        with lock:
            running.rejected += int((status != GOOD).sum())
            running.update(columns.times[status == GOOD])
            figures = running.as_dict()
        if on_update is not None:
            on_update(figures)

    writer = frame.writeStream.foreachBatch(count)
    if checkpoint is not None:
        writer = writer.option("checkpointLocation", str(checkpoint))
    if available_now:
        writer = writer.trigger(availableNow=True)
    return DisorderMonitor(writer.start(), running, lock)
