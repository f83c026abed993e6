"""From generators to streams: ``windows(generator, size=…, time=…)`` is a strategy of streams with event times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from streamproof.errors import InputError
from streamproof.events.time import Span
from streamproof.properties.contents import Contents, Explicit, Part, sampler_of
from streamproof.properties.generators import SEEDS, Gen, place, whole
from streamproof.properties.rows import as_record
from streamproof.properties.streams import (
    START,
    Timed,
    WindowedStream,
    WindowLayout,
    as_schema,
    instant,
    positive,
    recorded,
)

if TYPE_CHECKING:
    from hypothesis.internal.conjecture.data import ConjectureData

STRAGGLERS = 3  # rows at most that are drawn to be late, or to come twice


def windows(
    generator: SearchStrategy[Any],
    *,
    size: Span,
    time: str,
    slide: Span | None = None,
    gap: Span | None = None,
    start: object = START,
    schema: Mapping[str, Any] | pa.Schema | None = None,
    shuffled: Span | None = None,
    late: Span | None = None,
    duplicates: Span | None = None,
) -> SearchStrategy[WindowedStream]:
    """Streams whose windows come from a generator; every row gets an event time inside its window.

    Windows tumble; with ``slide`` they overlap, with ``gap`` each is a session of at most ``size``. ``time`` is the
    column that holds the event time. ``shuffled``: rows arrive up to so much later than their time. ``late``: up to
    three rows arrive much later. ``duplicates``: up to three rows arrive a second time within so much.
    A plain strategy of lists of rows that have times already is taken as it is, in the order of its rows.
    """
    width = positive(size, "the window's size")
    if slide is not None and gap is not None:
        raise InputError("windows slide or are sessions, not both", fix="leave slide= or gap= out")
    if slide is not None:
        every = positive(slide, "the slide")
    else:
        every = width if gap is None else width + 2 * positive(gap, "the gap")
    columns = as_schema(schema)
    layout = WindowLayout(width, every, instant(start))
    if not isinstance(generator, SearchStrategy):
        fix = "e.g. windows(always(of(element, 0, 5), 4), …)"
        raise InputError(f"windows needs a generator of windows, not {type(generator).__name__}", fix=fix)
    if not isinstance(generator, Gen):
        return generator.map(lambda rows: _as_given(rows, time, layout, columns))
    disorder = {
        "shuffled": None if shuffled is None else positive(shuffled, "shuffled"),
        "late": None if late is None else positive(late, "late"),
        "duplicates": None if duplicates is None else positive(duplicates, "duplicates"),
    }
    apart = None if gap is None else positive(gap, "the gap")
    return WindowedStreams(generator, layout, time, schema=columns, gap=apart, disorder=disorder)


def _as_given(rows: list[Any], time: str, layout: WindowLayout, columns: pa.Schema | None) -> WindowedStream:
    records = [as_record(row) for row in rows]
    if columns is not None and time not in columns.names:
        columns = columns.append(pa.field(time, pa.timestamp("us", tz="UTC")))
    if not records and columns is None:
        raise InputError("the stream has no rows, so its columns are unknown", fix="give windows(…, schema=…)")
    try:
        table = pa.Table.from_pylist(records, schema=columns)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
        fix = "draw values of one type per column, and whole numbers of 64 bits"
        raise InputError(f"the rows do not make a table: {error}", fix=fix) from None
    return recorded(table, time=time, size=layout.size, start=layout.start)


class WindowedStreams(SearchStrategy[WindowedStream]):
    """The strategy of streams: windows, then rows with their times, then disorder, in this order."""

    def __init__(
        self,
        generator: Gen,
        layout: WindowLayout,
        time: str,
        *,
        schema: pa.Schema | None,
        gap: int | None,
        disorder: Mapping[str, int | None],
    ) -> None:
        super().__init__()
        self.generator, self.layout, self.time, self.gap = generator, layout, time, gap
        self.disorder = disorder
        self.schema = schema if schema is not None else self._known_schema()
        self.step = 1000 if layout.size % 1000 == 0 and layout.size >= 10**6 else 1  # times in milliseconds

    def _known_schema(self) -> pa.Schema | None:
        """The columns, where the element strategy tells them."""
        element = self.generator.element
        sampler = None if element is None else sampler_of(element)
        if sampler is None:
            return None
        schema = sampler.table(4, seed=0).schema
        return None if any(pa.types.is_null(column.type) for column in schema) else schema

    def do_draw(self, data: ConjectureData) -> WindowedStream:
        ticks = max(1, self.layout.size // self.step)
        drawn = self.generator.contents(data, ticks if self.gap is None else None)
        timed = tuple(tuple(self._timed(part, data) for part in contents) for contents in drawn)
        schema = self.schema if self.schema is not None else self._probed(drawn, data)
        stream = WindowedStream(timed, self.layout, self.time, schema)
        return stream if not any(self.disorder.values()) else self._disordered(stream, data)

    def _probed(self, drawn: list[Contents], data: ConjectureData) -> pa.Schema | None:
        """The columns of a stream without rows: those of one more element, which is then forgotten."""
        if any(part.count for contents in drawn for part in contents) or self.generator.element is None:
            return None
        record = as_record(data.draw(self.generator.element))
        return pa.table({name: pa.array([value]) for name, value in record.items() if name != self.time}).schema

    def _timed(self, part: Part, data: ConjectureData) -> Timed:
        if not isinstance(part, Explicit):
            return Timed(part, None, self.layout.size, self.step)
        if self.gap is not None:
            return Timed(part, self._session(part.count, data), self.layout.size, self.step)
        ticks = max(1, self.layout.size // self.step)
        places = part.places if part.places is not None else [place(data, ticks) for _ in part.elements]
        return Timed(part, tuple(at * self.step for at in places), self.layout.size, self.step)

    def _session(self, count: int, data: ConjectureData) -> tuple[int, ...]:
        """Times that are less than a gap apart, from the start of the session."""
        assert self.gap is not None
        most = min(self.gap - self.step, self.layout.size // max(count, 1)) // self.step
        offsets, at = [], 0
        for _ in range(count):
            offsets.append(at)
            at += place(data, max(most, 0) + 1) * self.step
        return tuple(offsets)

    def _disordered(self, stream: WindowedStream, data: ConjectureData) -> WindowedStream:
        count = stream.count
        if not count:
            return stream
        delays = self._stragglers(self.disorder["late"], count, data)
        shuffled = self.disorder["shuffled"]
        small = count <= 20
        if shuffled is not None and small:  # each row's own delay, so that those which do not matter shrink to none
            drawn = [(row, place(data, shuffled // self.step + 1) * self.step) for row in range(count)]
            delays += tuple((row, delay) for row, delay in drawn if delay)
        spread = None if shuffled is None or small else (shuffled, data.draw(SEEDS))
        repeats = self._stragglers(self.disorder["duplicates"], count, data)
        return WindowedStream(
            stream.windows, stream.layout, stream.time, stream.schema, delays=delays, spread=spread, repeats=repeats
        )

    def _stragglers(self, most: int | None, count: int, data: ConjectureData) -> tuple[tuple[int, int], ...]:
        """Some rows, each with a delay."""
        if most is None:
            return ()
        many = data.draw(whole(0, min(STRAGGLERS, count)))  # evenly: lists alone would mostly be empty
        rows = data.draw(st.lists(whole(0, count - 1), min_size=many, max_size=many, unique=True))
        return tuple((row, (1 + place(data, max(1, most // self.step))) * self.step) for row in rows)

    def __repr__(self) -> str:
        return f"windows({self.generator!r}, time={self.time!r})"
