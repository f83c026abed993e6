"""Event streams from facets: a pure function of the seed.

>>> stream = generated({"k": "string"}, 4, 7, Facets(keys=2, disorder=0.25, liveliness="final"))
>>> for event in stream.to_events():
...     print(event)
insert e1 [3, 12)
insert e2 [6, 17)
insert e3 [8, 18)
insert e0 [1, 4)
cti inf

Law: the same seed gives the same rows, whatever the size of the chunks; and every stream is legal, unless the facet
``illegal`` says which rule to break.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.arguments import door
from streamproof.events.order import Flags
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, RETRACT, PhysicalStream
from streamproof.generate.draws import MOST
from streamproof.generate.facets import Facets, whole
from streamproof.generate.lifetimes import EventLifetimes, lifetimes
from streamproof.generate.payload import Payload
from streamproof.generate.rows import GUESS, PREFIXES, DraftRows
from streamproof.generate.sequence import RowSequence


def generate(
    schema: Schema | Mapping[str, str],
    count: int,
    seed: int,
    facets: Facets | None = None,
    *,
    chunk_rows: int = 1 << 16,
) -> Iterator[PhysicalStream]:
    """A stream of ``count`` events in chunks of at most ``chunk_rows`` rows; there is always at least one chunk.

    Memory stays the same however long the stream is, unless a pattern of your own gives the lifetimes: those are kept.

    >>> [len(chunk) for chunk in generate({"v": "int64"}, 250, 7, Facets(liveliness="never"), chunk_rows=100)]
    [100, 100, 50]
    """
    whole("count", count, 0, MOST)
    whole("seed", seed, 0, 2**64 - 1)
    whole("chunk_rows", chunk_rows, 1, MOST)
    schema = schema if isinstance(schema, Schema) else Schema.of(schema)
    facets = facets or Facets()
    lives = lifetimes(facets, count, seed=seed)
    writer = _RowWriter.of(schema, facets, lives, seed=seed)
    parts = (writer.table(rows) for rows in RowSequence.of(lives, facets, seed=seed).parts() if len(rows))
    return (PhysicalStream(schema, table) for table in _cut(parts, chunk_rows, PhysicalStream.arrow_schema(schema)))


@door
def generated(
    schema: Schema | Mapping[str, str], count: int, seed: int, facets: Facets | None = None
) -> PhysicalStream:
    """The whole stream.

    Law: ``generated(…) == PhysicalStream.concat(generate(…))``.
    """
    whole_stream = PhysicalStream.concat(generate(schema, count, seed, facets, chunk_rows=1 << 20))
    return PhysicalStream(whole_stream.schema, whole_stream.rows.combine_chunks())


def _cut(parts: Iterable[pa.Table], size: int, schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in tables of ``size`` rows; the last may be shorter."""
    kept, rows, any_yet = [schema.empty_table()], 0, False
    for part in parts:
        kept.append(part)
        rows += part.num_rows
        if rows < size:
            continue
        whole_part = pa.concat_tables(kept)
        full = rows - rows % size
        for start in range(0, full, size):
            any_yet = True
            yield whole_part.slice(start, size).combine_chunks()
        kept, rows = [whole_part.slice(full)], rows - full
    if rows or not any_yet:
        yield pa.concat_tables(kept).combine_chunks()


@dataclass(frozen=True, slots=True)
class _RowWriter:
    """Writes rows as Arrow columns, with ids and payloads."""

    schema: Schema
    lives: EventLifetimes
    true: Payload
    guessed: Payload

    @staticmethod
    def of(schema: Schema, facets: Facets, lives: EventLifetimes, *, seed: int) -> _RowWriter:
        true, guessed = (
            Payload.of(schema, facets, lives.count, seed=seed, guessed=guessed) for guessed in (False, True)
        )
        return _RowWriter(schema, lives, true, guessed)

    def table(self, rows: DraftRows) -> pa.Table:
        """The rows as Arrow columns."""
        ctis = rows.kind == CTI
        columns = [
            pa.array(rows.kind),
            _ids(rows, ctis),
            pa.array(rows.le),
            pa.array(rows.re, mask=ctis),
            pa.array(rows.re_new, mask=rows.kind != RETRACT),
            *self._payloads(rows, ctis),
        ]
        return pa.Table.from_arrays(columns, schema=PhysicalStream.arrow_schema(self.schema))

    def _payloads(self, rows: DraftRows, ctis: Flags) -> list[pa.Array]:
        guesses = (rows.tag & GUESS != 0) & ~ctis
        true, guessed = np.flatnonzero(~guesses & ~ctis), np.flatnonzero(guesses)
        origins = self.lives.origins(rows.event)
        columns = self.true.columns(origins[true])
        if len(true) == len(rows):
            return columns
        place = np.zeros(len(rows), np.int64)
        place[true], place[guessed] = np.arange(len(true)), len(true) + np.arange(len(guessed))
        places = pa.array(place, mask=ctis)
        if not len(guessed):
            return [column.take(places) for column in columns]
        others = self.guessed.columns(origins[guessed])
        return [pa.concat_arrays([a, b]).take(places) for a, b in zip(columns, others, strict=True)]


def _ids(rows: DraftRows, ctis: Flags) -> pa.Array:
    numbers = pa.array(rows.event, mask=ctis).cast(pa.string())
    prefix = pa.array(PREFIXES).take(pa.array(rows.tag)) if rows.tag.any() else PREFIXES[0]
    return pc.binary_join_element_wise(prefix, numbers, "")
