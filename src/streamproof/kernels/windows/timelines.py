"""Sorted boundaries of many groups in one matrix, each group in a stretch of its own with room to grow.

A change rewrites the end of its group's stretch and nothing else. Rows go at its front as the frontier passes, so a
stretch slides through its room, and back to the beginning when it reaches the end. One that outgrows its room moves to
the end of the matrix; when that is full, the matrix is laid out anew, without what lies before the frontier.

A row is an instant, how many events begin or end there, and what holds from there on. Of the boundaries before the
frontier a group keeps the last one, where the open snapshot starts.

>>> lines = Timelines(1)
>>> lines.restore(np.array([[7, 0, 1, 5], [7, 4, 1, 9], [8, 2, 1, 1]]))
>>> lines.export(5).tolist()
[[7, 4, 1, 9], [8, 2, 1, 1]]
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop

TIME: Final = 0
ENDS: Final = 1
VALUES: Final = 2  # the first column of what holds from there on; it begins with the number of events
FIRST: Final = 0
SIZE: Final = 1
BASE: Final = 2
LIMIT: Final = 3
LEAST_ROOM: Final = 4


class Timelines:
    """The boundaries that time has reached, by group."""

    def __init__(self, width: int) -> None:
        self.rows = np.empty((0, VALUES + width), np.int64)
        self.places = np.zeros((0, 4), np.int64)  # per group: where its rows begin, how many, and from where to where
        self.used = 0  # rows of the matrix that are given away

    def hold(self, groups: int) -> None:
        """Know groups up to a number."""
        if groups > len(self.places):
            self.places = longer(self.places, groups)

    def make_room(self, rows: int, frontier: int) -> None:
        """Lay the matrix out anew, with so many rows to give away."""
        self.restore(self.export(frontier), spare=rows)

    def export(self, frontier: int) -> Cells:
        """All rows in order, each with its group before it."""
        _trim(self.rows, self.places, frontier)
        out = np.empty((int(self.places[:, SIZE].sum()), 1 + self.rows.shape[1]), np.int64)
        _export(self.rows, self.places, out)
        return out

    def restore(self, rows: Cells, *, spare: int = 0) -> None:
        """These rows instead of all others: the inverse of `export`."""
        self.hold(int(rows[-1, 0]) + 1 if len(rows) else 0)
        self.places[:] = 0
        self.rows = np.empty((3 * len(rows) + LEAST_ROOM * len(self.places) + spare, rows.shape[1] - 1), np.int64)
        self.used = _restore(rows, self.rows, self.places)

    def opened(self, frontier: int) -> int:
        """The start of the earliest snapshot that is open at the frontier, or the frontier itself."""
        _trim(self.rows, self.places, frontier)
        firsts = self.places[self.places[:, SIZE] > 0, FIRST]
        return min(frontier, int(self.rows[firsts, TIME].min(initial=frontier)))

    def groups(self) -> Ints:
        """The groups that have rows."""
        return np.flatnonzero(self.places[:, SIZE])


def longer(table: Ints, size: int) -> Ints:
    """A table with at least so many rows, the new ones zero."""
    grown = np.zeros((max(size, 2 * len(table), 64), *table.shape[1:]), np.int64)
    grown[: len(table)] = table
    return grown


@njit(cache=True, inline="always")
def trim(rows, places, group, frontier):  # type: ignore[no-untyped-def]
    """Forget what a group has before the frontier, but for the start of a snapshot that still has events."""
    first, size = places[group, FIRST], places[group, SIZE]
    while size > 1 and rows[first + 1, TIME] < frontier:
        first += 1
        size -= 1
    if size and rows[first, TIME] < frontier and rows[first, VALUES] == 0:
        first += 1
        size -= 1
    places[group, FIRST], places[group, SIZE] = first, size


@loop
def _trim(rows, places, frontier):  # type: ignore[no-untyped-def]
    for group in range(len(places)):
        if places[group, SIZE]:
            trim(rows, places, group, frontier)


@loop
def _export(rows, places, out):  # type: ignore[no-untyped-def]
    count = 0
    for group in range(len(places)):
        first = places[group, FIRST]
        for at in range(first, first + places[group, SIZE]):
            out[count, 0] = group
            for n in range(rows.shape[1]):
                out[count, 1 + n] = rows[at, n]
            count += 1


@loop
def _restore(source, rows, places):  # type: ignore[no-untyped-def]
    used = 0
    for at in range(len(source)):
        group = source[at, 0]
        if at == 0 or group != source[at - 1, 0]:
            if at:
                used += _settle(places, source[at - 1, 0])
            places[group, FIRST] = places[group, BASE] = used
        to = used + places[group, SIZE]
        for n in range(rows.shape[1]):
            rows[to, n] = source[at, 1 + n]
        places[group, SIZE] += 1
    return used + _settle(places, source[-1, 0]) if len(source) else 0


@loop
def _settle(places, group):  # type: ignore[no-untyped-def]
    """Give a stretch room to grow; how much it has."""
    room = 2 * places[group, SIZE] + LEAST_ROOM
    places[group, LIMIT] = places[group, BASE] + room
    return room


@njit(cache=True, inline="always")
def first_at(rows, places, group, time):  # type: ignore[no-untyped-def]
    """The first row of a group at or after an instant: most changes come near the end."""
    low = places[group, FIRST]
    high = low + places[group, SIZE]
    step = 1
    while high - step > low and rows[high - step, TIME] >= time:
        high -= step
        step *= 2
    low = max(low, high - step)
    while low < high:
        middle = (low + high) >> 1
        if rows[middle, TIME] < time:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, inline="always")
def rewrite(rows, places, group, used, span, tail, count):  # type: ignore[no-untyped-def]
    """A group's rows become those from ``span[0]`` up to ``span[1]``, the tail, and those from ``span[2]`` on.

    There must be room for twice as many at the end of the matrix; how much of it is used afterwards.
    """
    kept, rest = span[1] - span[0], places[group, FIRST] + places[group, SIZE] - span[2]
    size = kept + count + rest
    to, base, limit = span[0], places[group, BASE], places[group, LIMIT]
    if to + size > limit:
        if 4 * size > 3 * (limit - base):
            base, limit = used, used + 2 * size + LEAST_ROOM
            used = limit
        to = base
        _move(rows, span[0], to, kept)
    _move(rows, span[2], to + kept + count, rest)
    for n in range(count):
        for m in range(rows.shape[1]):
            rows[to + kept + n, m] = tail[n, m]
    places[group, FIRST], places[group, SIZE] = to, size
    places[group, BASE], places[group, LIMIT] = base, limit
    return used


@loop
def _move(rows, source, to, count):  # type: ignore[no-untyped-def]
    """Move rows to a place that may overlap."""
    if source == to:
        return
    if to > source:
        for n in range(count - 1, -1, -1):
            for m in range(rows.shape[1]):
                rows[to + n, m] = rows[source + n, m]
        return
    for n in range(count):
        for m in range(rows.shape[1]):
            rows[to + n, m] = rows[source + n, m]
