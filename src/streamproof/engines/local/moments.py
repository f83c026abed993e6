"""An input as moments for the tracer: rows, CTIs, and the events that are followed, each pushed alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.engines.inputs import Input
from streamproof.errors import InputError
from streamproof.events.advance import Advance
from streamproof.events.batch import Batch
from streamproof.events.event import write_event
from streamproof.events.files import Reader, read
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, show_tick
from streamproof.events.validate import Validator


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """One push, and how to speak of it."""

    source: str
    batch: Batch
    text: str
    event: dict[str, object] | None = None  # one that is followed, as JSON

    @property
    def frontier(self) -> int:
        return self.batch.frontier


class Moments:
    """One input as moments: its events in batches, those that are followed alone, and CTIs apart from rows."""

    def __init__(self, name: str, value: Input, schema: Schema | None) -> None:
        self.name = name
        self._chunks = iter(_chunks(name, value, schema))
        self._first = next(self._chunks, PhysicalStream.empty(schema or Schema()))
        self.schema = self._first.schema

    def moments(self, event: str | None, advance: Advance | None) -> Iterator[Moment]:
        """The moments, with an event that is followed; ``advance`` makes the CTIs, where the plan says so."""
        frontier, seen, validator = BEGINNING, 0, Validator()
        for chunk in chain([self._first], self._chunks):
            if advance is not None:
                chunk = advance.apply(chunk)  # noqa: PLW2901  # what the plan gets of it
                self._refuse_late(advance, event)
            for piece, followed in _cut(validator.check(chunk), event):
                event_text, event_json = _told(piece) if followed else ("", None)
                for batch in to_batches(piece):
                    seen += batch.rows.num_rows
                    if batch.rows.num_rows:
                        rows_alone = Batch(batch.schema, batch.rows, frontier)
                        text = event_text or f"rows of {self.name} up to row {seen}"
                        yield Moment(self.name, rows_alone, text, event_json)
                    if batch.frontier > frontier:
                        frontier = batch.frontier
                        empty = Batch.empty(batch.schema, frontier=frontier)
                        yield Moment(self.name, empty, f"CTI {show_tick(frontier)} of {self.name}")

    def _refuse_late(self, advance: Advance, event: str | None) -> None:
        for dropped in advance.take_dropped():
            if event is not None and event in dropped.rows["id"].to_pylist():
                raise InputError(
                    f'the event "{event}" of {self.name} came too late for advance_time and was dropped',
                    fix="give advance_time a longer delay, or late=adjust",
                )


def _told(piece: PhysicalStream) -> tuple[str, dict[str, object]]:
    """The one event of a piece, as text and as JSON."""
    event = piece.to_events()[0]
    return str(event), write_event(event)


def _chunks(name: str, value: Input, schema: Schema | None) -> Iterable[PhysicalStream]:
    match value:
        case PhysicalStream():
            return [value]
        case Reader():
            return value
        case str() | Path():
            return read(Path(value), schema=schema)
        case History() | pa.Table():
            what = f"the input {name} is a history: its rows have no ids to follow"
            raise InputError(what, fix="give physical events, or a file of them")
    items = list(value)
    return [PhysicalStream.from_dicts([item for item in items if isinstance(item, Mapping)], schema=schema)]


def _cut(chunk: PhysicalStream, event: str | None) -> Iterator[tuple[PhysicalStream, bool]]:
    """A chunk in pieces, each event that is followed in one of its own."""
    found = np.flatnonzero(pc.fill_null(pc.equal(chunk.rows["id"], event or ""), False).to_numpy())
    edges = sorted({0, len(chunk), *found.tolist(), *(found + 1).tolist()}) if event else [0, len(chunk)]
    alone = set(found.tolist()) if event else set()
    for start, end in pairwise(edges):
        yield PhysicalStream(chunk.schema, chunk.rows.slice(start, end - start)), start in alone
