"""Event-driven queries in Python: events, and the ways in which they drive a query. They print as EQL.

>>> bird = lasting(arrive("Bird"), "10s")
>>> print(source("Sensors").during(bird).aggregate(n=count()).to_eql())
SELECT count(*) AS n
FROM Sensors
DURING LASTING(ARRIVE(Bird), +10s);
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

from streamproof import extensions
from streamproof.arguments import Knows, door, doors
from streamproof.errors import PlanError
from streamproof.events.time import Span
from streamproof.plan import event_nodes, nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.durations import read_span
from streamproof.plan.eql import query as eqm
from streamproof.plan.nodes import Plan
from streamproof.query.calls import names_the_call
from streamproof.query.column import Expression, to_expr
from streamproof.query.operators import BinaryOperators, Linear

Keys: TypeAlias = "str | tuple[str, ...] | list[str]"
Bound: TypeAlias = "tuple[tuple[str, Plan], ...]"


@doors
@dataclass(frozen=True, slots=True)
class Happening(Knows):
    """An event that can drive a query, with the streams it reads."""

    event: eqm.Event
    streams: Bound = ()

    def __matmul__(self, inner: Happening) -> Happening:
        """``outer @ inner``: the inner event, where it happens during the outer one."""
        return Happening(eqm.Nested(self.event, inner.event), _united(self.streams, inner.streams))

    def within(self, span: Span) -> Happening:
        """Of ``a @ b`` of two instants: how long after the first the second may come."""
        return replace(self, event=replace(self._sequence(), within=read_span(span)))

    def open(self) -> Happening:
        """Of ``a @ b`` of two lasting events: the outer need only be open when the inner begins."""
        return replace(self, event=replace(self._sequence(), open=True))

    def every(self, span: Span) -> Happening:
        """Of a lasting event: the instants at its begin and every so often until its end."""
        return replace(self, event=eqm.Periodic(self.event, read_span(span)))

    def _sequence(self) -> eqm.Nested:
        if not isinstance(self.event, eqm.Nested):
            raise PlanError("only a @ b can be limited like this", fix="combine two events with @ first")
        return self.event


@door
def arrive(stream: str | Linear, where: Expression | None = None) -> Happening:
    """A tuple of a stream comes, and fulfils the condition.

    >>> arrive("Badge", "dir = 'in'").event.stream
    'Badge'
    """
    name, streams = _named(stream)
    return Happening(eqm.Arrive(name, None if where is None else to_expr(where)), streams)


@door
def becomes(stream: str | Linear, where: Expression) -> Happening:
    """A condition becomes true: it holds for a tuple, and did not for the one before of the same key.

    >>> becomes("Door", "open = 1").event.stream
    'Door'
    """
    name, streams = _named(stream)
    return Happening(eqm.Becomes(name, to_expr(where)), streams)


@door
def changes(
    stream: str | Linear, column: str, *, by: float, way: eqm.Way = "any", within: Span | None = None
) -> Happening:
    """A value has moved by at least ``by`` since the last time it did, or from its extremes within a length of time.

    >>> changes("Room", "temp", by=30, way="up").event.step
    30
    """
    name, streams = _named(stream)
    reach = None if within is None else read_span(within)
    return Happening(eqm.ValueChanges(name, column, by, way, reach), streams)


@door
def clock(moment: str | None = None, *, every: Span | None = None, cron: str | None = None) -> Happening:
    """A time: one instant, the multiples of a length of time, or minutes of the calendar.

    >>> clock(cron="0 * * * *").event
    Cron(pattern='0 * * * *')
    """
    given = [part for part in (moment, every, cron) if part is not None]
    if len(given) != 1:
        raise PlanError("a clock takes a moment, every or cron", fix='give one, e.g. clock(every="10s")')
    if moment is not None:
        return Happening(eqm.Once(moment))
    return Happening(eqm.Every(read_span(every)) if every is not None else eqm.Cron(str(cron)))


@door
def lasting(
    begin: Happening,
    end: Happening | Span,
    *,
    by: Keys = (),
    pair: eqm.Pair = "each",
    max: Span | None = None,  # noqa: A002
) -> Happening:
    """An event with a begin and an end; an end that is a length of time makes it time-bounded.

    >>> enters, leaves = arrive("Badge", "dir = 'in'"), arrive("Badge", "dir = 'out'")
    >>> lasting(enters, leaves, by="person", max="12h").event.by
    ('person',)

    An end closes all that are open (``each``), the first to begin (``fifo``) or the last (``lifo``).
    """
    longest = None if max is None else read_span(max)
    if isinstance(end, Happening):
        streams = _united(begin.streams, end.streams)
        return Happening(eqm.Lasting(begin.event, end.event, _keys(by), pair, longest), streams)
    return Happening(eqm.Lasting(begin.event, read_span(end), _keys(by), pair, longest), begin.streams)


@doors
@dataclass(frozen=True, slots=True, repr=False)
class EventDriven(BinaryOperators):
    """The ways in which events drive a query over a stream."""

    def on_arrival(self, *, window: Span | None = None) -> PartialQuery:
        """At each arrival: what came within the window, itself included.

        >>> source("Room").on_arrival(window="5s").aggregate(n=count())
        source(Room) → eql(Room, AEC, n=count(), window=5s)
        """
        return self._query(eqm.OnArrival(), (), window)

    def every(self, span: Span, *, window: Span | None = None) -> PartialQuery:
        """At every multiple of a length of time: what came within the window.

        >>> source("Room").every("10s", window="60s").aggregate(n=count())
        source(Room) → eql(Room, TEC, n=count(), window=60s)
        """
        return self._query(eqm.EachHop(read_span(span)), (), window)

    def at(self, event: Happening, *, by: Keys = (), window: Span | None = None) -> PartialQuery:
        """At each instant event: what came within the window, or without one the latest tuple.

        >>> source("Room").at(becomes("Door", "open = 1")).aggregate(n=count())
        source(Room) → eql(Room, IES, n=count())
        """
        return self._query(eqm.At(event.event, _keys(by)), event.streams, window)

    def during(
        self, event: Happening, *, continuous: bool = False, window: Span | None = None, hop: Span | None = None
    ) -> PartialQuery:
        """Once at the end of each lasting event, or ``continuous``: at every hop (or arrival) while it lasts.

        >>> source("Room").during(lasting(arrive("Bird"), "10s")).aggregate(n=count())
        source(Room) → eql(Room, LES, n=count())
        """
        partial = self._query(eqm.Meanwhile(event.event, continuous), event.streams, window)
        return partial if hop is None else replace(partial, query={**partial.query, "hop": read_span(hop)})

    def _query(self, when: eqm.When, streams: Bound, window: Span | None) -> PartialQuery:
        plan, where = self.plan, None
        if isinstance(plan, nodes.Where) and isinstance(plan.input, nodes.Source):
            where, plan = plan.expr, plan.input  # EQL has a clause for it
        name = plan.name if isinstance(plan, nodes.Source) else "data"
        query = {
            "stream": name,
            "when": when,
            "where": where,
            "window": None if window is None else read_span(window),
        }
        return PartialQuery(query, _united(((name, plan),), streams), type(self))

    # --- the operators below -----------------------------------------------------------------------------------------

    @names_the_call
    def transition(self, condition: Expression, *, key: Keys = ()) -> Self:
        """The events at which a condition becomes true, per key.

        >>> source("Door").transition("open = 1", key="room")
        source(Door) → transition(open = 1, key=room)
        """
        return self._then(event_nodes.Transition(self.plan, to_expr(condition), _keys(key)))

    @names_the_call
    def drift(self, value: Expression, *, step: Expression, way: event_nodes.Way = "any", key: Keys = ()) -> Self:
        """The events at which a value has moved by at least ``step`` since the last such event, per key.

        >>> source("Room").drift("temp", step=30, way="up")
        source(Room) → drift(temp by 30, up)
        """
        return self._then(event_nodes.Drift(self.plan, to_expr(value), to_expr(step), way, _keys(key)))

    @names_the_call
    def pairing(
        self,
        ends: Linear,
        *,
        key: Keys = (),
        policy: event_nodes.Policy = "fifo",
        max: Span | None = None,  # noqa: A002
    ) -> Self:
        """Each event lasts until an event of ``ends`` closes it: the first to begin, or the last (``lifo``).

        >>> source("B").pairing(source("E"), key="k")
        source(B) → pairing(fifo, key=k)
        """
        longest = None if max is None else read_span(max)
        return self._then(event_nodes.Pairing(self.plan, ends.plan, _keys(key), policy, longest))

    @names_the_call
    def observe(
        self,
        data: Linear,
        aggs: Mapping[str, Aggregate],
        *,
        trigger: event_nodes.Trigger = "end",
        key: Keys = (),
        group: Keys = (),
        reach: Span | None = None,
        hop: Span | None = None,
        begin: str | None = None,
        end: str | None = None,
        latest: bool = False,
        empty: bool = False,
    ) -> Self:
        """What each event of this stream sees of the data; see `streamproof.plan.event_nodes.During`.

        >>> source("E").observe(source("D"), {"n": count()}, key="k")
        source(E) → during(end, n=count(), key=k)
        """
        far, step = (None if span is None else read_span(span) for span in (reach, hop))
        return self._then(
            event_nodes.During(
                self.plan,
                data.plan,
                tuple(aggs.items()),
                trigger,
                _keys(key),
                _keys(group),
                far,
                step,
                begin,
                end,
                latest,
                empty,
            )
        )


@doors
@dataclass(frozen=True, slots=True)
class PartialQuery(Knows):
    """A query that lacks its aggregates."""

    query: Mapping[str, Any]
    streams: Bound
    _make: Callable[[Plan], Any]

    def group_by(self, *columns: str) -> PartialQuery:
        """A result for each group of the data."""
        return replace(self, query={**self.query, "group": columns})

    def emit_empty(self) -> PartialQuery:
        """A row also where nothing was seen: counts are 0."""
        return replace(self, query={**self.query, "empty": True})

    def qos(self, *, latency: Span, backlog: int | None = None) -> PartialQuery:
        """How late results may be, and how many tuples may wait."""
        return replace(self, query={**self.query, "qos": eqm.Qos(read_span(latency), backlog)})

    def aggregate(self, **aggs: Aggregate) -> Any:
        """The stream of results, one column for each aggregate."""
        items = tuple(eqm.Item(name, agg) for name, agg in aggs.items())
        query = eqm.EqlQuery(items, **self.query)
        bound = dict(self.streams)
        return self._make(event_nodes.EventQuery(tuple((name, bound[name]) for name in query.streams()), query))


@door
def eql(text: str, **streams: Linear) -> Any:
    """The stream that EQL describes; streams that are not sources can be given by name.

    >>> eql("SELECT count(*) FROM S EVERY 10s WINDOW 60s")
    source(S) → eql(S, TEC, count=count(), window=60s)
    """
    from streamproof.query.stream import Stream  # noqa: PLC0415  # which is made of these operators

    plan = extensions.load("languages", "eql").loads(text)
    for name in streams:
        if name not in dict(plan.bind):
            raise PlanError(f'the query reads no stream "{name}"', fix=f"it reads {', '.join(dict(plan.bind))}")
    bound = tuple((name, streams[name].plan if name in streams else part) for name, part in plan.bind)
    return Stream(event_nodes.EventQuery(bound, plan.query))


def _named(stream: str | Linear) -> tuple[str, Bound]:
    if isinstance(stream, str):
        return stream, ((stream, nodes.Source(stream)),)
    plan = stream.plan
    if not isinstance(plan, nodes.Source):
        raise PlanError("an event is about a source", fix='name it: arrive("S", "v > 1"), or use eql(…, S=stream)')
    return plan.name, ((plan.name, plan),)


def _keys(key: Keys) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else tuple(key)


def _united(first: Bound, second: Bound) -> Bound:
    """All streams by name; what says more about a source counts."""
    found = dict(first)
    for name, plan in second:
        if name not in found or found[name] == nodes.Source(name):
            found[name] = plan
        elif plan not in (found[name], nodes.Source(name)):
            raise PlanError(f'two different streams are called "{name}"', fix="rename one of the sources")
    return tuple(found.items())


__all__ = ["EventDriven", "Happening", "arrive", "becomes", "changes", "clock", "eql", "lasting"]
