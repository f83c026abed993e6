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
from streamproof.errors import InputError
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING


@often
@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Signed rows in Arrow, and the frontier (the batch's CTI): every later change of history is at or after it."""

    schema: Schema
    rows: pa.Table
    frontier: int = BEGINNING

    def __post_init__(self) -> None:
        if self.rows.schema != self.schema.arrow_rows:
            raise InputError(
                f"the rows have the columns {self.rows.schema.names}, the schema says {self.schema.arrow_rows.names}",
                fix="build the rows with Schema.arrow_rows",
            )

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
        columns = [pa.array([row[n] for row in records], field.type) for n, field in enumerate(types)]
        return Batch(schema, pa.Table.from_arrays(columns, schema=types), frontier)
