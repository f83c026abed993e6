"""Sorted runs of events: how they are ordered, merged, and searched for lifetimes that meet an interval.

A run is one matrix. A row is key, le, re, w and the payload's cells; rows are sorted by key, le, payload and re, and no
two rows are the same event. Above it lie the latest ends of every 16, 256 and 4,096 rows, so a search steps over
stretches of the past at once. However long and short lifetimes are mixed, it looks at about 16 rows per event found.

>>> rows = ordered(ints(1, 1, 1), ints(5, 0, 5), ints(7, 10, 7), ints(1, 1, 1), np.array([[43], [42], [43]]))
>>> rows.tolist()
[[1, 0, 10, 1, 42], [1, 5, 7, 2, 43]]
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.thresholds import TIES

KEY: Final = 0
LE: Final = 1
RE: Final = 2
W: Final = 3
PAYLOAD: Final = 4  # the first cell of the payload
LEAST: Final = -(2**63)


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def ordered(key: Ints, le: Ints, re: Ints, w: Ints, cells: Cells, *, spare: int = 0) -> Cells:
    """Signed events as the rows of a run: equal ones merge, and those that cancel vanish.

    ``spare`` cells after the payload are 0.
    """
    if not len(key):
        return np.empty((0, PAYLOAD + cells.shape[1] + spare), np.int64)
    # for columns that may not be written to, all that is compiled would be compiled once more
    key, le, re, w = (column if column.flags.writeable else column.copy() for column in (key, le, re, w))
    rows: Cells = _arranged(order_by(key, le), key, le, re, w, cells, spare)
    return rows[: _settle(rows, TIES.now)]


def merged(first: Cells, second: Cells, *, before: int) -> Cells:
    """Two runs as one, without the events that ended before an instant."""
    if not len(first) or not len(second):
        return lasting(second if not len(first) else first, before=before)
    rows = np.empty((len(first) + len(second), first.shape[1]), np.int64)
    if compare_all(first, len(first) - 1, second, 0) < 0:  # one follows the other, as in a stream of one key
        size = _copy_lasting(second, before, rows, _copy_lasting(first, before, rows, 0))
    else:
        size = _merge(first, second, before, rows)
    kept = rows[:size]
    return kept if 2 * size > len(rows) else kept.copy()  # a small rest must not hold on to a large matrix


def lasting(rows: Cells, *, before: int, copy: bool = True) -> Cells:
    """A run without the events that ended before an instant; a copy, unless that is not needed."""
    size = how_many_last(rows, before)
    if size == len(rows):
        return rows.copy() if copy else rows
    kept = np.empty((size, rows.shape[1]), np.int64)
    _copy_lasting(rows, before, kept, 0)
    return kept


def where(rows: Cells, mask: npt.NDArray[np.bool_]) -> Cells:
    """The rows that a mask keeps; the rows themselves if it keeps all."""
    return rows if mask.all() else pick(rows, np.flatnonzero(mask))


class Run(NamedTuple):
    """A sorted matrix of events and the latest ends above it."""

    rows: Cells
    by_16: Ints
    by_256: Ints
    by_4096: Ints
    latest: int  # the latest end of all
    longest: int  # the longest lifetime; infinite where one has no start
    earliest: int  # the earliest end of all
    least_weight: int

    @staticmethod
    def of(rows: Cells) -> Run:
        return Run(rows, *_latest_ends(rows))

    @property
    def searched(self) -> tuple[Cells, Ints, Ints, Ints]:
        """What a search looks at."""
        return self[:4]


def gather(rows: Cells, at: Ints, column: int) -> Ints:
    """One column of the rows at these positions."""
    found: Ints = _gather(rows, at, column)
    return found


def pick(rows: Cells, at: Ints) -> Cells:
    """The rows at these positions."""
    found: Cells = _pick(rows, at)
    return found


def look(rows: Cells, at: Ints) -> Cells:
    """The rows at these positions, for the time of one batch: where they lie together, they are not copied."""
    return rows[at[0] : at[-1] + 1] if len(at) and _is_stretch(at) else pick(rows, at)


# --- order ------------------------------------------------------------------------------------------------------------


@loop
def compare(a, i, b, j, depth):  # type: ignore[no-untyped-def]
    """−1, 0 or 1: row i of a against row j of b by key, le and the first ``depth`` cells of the payload."""
    if a[i, KEY] != b[j, KEY]:
        return -1 if a[i, KEY] < b[j, KEY] else 1
    if a[i, LE] != b[j, LE]:
        return -1 if a[i, LE] < b[j, LE] else 1
    for n in range(PAYLOAD, PAYLOAD + depth):
        if a[i, n] != b[j, n]:
            return -1 if a[i, n] < b[j, n] else 1
    return 0


@loop
def compare_all(a, i, b, j):  # type: ignore[no-untyped-def]
    """The order of a run: key, le, payload, re."""
    order = compare(a, i, b, j, a.shape[1] - PAYLOAD)
    if order == 0 and a[i, RE] != b[j, RE]:
        return -1 if a[i, RE] < b[j, RE] else 1
    return order


@njit(cache=True)
def _arranged(order, key, le, re, w, cells, spare):  # type: ignore[no-untyped-def]
    width = cells.shape[1]
    rows = np.empty((len(order), PAYLOAD + width + spare), np.int64)
    for n in range(len(order)):
        at = order[n]
        rows[n, KEY] = key[at]
        rows[n, LE] = le[at]
        rows[n, RE] = re[at]
        rows[n, W] = w[at]
        for c in range(width):
            rows[n, PAYLOAD + c] = cells[at, c]
        for c in range(spare):
            rows[n, PAYLOAD + width + c] = 0
    return rows


@njit(cache=True)
def _settle(rows, short):  # type: ignore[no-untyped-def]
    """Rows sorted by key and le become a run, in place; gives how many are left."""
    first, is_run = 0, True
    while first < len(rows):
        last = first + 1
        is_run &= rows[first, W] != 0
        while last < len(rows) and rows[last, KEY] == rows[first, KEY] and rows[last, LE] == rows[first, LE]:
            last += 1
        if last - first > 1:
            _sort_ties(rows, first, last, short)
            is_run = False
        first = last
    return len(rows) if is_run else _collapse(rows)


@njit(cache=True)
def _sort_ties(rows, first, last, short):  # type: ignore[no-untyped-def]
    """Sort some rows by payload and re, in place: insertion in short pieces, then merging."""
    size = last - first
    order = np.arange(first, last)
    for low in range(0, size, short):
        for i in range(low + 1, min(low + short, size)):
            j, moving = i, order[i]
            while j > low and compare_all(rows, order[j - 1], rows, moving) > 0:
                order[j] = order[j - 1]
                j -= 1
            order[j] = moving
    step = short
    while step < size:
        order = _merge_orders(rows, order, step)
        step *= 2
    sorted_rows = rows[first:last].copy()
    for n in range(size):
        rows[first + n] = sorted_rows[order[n] - first]


@njit(cache=True)
def _merge_orders(rows, order, step):  # type: ignore[no-untyped-def]
    size = len(order)
    out = np.empty_like(order)
    for low in range(0, size, 2 * step):
        middle, high = min(low + step, size), min(low + 2 * step, size)
        i, j = low, middle
        for n in range(low, high):
            take_first = j >= high or (i < middle and compare_all(rows, order[i], rows, order[j]) <= 0)
            if take_first:
                out[n] = order[i]
                i += 1
            else:
                out[n] = order[j]
                j += 1
    return out


@loop
def _collapse(rows):  # type: ignore[no-untyped-def]
    """Equal neighbours become one row, rows of weight zero vanish; gives how many are left."""
    size = 0
    at = 0
    while at < len(rows):
        w = rows[at, W]
        following = at + 1
        while following < len(rows) and compare_all(rows, at, rows, following) == 0:
            w += rows[following, W]
            following += 1
        if w != 0:
            if size != at:
                for n in range(rows.shape[1]):
                    rows[size, n] = rows[at, n]
            rows[size, W] = w
            size += 1
        at = following
    return size


# --- merging ----------------------------------------------------------------------------------------------------------


@loop
def _merge(a, b, before, out):  # type: ignore[no-untyped-def]
    """Write two runs as one; how many rows that are."""
    i = j = size = 0
    while i < len(a) or j < len(b):
        order = 1
        if j >= len(b):
            order = -1
        elif i < len(a):
            order = compare_all(a, i, b, j)
        if order <= 0:
            for n in range(a.shape[1]):
                out[size, n] = a[i, n]
            i += 1
        else:
            for n in range(a.shape[1]):
                out[size, n] = b[j, n]
        if order == 0:
            out[size, W] += b[j, W]
        if order >= 0:
            j += 1
        size += out[size, W] != 0 and out[size, RE] >= before
    return size


@loop
def how_many_last(rows, before):  # type: ignore[no-untyped-def]
    """How many events of a run did not end before an instant."""
    size = 0
    for n in range(len(rows)):
        size += rows[n, RE] >= before and rows[n, W] != 0
    return size


@loop
def _copy_lasting(rows, before, out, size):  # type: ignore[no-untyped-def]
    """Write the events that did not end before an instant after ``size`` others; how many rows there are then."""
    for n in range(len(rows)):
        if rows[n, RE] >= before and rows[n, W] != 0:
            for c in range(rows.shape[1]):
                out[size, c] = rows[n, c]
            size += 1
    return size


@loop
def cancel(rows, delta):  # type: ignore[no-untyped-def]
    """Take negative rows of a delta off equal rows of a run, in place on both sides."""
    for n in range(len(delta)):
        if delta[n, W] >= 0:
            continue
        low, high = 0, len(rows)
        while low < high:
            middle = (low + high) >> 1
            if compare_all(rows, middle, delta, n) < 0:
                low = middle + 1
            else:
                high = middle
        if low < len(rows) and compare_all(rows, low, delta, n) == 0:
            taken = max(0, min(rows[low, W], -delta[n, W]))
            rows[low, W] -= taken
            delta[n, W] += taken


@njit(cache=True)
def _latest_ends(rows):  # type: ignore[no-untyped-def]
    size = len(rows)
    by_16 = np.full((size + 15) >> 4, LEAST, np.int64)
    by_256 = np.full((size + 255) >> 8, LEAST, np.int64)
    by_4096 = np.full((size + 4095) >> 12, LEAST, np.int64)
    longest, earliest, least_weight = np.int64(0), np.int64(FOREVER), np.int64(FOREVER)
    for n in range(size):
        by_16[n >> 4] = max(by_16[n >> 4], rows[n, RE])
        earliest, least_weight = min(earliest, rows[n, RE]), min(least_weight, rows[n, W])
        longest = max(longest, rows[n, RE] - rows[n, LE] if rows[n, LE] > BEGINNING else np.int64(FOREVER))
    for n in range(len(by_16)):
        by_256[n >> 4] = max(by_256[n >> 4], by_16[n])
    latest = LEAST
    for n in range(len(by_256)):
        by_4096[n >> 4] = max(by_4096[n >> 4], by_256[n])
        latest = max(latest, by_256[n])
    return by_16, by_256, by_4096, latest, longest, earliest, least_weight


@njit(cache=True)
def _gather(rows, at, column):  # type: ignore[no-untyped-def]
    out = np.empty(len(at), np.int64)
    for n in range(len(at)):
        out[n] = rows[at[n], column]
    return out


@loop
def _is_stretch(at):  # type: ignore[no-untyped-def]
    """Whether each position, of which there are some, is the next after the one before."""
    for n in range(1, len(at)):
        if at[n] != at[n - 1] + 1:
            return False
    return True


@njit(cache=True)
def _pick(rows, at):  # type: ignore[no-untyped-def]
    out = np.empty((len(at), rows.shape[1]), np.int64)
    for n in range(len(at)):
        for c in range(rows.shape[1]):
            out[n, c] = rows[at[n], c]
    return out
