"""The result of a batch run in Spark's storage: only what is asked for comes into the driver."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from streamproof.engines.results import Emit, Whole
from streamproof.engines.spark.batch.failing import told
from streamproof.engines.spark.rows import in_types, table_of
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.files.listing import format_of
from streamproof.events.files.writer import APPENDING, replacing
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.plan.check import Typed
from streamproof.thresholds import RESULT_ROWS

if TYPE_CHECKING:
    from pyspark import StorageLevel
    from pyspark.sql import Column, DataFrame

WRITTEN: Final = "rows bigint"


class FrameOutput:
    """Events in a DataFrame that is worked out, and kept by Spark as long as this is."""

    metrics = None
    left_out: tuple[str, ...] = ()

    def __init__(self, frame: DataFrame, plan: Typed, notes: tuple[str, ...] = ()) -> None:
        self.schema, self.notes, self._plan = plan.schema, notes, plan
        self._frame = frame.persist(_on_disk())
        weakref.finalize(self, _release, self._frame)
        with told(plan):
            self._rows = self._frame.count()

    def batches(self) -> tuple[Batch, ...]:
        return (self.history().to_batch(),)

    def events(self) -> PhysicalStream:
        return self._whole.events()

    def history(self) -> History:
        return self._whole.history()

    @cached_property
    def _whole(self) -> Whole:
        """All of it, in the driver."""
        with told(self._plan):
            return Whole(History.from_table(self.schema, table_of(self._frame, self.schema)))

    def head(self, most: int) -> tuple[History, int]:
        with told(self._plan):
            first = table_of(self._frame.orderBy(*_canonical(self._frame)).limit(most), self.schema)
        found = History.from_table(self.schema, first)
        return found, self._rows

    def write(self, path: Path, *, emit: Emit, overwrite: bool) -> int:
        """Write it in tasks: to one file, in order; or a part for each task, to a folder, if the path has no ending."""
        place = Path(os.path.realpath(path))
        if not place.suffix and emit == "cht":
            return self._write_folder(place)
        kind = format_of(place, None, "sinks")
        if emit == "events" or kind not in APPENDING or not self._rows:
            return self._whole.write(path, emit=emit, overwrite=overwrite)
        ordered = self._frame.repartition(1).sortWithinPartitions(*_canonical(self._frame))
        with replacing(place, overwrite=overwrite) as temporary:
            with told(self._plan):
                ordered.mapInArrow(partial(_write_file, temporary, self.schema, kind), WRITTEN).collect()
            if not temporary.stat().st_size:
                _refuse_elsewhere(place)
        return self._rows

    def _write_folder(self, place: Path) -> int:
        if place.exists() or not place.parent.is_dir():
            what = "exists" if place.exists() else "is in a folder that does not exist"
            fix = "give the path of a new folder, or of a file: with .parquet, .csv, .jsonl or .arrow"
            raise InputError(f"{place} {what}", at=str(place), fix=fix)
        with tempfile.TemporaryDirectory(prefix=f".{place.name}.", suffix=".part", dir=place.parent) as folder:
            parts = Path(folder) / place.name
            parts.mkdir()
            with told(self._plan):
                self._frame.mapInArrow(partial(_write_part, parts, self.schema), WRITTEN).collect()
            if self._rows and not any(parts.iterdir()):
                _refuse_elsewhere(place)
            parts.rename(place)
        return self._rows


def _on_disk() -> StorageLevel:
    from pyspark import StorageLevel  # noqa: PLC0415  # Spark is loaded by those who use it

    return StorageLevel.DISK_ONLY


def _canonical(frame: DataFrame) -> list[Column]:
    """The order of a canonical history: by times, then by the payload, nulls last."""
    return [frame[name].asc_nulls_last() for name in frame.columns]


def _refuse_elsewhere(place: Path) -> None:
    raise InputError(
        "the workers of Spark write to another machine's disk", at=str(place), fix="give a path that all of them see"
    )


def _release(frame: DataFrame) -> None:
    with suppress(Exception):  # the session may be gone
        frame.unpersist()


def _write_part(folder: Path, schema: Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the rows of a task as a file of their own, if there are any."""
    from pyspark import TaskContext  # noqa: PLC0415  # Spark is loaded by those who use it

    first = next((batch for batch in batches if batch.num_rows), None)
    if first is not None:
        context = TaskContext.get()
        number = 0 if context is None else context.partitionId()
        yield from _write_file(folder / f"part-{number:05}.parquet", schema, "parquet", _and(first, batches))


def _and(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _write_file(path: Path, schema: Schema, kind: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """On a worker: the rows of a task, chunk by chunk; gives their number."""
    rows = 0
    with APPENDING[kind](path, History.empty(schema)) as append:
        for chunk in _chunks(batches):
            append(_piece(schema, chunk))
            rows += chunk.num_rows
    yield pa.RecordBatch.from_pydict({"rows": [rows]})


def _chunks(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Small batches put together: a chunk becomes a group of rows in a Parquet file."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(map(len, held)) >= RESULT_ROWS.now:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _piece(schema: Schema, rows: pa.Table) -> History:
    """Rows as they are: a part of a history."""
    le, re, *payload = in_types(rows, schema)
    ones = pa.array(np.ones(rows.num_rows, np.int64))
    return History(schema, pa.Table.from_arrays([le, re, ones, *payload], schema=schema.arrow_rows))
