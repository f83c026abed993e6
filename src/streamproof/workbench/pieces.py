"""How the input of a run comes: in which pieces, in which order, from which source next. Every choice is legal.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> case = seeded_case(3)
>>> sum(len(piece) for _, piece in pushes(case, Schedule(seed=1, cuts=2))) == case.size + case.ctis
True
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamproof.engines.local import in_turn
from streamproof.events.batch import Batch
from streamproof.events.event import Cti, Event, Insert
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import CTI, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.workbench.case import Case, Stream
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


def _pieces(stream: Stream, schedule: Schedule, chance: random.Random) -> list[PhysicalStream]:
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
