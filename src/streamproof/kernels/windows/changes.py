"""Changes of a window operator's input: signed events, and the spans of time in which they change what windows hold."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.interning import same_row
from streamproof.kernels.runs import KEY, LE, PAYLOAD, RE, W, ordered
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.segments import Bools

Watch: TypeAlias = Literal["members", "clipped", "ties", "ends"]
"""What of an event a window's result depends on besides that the event is a member.

``members``: nothing; ``clipped``: its lifetime inside the window; ``ties``: its end, where it ties with others for
first or last; ``ends``: its whole lifetime.
"""


class Events(NamedTuple):
    """Signed events with what is kept of each."""

    group: Ints
    le: Ints
    re: Ints
    w: Ints
    cells: Cells

    def take(self, at: Ints | Bools) -> Events:
        return Events(*(column[at] for column in self))

    def settled(self) -> Events:
        """The same sum in the order of group, le, payload and re; equal events are one row, none cancels another."""
        return Events.of(ordered(*self))

    @staticmethod
    def of(rows: Cells) -> Events:
        """The columns of the rows of a run; copies, because a store changes weights in its rows."""
        group, le, re, w = (rows[:, n].copy() for n in (KEY, LE, RE, W))
        return Events(group, le, re, w, rows[:, PAYLOAD:])


class Spans(NamedTuple):
    """Where the members of windows change: per change the group and ``[lo, hi)``.

    Where ``moved``, an event's end moved between lo and hi: only windows that start in between gain or lose it.
    """

    group: Ints
    lo: Ints
    hi: Ints
    moved: Bools

    @staticmethod
    def of(events: Events, watch: Watch) -> Spans:
        """The spans of settled events. An end that moves changes nothing before both ends, unless ends are watched."""
        if not len(events.w) or events.w.min() > 0:
            return Spans(events.group, events.le, events.re, np.zeros(len(events.w), np.bool_))
        first, net, least, most = moves(events)
        moved = (net == 0) & (watch in ("members", "clipped"))
        lo = np.where(moved, least, events.le[first])
        return Spans(events.group[first], lo, most, moved & (watch == "members"))

    def merged(self) -> Spans:
        """The same spans as disjoint ones, in order."""
        order = order_by(self.group, self.lo)
        group, lo, hi, count = _merged(self.group[order], self.lo[order], self.hi[order])
        return Spans(group[:count], lo[:count], hi[:count], np.zeros(count, np.bool_))

    def meet(self, group: Ints, le: Ints, re: Ints) -> Bools:
        """Which windows overlap one of these spans, which are disjoint and in order."""
        found: Bools = _meet(self.group, self.lo, self.hi, group, le, re)
        return found


def moves(events: Events) -> tuple[Ints, Ints, Ints, Ints]:
    """Settled events by group, start and payload: the first of each, the sum of weights, the least and greatest end."""
    found: tuple[Ints, Ints, Ints, Ints] = _moves(*events)
    return found


@njit(cache=True)
def _moves(group, le, re, w, cells):  # type: ignore[no-untyped-def]
    size = len(group)
    first, net = np.empty(size, np.int64), np.zeros(size, np.int64)
    least, most = np.empty(size, np.int64), np.empty(size, np.int64)
    count = 0
    for row in range(size):
        same = row > 0 and group[row] == group[row - 1] and le[row] == le[row - 1]
        if not (same and same_row(cells, row, cells, row - 1)):
            first[count], least[count] = row, re[row]
            count += 1
        net[count - 1] += w[row]
        most[count - 1] = re[row]
    return first[:count], net[:count], least[:count], most[:count]


@loop
def _merged(group, lo, hi):  # type: ignore[no-untyped-def]
    count = 0
    for row in range(len(group)):
        if count and group[count - 1] == group[row] and lo[row] <= hi[count - 1]:
            hi[count - 1] = max(hi[count - 1], hi[row])
            continue
        group[count], lo[count], hi[count] = group[row], lo[row], hi[row]
        count += 1
    return group, lo, hi, count


@njit(cache=True)
def _meet(group, lo, hi, wanted_group, le, re):  # type: ignore[no-untyped-def]
    out = np.zeros(len(wanted_group), np.bool_)
    for i in range(len(wanted_group)):
        low, high = 0, len(group)  # the first span that ends after the window's start
        while low < high:
            middle = (low + high) >> 1
            before = group[middle] < wanted_group[i] or (group[middle] == wanted_group[i] and hi[middle] <= le[i])
            low, high = (middle + 1, high) if before else (low, middle)
        out[i] = low < len(group) and group[low] == wanted_group[i] and lo[low] < re[i]
    return out


def earliest_change(group: Ints, le: Ints, re: Ints, w: Ints, cells: Cells) -> int:
    """The instant from which on signed rows change history; FOREVER where they change nothing.

    Rows of equal payload and start whose weights cancel only move an end: that changes history from the earlier end on.
    """
    settled = Events(group, le, re, w, cells).settled()
    if not len(settled.w):
        return FOREVER
    first, net, least, _ = moves(settled)
    return int(np.where(net == 0, least, settled.le[first]).min())
