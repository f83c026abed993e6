"""The members of several windows, one window after the other, and loops over such segments.

>>> spread(np.array([7, 9]), np.array([2, 1]))
(array([0, 0, 1]), array([7, 8, 9]))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.events import weights
from streamproof.kernels.cells import Cells, Ints, Layout, Strings
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.plan.limits import too_many_rows

Bools = npt.NDArray[np.bool_]
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
        """How many windows."""
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
    if _is_rising(group, le):
        return Windows(group, le, re)
    order = order_by(group, le)
    group, le, re = group[order], le[order], re[order]
    fresh = np.ones(len(group), np.bool_)
    fresh[1:] = (group[1:] != group[:-1]) | (le[1:] != le[:-1])
    return Windows(group[fresh], le[fresh], re[fresh])


@loop
def _is_rising(group, le):  # type: ignore[no-untyped-def]
    """Whether windows come by group and start already, each once."""
    for n in range(1, len(group)):
        if group[n] < group[n - 1] or (group[n] == group[n - 1] and le[n] <= le[n - 1]):
            return False
    return True


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


@njit(cache=True)
def find(group, le, wanted_group, wanted_le):  # type: ignore[no-untyped-def]
    """Where each wanted pair stands in sorted columns; −1 where it does not."""
    out = np.empty(len(wanted_group), np.int64)
    for i in range(len(wanted_group)):
        at = first_from(group, le, wanted_group[i], wanted_le[i])
        found = at < len(group) and group[at] == wanted_group[i] and le[at] == wanted_le[i]
        out[i] = at if found else -1
    return out


@loop
def first_from(group, le, wanted_group, wanted_le):  # type: ignore[no-untyped-def]
    """The first place in sorted columns at or after a pair."""
    low, high = 0, len(group)
    while low < high:
        middle = (low + high) >> 1
        if group[middle] < wanted_group or (group[middle] == wanted_group and le[middle] < wanted_le):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True)
def firsts_from(group, le, wanted_group, wanted_le):  # type: ignore[no-untyped-def]
    """`first_from` for many."""
    out = np.empty(len(wanted_group), np.int64)
    for i in range(len(wanted_group)):
        out[i] = first_from(group, le, wanted_group[i], wanted_le[i])
    return out


@loop
def first_of_each(numbers, out):  # type: ignore[no-untyped-def]
    """Of numbers in order, where 0, 1, 2, … begin; the last of ``out`` is how many there are in all."""
    at = 0
    for number in range(len(out)):
        while at < len(numbers) and numbers[at] < number:
            at += 1
        out[number] = at


@njit(cache=True)
def totals(window, w, known, windows):  # type: ignore[no-untyped-def]
    """Per window the weight of its known members."""
    out = np.zeros(windows, np.int64)
    for i in range(len(window)):
        if known[i]:
            out[window[i]] += w[i]
    return out


@njit(cache=True)
def largest(window, values, windows, least):  # type: ignore[no-untyped-def]
    """Per window the largest value; ``least`` where there is none."""
    out = np.full(windows, least)
    for i in range(len(window)):
        out[window[i]] = max(out[window[i]], values[i])
    return out


@njit(cache=True)
def best(window, known, first, second, third, windows):  # type: ignore[no-untyped-def]
    """Per window the known member with the least keys, by first, second, third; −1 where there is none."""
    out = np.full(windows, -1)
    for i in range(len(window)):
        if not known[i]:
            continue
        at = out[window[i]]
        if (
            at < 0
            or first[i] < first[at]
            or (
                first[i] == first[at] and (second[i] < second[at] or (second[i] == second[at] and third[i] < third[at]))
            )
        ):
            out[window[i]] = i
    return out
