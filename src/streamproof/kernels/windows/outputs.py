"""What was emitted last for each window that may still change."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.kernels.base import State
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.interning import Interner
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.segments import NO_WINDOWS, Bools, Rows, Windows, find

States = npt.NDArray[np.object_]
"""Per window the state that an incremental module keeps, or `UNKNOWN`."""


class _Unknown:
    """The state of a window that has none: it is new, was restored, or its module failed."""


UNKNOWN: Final = _Unknown()


def no_states(count: int) -> States:
    return np.full(count, UNKNOWN, object)


class Memory(NamedTuple):
    """What a module remembers of windows."""

    states: States
    known: Bools  # which of them are

    @staticmethod
    def none(count: int) -> Memory:
        return Memory(no_states(count), np.zeros(count, np.bool_))


def no_rows(width: int) -> Rows:
    none = np.empty(0, np.int64)
    return Rows(none, none, none, none, np.empty((0, width), np.int64))


class Outputs:
    """Windows by group and start, with the rows that each gave and, if it is kept, the module's state."""

    def __init__(self, width: int, *, stateful: bool = False) -> None:
        self.windows = NO_WINDOWS
        self.hold = np.empty(0, np.int64)  # per window: it is not final before the frontier has passed this
        self.rows = no_rows(width)  # ``window`` counts the windows above
        self.states: States | None = no_states(0) if stateful else None

    def __len__(self) -> int:
        return len(self.hold)

    def find(self, windows: Windows) -> Ints:
        """Where windows of these groups and starts stand; −1 for those that do not."""
        found: Ints = find(self.windows.group, self.windows.le, windows.group, windows.le)
        return found

    def recall(self, windows: Windows) -> Memory:
        """The states of windows, where they are kept."""
        memory, found = Memory.none(len(windows.le)), self.find(windows)
        same = found >= 0
        same[same] = self.windows.re[found[same]] == windows.re[same]
        if self.states is not None and same.any():
            states = memory.states[same] = self.states[found[same]]
            memory.known[same] = [state is not UNKNOWN for state in states.tolist()]
        return memory

    def taken(self, which: Bools) -> tuple[Windows, Rows]:
        """Some windows and their rows, with the rows' ``window`` counting the windows taken."""
        number = np.cumsum(which) - 1
        chosen = which[self.rows.window]
        rows = Rows(*(column[chosen] for column in self.rows))
        return self.windows.take(which), rows._replace(window=number[rows.window])

    def drop(self, which: Bools) -> tuple[Windows, Rows]:
        """Forget some windows; they and their rows are handed back."""
        if not which.any():
            return NO_WINDOWS, no_rows(self.rows.cells.shape[1])
        gone = self.taken(which)
        self.windows, self.rows = self.taken(~which)
        self.hold = self.hold[~which]
        if self.states is not None:
            self.states = self.states[~which]
        return gone

    def add(self, windows: Windows, hold: Ints, rows: Rows, memory: Memory | None = None) -> None:
        """Remember windows that are not there yet."""
        if not len(hold):
            return
        shifted = rows._replace(window=rows.window + len(self.hold))
        joined = [np.concatenate(pair) for pair in zip(self.windows, windows, strict=True)]
        if self.states is None and self._follow(windows):
            self.windows, self.hold = Windows(*joined), np.concatenate([self.hold, hold])
            self.rows = Rows(*(np.concatenate(pair) for pair in zip(self.rows, shifted, strict=True)))
            return
        order = order_by(joined[0], joined[1])
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        self.windows = Windows(*(column[order] for column in joined))
        self.hold = np.concatenate([self.hold, hold])[order]
        if self.states is not None and memory is not None:
            self.states = np.concatenate([self.states, memory.states])[order]
        both = Rows(*(np.concatenate(pair) for pair in zip(self.rows, shifted, strict=True)))
        self.rows = both._replace(window=place[both.window])

    def _follow(self, windows: Windows) -> bool:
        """Whether windows, which are in order, come after all that are there, as those of one group mostly do."""
        if not len(self):
            return True
        last, first = self.windows.group[-1], windows.group[0]
        return bool(last < first or (last == first and self.windows.le[-1] < windows.le[0]))

    def snapshot(self) -> State:
        names = ("group", "start", "end", "hold", "row_window", "row_le", "row_re", "row_w", "row_cells")
        return dict(zip(names, (*self.windows, self.hold, *self.rows), strict=True))

    def restore(self, state: State) -> None:
        arrays = [value for value in state.values() if isinstance(value, np.ndarray)]
        self.windows, self.hold = Windows(*arrays[:3]), arrays[3]
        self.rows = Rows(*arrays[4:])
        self.states = None if self.states is None else no_states(len(self.hold))


def difference(group_before: Ints, before: Rows, group_after: Ints, after: Rows) -> tuple[Ints, Rows]:
    """What turns one set of rows into the other: the groups and signed rows, nothing that cancels.

    The groups are those of the windows that the rows count.
    """
    group = np.concatenate([group_before[before.window], group_after[after.window]])
    negative = before._replace(w=-before.w)
    both = Rows(*(np.concatenate(pair) for pair in zip(negative, after, strict=True)))
    if not len(before.w):
        return group, both
    net, firsts = nets(np.column_stack([group, both.le, both.re, both.cells]), both.w)
    firsts, net = firsts[net != 0], net[net != 0]
    return group[firsts], Rows(*(column[firsts] for column in both))._replace(w=net)


def nets(identity: Cells, w: Ints) -> tuple[Ints, Ints]:
    """Of rows that are equal in their cells the sum of the weights and the first one, in the order of the firsts."""
    room = 1 << max(4, len(w).bit_length())
    found: tuple[Ints, Ints] = _nets(Interner(identity.shape[1], room).intern(identity), w)
    return found


@njit(cache=True)
def _nets(codes, w):  # type: ignore[no-untyped-def]
    """Per number the sum of the weights, and the first row that has it; numbers count up from 0."""
    count = codes.max() + 1
    net, firsts = np.zeros(count, np.int64), np.full(count, -1)
    for row in range(len(codes)):
        net[codes[row]] += w[row]
        if firsts[codes[row]] < 0:
            firsts[codes[row]] = row
    return net, firsts
