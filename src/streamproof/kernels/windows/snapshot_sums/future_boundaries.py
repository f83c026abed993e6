"""Boundaries that time has not reached, as one heap per group, so that a change costs little however many there are.

An entry is an instant with how many events begin or end there and how sums change. Equal instants of a group may have
several entries, also such as cancel each other; they are added up when time gets there, or when there are many.

>>> future, spec = FutureBoundaries(2), np.zeros((0, 7), np.int64)
>>> future.restore(np.array([[3, 9, 1, 5], [3, 4, 1, 7], [3, 9, -1, -5]]), spec)
>>> future.export(spec).tolist(), future.nexts[3]
([[3, 4, 1, 7]], np.int64(4))
"""

from __future__ import annotations

import numpy as np

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.shared.stretches import longer
from streamproof.kernels.windows.shared.stretches_loops import LEAST_ROOM, NEVER
from streamproof.kernels.windows.snapshot_sums.walk_loops import add_up, export, restore
from streamproof.thresholds import AHEAD


class FutureBoundaries:
    """The boundaries to come, by group."""

    def __init__(self, width: int) -> None:
        self.heap = np.empty((0, 2), np.int64)  # instants, and where the rest is
        self.stretches = np.zeros((0, 4), np.int64)  # per group: where its heap begins, its size, room, doubt
        self.nexts = np.zeros(0, np.int64)  # per group: its next boundary
        self.used = 0
        self.slots = np.empty((0, width), np.int64)
        self.free = np.empty(0, np.int64)  # slots to give away, the next one last
        self.spare = 0  # how many of them
        self.doubtful = 0  # entries since the last `settle` that take something back

    def admit(self, groups: int) -> None:
        """Know groups up to a number."""
        if groups > len(self.stretches):
            known = len(self.nexts)
            self.stretches, self.nexts = longer(self.stretches, groups), longer(self.nexts, groups)
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
        export(self.heap, self.stretches, self.slots, out)
        return _added_up(out, spec)

    def restore(self, rows: Cells, spec: Ints, *, spare: int = 0) -> None:
        """These entries instead of all others, in any order."""
        rows = _added_up(rows, spec)
        self.admit(int(rows[-1, 0]) + 1 if len(rows) else 0)
        self.stretches[:], self.nexts[:], self.doubtful = 0, NEVER, 0
        self.slots = np.empty((2 * len(rows) + spare, rows.shape[1] - 2), np.int64)
        self.slots[: len(rows)] = rows[:, 2:]
        self.free = np.arange(len(self.slots) - 1, -1, -1)
        self.spare = len(self.slots) - len(rows)
        self.heap = np.empty((3 * len(rows) + LEAST_ROOM * len(self.stretches) + 2 * spare, 2), np.int64)
        self.used = restore(rows, self.heap, self.stretches, self.nexts)


def _added_up(rows: Cells, spec: Ints) -> Cells:
    """Rows in order of group and instant, those of one instant as one."""
    if not len(rows):
        return rows
    rows = rows[order_by(rows[:, 0].copy(), rows[:, 1].copy())]
    return rows[: add_up(rows, spec)]
