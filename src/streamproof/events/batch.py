"""A batch: signed rows and the frontier up to which the stream is complete.

A row is ``(le, re, w, payload…)``: the lifetime ``[le, re)`` and a weight. An insert weighs +1, a full retraction −1,
and a change of the end is both. Order inside a batch never matters, and a stream is the sum of its batches.

>>> from streamproof.events.schema import Schema
>>> batch = Batch.from_rows(Schema.of({"v": "int64"}), [(1, 5, +1, {"v": 7})], frontier=3)
>>> batch.rows.num_rows, batch.frontier
(1, 3)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from streamproof.arguments import often
from streamproof.errors import InputError, printable
from streamproof.events import weights
from streamproof.events.notation import show_payload
from streamproof.events.order import Flags, ints
from streamproof.events.schema import LE, RE, SIGNED, Schema, W, payload_name
from streamproof.events.time import BEGINNING, FOREVER, show_tick


@often
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Signed rows in Arrow, and the frontier (the batch's CTI): every later change of history is at or after it."""

    schema: Schema
    rows: pa.Table
    frontier: int = BEGINNING

    def __repr__(self) -> str:
        return printable(f"Batch(schema={self.schema!r}, rows={self.rows!r}, frontier={self.frontier})")

    def __post_init__(self) -> None:
        if self.rows.schema != self.schema.arrow_rows:
            raise InputError(
                f"the rows have the columns {self.rows.schema.names}, the schema says {self.schema.arrow_rows.names}",
                fix="build the rows with Schema.arrow_rows",
            )

    def lawful(self) -> Batch:
        """The batch itself, if its rows can be events: at a door, before anything reads them.

        >>> Batch.from_rows(Schema(), [(1, 2**62 + 1, 1, {})]).lawful()
        Traceback (most recent call last):
        streamproof.errors.InputError: a lifetime lies outside ±2^62 ticks
          at: row 0: [1, 4611686018427387905) (no columns) × 1
          fix: use a coarser unit; an event without an end ends at 2^62
        """
        for place in (LE, RE, W):
            if self.rows.column(place).null_count:
                raise InputError(
                    f'column "{SIGNED[place]}" has nulls', fix="every row needs a start, an end and a weight"
                )
        if not self.rows.num_rows:
            return self
        le, re, w = (ints(self.rows.column(place)) for place in (LE, RE, W))
        if int(le.min()) < BEGINNING or int(re.max()) > FOREVER:
            at = self._shown((le < BEGINNING) | (re > FOREVER))
            fix = "use a coarser unit; an event without an end ends at 2^62"
            raise InputError("a lifetime lies outside ±2^62 ticks", at=at, fix=fix)
        if (events := max(int(w.max()), -int(w.min()))) > weights.MOST:
            raise weights.too_many(events, at=self._shown((w > weights.MOST) | (w < -weights.MOST)))
        return self

    def _shown(self, bad: Flags) -> str:
        """The first of some rows in words."""
        row = int(bad.argmax())
        le, re, w, *values = (column[0].as_py() for column in self.rows.slice(row, 1).columns)
        payload = dict(zip(map(payload_name, self.rows.column_names[W + 1 :]), values, strict=True))
        return f"row {row}: [{show_beyond(le)}, {show_beyond(re)}) {show_payload(payload)} × {w}"

    @staticmethod
    def empty(schema: Schema, *, frontier: int = BEGINNING) -> Batch:
        return Batch(schema, schema.arrow_rows.empty_table(), frontier)

    @staticmethod
    def from_rows(
        schema: Schema, rows: Iterable[tuple[int, int, int, Mapping[str, object]]], *, frontier: int = BEGINNING
    ) -> Batch:
        """A small batch from Python rows ``(le, re, w, payload)``."""
        types = schema.arrow_rows
        records = [(le, re, w, *map(payload.get, schema.names)) for le, re, w, payload in rows]
        columns = [array_of([row[n] for row in records], field) for n, field in enumerate(types)]
        return Batch(schema, pa.Table.from_arrays(columns, schema=types), frontier)


def array_of(values: list[object], field: pa.Field) -> pa.Array:
    """Values of a row's own kind as a column.

    >>> array_of([2**64], pa.field("w", pa.int64()))
    Traceback (most recent call last):
    streamproof.errors.InputError: 18446744073709551616 does not fit into the column "w" of type int64
      fix: give values of that type
    """
    try:
        return pa.array(values, field.type)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        bad = next((value for value in values if not _fits(value, field.type)), values)
        what = f'{bad!r} does not fit into the column "{payload_name(field.name)}" of type {field.type}'
        raise InputError(what, fix="give values of that type") from None


def _fits(value: object, kind: pa.DataType) -> bool:
    try:
        pa.scalar(value, kind)
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return False
    return True


def show_beyond(tick: int) -> str:
    """A tick in words; one beyond the infinities is a number."""
    return str(show_tick(tick)) if BEGINNING <= tick <= FOREVER else str(tick)
