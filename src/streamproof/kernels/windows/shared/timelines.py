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

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.windows.shared.timelines_loops import (
    FIRST,
    LEAST_ROOM,
    SIZE,
    TIME,
    VALUES,
    export,
    restore,
    trim_all,
)

ENDS: Final = 1


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
        trim_all(self.rows, self.places, frontier)
        out = np.empty((int(self.places[:, SIZE].sum()), 1 + self.rows.shape[1]), np.int64)
        export(self.rows, self.places, out)
        return out

    def restore(self, rows: Cells, *, spare: int = 0) -> None:
        """These rows instead of all others: the inverse of `export`."""
        self.hold(int(rows[-1, 0]) + 1 if len(rows) else 0)
        self.places[:] = 0
        self.rows = np.empty((3 * len(rows) + LEAST_ROOM * len(self.places) + spare, rows.shape[1] - 1), np.int64)
        self.used = restore(rows, self.rows, self.places)

    def opened(self, frontier: int) -> int:
        """The start of the earliest snapshot that is open at the frontier, or the frontier itself."""
        trim_all(self.rows, self.places, frontier)
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
