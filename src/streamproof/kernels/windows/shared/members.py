"""Windows with their members, one window after the other; and changes: signed events, and spans in which they matter.

>>> spread(np.array([7, 9]), np.array([2, 1]))
(array([0, 0, 1]), array([7, 8, 9]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from streamproof.events import weights
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Bools, Cells, Ints, Layout, Strings
from streamproof.kernels.sorting import order_by
from streamproof.kernels.store import ordered
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.kernels.windows.shared.members_loops import is_rising, meet, merged, moves_loop
from streamproof.plan.limits import too_many_rows

SIGN = np.int64(-(2**63))


class Windows(NamedTuple):
    """Windows of groups, sorted by group and start; no two of one group start together."""

    group: Ints
    le: Ints
    re: Ints

    def take(self, at: Ints | Bools) -> Windows:
        return Windows(self.group[at], self.le[at], self.re[at])


NO_WINDOWS = Windows(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64))


class Rows(NamedTuple):
    """Result rows: of which window, with which lifetime, how often, and their payload's cells."""

    window: Ints
    le: Ints
    re: Ints
    w: Ints
    cells: Cells


@dataclass(frozen=True, slots=True)
class Members:
    """Pairs of a window and an event in it, in the order of the windows. Every window has at least one."""

    windows: Windows
    window: Ints  # which window, counted from 0
    le: Ints  # the event's lifetime
    re: Ints
    w: Ints
    slot: Ints  # a number of the event: members of one slot are the same event
    cells: Cells  # what is kept of the event
    layout: Layout
    strings: Strings

    def __len__(self) -> int:
        """The number of windows."""
        return len(self.windows.le)

    def known(self, column: int) -> Bools:
        """Where a column is not null."""
        return ~self.layout.nulls(self.cells, column)

    def values(self, column: int) -> Ints:
        """The cells of a column that has one per row."""
        return np.ascontiguousarray(self.cells[:, self.layout.columns[column][1]])

    def order_keys(self, column: int) -> list[Ints]:
        """Integers that sort as a column's values do, nulls aside."""
        kind, cell = self.layout.columns[column]
        values = self.values(column)
        match kind.kind:
            case "string":
                return [self.strings.order(values)]
            case "float64":  # sign and magnitude become one order; the one NaN is the greatest
                return [values ^ ((values >> 63) & np.int64(2**63 - 1))]
            case "decimal":
                return [np.ascontiguousarray(self.cells[:, cell + 1]), values ^ SIGN]
        return [values]

    def floats(self, column: int) -> npt.NDArray[np.float64]:
        """A column of integers or floats as floats."""
        kind, _ = self.layout.columns[column]
        values = self.values(column)
        return values.view(np.float64) if kind.kind == "float64" else values.astype(np.float64)


def unique_windows(group: Ints, le: Ints, re: Ints) -> Windows:
    """Windows sorted by group and start, each once."""
    if is_rising(group, le):
        return Windows(group, le, re)
    order = order_by(group, le)
    group, le, re = group[order], le[order], re[order]
    fresh = np.ones(len(group), np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (le[1:] != le[:-1])
    return Windows(group[fresh], le[fresh], re[fresh])


def once(numbers: Ints) -> Ints:
    """Numbers in order, each once."""
    fresh = np.ones(len(numbers), np.bool_)
    fresh[1:] = numbers[1:] != numbers[:-1]
    return numbers[fresh]


def spread(first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """For each range of ``count`` numbers from ``first`` on: which range, and the number."""
    if weights.total(count) > weights.MOST_LISTED:
        raise too_many_rows(weights.MOST_LISTED, at="")
    source = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(source)) - np.repeat(np.cumsum(count) - count, count)
    return source, first[source] + step


def covered(first: Ints, count: Ints) -> Ints:
    """The numbers that lie in ranges of ``count`` numbers from ``first`` on, in order, each once.

    >>> covered(np.array([5, 0, 6]), np.array([2, 1, 0])).tolist(), covered(np.array([3, 4]), np.array([3, 3])).tolist()
    ([0, 5, 6], [3, 4, 5, 6])
    """
    first, count = first[count > 0], count[count > 0]
    if not len(first):
        return first
    low, high = int(first.min()), int((first + count).max())
    if weights.total(count) <= high - low:
        return np.unique(spread(first, count)[1])
    edges = np.zeros(high - low + 1, np.int64)
    np.add.at(edges, first - low, 1)
    np.add.at(edges, first + count - low, -1)
    return low + np.flatnonzero(np.cumsum(edges) > 0)


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
        group, lo, hi, count = merged(self.group[order], self.lo[order], self.hi[order])
        return Spans(group[:count], lo[:count], hi[:count], np.zeros(count, np.bool_))

    def meet(self, group: Ints, le: Ints, re: Ints) -> Bools:
        """Which windows overlap one of these spans, which are disjoint and in order."""
        found: Bools = meet(self.group, self.lo, self.hi, group, le, re)
        return found


def moves(events: Events) -> tuple[Ints, Ints, Ints, Ints]:
    """Settled events by group, start and payload: the first of each, the sum of weights, the least and greatest end."""
    found: tuple[Ints, Ints, Ints, Ints] = moves_loop(*events)
    return found


def earliest_change(group: Ints, le: Ints, re: Ints, w: Ints, cells: Cells) -> int:
    """The instant from which on signed rows change history; FOREVER where they change nothing.

    Rows of equal payload and start whose weights cancel only move an end: that changes history from the earlier end on.
    """
    settled = Events(group, le, re, w, cells).settled()
    if not len(settled.w):
        return FOREVER
    first, net, least, _ = moves(settled)
    return int(np.where(net == 0, least, settled.le[first]).min())
