"""Streams one step smaller, still legal: fewer events, fewer columns, simpler values and times."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from streamproof.errors import InputError
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.workbench.case import CaseStream, Row


def fewer_events(stream: CaseStream) -> Iterator[CaseStream]:
    """Nothing, the history as it is in the end, without a run of events, without one event or CTI or change."""
    if not stream.events:
        return
    yield replace(stream, events=())
    plain = CaseStream.inserting(stream.schema, stream.rows)
    if plain.events != stream.events:
        yield plain
    yield from _legal(stream, _without_parts(stream.events))


def _without_parts(events: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    """Without a half, a quarter, ... of the events in a row; without CTIs; without one event, one change, one CTI."""
    yield from _without_runs(events)
    if any(isinstance(event, Cti) for event in events):
        yield tuple(event for event in events if not isinstance(event, Cti))
    for n in reversed(range(len(events))):
        event = events[n]
        if not isinstance(event, Insert):
            yield _without(events, n)
            continue
        yield _without_ids(events, {event.id})
        if sum(isinstance(other, Insert) and other.id == event.id for other in events) > 1:
            yield _without_life(events, n)


def _without_runs(events: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    """Ever shorter runs of events gone, each with all its changes; what comes last goes first."""
    size = len(events) // 2
    while size > 1:
        for start in reversed(range(0, len(events), size)):
            run = events[start : start + size]
            rest = (*events[:start], *events[start + size :])
            yield _without_ids(rest, {event.id for event in run if not isinstance(event, Cti)})
        size //= 2


def _without_ids(events: tuple[Event, ...], names: set[str]) -> tuple[Event, ...]:
    return tuple(event for event in events if isinstance(event, Cti) or event.id not in names)


def _without(events: tuple[Event, ...], n: int) -> tuple[Event, ...]:
    """Without one CTI or one retraction; later changes of the same event start from what it then is."""
    gone, rest = events[n], list(events[n + 1 :])
    if isinstance(gone, Retract):
        for k, event in enumerate(rest):
            if isinstance(event, Retract) and event.id == gone.id:
                rest[k] = replace(event, re=gone.re)
                break
    return (*events[:n], *rest)


def _without_life(events: tuple[Event, ...], n: int) -> tuple[Event, ...]:
    """Without one insert and its changes up to where it is taken away, of an event that comes more than once."""
    gone, rest = events[n], list[Event]()
    assert isinstance(gone, Insert)
    lives = True
    for event in events[n + 1 :]:
        if not lives or isinstance(event, Cti) or event.id != gone.id:
            rest.append(event)
        else:
            lives = not (isinstance(event, Retract) and event.re_new <= event.le)
    return (*events[:n], *rest)


def _legal(stream: CaseStream, options: Iterator[tuple[Event, ...]]) -> Iterator[CaseStream]:
    for events in options:
        if is_legal(stream.schema, events):
            yield CaseStream(stream.schema, events)


def is_legal(schema: Schema, events: tuple[Event, ...]) -> bool:
    """Whether the events are a stream that the validator lets through."""
    try:
        Validator().check(PhysicalStream.from_events(events, schema=schema))
    except InputError:
        return False
    return True


def fewer_columns(stream: CaseStream) -> Iterator[CaseStream]:
    """Without one column, and without a unit."""
    for name in stream.schema.names:
        schema = Schema(tuple(pair for pair in stream.schema if pair[0] != name), stream.schema.unit)
        yield CaseStream(schema, tuple(_without_column(event, name) for event in stream.events))
    if stream.schema.unit is not None:
        yield CaseStream(Schema(stream.schema.columns), stream.events)


def _without_column(event: Event, name: str) -> Event:
    if isinstance(event, Cti):
        return event
    return replace(event, payload={n: value for n, value in event.payload.items() if n != name})


def simpler_events(stream: CaseStream) -> Iterator[CaseStream]:
    """One event with a simpler value or time; all changes of it along with it."""
    yield from _legal(stream, _moved_together(stream.events))
    inserts = [event for event in stream.events if isinstance(event, Insert)]
    for event in inserts:
        for name, value in event.payload.items():
            for simpler in simpler_values(value):
                changed = {**event.payload, name: simpler}
                yield CaseStream(stream.schema, tuple(_with_payload(e, event.id, changed) for e in stream.events))
    changed_ids = {event.id for event in stream.events if isinstance(event, Retract)}
    yield from _legal(stream, _simpler_times(stream.events, [e for e in inserts if e.id not in changed_ids]))


def _with_payload(event: Event, name: str, payload: dict[str, Any]) -> Event:
    return event if isinstance(event, Cti) or event.id != name else replace(event, payload=payload)


def _simpler_times(events: tuple[Event, ...], inserts: list[Insert]) -> Iterator[tuple[Event, ...]]:
    for event in inserts:
        for le, re in _simpler_lifetimes((event.le, event.re, {})):
            yield tuple(replace(event, le=le, re=re) if e is event else e for e in events)


def _simpler_lifetimes(row: Row) -> Iterator[tuple[int, int]]:
    le, re, _ = row
    if le not in (0, BEGINNING) and re != FOREVER:
        yield 0, re - le
    if re not in (le + 1, FOREVER):
        yield le, le + 1
    if re == FOREVER:
        yield le, max(le, 0) + 5
    if le == BEGINNING:
        yield 0, max(re, 1)


def _moved_together(events: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
    """All finite times moved so that the earliest is 0."""
    starts = [event.le for event in events if isinstance(event, Insert) and event.le != BEGINNING]
    if starts and min(starts) != 0:
        yield tuple(moved(event, -min(starts)) for event in events)


def moved(event: Event, by: int) -> Event:
    """The event with its finite times moved."""

    def move(tick: int) -> int:
        return tick if tick in (BEGINNING, FOREVER) else tick + by

    if isinstance(event, Cti):
        return Cti(move(event.t))
    if isinstance(event, Insert):
        return replace(event, le=move(event.le), re=move(event.re))
    return replace(event, le=move(event.le), re=move(event.re), re_new=move(event.re_new))


def simpler_values(value: Any) -> list[Any]:
    """Simpler values of the same type, simplest first, up to the value itself."""
    ladders: tuple[list[Any], ...] = (
        [None, False, True], [None, 0, 1, 2, -1], [None, 0.0, 1.0, -1.0, 0.5, float("nan")], [None, "", "a", "b"],
        [None, Decimal("0.00"), Decimal("1.00")],
    )  # fmt: skip
    for ladder in ladders:
        if type(value) is type(ladder[1]):
            found = [n for n, step in enumerate(ladder) if repr(step) == repr(value)]
            return ladder[: found[0]] if found else ladder
    if isinstance(value, datetime):
        return [] if value == datetime(1970, 1, 1, tzinfo=UTC) else [None, datetime(1970, 1, 1, tzinfo=UTC)]
    if isinstance(value, date):
        return [] if value == date(1970, 1, 1) else [None, date(1970, 1, 1)]
    return []
