"""Rows in order of arrival, with CTIs between them: as early as they may come, and never too early.

Events are made block by block. A row whose turn comes in a later block waits; nothing else is kept. After each row it
is known from when on all later rows change history, so a CTI can promise exactly that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, cast

import numpy as np

from streamproof.events.order import Ints
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.generate.arrival import PHASES, ArrivalTurns
from streamproof.generate.changes import EventChanges
from streamproof.generate.facets import Facets, Illegal
from streamproof.generate.lifetimes import EventLifetimes
from streamproof.generate.rows import COPY, DraftRows, planted

BLOCK: Final = 1 << 16  # events that are made at once
_PLACE: Final = 28  # bits for a row's place among those that are sorted together


@dataclass(slots=True)
class RowSequence:
    """Makes the rows of a stream, part by part. The size of a block is of no consequence for them."""

    lives: EventLifetimes
    changes: EventChanges
    facets: Facets
    block: int = BLOCK
    seen: int = 0  # rows so far, CTIs not counted
    promised: int = BEGINNING  # the last CTI
    to_plant: Illegal | None = None

    @staticmethod
    def of(lives: EventLifetimes, facets: Facets, *, seed: int, block: int = BLOCK) -> RowSequence:
        changes = EventChanges.of(lives, ArrivalTurns.of(lives, facets, seed=seed), facets, seed=seed)
        return RowSequence(lives, changes, facets, block, to_plant=cast("Illegal | None", facets.illegal))

    def parts(self) -> Iterator[DraftRows]:
        """The rows of one block of events after the other, and what comes after all events."""
        waiting, count = DraftRows.none(), self.lives.count
        for first in range(0, count, self.block):
            last = min(first + self.block, count)
            rows = self.changes.rows(first, last)
            rows = DraftRows.concat([waiting, rows]) if len(waiting) else rows
            until = last * PHASES if last < count else FOREVER
            ready, waiting = _in_turn(rows, first * PHASES, until)
            bound = min(self._start(last), int(waiting.sync.min(initial=FOREVER)))
            yield self._with_ctis(ready, bound)
        yield self._end()

    def _start(self, event: int) -> int:
        """When an event starts; after the last, never."""
        return int(self.lives.starts(np.array([event]))[0]) if event < self.lives.count else FOREVER

    def _with_ctis(self, rows: DraftRows, bound: int) -> DraftRows:
        """The rows with the CTIs that follow them, if no later row changes history before ``bound``."""
        if self.facets.numbers.copies == 1:
            rows = rows.take(np.repeat(np.arange(len(rows)), 2))
            rows.tag[1::2] |= COPY
        promise = _promises(rows.sync, bound)
        after, ctis = self._ctis(promise)
        more, planted_rows = self._plant(promise)
        after, extra = np.concatenate([after, more]), [ctis, planted_rows]
        self.seen += len(rows)
        return _interleaved(rows, after, DraftRows.concat(extra))

    def _ctis(self, promise: Ints) -> tuple[Ints, DraftRows]:
        """After which rows a CTI follows, and the CTIs; the one after the very last row is not among them."""
        every = self.facets.numbers.every
        if not every:
            return np.zeros(0, np.int64), DraftRows.none()
        after = np.arange(every - 1 - self.seen % every, len(promise), every)
        after = after[promise[after] < FOREVER] if len(promise) and promise[-1] == FOREVER else after
        self.promised = int(promise[after[-1]]) if len(after) else self.promised
        return after, DraftRows.ctis(promise[after])

    def _plant(self, promise: Ints) -> tuple[Ints, DraftRows]:
        """Rows that break the rule, and after which row they come: half way through the stream, if that is possible."""
        nothing = np.zeros(0, np.int64), DraftRows.none()
        if self.to_plant is None or self.to_plant == "order":  # a late event would make the next ones late too
            return nothing
        possible = np.flatnonzero((promise > BEGINNING + 1) & (promise < FOREVER - 10))
        possible = possible[self.seen + possible >= self.lives.count // 2]
        if not len(possible):
            return nothing
        rule, self.to_plant = self.to_plant, None
        rows = planted(rule, int(promise[possible[0]]), self.facets.shape)
        return np.full(len(rows), possible[0]), rows

    def _end(self) -> DraftRows:
        """What comes after all events: the last CTI, and a broken rule that had no place before."""
        parts = []
        if self.to_plant is not None:
            last = max(self._start(self.lives.count - 1) if self.lives.count else 0, self.facets.start)
            parts.append(planted(self.to_plant, max(last + 1, self.promised), self.facets.shape))
        if self.facets.numbers.every is not None:
            parts.append(DraftRows.ctis(np.array([FOREVER])))
        return DraftRows.concat([DraftRows.none(), *parts])


def _in_turn(rows: DraftRows, base: int, until: int) -> tuple[DraftRows, DraftRows]:
    """The rows whose turn comes before ``until``, in order, and those that wait. Rows of one turn keep their order."""
    turn = rows.turn
    now = turn < until
    if np.all(turn[1:] >= turn[:-1]):
        split = int(np.count_nonzero(now))
        return rows.take(slice(0, split)), rows.take(slice(split, None))
    chosen = np.flatnonzero(now)
    order = np.sort((turn[chosen] - base) << _PLACE | chosen) & ((1 << _PLACE) - 1)  # sorts values, not indices
    return rows.take(order), rows.take(np.flatnonzero(~now))


def _promises(sync: Ints, bound: int) -> Ints:
    """After each row, from when on history may still change."""
    later = np.append(sync[1:], bound)[: len(sync)]
    return np.minimum.accumulate(later[::-1])[::-1]


def _interleaved(rows: DraftRows, after: Ints, extra: DraftRows) -> DraftRows:
    """The rows, with each of ``extra`` after the row that it belongs to."""
    if not len(extra):
        return rows
    order = np.argsort(np.concatenate([np.arange(len(rows)), after]), kind="stable")
    return DraftRows.concat([rows, extra]).take(order)
