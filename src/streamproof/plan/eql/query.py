"""An event-driven query as data: the events that drive it, the data it looks at, and what it asks of them.

The language EQL and the Python way both make these; `plan.eql.lowering` turns them into the algebra.

>>> from streamproof.plan.expr import Col
>>> bird = Lasting(Arrive("Bird"), "10s")
>>> EqlQuery((Item("light", Aggregate("avg", Col("light"))),), "Sensors", Meanwhile(bird)).streams()
('Sensors', 'Bird')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.time import Span
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Expr, Value, columns_of

MAX_DEPTH: Final = 100  # events inside of events
MAX_EVENTS: Final = 1_000  # that one event is made of
Pair: TypeAlias = Literal["each", "fifo", "lifo"]
Way: TypeAlias = Literal["any", "up", "down"]


def _place() -> Any:
    """A field for where something stands in the text; equal queries may stand anywhere."""
    return field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Once:
    """``TIME('2026-01-01T00:00Z')``: one instant."""

    moment: str
    at: int | None = _place()  # where in the text; None if it was not written as text


@dataclass(frozen=True, slots=True)
class Every:
    """``TIME(EVERY 10s)``: the multiples of a length of time, counted from 0."""

    span: Span
    at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Cron:
    """``TIME(CRON '0 * * * *')``: minutes of the calendar, in UTC."""

    pattern: str
    at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Arrive:
    """``ARRIVE(stream: condition)``: a tuple comes that fulfils the condition."""

    stream: str
    where: Expr | None = None
    at: int | None = _place()
    where_at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Becomes:
    """``BECOMES(stream: condition)``: the condition holds, and did not hold at the tuple before of the same key."""

    stream: str
    where: Expr
    at: int | None = _place()
    where_at: int | None = _place()


@dataclass(frozen=True, slots=True)
class ValueChanges:
    """``CHANGES(stream.column UP BY 30)``: a value has moved since the last firing, or from its extremes of late."""

    stream: str
    column: str
    step: Value
    way: Way = "any"
    within: Span | None = None
    at: int | None = _place()
    column_at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Named:
    """An event that the query defines by name."""

    name: str
    at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Nested:
    """``outer @ inner``: the inner event, where it happens during the outer one."""

    outer: Event
    inner: Event
    within: Span | None = None  # of two instants: how long after the first the second may come
    open: bool = False  # of two lasting events: the outer need only still be open when the inner begins
    at: int | None = _place()


@dataclass(frozen=True, slots=True)
class Lasting:
    """``LASTING(begin, end BY columns)``; an end that is a length of time makes it time-bounded."""

    begin: Event
    end: Event | Span
    by: tuple[str, ...] = ()
    pair: Pair = "each"
    max: Span | None = None
    at: int | None = _place()
    by_at: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Periodic:
    """``LASTING(a, b) EVERY 10s``: at its begin and again and again until its end."""

    event: Event
    span: Span
    at: int | None = _place()


Clock: TypeAlias = "Once | Every | Cron"
Event: TypeAlias = "Once | Every | Cron | Arrive | Becomes | ValueChanges | Named | Nested | Lasting | Periodic"


@dataclass(frozen=True, slots=True)
class OnArrival:
    """AEC: at each arrival of the data."""


@dataclass(frozen=True, slots=True)
class EachHop:
    """TEC: at every multiple of a length of time."""

    span: Span
    at: int | None = _place()


@dataclass(frozen=True, slots=True)
class At:
    """IES: at each instant event, of equal ``by`` columns."""

    event: Event
    by: tuple[str, ...] = ()
    by_at: tuple[int, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Meanwhile:
    """LES: once, at the end of each lasting event; LEC (``continuous``): again and again while it lasts."""

    event: Event
    continuous: bool = False


When: TypeAlias = "OnArrival | EachHop | At | Meanwhile"


@dataclass(frozen=True, slots=True)
class Qos:
    """What the result may cost in time: how late it may be, and how many tuples may wait."""

    latency: Span
    backlog: int | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One column of the result."""

    name: str
    aggregate: Aggregate
    at: int | None = _place()
    named: bool = field(default=True, compare=False, repr=False)  # whether the text gives the name


@dataclass(frozen=True, slots=True)
class EqlQuery:
    """One event-driven query with the events it defines."""

    items: tuple[Item, ...]
    stream: str
    when: When
    where: Expr | None = None
    window: Span | None = None
    hop: Span | None = None
    group: tuple[str, ...] = ()
    empty: bool = False
    qos: Qos | None = None
    events: tuple[tuple[str, Event], ...] = ()
    shown: tuple[str, ...] = ()  # columns the text lists besides the items: they are in the result anyhow
    text: str | None = field(default=None, compare=False, repr=False)
    at: int | None = _place()  # of the stream
    where_at: int | None = _place()
    group_at: tuple[int, ...] = field(default=(), compare=False, repr=False)
    shown_at: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.items:
            raise PlanError("an event-driven query needs at least one aggregate", fix="select e.g. count(*)")
        if isinstance(self.when, At | Meanwhile):
            _refuse_large(self.when.event, dict(self.events))

    @property
    def model(self) -> str:
        """AEC, TEC, IES, LES or LEC."""
        match self.when:
            case OnArrival():
                return "AEC"
            case EachHop():
                return "TEC"
            case At():
                return "IES"
        return "LEC" if self.when.continuous else "LES"

    def streams(self) -> tuple[str, ...]:
        """The streams it reads, the data first."""
        roots = self.when.event if isinstance(self.when, At | Meanwhile) else None
        found = [self.stream, *(name for event in self._walk(roots) for name in _reads(event))]
        return tuple(dict.fromkeys(found))

    def _walk(self, event: Event | None) -> Iterator[Event]:
        """An event and all it is made of; what has a name, once."""
        waiting, defined = [event] if event is not None else [], dict(self.events)
        while waiting:
            event = waiting.pop()
            yield event
            waiting += reversed(parts_of(event))
            if isinstance(event, Named) and event.name in defined:
                waiting.append(defined.pop(event.name))


def _refuse_large(event: Event, defined: Mapping[str, Event]) -> None:
    """Refuse events that are made of too many, each counted as often as its name is used."""
    sizes: dict[str, int] = {}

    def size(event: Event, depth: int) -> int:
        if depth > MAX_DEPTH:
            raise PlanError(f"events are nested more than {MAX_DEPTH} deep", fix=_SIMPLER, name="limit_exceeded")
        if not isinstance(event, Named):
            return 1 + sum(size(part, depth + 1) for part in parts_of(event))
        if event.name not in sizes:
            sizes[event.name] = 0  # an event that is made of itself is refused elsewhere
            sizes[event.name] = size(defined[event.name], depth + 1) if event.name in defined else 0
        return sizes[event.name]

    total = size(event, 0)
    if total > MAX_EVENTS:
        what = f"the event is made of {total} others, once its names are replaced by what they stand for"
        raise PlanError(f"{what}; the limit is {MAX_EVENTS}", fix=_SIMPLER, name="limit_exceeded")


_SIMPLER = "use fewer events, or names fewer times"


def parts_of(event: Event) -> tuple[Event, ...]:
    """The events that an event is made of."""
    match event:
        case Periodic(inside):
            return (inside,)
        case Nested(outer, inner):
            return outer, inner
        case Lasting(begin, end):
            return (begin,) if isinstance(end, int | str | timedelta) else (begin, end)
    return ()


def _reads(event: Event) -> Iterator[str]:
    match event:
        case Arrive(stream, where) | Becomes(stream, where):
            yield stream
            yield from other_streams(where)
        case ValueChanges(stream):
            yield stream


def other_streams(where: Expr | None) -> tuple[str, ...]:
    """The streams whose latest values a condition reads: ``temp > Limits.high``."""
    return () if where is None else tuple(dict.fromkeys(name for name, _ in latest_values(where)))


def latest_values(where: Expr) -> tuple[tuple[str, str], ...]:
    """The pairs of stream and column that a condition reads of other streams."""
    pairs = (column.name.split(OTHER, 1) for column in columns_of(where) if OTHER in column.name)
    return tuple(sorted((stream, name) for stream, name in pairs))


OTHER = "\x1f"
"""Between the stream and the column of a value of another stream, in the name of its `Col`."""
