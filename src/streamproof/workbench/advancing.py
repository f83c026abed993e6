"""What advance_time lets through, event by event, in the order in which a run brings them.

Over complete input advance_time is the identity, so SQL cannot judge it. Here is its rule once more, as plain as can
be; what it lets through is then the input of the SQL.

>>> from streamproof.events.event import Insert
>>> node = nodes.AdvanceTime(nodes.Source("S"), every=1, late="adjust")
>>> let_through(node, [Insert("a", 10, 11, {}), Insert("b", 5, 20, {}), Insert("c", 1, 9, {})])
[(10, 11, {}), (10, 20, {})]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, NamedTuple

from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.time import BEGINNING, Unit, duration
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.workbench.case import Case, Row, Stream
from streamproof.workbench.pieces import arrivals


class _Delivered(NamedTuple):
    """An event as it was delivered, from ``le`` to ``re``."""

    le: int
    re: int
    payload: dict[str, Any]


class _Clock:
    """The CTI of an advance_time: after every N events, or whenever time has moved by a duration."""

    def __init__(self, node: nodes.AdvanceTime, unit: Unit | None) -> None:
        self._every, self._delay = node.every, duration(node.delay, unit)
        self._duration = None if node.every_duration is None else duration(node.every_duration, unit)
        self._count = 0
        self._latest = self.cti = BEGINNING

    def tick(self, event: Event) -> None:
        self._count += 1
        if isinstance(event, Cti):
            self.cti = max(self.cti, event.t)
        if isinstance(event, Insert):
            self._latest = max(self._latest, event.le)
        if self._latest > BEGINNING and self._is_due(self._latest - self._delay):
            self.cti = max(self.cti, self._latest - self._delay)

    def _is_due(self, time: int) -> bool:
        if self._every is not None:
            return self._count % self._every == 0
        assert self._duration is not None
        return self.cti == BEGINNING or time >= self.cti + self._duration


def let_through(node: nodes.AdvanceTime, events: Iterable[Event], *, unit: Unit | None = None) -> list[Row]:
    """The history of what comes out of an advance_time, given the events in order of arrival."""
    clock, out = _Clock(node, unit), dict[str, _Delivered]()
    gone: list[_Delivered] = []  # events whose id came again
    for event in events:
        if isinstance(event, Insert):
            if event.id in out:
                gone.append(out.pop(event.id))
            delivered = _inserted(node, event, clock.cti)
        elif isinstance(event, Retract):
            delivered = _changed(node, event, out.pop(event.id, None), clock.cti)
        else:
            delivered = None
        if delivered is not None and not isinstance(event, Cti):
            out[event.id] = delivered
        clock.tick(event)
    return [(row.le, row.re, row.payload) for row in (*gone, *out.values())]


def _inserted(node: nodes.AdvanceTime, event: Insert, cti: int) -> _Delivered | None:
    payload = dict(event.payload)
    if event.le >= cti:
        return _Delivered(event.le, event.re, payload)
    return _Delivered(cti, event.re, payload) if node.late == "adjust" and event.re > cti else None


def _changed(node: nodes.AdvanceTime, event: Retract, known: _Delivered | None, cti: int) -> _Delivered | None:
    """What is left of an event; what would change the past leaves it as it is, or as much changed as the CTI allows."""
    if known is None:
        return None
    end = max(event.re_new, known.le)
    if node.late == "adjust":
        end = max(end, cti)
    if min(known.re, end) < cti:
        return known
    return known._replace(re=end) if end > known.le else None


def arrived(case: Case) -> Case:
    """The case with what its advance_times let through in place of them; the case itself where it has none."""
    found = [node for node in nodes.walk(case.plan) if isinstance(node, nodes.AdvanceTime)]
    if not found:
        return case
    order, streams = arrivals(case), dict(case.streams)
    names: dict[nodes.AdvanceTime, str] = {}
    for number, node in enumerate(dict.fromkeys(found)):
        assert isinstance(node.input, nodes.Source)
        names[node] = f"{node.input.name} {number}"
        given = case.streams[node.input.name]
        rows = let_through(node, order[node.input.name].to_events(), unit=given.schema.unit)
        streams[names[node]] = Stream(given.schema, tuple(Insert(f"e{n}", *row) for n, row in enumerate(rows)))

    def without(node: Plan) -> Plan:
        return nodes.Source(names[node]) if isinstance(node, nodes.AdvanceTime) else node

    plan = nodes.transform(case.plan, without)
    return replace(case, plan=plan, streams={name: streams[name] for name in nodes.sources(plan)})
