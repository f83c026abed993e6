"""Measuring a DataFrame: in the order of an arrival column, or partition by partition as it gives its rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from streamproof.arguments import door
from streamproof.disorder import arranging
from streamproof.disorder.analysis import Analysis, Stream, analyze_stream
from streamproof.disorder.layout import OFFSET_BITS, Layout
from streamproof.disorder.rows import table_columns
from streamproof.disorder.runner import OnSpark, workplace
from streamproof.disorder.scanning import GOOD, NO_TIME
from streamproof.disorder.shelf import FolderShelf, Shelf, SubShelf
from streamproof.disorder.units import TimeUnit
from streamproof.errors import InputError, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
    with workplace(work, runner) as (_, shelf):
        assert isinstance(shelf, FolderShelf)
        rows = _read(frame, layout, shelf, duplicates)
        if not sum(count for count, *_ in rows):
            raise InputError("the DataFrame holds no events", at=event_time, fix="give one with at least one event")
        stream = _stream(layout, shelf, rows, runner, event_time)
        return analyze_stream(stream, runner, more=more, duplicates=duplicates, simulation=(batch_rows, delay, window))


def frame_layout(  # noqa: PLR0917
    frame: DataFrame, event_time: str, arrival: str | None, key: str | None, unit: TimeUnit | None, zone: str | None
) -> Layout:
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
    return Layout(
        files=(), named=Path("DataFrame"), format="frame", separator=0, names=tuple(names), has_header=False,
        header=b"",
        time=0, arrival=None if arrival is None else 1, key=None if key is None else len(names) - 1,
        unit=unit or "us", zone=zone, quote=True, multiline=False,
    )  # fmt: skip


def _read(frame: DataFrame, layout: Layout, shelf: FolderShelf, duplicates: bool) -> list[tuple[int, int, int, int]]:
    """Put the times on the shelf; rows, highest time, nulls and other rejects of each partition."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    columns = [F.col("`" + name.replace("`", "``") + "`").alias(f"c{n}") for n, name in enumerate(layout.names)]
    if duplicates:
        columns.append(F.xxhash64(*[F.col("`" + n.replace("`", "``") + "`") for n in frame.columns]).alias("row"))
    found = frame.select(*columns).mapInArrow(
        _Reader(layout, shelf.folder), "piece int, rows bigint, highest bigint, nulls bigint, bad bigint"
    )
    rows = sorted(tuple(row) for row in found.collect())
    return [(count, highest, nulls, bad) for _, count, highest, nulls, bad in rows]


class _Reader:
    """What a task does with its partition."""

    def __init__(self, layout: Layout, folder: Path) -> None:
        self._layout, self._folder = layout, folder

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # noqa: PLC0415

        context = TaskContext.get()
        number = context.partitionId() if context is not None else 0
        found = scan_batches(FolderShelf(self._folder), number, self._layout, list(batches))
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([value], kind)
                for value, kind in zip((number, *found), (pa.int32(), *[pa.int64()] * 4), strict=True)
            ],
            ["piece", "rows", "highest", "nulls", "bad"],
        )


def scan_batches(shelf: Shelf, number: int, layout: Layout, batches: list[pa.RecordBatch]) -> tuple[int, int, int, int]:
    """Put the times of a partition on the shelf."""
    filled = [batch for batch in batches if batch.num_rows]
    if not filled:
        for name in ("t", "id", "length"):
            shelf.put(f"{name}/{number}", np.zeros(0, np.int64))
        for name, wanted in (("arrival", layout.arrival), ("key", layout.key)):
            if wanted is not None:
                shelf.put(f"{name}/{number}", np.zeros(0, np.int64))
        shelf.put(f"row/{number}", np.zeros(0, np.uint64))
        return 0, -(2**62), 0, 0
    table = pa.Table.from_batches(filled)
    status, columns = table_columns(layout, table)
    good = status == GOOD
    shelf.put(f"t/{number}", columns.times[good])
    shelf.put(f"id/{number}", (np.int64(number) << OFFSET_BITS) | np.flatnonzero(good).astype(np.int64))
    shelf.put(f"length/{number}", np.zeros(int(good.sum()), np.int32))
    if columns.arrivals is not None:
        shelf.put(f"arrival/{number}", columns.arrivals[good])
    if columns.keys is not None:
        shelf.put(f"key/{number}", columns.keys[good])
    if "row" in table.column_names:
        hashes = table.column("row").to_numpy().astype(np.int64).view(np.uint64)
        shelf.put(f"row/{number}", hashes[good])
    highest = int(columns.times[good].max()) if good.any() else -(2**62)
    nulls = int((status == NO_TIME).sum())
    return int(good.sum()), highest, nulls, int((~good).sum())


def _stream(layout: Layout, shelf: FolderShelf, rows: Any, runner: OnSpark, event_time: str) -> Stream:
    counts, highest = [count for count, *_ in rows], [high for _, high, *_ in rows]
    place: Shelf = shelf
    if layout.arrival is not None:
        highest = arranging.arrange(shelf, runner, len(rows), "arrival", "sorted")
        place = SubShelf(shelf, "sorted")
        counts = [len(place.get(f"t/{piece}")) for piece in range(len(highest))]
    return Stream(
        place, counts, highest, layout.unit, "DataFrame", event_time, rejected=sum(row[3] for row in rows),
        nulls=sum(row[2] for row in rows), keyed=layout.key is not None,
    )  # fmt: skip
