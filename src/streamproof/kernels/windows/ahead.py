"""Boundaries that time has not reached, as one heap per group, so that a change costs little however many there are.

An entry is an instant with how many events begin or end there and how sums change. Equal instants of a group may have
several entries, also such as cancel each other; they are added up when time gets there, or when there are many.

>>> ahead, spec = Ahead(2), np.zeros((0, 7), np.int64)
>>> ahead.restore(np.array([[3, 9, 1, 5], [3, 4, 1, 7], [3, 9, -1, -5]]), spec)
>>> ahead.export(spec).tolist(), ahead.nexts[3]
([[3, 4, 1, 7]], np.int64(4))
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.accumulators import carry_row
from streamproof.kernels.windows.timelines import FIRST, LEAST_ROOM, SIZE, longer
from streamproof.thresholds import AHEAD

NEVER: Final = 2**63 - 1
ROOM: Final = 2
DOUBT: Final = 3  # of a group: some of its entries may cancel
ARITY: Final = 4


class Ahead:
    """The boundaries to come, by group."""

    def __init__(self, width: int) -> None:
        self.heap = np.empty((0, 2), np.int64)  # instants, and where the rest is
        self.places = np.zeros((0, 4), np.int64)  # per group: where its heap begins, its size, room, doubt
        self.nexts = np.zeros(0, np.int64)  # per group: its next boundary
        self.used = 0
        self.slots = np.empty((0, width), np.int64)
        self.free = np.empty(0, np.int64)  # slots to give away, the next one last
        self.spare = 0  # how many of them
        self.doubtful = 0  # entries since the last `settle` that take something back

    def hold(self, groups: int) -> None:
        """Know groups up to a number."""
        if groups > len(self.places):
            known = len(self.nexts)
            self.places, self.nexts = longer(self.places, groups), longer(self.nexts, groups)
            self.nexts[known:] = NEVER

    def __len__(self) -> int:
        return len(self.free) - self.spare

    def make_room(self, entries: int, spec: Ints) -> None:
        """Lay out everything anew, with room for so many more in one group. No next boundary changes."""
        nexts = self.nexts.copy()
        self.restore(self.export(spec), spec, spare=entries)
        self.nexts[:] = nexts

    def settle(self, spec: Ints) -> None:
        """Add up entries that may cancel, once there are many."""
        if self.doubtful > max(AHEAD.now, len(self) // 2):
            self.make_room(AHEAD.now, spec)

    def export(self, spec: Ints) -> Cells:
        """All entries in order, each with its group and instant before it; those of one instant are one."""
        out = np.empty((len(self), 2 + self.slots.shape[1]), np.int64)
        _export(self.heap, self.places, self.slots, out)
        return _added_up(out, spec)

    def restore(self, rows: Cells, spec: Ints, *, spare: int = 0) -> None:
        """These entries instead of all others, in any order."""
        rows = _added_up(rows, spec)
        self.hold(int(rows[-1, 0]) + 1 if len(rows) else 0)
        self.places[:], self.nexts[:], self.doubtful = 0, NEVER, 0
        self.slots = np.empty((2 * len(rows) + spare, rows.shape[1] - 2), np.int64)
        self.slots[: len(rows)] = rows[:, 2:]
        self.free = np.arange(len(self.slots) - 1, -1, -1)
        self.spare = len(self.slots) - len(rows)
        self.heap = np.empty((3 * len(rows) + LEAST_ROOM * len(self.places) + 2 * spare, 2), np.int64)
        self.used = _restore(rows, self.heap, self.places, self.nexts)


@loop
def _export(heap, places, slots, out):  # type: ignore[no-untyped-def]
    count = 0
    for group in range(len(places)):
        first = places[group, FIRST]
        for at in range(first, first + places[group, SIZE]):
            out[count, 0], out[count, 1] = group, heap[at, 0]
            for n in range(slots.shape[1]):
                out[count, 2 + n] = slots[heap[at, 1], n]
            count += 1


def _added_up(rows: Cells, spec: Ints) -> Cells:
    """Rows in order of group and instant, those of one instant as one."""
    if not len(rows):
        return rows
    rows = rows[order_by(rows[:, 0].copy(), rows[:, 1].copy())]
    return rows[: _add_up(rows, spec)]


@loop
def _add_up(rows, spec):  # type: ignore[no-untyped-def]
    count = at = 0
    while at < len(rows):
        group, time = rows[at, 0], rows[at, 1]
        for n in range(rows.shape[1]):
            rows[count, n] = rows[at, n]
        at += 1
        while at < len(rows) and rows[at, 0] == group and rows[at, 1] == time:
            for n in range(2, rows.shape[1]):
                rows[count, n] += rows[at, n]
            carry_row(rows, count, 3, spec)
            at += 1
        anything = np.int64(0)
        for n in range(2, rows.shape[1]):
            anything |= rows[count, n]
        count += anything != 0
    return count


@loop
def _restore(rows, heap, places, nexts):  # type: ignore[no-untyped-def]
    """Sorted entries are heaps already."""
    used = at = 0
    while at < len(rows):
        group, start = rows[at, 0], at
        while at < len(rows) and rows[at, 0] == group:
            heap[used + at - start, 0], heap[used + at - start, 1] = rows[at, 1], at
            places[group, DOUBT] |= rows[at, 2] <= 0
            at += 1
        places[group, FIRST], places[group, SIZE] = used, at - start
        places[group, ROOM] = 2 * (at - start) + LEAST_ROOM
        nexts[group] = rows[start, 1]
        used += places[group, ROOM]
    return used


@njit(cache=True, inline="always")
def widen(heap, places, group, used, more):  # type: ignore[no-untyped-def]
    """Make room for more entries of a group, which there must be at the end; how much is used afterwards."""
    size = places[group, SIZE] + more
    if size <= places[group, ROOM]:
        return used
    first = places[group, FIRST]
    for n in range(places[group, SIZE]):
        heap[used + n, 0], heap[used + n, 1] = heap[first + n, 0], heap[first + n, 1]
    places[group, FIRST], places[group, ROOM] = used, 2 * size + LEAST_ROOM
    return used + places[group, ROOM]


@njit(cache=True, inline="always")
def top(heap, places, group):  # type: ignore[no-untyped-def]
    """The first instant of a group's heap."""
    return heap[places[group, FIRST], 0] if places[group, SIZE] else NEVER


@loop
def push(heap, places, group, time, slot):  # type: ignore[no-untyped-def]
    first, at = places[group, FIRST], places[group, SIZE]
    places[group, SIZE] += 1
    while at > 0:
        parent = (at - 1) // ARITY
        if heap[first + parent, 0] <= time:
            break
        heap[first + at, 0], heap[first + at, 1] = heap[first + parent, 0], heap[first + parent, 1]
        at = parent
    heap[first + at, 0], heap[first + at, 1] = time, slot


@loop
def pop(heap, places, group):  # type: ignore[no-untyped-def]
    """Take the first entry off a heap; where its rest is."""
    first, size = places[group, FIRST], places[group, SIZE] - 1
    places[group, SIZE] = size
    if size == 0:
        places[group, DOUBT] = 0
    found = heap[first, 1]
    time, slot = heap[first + size, 0], heap[first + size, 1]
    at = 0
    while True:
        child = ARITY * at + 1
        if child >= size:
            break
        for other in range(child + 1, min(child + ARITY, size)):
            if heap[first + other, 0] < heap[first + child, 0]:
                child = other
        if heap[first + child, 0] >= time:
            break
        heap[first + at, 0], heap[first + at, 1] = heap[first + child, 0], heap[first + child, 1]
        at = child
    heap[first + at, 0], heap[first + at, 1] = time, slot
    return found
