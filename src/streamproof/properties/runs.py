"""What a run of a subject gives, and its word: steps that cover the whole time of the inputs, empty windows included.

>>> tumbling(50).split([0, 49, 50, 149], start=0)
[(0, [0, 49]), (50, [50]), (100, [149])]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from streamproof.arguments import door
from streamproof.errors import InputError, did_you_mean
from streamproof.events.time import Span
from streamproof.properties.rows import LazyColumns, Window
from streamproof.properties.streams import Ints, WindowedStream, event_times, positive


@dataclass(frozen=True, eq=False)
class SubjectOutput:
    """The rows that one output emitted, in order, and the micro-batch of each."""

    table: pa.Table
    batch: Ints

    @property
    def rows(self) -> Window:
        """The rows as predicates see them."""
        return Window(LazyColumns(self.table))


@dataclass(frozen=True)
class BatchRecord:
    """One micro-batch: rows in, rows out, the watermark it worked with, and rows dropped as late."""

    number: int
    rows_in: int
    watermark: str | None
    late: int


@dataclass(frozen=True, eq=False)
class SubjectRun:
    """A subject's outputs for some inputs, ready to be judged."""

    inputs: tuple[WindowedStream, ...]
    outputs: tuple[SubjectOutput, ...]
    how: str = "alone"  # alone, multiplexed, batch, plan, function, recorded
    triggers: tuple[BatchRecord, ...] = ()
    batches: tuple[tuple[int, ...], ...] = ()  # rows of each input in each micro-batch
    notes: tuple[str, ...] = ()
    subject: str = "subject"
    reproduce: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def output(self) -> Window:
        """The rows of the first output."""
        return self.outputs[0].rows

    @property
    def late_rows(self) -> int:
        """Rows that Spark dropped as too late, as it counts them: after partial aggregation."""
        return sum(trigger.late for trigger in self.triggers)

    @property
    def watermark(self) -> str | None:
        """The last watermark."""
        known = [trigger.watermark for trigger in self.triggers if trigger.watermark]
        return known[-1] if known else None

    def __repr__(self) -> str:
        rows = " + ".join(f"{output.table.num_rows:,}" for output in self.outputs)
        return f"SubjectRun({self.subject}: {sum(s.count for s in self.inputs):,} rows in, {rows} out, {self.how})"


def time_column(schema: pa.Schema, preferred: Sequence[str]) -> str | None:
    """The column that says when an output row belongs: a window, the input's time, or the only timestamp."""
    if "window" in schema.names and is_window(schema.field("window").type):
        return "window"
    for name in preferred:
        if name in schema.names and pa.types.is_timestamp(schema.field(name).type):
            return name
    found = [column.name for column in schema if pa.types.is_timestamp(column.type) or is_window(column.type)]
    return found[0] if len(found) == 1 else None


def is_window(kind: pa.DataType) -> bool:
    """Whether values are windows: structs with a start and an end."""
    return pa.types.is_struct(kind) and {"start", "end"} <= {column.name for column in kind}


def instants(table: pa.Table, on: str) -> Ints:
    """The instant of each row in microseconds: a window counts with its last one, because its end is exclusive."""
    if on not in table.column_names:
        raise InputError(f'the output has no column "{on}"', fix=did_you_mean(on, table.column_names))
    column = table.column(on)
    if is_window(column.type):
        ends = pa.table({"end": pa.chunked_array([c.field("end") for c in column.chunks], type=_end_type(column.type))})
        return event_times(ends, "end") - 1
    if not pa.types.is_timestamp(column.type):
        raise InputError(f'the column "{on}" is neither a time nor a window: {column.type}', fix="name one with on=")
    return event_times(table, on)


def _end_type(kind: pa.StructType) -> pa.DataType:
    return kind.field("end").type


def moved(table: pa.Table, by: Ints) -> pa.Table:
    """The table with all times, also inside windows, moved by so many microseconds per row."""
    columns = [_moved(table.column(at).combine_chunks(), by) for at in range(table.num_columns)]
    return pa.table(columns, names=table.column_names)


def _moved(column: Any, by: Ints) -> Any:
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], type=column.type)
    if pa.types.is_struct(column.type):
        names = [field.name for field in column.type]
        parts = [_moved(column.field(n), by) for n in range(len(names))]
        return pa.StructArray.from_arrays(parts, names=names, mask=column.is_null())
    if not pa.types.is_timestamp(column.type) or not len(column):
        return column
    unit = {"s": 10**6, "ms": 10**3, "us": 1}.get(column.type.unit, 1)
    mask = np.asarray(column.is_null())
    ticks = np.asarray(column.cast(pa.int64()).fill_null(0)) + by // unit
    return pa.array(ticks, type=pa.int64(), mask=mask).cast(column.type)


MOST = 1_000_000  # steps that a word may have


class WordStep(NamedTuple):
    """One step of a word. With two inputs or outputs, a window for each in a tuple."""

    input: Any
    output: Any
    time: Any  # the window's start, or the number of the micro-batch


class Steps(Protocol):
    """A way to cut a run into steps."""

    def word(self, run: SubjectRun) -> list[WordStep]:
        """The steps of a run, in order."""
        ...


@dataclass(frozen=True)
class TimeSteps:
    """Steps by event time: windows of a size, one every ``every``."""

    size: int
    every: int
    on: str | tuple[str, ...] | None = None

    def split(self, times: Sequence[int], start: int = 0) -> list[tuple[int, list[int]]]:
        """The windows from ``start`` up to the last time, each with the times inside."""
        if not times:
            return []
        last = max(times)
        starts = range(start, last + 1, self.every)
        return [(low, [t for t in sorted(times) if low <= t < low + self.size]) for low in starts]

    def word(self, run: SubjectRun) -> list[WordStep]:
        begin = min(stream.start for stream in run.inputs)
        placed_in = [_sorted(stream.table, event_times(stream.table, stream.time)) for stream in run.inputs]
        names = [self._column(output, n, run.inputs) for n, output in enumerate(run.outputs)]
        placed_out = [_sorted(o.table, instants(o.table, on)) for o, on in zip(run.outputs, names, strict=True)]
        ends = [stream.end for stream in run.inputs] + [int(t[-1]) + 1 for _, t in placed_out if len(t)]
        many = max(0, -(-(max(ends) - begin) // self.every))
        if many > MOST:
            raise InputError(f"{many:,} steps from {_moment(begin)} on are too many", fix="give larger steps")
        starts = begin + np.arange(many, dtype=np.int64) * self.every
        inputs = [_cut(columns, times, starts, self.size) for columns, times in placed_in]
        outputs = [_cut(columns, times, starts, self.size) for columns, times in placed_out]
        return [WordStep(_one(inputs, n), _one(outputs, n), _moment(at)) for n, at in enumerate(starts.tolist())]

    def _column(self, output: SubjectOutput, number: int, inputs: Sequence[WindowedStream]) -> str:
        named = self.on[number] if isinstance(self.on, tuple) else self.on
        found = named or time_column(output.table.schema, [stream.time for stream in inputs])
        if found is None:
            listed = ", ".join(output.table.column_names)
            raise InputError(
                f"which column of the output says its time? It has {listed}",
                fix='name it: steps=tumbling("1 hour", on="…"), or use steps=micro_batches()',
            )
        return found


@dataclass(frozen=True)
class BatchSteps:
    """Steps as emitted: what went into a micro-batch, and what came out of it."""

    def word(self, run: SubjectRun) -> list[WordStep]:
        if not run.batches:
            raise InputError(f"a run {run.how} has no micro-batches", fix="use steps=tumbling(…), or run_stream")
        many = len(run.batches[0])
        inputs = []
        for stream, sizes in zip(run.inputs, run.batches, strict=True):
            edges = np.concatenate([[0], np.cumsum(sizes)]).tolist()
            columns = LazyColumns(stream.table)
            inputs.append([Window(columns, range(a, b)) for a, b in pairwise(edges)])
        numbers = np.arange(many)
        outputs = [_cut(*_sorted(output.table, output.batch), numbers, 1) for output in run.outputs]
        return [WordStep(_one(inputs, n), _one(outputs, n), n) for n in range(many)]


def _sorted(table: pa.Table, times: Ints) -> tuple[LazyColumns, Ints]:
    order = np.argsort(times, kind="stable")
    return LazyColumns(table.take(pa.array(order))), times[order]


def _cut(columns: LazyColumns, times: Ints, starts: Ints, size: int) -> list[Window]:
    low = np.searchsorted(times, starts).tolist()
    high = np.searchsorted(times, starts + size).tolist()
    return [Window(columns, range(a, b)) for a, b in zip(low, high, strict=True)]


def _one(sides: list[list[Window]], n: int) -> Any:
    return sides[0][n] if len(sides) == 1 else tuple(side[n] for side in sides)


def _moment(micros: int) -> Any:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=micros)


@door
def tumbling(size: Span, *, on: str | tuple[str, ...] | None = None) -> TimeSteps:
    """Steps of a size by event time. ``on`` names the output's column with a time or a window.

    A row with a window belongs to the step of the window's last instant.
    """
    width = positive(size, "the step's size")
    return TimeSteps(width, width, on)


@door
def sliding(size: Span, slide: Span, *, on: str | tuple[str, ...] | None = None) -> TimeSteps:
    """Steps by event time that overlap: one of a size every ``slide``."""
    return TimeSteps(positive(size, "the step's size"), positive(slide, "the slide"), on)


@door
def micro_batches() -> BatchSteps:
    """Steps as emitted, one per micro-batch. Run with ``batches="window"`` to have one per window."""
    return BatchSteps()
