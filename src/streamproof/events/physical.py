"""Physical streams and signed rows: the two forms of one stream, and the way between them.

>>> from streamproof.events.event import Cti, Insert, Retract
>>> from streamproof.events.time import FOREVER
>>> stream = PhysicalStream.from_events([
...     Insert("a", 1, FOREVER, {"v": 1}), Retract("a", 1, FOREVER, 10, {"v": 1}), Cti(FOREVER),
... ])
>>> to_history(stream).to_rows()
[Row(le=1, re=10, payload={'v': 1})]
>>> [event for event in from_batches(to_batches(stream)).to_dicts()]
[{'kind': 'insert', 'id': 'e0', 'le': 1, 're': 10, 'payload': {'v': 1}}, {'kind': 'cti', 't': 'inf'}]

Law: ``to_history(from_batches(to_batches(s))) == to_history(s)``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from streamproof.arguments import door
from streamproof.events.bag import take
from streamproof.events.batch import Batch
from streamproof.events.encode import Encoder
from streamproof.events.history import History
from streamproof.events.order import ints, plain_array
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, INSERT, RETRACT, PhysicalStream
from streamproof.events.time import BEGINNING


@door
def to_batches(stream: PhysicalStream | Iterable[PhysicalStream]) -> Iterator[Batch]:
    """The stream, or its chunks one after the other, as signed rows; a batch closes at each CTI, its frontier.

    >>> from streamproof.events.event import Cti, Insert
    >>> stream = PhysicalStream.from_events([Cti(3), Insert("a", 5, 6, {}), Insert("b", 7, 8, {})])
    >>> [(batch.rows.num_rows, batch.frontier) for batch in to_batches(stream)]
    [(0, 3), (2, 3)]
    """
    frontier = BEGINNING
    for chunk in [stream] if isinstance(stream, PhysicalStream) else stream:
        for batch in _chunk_batches(chunk, frontier):
            frontier = batch.frontier
            yield batch


def _chunk_batches(chunk: PhysicalStream, frontier: int) -> Iterator[Batch]:
    kinds = chunk.kinds
    rows, part = _signed(chunk)
    marks = np.maximum.accumulate(np.maximum(ints(chunk.rows["le"])[kinds == CTI], frontier))
    ends = np.searchsorted(part, np.arange(len(marks)), side="right")
    start = 0
    for end, mark in zip(ends.tolist(), marks.tolist(), strict=True):
        yield Batch(chunk.schema, rows.slice(start, end - start), mark)
        start, frontier = end, mark
    if start < rows.num_rows:
        yield Batch(chunk.schema, rows.slice(start), frontier)


def _signed(chunk: PhysicalStream) -> tuple[pa.Table, np.ndarray[tuple[int], np.dtype[np.int64]]]:
    """Signed rows in order of arrival, and for each how many CTIs came before it."""
    kinds, le, re = chunk.kinds, ints(chunk.rows["le"]), ints(chunk.rows["re"])
    after = np.where(kinds == RETRACT, ints(chunk.rows["re_new"]), re)
    minus = np.flatnonzero(kinds == RETRACT)
    plus = np.flatnonzero((kinds == INSERT) | ((kinds == RETRACT) & (after > le)))
    source = np.concatenate([minus, plus])
    order = np.argsort(source, kind="stable")  # a retraction's −row stays before its +row
    ends = np.concatenate([re[minus], after[plus]])[order]
    weights = np.concatenate([np.full(len(minus), -1), np.ones(len(plus), np.int64)])[order]
    source = source[order]
    columns = [*map(plain_array, (le[source], ends, weights)), *take(chunk.payload, source).columns]
    parts = np.cumsum(kinds == CTI)[source]
    return pa.Table.from_arrays(columns, schema=chunk.schema.arrow_rows), parts


@door
def to_history(stream: PhysicalStream | Iterable[PhysicalStream], *, schema: Schema | None = None) -> History:
    """What the stream adds up to. A `Validator` says which event is wrong where this only knows that one is."""
    chunks = [stream] if isinstance(stream, PhysicalStream) else list(stream)
    schema = schema or (chunks[0].schema if chunks else Schema())
    return History.from_batches(schema, (Batch(chunk.schema, _signed(chunk)[0]) for chunk in chunks))


@door
def from_batches(batches: Iterable[Batch], *, schema: Schema | None = None) -> PhysicalStream:
    """Signed rows as physical events with ids and the fewest retractions; see `Encoder`."""
    encoder: Encoder | None = None
    streams = []
    for batch in batches:
        encoder = encoder or Encoder(batch.schema)
        streams.append(encoder.encode(batch))
    return PhysicalStream.concat(streams, schema=schema or (encoder.schema if encoder else None))
