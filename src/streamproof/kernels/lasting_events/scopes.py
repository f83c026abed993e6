"""Triggers and what they see: which observing events ask at which instants about which stretch of the data.

A *question* is a observing event (a row of the left side), an instant, a subgroup of the data and a range of its rows.
Data lie sorted by subgroup and start, so a range of starts is a range of rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.errors import RunError
from streamproof.events.time import FOREVER, show_tick
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.runs import KEY, LE, RE, W
from streamproof.kernels.windows.segments import firsts_from, spread
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
        """Pairs of a observing event and a subgroup of its key."""
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
        counts = _count_hops(data.sub, data.le, sub, le, re, *bounds, self.hop, self.reach, self.most)
        self._refuse_many(counts, le, re)
        which, t, first, last = _list_hops(data.sub, data.le, sub, le, re, *bounds, self.hop, self.reach, counts.sum())
        left = source[which]
        return Questions(left, sub[which], t, first, last, lefts[left, W])

    def _refuse_many(self, counts: Ints, le: Ints, re: Ints) -> None:
        if len(counts) and counts.max() > self.most:
            at = int(counts.argmax())
            endless = re[at] >= FOREVER
            raise RunError(
                f"[{show_tick(int(le[at]))}, {show_tick(int(re[at]))}) asks at more than {self.most} instants",
                fix="give it a WINDOW or a MAX, or run with a horizon" if endless else "use a longer hop",
                name="unbounded_windows" if endless else "limit_exceeded",
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


@njit(cache=True)
def _next_hop(le, hop, t):  # type: ignore[no-untyped-def]
    """The first of le, le + hop, … at or after t."""
    return le if t <= le else le + -((le - t) // hop) * hop


@njit(cache=True)
def _place(sub, le, wanted, t):  # type: ignore[no-untyped-def]
    low, high = 0, len(sub)
    while low < high:
        middle = (low + high) >> 1
        if sub[middle] < wanted or (sub[middle] == wanted and le[middle] < t):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def _walk_hops(sub, times, wanted, le, re, since, until, hop, reach, most, out, at, which):  # type: ignore[no-untyped-def]
    """The instants of one observing event that see something, written to ``out`` from ``at`` on if there is room."""
    begin = _place(sub, times, wanted, le)
    end = _place(sub, times, wanted, 2**62)
    if begin == end:
        return 0
    final = min(re - 1, until)
    if reach:
        final = min(final, times[end - 1] + reach - 1)
    t = _next_hop(le, hop, max(since, times[begin]))
    first, last, count = begin, begin, 0
    while t <= final and count <= most:
        while last < end and times[last] <= t:
            last += 1
        while reach and first < last and times[first] <= t - reach:
            first += 1
        if first == last:  # nothing is seen until the next tuple
            t = _next_hop(le, hop, times[last])
            continue
        if len(out):
            out[at + count, 0], out[at + count, 1], out[at + count, 2], out[at + count, 3] = which, t, first, last
        count += 1
        t += hop
    return count


@njit(cache=True)
def _count_hops(sub, times, subs, le, re, since, until, hop, reach, most):  # type: ignore[no-untyped-def]
    none = np.empty((0, 4), np.int64)
    counts = np.empty(len(subs), np.int64)
    for n in range(len(subs)):
        counts[n] = _walk_hops(sub, times, subs[n], le[n], re[n], since[n], until[n], hop, reach, most, none, 0, n)
    return counts


@njit(cache=True)
def _list_hops(sub, times, subs, le, re, since, until, hop, reach, total):  # type: ignore[no-untyped-def]
    out = np.empty((total, 4), np.int64)
    at = 0
    if total:
        for n in range(len(subs)):
            at += _walk_hops(sub, times, subs[n], le[n], re[n], since[n], until[n], hop, reach, total, out, at, n)
    return out[:, 0].copy(), out[:, 1].copy(), out[:, 2].copy(), out[:, 3].copy()
