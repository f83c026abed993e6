"""How the input of a run comes: in which pieces, in which order, from which source next. Every choice is legal.

Over complete input advance_time is the identity, so SQL cannot judge it. Here is its rule once more, as plain as can
be, over events in their order of arrival; what it lets through is then the input of the SQL.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> case = seeded_case(3)
>>> sum(len(piece) for _, piece in pushes(case, Schedule(seed=1, cuts=2))) == case.size + case.ctis
True
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from streamproof.engines.local import in_turn
from streamproof.events.batch import Batch
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, Unit, duration
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.workbench.case import Case, CaseStream, Row
from streamproof.workbench.schedule import Schedule

MOST_CTIS = 500
"""Of a long stream about so many events at most are followed by a CTI."""

Push = tuple[str, PhysicalStream]


def pushes(case: Case, schedule: Schedule) -> list[Push]:
    """The pieces of all sources, in the order in which they come."""
    chance = random.Random(schedule.seed)  # noqa: S311  # test data, not secrets
    parts = {name: _pieces(stream, schedule, chance) for name, stream in case.streams.items()}
    if schedule.interleave:
        return list(_shuffled(parts, chance))
    waiting = {name: [_Piece(piece) for piece in pieces] for name, pieces in parts.items()}
    return [(name, piece.stream) for name, piece in in_turn(waiting)]


def arrivals(case: Case) -> dict[str, PhysicalStream]:
    """The events of each source in the order in which they come."""
    found: dict[str, list[PhysicalStream]] = {name: [] for name in case.streams}
    for name, piece in pushes(case, case.schedule):
        found[name].append(piece)
    return {name: PhysicalStream.concat(parts, schema=case.schemas[name]) for name, parts in found.items()}


class _Piece:
    """A piece with the CTI that it brings."""

    def __init__(self, stream: PhysicalStream) -> None:
        self.stream = stream

    @property
    def frontier(self) -> int:
        ctis = self.stream.rows["le"].to_numpy()[self.stream.kinds == CTI]
        return int(ctis.max(initial=BEGINNING))


def _shuffled(parts: dict[str, list[PhysicalStream]], chance: random.Random) -> Iterator[Push]:
    waiting = {name: list(pieces) for name, pieces in parts.items()}
    while any(waiting.values()):
        name = chance.choice([name for name, pieces in waiting.items() if pieces])
        yield name, waiting[name].pop(0)


def _pieces(stream: CaseStream, schedule: Schedule, chance: random.Random) -> list[PhysicalStream]:
    """Pieces between events: a retraction is one change, whose two rows no cut may part."""
    physical = stream.physical
    if schedule.reorder:
        events = reordered(stream.events, chance)
        physical = PhysicalStream.from_events(events, schema=stream.schema)
    length = len(physical)
    if schedule.cuts < 0:
        cuts: Sequence[int] = range(1, length)
    else:
        cuts = sorted(chance.sample(range(length + 1), k=min(schedule.cuts, length)))
    return [physical.slice(start, end - start) for start, end in pairwise([0, *cuts, length])]


def batches_of(schema: Schema, piece: PhysicalStream) -> Iterator[Batch]:
    """A piece as signed rows; an empty one is nothing."""
    return to_batches([piece]) if len(piece) else iter(())


def reordered(events: Sequence[Event], chance: random.Random, *, most: int | None = None) -> list[Event]:
    """The events in another order, with the changes of each event in theirs; CTIs as early as the order allows.

    No event moves by more than ``most`` places, half of all if left out.

    Law: the history is the same, and the stream is legal.
    """
    moved = [event for event in events if not isinstance(event, Cti)]
    far = max(2.0, len(moved) / 2) if most is None else most
    places = sorted(range(len(moved)), key=lambda n: n + chance.uniform(0, far))
    queues: dict[str, list[Event]] = {}
    for event in moved:
        queues.setdefault(event.id, []).append(event)
    order = [queues[moved[place].id].pop(0) for place in places]
    return _with_ctis(order, chance) if any(isinstance(event, Cti) for event in events) else list(order)


def _with_ctis(order: Sequence[Event], chance: random.Random) -> list[Event]:
    """Punctuations after some of the events, as late in time as what follows allows."""
    often = min(0.4, MOST_CTIS / len(order)) if order else 0.0
    promised, least = [], FOREVER
    for event in reversed(order):
        promised.append(least)
        least = min(least, sync_time(event))
    found: list[Event] = []
    last = BEGINNING
    for event, most in zip(order, reversed(promised), strict=True):
        found.append(event)
        if most > last and chance.random() < often:
            last = most
            found.append(Cti(most))
    return found


def sync_time(event: Event) -> int:
    """From when on the event changes history."""
    if isinstance(event, Cti):
        return event.t
    return event.le if isinstance(event, Insert) else min(event.re, max(event.re_new, event.le))


# --- what advance_time lets through -----------------------------------------------------------------------------------


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
    """The history of what comes out of an advance_time, given the events in order of arrival.

    >>> node = nodes.AdvanceTime(nodes.Source("S"), every=1, late="adjust")
    >>> let_through(node, [Insert("a", 10, 11, {}), Insert("b", 5, 20, {}), Insert("c", 1, 9, {})])
    [(10, 11, {}), (10, 20, {})]
    """
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
        streams[names[node]] = CaseStream(given.schema, tuple(Insert(f"e{n}", *row) for n, row in enumerate(rows)))

    def without(node: Plan) -> Plan:
        return nodes.Source(names[node]) if isinstance(node, nodes.AdvanceTime) else node

    plan = nodes.transform(case.plan, without)
    return replace(case, plan=plan, streams={name: streams[name] for name in nodes.sources(plan)})
