"""Instants of groups in order, each with how many events it belongs to: starts, ends, or both."""

from __future__ import annotations

import numpy as np

from streamproof.kernels.cells import Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.segments import Bools, firsts_from


class Boundaries:
    """A sorted bag of instants per group; an instant that no event has any more is gone."""

    def __init__(self) -> None:
        self.group = np.empty(0, np.int64)
        self.time = np.empty(0, np.int64)
        self.count = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.time)

    def add(self, group: Ints, time: Ints, count: Ints) -> None:
        """Add signed counts."""
        if not len(group):
            return
        order = order_by(group, time)
        size = len(self) + len(group)
        out = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size, np.int64)
        old = self.group, self.time, self.count
        kept = _merge(old, (group[order], time[order], count[order]), out)
        self.group, self.time, self.count = (column[:kept] for column in out)

    def keep(self, which: Bools) -> None:
        if not which.all():
            self.group, self.time, self.count = self.group[which], self.time[which], self.count[which]

    def first_from(self, group: Ints, time: Ints) -> Ints:
        """For each pair the place of the group's first instant at or after it."""
        found: Ints = firsts_from(self.group, self.time, group, time)
        return found

    def ends_group(self, at: Ints, groups: Ints) -> Bools:
        """Whether places lie outside of these groups."""
        inside = np.minimum(np.maximum(at, 0), max(len(self) - 1, 0))
        outside = (at < 0) | (at >= len(self))
        return outside | (self.group[inside] != groups) if len(self) else np.ones(len(at), np.bool_)


@loop
def _merge(old, new, out):  # type: ignore[no-untyped-def]
    i = j = kept = 0
    while i < len(old[0]) or j < len(new[0]):
        from_new = i >= len(old[0]) or (
            j < len(new[0]) and (new[0][j] < old[0][i] or (new[0][j] == old[0][i] and new[1][j] < old[1][i]))
        )
        group, time = (new[0][j], new[1][j]) if from_new else (old[0][i], old[1][i])
        count = 0
        if not from_new:
            count = old[2][i]
            i += 1
        while j < len(new[0]) and new[0][j] == group and new[1][j] == time:
            count += new[2][j]
            j += 1
        if count != 0:
            out[0][kept], out[1][kept], out[2][kept] = group, time, count
            kept += 1
    return kept
