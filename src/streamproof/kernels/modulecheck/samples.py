"""Windows of events to try a module on: random by a seed, with everything that a stream may bring, and made smaller.

>>> first, again = (next(samples(SampleKind((("v", Type("float64")),)), seed=1)) for _ in range(2))
>>> first == again
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final

from streamproof.events.schema import Type
from streamproof.events.time import FOREVER, show_tick
from streamproof.plan.modules import Clipping, Event, WindowSpan

SPANS: Final = ((0, 10), (0, 1), (-7, 3), (100, 1100), (5, 8))
MOST: Final = 8  # events in a window
MOST_STEPS: Final = 2_000  # tries to make a window smaller


@dataclass(frozen=True, slots=True)
class SampleKind:
    """What windows to make."""

    columns: tuple[tuple[str, Type], ...]
    clip: Clipping = "none"
    as_rows: bool = False  # values are dicts of all columns, else the first column alone
    plain: bool = False  # without nulls, NaN, infinities and lifetimes without end


@dataclass(frozen=True, slots=True)
class Sample:
    """One window and its events, as the module sees them; ``seed`` decides what else is tried on it."""

    window: WindowSpan
    events: tuple[Event, ...]
    seed: int = 0
    others: tuple[Event, ...] = ()  # events that may have been there, and are gone

    def fresh(self) -> list[Event]:
        """The events, with payloads that nobody else holds."""
        return fresh(self.events)

    def random(self) -> Random:
        return Random(self.seed)  # noqa: S311  # repeatable, not secret

    def __str__(self) -> str:
        window = f"window [{show_tick(self.window.le)}, {show_tick(self.window.re)})"
        events = ", ".join(f"[{show_tick(e.le)}, {show_tick(e.re)}) {e.value!r}" for e in self.events)
        return f"{window} with {events or 'no events'}"


def fresh(events: Iterable[Event]) -> list[Event]:
    return [e._replace(value=dict(e.value)) if isinstance(e.value, dict) else e for e in events]


def samples(kind: SampleKind, *, seed: int) -> Iterator[Sample]:
    """Windows without end, small ones first."""
    random = Random(seed)  # noqa: S311  # repeatable, not secret
    number = 0
    while True:
        window = WindowSpan(*random.choice(SPANS))
        count = 1 + random.randrange(min(MOST, 1 + number // 8))
        events = [_event(random, kind, window) for _ in range(count)]
        if count > 1 and random.random() < 0.2:
            events[-1] = events[0]  # an event may be there twice
        drawn = random.randrange(2**31)
        more = Random(drawn)  # noqa: S311  # repeatable, not secret
        others = [_event(more, kind, window) for _ in range(1 + more.randrange(3))]
        others = [_beyond(more, event, events) if more.random() < 0.6 else event for event in others]
        yield Sample(window, tuple(in_order(events)), drawn, tuple(in_order(others)))
        number += 1


def _beyond(random: Random, event: Event, events: list[Event]) -> Event:
    """The event with values that no other has: less than the least, or more than the greatest."""
    if isinstance(event.value, dict):
        value = {name: _outside(random, v, [e.value[name] for e in events]) for name, v in event.value.items()}
        return event._replace(value=value)
    return event._replace(value=_outside(random, event.value, [e.value for e in events]))


def _outside(random: Random, value: Any, known: list[Any]) -> Any:
    kept = [v for v in known if v is not None and not (isinstance(v, float) and not math.isfinite(v))]
    if not kept or isinstance(value, bool) or value is None:
        return value
    least, greatest, by = min(kept), max(kept), 1 + random.randrange(9)
    if isinstance(value, str):
        return random.choice(("", f"{greatest}z"))
    step: Any = timedelta(days=by) if isinstance(value, date) else type(value)(by)
    found: Any = random.choice((least - step, greatest + step))
    return found


def in_order(events: list[Event]) -> list[Event]:
    """Events as an engine hands them over: by lifetime and value."""
    return sorted(events, key=lambda event: (event.le, event.re, repr(event.value)))


def _event(random: Random, kind: SampleKind, window: WindowSpan) -> Event:
    length = window.re - window.le
    le = random.randrange(window.le - length - 1, window.re) if random.random() < 0.4 else random.randrange(*window)
    re = random.randrange(max(le, window.le) + 1, window.re + length + 2)
    if not kind.plain and random.random() < 0.1:
        re = FOREVER
    if kind.clip in ("left", "full"):
        le = max(le, window.le)
    if kind.clip in ("right", "full"):
        re = min(re, window.re)
    values = {name: value_of(random, of, plain=kind.plain) for name, of in kind.columns}
    return Event(le, re, values if kind.as_rows else next(iter(values.values()), None))


def value_of(random: Random, kind: Type, *, plain: bool) -> Any:
    """A random value of a type; small ones and equal ones are frequent."""
    if not plain and random.random() < 0.12:
        return None
    match kind.kind:
        case "int64":
            return random.choice((0, 1, 2, 3, -1, 7, random.randrange(-1000, 1000)))
        case "float64":
            if not plain and random.random() < 0.08:
                return random.choice((math.nan, math.inf, -math.inf))
            return random.choice((0.0, 1.0, 2.5, -1.5, 0.1, random.randrange(-8000, 8000) / 8))
        case "string":
            return random.choice(("", "a", "b", "B", "ab", "é"))
        case "bool":
            return random.random() < 0.5
        case "decimal":
            return Decimal(random.randrange(-999, 999)).scaleb(-kind.scale)
        case "date":
            return date(2024, 2, 28) + timedelta(days=random.randrange(5))
        case "timestamp":
            return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=random.randrange(100))
    return None


# --- smaller ----------------------------------------------------------------------------------------------------------


def smallest(sample: Sample, still: Callable[[Sample], bool]) -> Sample:
    """A sample that cannot be made simpler in one step and for which something is still the case."""
    left = MOST_STEPS
    found = True
    while found and left > 0:
        found = False
        for simpler in _simpler(sample):
            left -= 1
            if still(simpler):
                sample, found = simpler, True
                break
    return sample


def _simpler(sample: Sample) -> Iterator[Sample]:
    events, others = sample.events, sample.others
    for n in range(len(events)):
        if len(events) > 1:
            yield replace(sample, events=events[:n] + events[n + 1 :])
    for n in range(len(others)):
        if len(others) > 1:
            yield replace(sample, others=others[:n] + others[n + 1 :])
    for n, event in enumerate(events):
        for simpler in _simpler_events(event, sample.window):
            changed = [*events[:n], simpler, *events[n + 1 :]]
            yield replace(sample, events=tuple(in_order(changed)))


def _simpler_events(event: Event, window: WindowSpan) -> Iterator[Event]:
    """Events that stick out less, are shorter, or have a simpler value."""
    le, re = max(event.le, window.le), min(event.re, window.re)
    if (le, re) != (event.le, event.re):
        yield event._replace(le=le, re=re)
    if event.re > le + 1:
        yield event._replace(le=le, re=le + 1)
    if isinstance(event.value, dict):
        for name, value in event.value.items():
            yield from (event._replace(value={**event.value, name: each}) for each in simpler_values(value))
    else:
        yield from (event._replace(value=each) for each in simpler_values(event.value))


def simpler_values(value: Any) -> Iterator[Any]:
    """Zero, one, the whole part: whatever is simpler than a value."""
    if isinstance(value, bool) or value is None:
        return
    if isinstance(value, int | float):
        candidates: list[Any] = [type(value)(0), type(value)(1)]
        if isinstance(value, float) and math.isfinite(value):
            candidates.append(float(int(value)))
        for each in candidates:
            if math.isnan(value) or abs(each) < abs(value):
                yield each
    elif isinstance(value, str) and len(value) > 1:
        yield value[:1]
