"""The rows of each event: its insert, what was believed before, and the retractions that set it right.

Whatever is believed on the way, every event ends as its lifetime says: speculation never changes the history.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np

from streamproof.events.order import Flags, Ints, Words
from streamproof.events.stream import INSERT, RETRACT
from streamproof.events.time import FOREVER
from streamproof.generate.arrival import AFTER, BEFORE, IN_TURN, PHASES, ArrivalTurns
from streamproof.generate.draws import below, exactly, key_of, part_of, words
from streamproof.generate.facets import Change, Facets
from streamproof.generate.lifetimes import EventLifetimes
from streamproof.generate.rows import GUESS, OWN_ID, DraftRows

LONGEST: Final = 4  # changes of one event
WAIT: Final = 16  # the most places between one change and the next
_SPAN: Final = 1 << 20  # ends are believed at most so far from where they are
_KINDS: Final[tuple[Change, ...]] = ("shrink", "extend", "full", "chains")


class _Block(NamedTuple):
    """Consecutive events."""

    event: Ints
    turn: Ints
    le: Ints
    re: Ints
    change: Ints  # what happens to each event: an index into `_KINDS`, or −1


@dataclass(frozen=True, slots=True)
class EventChanges:
    """Makes the rows of events, each a function of the event's index."""

    lives: EventLifetimes
    arrival: ArrivalTurns
    edges: bool
    start: int
    change: Change
    wanted: int  # events that are spoken of more than once
    seed: int

    @staticmethod
    def of(lives: EventLifetimes, arrival: ArrivalTurns, facets: Facets, *, seed: int) -> EventChanges:
        numbers = facets.numbers
        wanted = part_of(lives.count, numbers.speculated)
        return EventChanges(lives, arrival, facets.shape == "edge", facets.start, numbers.change, wanted, seed)

    def rows(self, first: int, last: int) -> DraftRows:
        """The rows of the events ``first`` to ``last``, event by event, each event's in the order they must come."""
        event = np.arange(first, last)
        le, re = self.lives.starts(event), self.lives.ends(event)
        block = _Block(event, self.arrival.turns(event), le, re, self._kinds(event, le, re))
        steps = [*self._guesses(block), *self._inserts(block), *self._retracted_guesses(block)]
        if self.edges:
            steps.append(self._end_edges(block))
        return _by_event([step for step in steps if len(step)], first, last - first)

    def _draw(self, purpose: str, event: Ints) -> Words:
        return words(key_of(self.seed, "change", purpose), event)

    def _kinds(self, event: Ints, le: Ints, re: Ints) -> Ints:
        if not self.wanted:
            return np.full(len(event), -1)
        chosen = exactly(key_of(self.seed, "change"), event, self.lives.count, self.wanted)
        if self.change == "mixed":
            kinds = below(self._draw("kind", event), len(_KINDS))
        else:
            kinds = np.full(len(event), _KINDS.index(self.change))
        shrink, extend = _KINDS.index("shrink"), _KINDS.index("extend")
        kinds = np.where((kinds == shrink) & (re == FOREVER), extend, kinds)  # only what ends can have shrunk
        kinds = np.where((kinds == extend) & (re - le == 1), shrink, kinds)  # and one tick was never less
        return np.where(chosen, kinds, -1)

    def _guessed(self, block: _Block, *, own_id: bool) -> Ints:
        """Events that were first believed to have another payload: under an id of their own, or under the event's."""
        full = block.change == _KINDS.index("full")
        own = (self._draw("id", block.event) & np.uint64(1)).astype(np.bool_)
        return np.flatnonzero(full & (own == own_id))

    def _guesses(self, block: _Block) -> list[DraftRows]:
        """Inserts of guesses, always in turn; a guess under the event's id goes right before the event comes."""
        if self.change not in ("full", "mixed"):
            return []
        own, same = (self._guessed(block, own_id=own_id) for own_id in (True, False))
        gone = self._taken_back(block, same, block.turn[same], GUESS)
        return [self._guess(block, own, OWN_ID | GUESS), self._guess(block, same, GUESS), gone]

    def _retracted_guesses(self, block: _Block) -> list[DraftRows]:
        if self.change not in ("full", "mixed"):
            return []
        own = self._guessed(block, own_id=True)
        place = block.event[own] + below(self._draw("gone", block.event[own]), WAIT + 1)
        return [self._taken_back(block, own, self._after(place), OWN_ID | GUESS)]

    def _guess(self, block: _Block, at: Ints, tag: int) -> DraftRows:
        event = block.event[at]
        return DraftRows.of(
            INSERT,
            turn=event * PHASES + IN_TURN,
            event=event,
            le=block.le[at],
            re=self._inserted(block.re[at]),
            tag=tag,
        )

    def _taken_back(self, block: _Block, at: Ints, turn: Ints, tag: int) -> DraftRows:
        le, re = block.le[at], self._inserted(block.re[at])
        return DraftRows.of(RETRACT, turn=turn, event=block.event[at], le=le, re=re, re_new=le, tag=tag)

    def _inserted(self, re: Ints) -> Ints:
        return np.full(len(re), FOREVER) if self.edges else re

    def _after(self, place: Ints) -> Ints:
        """The turn after the event of a place, or after the last."""
        return np.minimum(place, self.lives.count - 1) * PHASES + AFTER

    def _inserts(self, block: _Block) -> list[DraftRows]:
        """The inserts of all events, and the changes of their ends."""
        ends = [self._inserted(block.re)]
        if self.change not in ("none", "full"):
            ends = self._believed(block)
        rows = [DraftRows.of(INSERT, turn=block.turn, event=block.event, le=block.le, re=ends[0])]
        place = block.turn // PHASES
        for number, (old, new) in enumerate(pairwise(ends)):
            place = place + below(self._draw(f"wait {number}", block.event), WAIT + 1)
            at = np.flatnonzero(old != new)
            turn, le = self._after(place[at]), block.le[at]
            rows.append(DraftRows.of(RETRACT, turn=turn, event=block.event[at], le=le, re=old[at], re_new=new[at]))
        return rows

    def _believed(self, block: _Block) -> list[Ints]:
        """The ends that were believed, the true one last; where nothing changes they repeat."""
        shrink, extend, chain = (block.change == _KINDS.index(kind) for kind in ("shrink", "extend", "chains"))
        draw = self._draw("end", block.event)
        before = np.where(shrink, _longer(block, draw), block.re)
        before = np.where(extend, _shorter(block, draw, self.start), before)
        if self.change not in ("chains", "mixed"):  # not: where no event of the block has a chain, waits would differ
            return [before, block.re]
        changes = np.where(chain, 2 + below(self._draw("changes", block.event), LONGEST - 1), 0)
        ends = [block.re]
        for number in range(LONGEST):
            earlier = self._other(block, ends[0], self._draw(f"end {number}", block.event))
            ends.insert(0, np.where(chain & (number < changes), earlier, ends[0]))
        ends[0] = np.where(chain, ends[0], before)
        ends[1:-1] = [np.where(chain, end, before) for end in ends[1:-1]]
        return ends

    def _other(self, block: _Block, end: Ints, draw: Words) -> Ints:
        """An end that may have been believed before ``end``: any but that."""
        can_grow, can_shrink = block.re < FOREVER, (block.re - block.le > 1) | (block.re == FOREVER)
        grow: Flags = ((draw >> np.uint64(3)) & np.uint64(1)).astype(np.bool_)
        grow = (grow | ~can_shrink) & can_grow
        other = np.where(grow, _longer(block, draw), _shorter(block, draw, self.start))
        aside = np.where(end < FOREVER, end + 1, np.maximum(block.le, self.start) + 1)
        return np.where(other == end, aside, other)

    def _end_edges(self, block: _Block) -> DraftRows:
        """The retractions that end edge events, when time has come that far."""
        at = np.flatnonzero(block.re < FOREVER)
        le, re, insert = block.le[at], block.re[at], block.turn[at]
        when = self.lives.first_from(re) * PHASES + BEFORE
        turn = np.where(when > insert, when, np.maximum(insert, self._after(insert // PHASES)))
        forever = np.full(len(at), FOREVER)
        return DraftRows.of(RETRACT, turn=turn, event=block.event[at], le=le, re=forever, re_new=re)


def _longer(block: _Block, draw: Words) -> Ints:
    """Ends after the true ones: some never, the others at most another lifetime later."""
    span = np.clip(np.minimum(block.re - block.le, FOREVER - block.re), 1, _SPAN)
    later = block.re + 1 + below(draw, span)
    return np.where((draw & np.uint64(7) == 0) | (block.re == FOREVER), FOREVER, np.minimum(later, FOREVER))


def _shorter(block: _Block, draw: Words, start: int) -> Ints:
    """Ends before the true ones."""
    sooner = block.re - 1 - below(draw, np.clip(block.re - block.le - 1, 1, _SPAN))
    soon = np.maximum(block.le, start) + 1 + below(draw, 1000)  # also where there is no start
    return np.where(block.re == FOREVER, np.minimum(soon, FOREVER), sooner)


def _by_event(steps: list[DraftRows], first: int, count: int) -> DraftRows:
    """The rows of all steps, event by event, and for each event in the order of the steps."""
    if len(steps) == 1:
        return steps[0]
    before = np.zeros(count, np.int64)  # rows of each event in earlier steps
    ordinals = []
    for step in steps:
        ordinals.append(before[step.event - first])
        before[step.event - first] += 1
    offset = np.cumsum(before) - before
    rows = DraftRows.concat(steps)
    order = np.empty(len(rows), np.int64)
    order[offset[rows.event - first] + np.concatenate(ordinals)] = np.arange(len(rows))
    return rows.take(order)
