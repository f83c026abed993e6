"""Triggers and what they see: which observing events ask at which instants about which stretch of the data.

A *question* is an observing event (a row of the left side), an instant, a subgroup of the data and a range of its rows.
Data lie sorted by subgroup and start, so a range of starts is a range of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from streamproof.errors import RunError
from streamproof.events.time import FOREVER, show_tick
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.event_driven.event_loops import count_hops, list_hops
from streamproof.kernels.store_loops import KEY, LE, RE, W
from streamproof.kernels.windows.shared.members import spread
from streamproof.kernels.windows.shared.members_loops import firsts_from
from streamproof.plan.event_nodes import During

NO_REACH: Final = 0


class Questions(NamedTuple):
    """Columns of questions."""

    left: Ints  # which row of the observing events
    sub: Ints  # which subgroup; −1 where there is none
    t: Ints
    first: Ints  # the rows of the data that it sees
    last: Ints
    w: Ints  # how often it is asked

    def take(self, at: Ints) -> Questions:
        return Questions(*(column[at] for column in self))


class HasSlices(Protocol):
    """Slices of settled data, see `settled.Slices`."""

    sub: Ints
    le: Ints
    parts: list[Any]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Data of some subgroups: rows and slices by subgroup and start, and which subgroups each key has."""

    rows: Cells
    sub: Ints  # the subgroup of each row or slice, in their common order
    le: Ints
    subs: Ints  # the subgroups, sorted by the key that owns them
    owners: Ints  # the key of each
    slices: HasSlices | None = None
    order: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # of slices and then rows

    @staticmethod
    def of(rows: Cells, subs: Ints, owners: Ints, slices: HasSlices | None = None) -> Stretch:
        by_owner = np.argsort(owners, kind="stable")
        sub, le = np.ascontiguousarray(rows[:, KEY]), np.ascontiguousarray(rows[:, LE])
        if slices is None:
            return Stretch(rows, sub, le, subs[by_owner], owners[by_owner])
        sub, le = np.concatenate([slices.sub, sub]), np.concatenate([slices.le, le])
        order = np.lexsort((le, sub)) if subs.size > 1 else np.arange(len(le))  # slices come before what follows them
        return Stretch(rows, sub[order], le[order], subs[by_owner], owners[by_owner], slices, order)


@dataclass(frozen=True, slots=True)
class Scopes:
    """How one node asks."""

    trigger: str
    reach: int  # how far back it sees; `NO_REACH` is without limit
    hop: int
    empty: bool
    horizon: int | None
    most: int  # the most instants of one observing event

    @staticmethod
    def of(node: During, horizon: int | None, most: int) -> Scopes:
        assert node.reach is None or isinstance(node.reach, int)
        assert node.hop is None or isinstance(node.hop, int)
        return Scopes(node.trigger, node.reach or NO_REACH, node.hop or 0, node.empty, horizon, most)

    def questions(self, lefts: Cells, data: Stretch, since: Ints, until: Ints) -> Questions:
        """All questions of observing events, each with instants from its ``since`` to its ``until``."""
        if self.trigger == "hop":
            return self._hops(lefts, data, since, until)
        if self.trigger == "arrival":
            return self._arrivals(lefts, data, since, until)
        t = lefts[:, LE] if self.trigger == "start" else lefts[:, RE]
        asked = np.flatnonzero((t >= since) & (t <= until) & (t < FOREVER))
        if self.trigger == "start":
            low, high = self._low(t[asked]), t[asked] + 1
        else:
            low, high = lefts[asked, LE], t[asked]
        return self._ranged(lefts, data, asked, np.ascontiguousarray(t[asked]), low, high)

    def _low(self, t: Ints) -> Ints:
        if self.reach == NO_REACH:
            return np.full(len(t), -(2**63), np.int64)
        return t - (self.reach - 1)  # both lie within ±2^62

    def _ranged(self, lefts: Cells, data: Stretch, asked: Ints, t: Ints, low: Ints, high: Ints) -> Questions:
        """One question for each subgroup of the key that has data in a range of starts."""
        key = np.ascontiguousarray(lefts[asked, KEY])
        start, stop = (np.searchsorted(data.owners, key, side=side) for side in ("left", "right"))
        source, place = spread(start, stop - start)
        sub = data.subs[place]
        first = firsts_from(data.sub, data.le, sub, np.ascontiguousarray(low[source]))
        last = firsts_from(data.sub, data.le, sub, np.ascontiguousarray(high[source]))
        seen = np.flatnonzero(last > first)
        found = Questions(
            asked[source[seen]], sub[seen], t[source[seen]], first[seen], last[seen], lefts[asked[source[seen]], W]
        )
        if not self.empty:
            return found
        lonely = np.ones(len(asked), np.bool_)
        lonely[source[seen]] = False
        none = np.zeros(int(lonely.sum()), np.int64)
        rest = Questions(asked[lonely], none - 1, t[lonely], none, none, lefts[asked[lonely], W])
        return Questions(*(np.concatenate(pair) for pair in zip(found, rest, strict=True)))

    def _subs(self, lefts: Cells, data: Stretch) -> tuple[Ints, Ints]:
        """Pairs of an observing event and a subgroup of its key."""
        key = np.ascontiguousarray(lefts[:, KEY])
        start, stop = (np.searchsorted(data.owners, key, side=side) for side in ("left", "right"))
        source, place = spread(start, stop - start)
        return source, data.subs[place]

    def _hops(self, lefts: Cells, data: Stretch, since: Ints, until: Ints) -> Questions:
        source, sub = self._subs(lefts, data)
        if self.horizon is not None:
            until = np.minimum(until, self.horizon)
        le, re = (np.ascontiguousarray(lefts[source, n]) for n in (LE, RE))
        bounds = (np.ascontiguousarray(since[source]), np.ascontiguousarray(until[source]))
        counts = count_hops(data.sub, data.le, sub, le, re, *bounds, self.hop, self.reach, self.most)
        self._refuse_many(counts, le, re)
        which, t, first, last = list_hops(data.sub, data.le, sub, le, re, *bounds, self.hop, self.reach, counts.sum())
        left = source[which]
        return Questions(left, sub[which], t, first, last, lefts[left, W])

    def _refuse_many(self, counts: Ints, le: Ints, re: Ints) -> None:
        if len(counts) and counts.max() > self.most:
            at = int(counts.argmax())
            no_end = re[at] >= FOREVER
            raise RunError(
                f"[{show_tick(int(le[at]))}, {show_tick(int(re[at]))}) asks at more than {self.most} instants",
                fix="give it a WINDOW or a MAX, or run with a horizon" if no_end else "use a longer hop",
                name="unbounded_windows" if no_end else "limit_exceeded",
            )

    def _arrivals(self, lefts: Cells, data: Stretch, since: Ints, until: Ints) -> Questions:
        source, sub = self._subs(lefts, data)
        le, re = (np.ascontiguousarray(lefts[source, n]) for n in (LE, RE))
        low = np.maximum(le, since[source])
        high = np.minimum(re, np.minimum(until[source], FOREVER - 1) + 1)
        first = firsts_from(data.sub, data.le, sub, low)
        last = np.maximum(firsts_from(data.sub, data.le, sub, high), first)
        which, row = spread(first, last - first)
        t = data.le[row]
        back = np.maximum(le[which], self._low(t))
        begin = firsts_from(data.sub, data.le, sub[which], back)
        end = firsts_from(data.sub, data.le, sub[which], t + 1)
        left = source[which]
        return Questions(left, sub[which], t, begin, end, lefts[left, W] * data.rows[row, W])


def keys_of(rows: Cells) -> Ints:
    """The keys of the rows of a run, each once: rows lie in the order of their keys."""
    return np.ascontiguousarray(rows[_fresh(rows), KEY])


def places_of(rows: Cells) -> Ints:
    """For each row of a run the place of its key among all its keys."""
    return np.cumsum(_fresh(rows)) - 1


def _fresh(rows: Cells) -> npt.NDArray[np.bool_]:
    fresh = np.ones(len(rows), np.bool_)
    fresh[1:] = rows[1:, KEY] != rows[:-1, KEY]
    return fresh


def last_from(key: Ints, begin: Ints, wanted: Ints, starts: Ints) -> Ints:
    """For each key and start the last place in sorted columns at or before it; −1 where there is none."""
    after: Ints = firsts_from(key, begin, wanted, starts + 1)
    return after - 1
