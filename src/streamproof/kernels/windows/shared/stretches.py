"""Rows of many groups in one matrix, each group in a stretch of its own with room to grow: a change touches its groups.

    group 4                                   group 7
    │ · · 9 10 12 · · · │ · · · · · · │ · · · │ 10 11 · · │        · is room
    base  first, size 3                       base = first

Rows go at the front of a stretch as time passes and come at its end, so it slides through its room, and back to the
base when it reaches the end. One that fills its room moves to the end of the matrix; when that is full, the matrix is
laid out anew, without what has gone.

In `Timelines` rows are boundaries: an instant, the number of events that begin or end there, and what holds from there
on. Of the boundaries before the frontier a group keeps the last one, where the open snapshot starts.

>>> lines = Timelines(1)
>>> lines.restore(np.array([[7, 0, 1, 5], [7, 4, 1, 9], [8, 2, 1, 1]]))
>>> lines.export(5).tolist()
[[7, 4, 1, 9], [8, 2, 1, 1]]
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.windows.shared.stretches_loops import (
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


class Stretches:
    """Rows of many groups in one matrix, each group's in a stretch of its own."""

    def __init__(self, columns: int) -> None:
        self.rows = np.empty((0, columns), np.int64)
        self.stretches = np.zeros((0, 4), np.int64)  # by group: base, first row, size, room
        self.used = 0  # rows of the matrix that are given away

    def __len__(self) -> int:
        return int(self.stretches[:, SIZE].sum())

    def admit(self, groups: int) -> None:
        """Know groups up to a number."""
        if groups > len(self.stretches):
            self.stretches = longer(self.stretches, groups)


class Timelines(Stretches):
    """The boundaries that time has reached, by group."""

    def __init__(self, width: int) -> None:
        super().__init__(VALUES + width)

    def make_room(self, rows: int, frontier: int) -> None:
        """Lay the matrix out anew, with so many rows to give away."""
        self.restore(self.export(frontier), spare=rows)

    def export(self, frontier: int) -> Cells:
        """All rows in order, each with its group before it."""
        trim_all(self.rows, self.stretches, frontier)
        out = np.empty((len(self), 1 + self.rows.shape[1]), np.int64)
        export(self.rows, self.stretches, out)
        return out

    def restore(self, rows: Cells, *, spare: int = 0) -> None:
        """These rows instead of all others: the inverse of `export`."""
        self.admit(int(rows[-1, 0]) + 1 if len(rows) else 0)
        self.stretches[:] = 0
        self.rows = np.empty((3 * len(rows) + LEAST_ROOM * len(self.stretches) + spare, rows.shape[1] - 1), np.int64)
        self.used = restore(rows, self.rows, self.stretches)

    def opened(self, frontier: int) -> int:
        """The start of the earliest snapshot that is open at the frontier, or the frontier itself."""
        trim_all(self.rows, self.stretches, frontier)
        firsts = self.stretches[self.stretches[:, SIZE] > 0, FIRST]
        return min(frontier, int(self.rows[firsts, TIME].min(initial=frontier)))


def longer(table: Ints, size: int) -> Ints:
    """A table with at least so many rows, the new ones zero."""
    grown = np.zeros((max(size, 2 * len(table), 64), *table.shape[1:]), np.int64)
    grown[: len(table)] = table
    return grown
