"""What a run of a subject gives: inputs, outputs with the micro-batch that emitted them, and how it went."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError, did_you_mean
from streamproof.properties.rows import Columns, Window
from streamproof.properties.streams import Ints, WindowedStream, event_times


@dataclass(frozen=True, eq=False)
class Output:
    """The rows that one output emitted, in order, and the micro-batch of each."""

    table: pa.Table
    batch: Ints

    @property
    def rows(self) -> Window:
        """The rows as predicates see them."""
        return Window(Columns(self.table))


@dataclass(frozen=True)
class Trigger:
    """One micro-batch: rows in, rows out, the watermark it worked with, and rows dropped as late."""

    number: int
    rows_in: int
    watermark: str | None
    late: int


@dataclass(frozen=True, eq=False)
class SubjectRun:
    """A subject's outputs for some inputs, ready to be judged."""

    inputs: tuple[WindowedStream, ...]
    outputs: tuple[Output, ...]
    how: str = "alone"  # alone, multiplexed, batch, plan, function, recorded
    triggers: tuple[Trigger, ...] = ()
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
