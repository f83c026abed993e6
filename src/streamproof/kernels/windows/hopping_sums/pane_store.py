"""What hopping sums hold between batches: sums per pane, when each group's next window is due, and sums that slide on.

`PaneStore` has rows (group, place, sums) in stretches, so a change touches only its groups.

>>> panes = PaneStore(width=1)
>>> panes.put(np.array([[4, 10, 1], [7, 10, 1]]), spec := np.empty((0, 7), np.int64))
>>> panes.put(np.array([[4, 9, 2], [7, 10, -1]]), spec)
>>> panes.export().tolist()
[[4, 9, 2], [4, 10, 1]]

`DueQueue` has each group in the list of the first window that may have members and is not due yet. Windows share lists
in turn, so there are few lists, however far apart windows are.

`RunningSums` has the sums of the last window that each group came to: the next one has most of its panes in common.

>>> running = RunningSums(width=2, worth=True)
>>> running.admit(3); running.at[1] = 7, 0
>>> running.forget(8); running.at[1, REACHED] == FOREVER
np.True_
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.base import State, array
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.state import Plain
from streamproof.kernels.windows.hopping_sums.pane_store_loops import NONE, copied, forget, put
from streamproof.kernels.windows.hopping_sums.sliding_loops import REACHED
from streamproof.kernels.windows.shared.stretches import Stretches
from streamproof.kernels.windows.shared.stretches_loops import SIZE
from streamproof.kernels.windows.shared.sums import Accumulators
from streamproof.kernels.windows.shared.sums_loops import GROUP, SUMS
from streamproof.thresholds import LEDGER_NEW, LISTS


class PaneStore(Stretches, Plain):
    """Rows (group, place, sums) of all groups, in the order of their places."""

    def __init__(self, width: int) -> None:
        super().__init__(SUMS + width)
        self.rows = np.empty((64, SUMS + width), np.int64)
        self._new = 0  # rows since the last sweep
        self._left = 0  # rows that it left

    def put(self, changes: Cells, spec: Ints) -> None:
        """Add rows, which come in order; rows of one place become one, and those of which nothing is left go."""
        if not len(changes):
            return
        self.admit(int(changes[-1, GROUP]) + 1)
        self._new += len(changes)
        done, self.used = put(self.rows, self.stretches, self.used, changes, 0, spec)
        if done < len(changes):
            self._compact(len(changes))
            _, self.used = put(self.rows, self.stretches, self.used, changes, done, spec)

    def _compact(self, more: int) -> None:
        """All stretches one after the other, in memory with room for so many changes."""
        rows = np.empty((4 * (len(self) + more) + 64, self.rows.shape[1]), np.int64)
        self.used = copied(self.rows, self.stretches, rows)
        self.rows = rows

    def convert(self, sums: Accumulators, spec: Ints) -> None:
        """Lay out all sums as ``sums`` now does, which were laid out by ``spec``."""
        self.rows = sums.converted(self.rows, spec)

    def forget(self, before: int, *, spec: Ints, fold: bool) -> None:
        """Forget the rows before a place; with ``fold`` their sum stays, as one row just before it."""
        forget(self.rows, self.stretches, before, spec, fold)
        self._new, self._left = 0, len(self)

    def wants_sweeping(self) -> bool:
        """Whether as many rows came as the last sweep left."""
        return self._new > max(LEDGER_NEW.now, self._left)

    def export(self) -> Cells:
        """All rows in the order of groups and places."""
        out = np.empty((len(self), self.rows.shape[1]), np.int64)
        copied(self.rows, self.stretches.copy(), out)
        return out

    def save(self) -> State:
        return {"rows": self.export()}

    def restore(self, state: State) -> None:
        self.rows = array(state, "rows").copy()
        self.used = len(self.rows)
        groups, first, size = np.unique(self.rows[:, GROUP], return_index=True, return_counts=True)
        self.admit(int(groups.max(initial=-1)) + 1)
        self.stretches[groups] = np.column_stack([first, first, size, size])

    def live_groups(self) -> Ints:
        return np.flatnonzero(self.stretches[:, SIZE])

    def live_rows(self) -> int:
        return len(self)


class DueQueue:
    """The next window of each group."""

    def __init__(self) -> None:
        self.heads = np.full(LISTS.now, NONE, np.int64)  # the first group of each list
        self.links = _unlisted(64)  # by group

    def admit(self, groups: int) -> None:
        """Make room for so many groups."""
        if groups > len(self.links):
            more = _unlisted(max(groups, 2 * len(self.links)))
            more[: len(self.links)] = self.links
            self.links = more


def _unlisted(groups: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.full((groups, 3), (FOREVER, NONE, NONE), np.int64)


class RunningSums:
    """Per group a window, and its sums. Whatever is not known here can be had from the panes."""

    def __init__(self, width: int, *, worth: bool) -> None:
        """``worth`` says whether windows overlap enough; if not, nothing is ever kept."""
        self._worth = worth
        self.at = np.empty((0, 2), np.int64)  # by group: the window, and how many starts had left it
        self.sums = np.empty((0 if worth else 1, width), np.int64)  # one row for all, where nothing is kept

    def admit(self, groups: int) -> None:
        """Make room for so many groups."""
        known = len(self.at)
        if self._worth and groups > known:
            self.at = np.concatenate([self.at, np.full((max(groups - known, known, 64), 2), FOREVER)])
            self.sums = np.concatenate([self.sums, np.zeros((len(self.at) - known, self.sums.shape[1]), np.int64)])

    def forget(self, before: int) -> None:
        """Forget the sums of windows before one, whose panes are gone."""
        self.at[self.at[:, REACHED] < before, REACHED] = FOREVER
