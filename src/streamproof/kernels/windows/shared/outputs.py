"""What was emitted last for each window that may still change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from streamproof.events.time import FOREVER
from streamproof.kernels.base import State, array
from streamproof.kernels.cells import Bools, Cells, Ints, Layout
from streamproof.kernels.interning import Interner
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.shared.members import NO_WINDOWS, Rows, Windows
from streamproof.kernels.windows.shared.members_loops import find, least, nets_loop, rows_of
from streamproof.thresholds import OUTPUT_PARTS

SAVED: Final = ("group", "start", "end", "hold", "row_window", "row_le", "row_re", "row_w", "row_cells")
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


class OutputPart:
    """Windows by group and start, with the rows that each gave and, if it is kept, the module's state.

    Windows that are forgotten stay until they are many: whoever looks at windows looks at `here` too.
    """

    def __init__(self, windows: Windows, hold: Ints, rows: Rows, states: States | None) -> None:
        self.windows = windows
        self.hold = hold  # per window: it is not final before the frontier has passed this
        self.rows = rows  # ``window`` counts the windows above
        self.states = states
        self.here = np.ones(len(hold), np.bool_)
        self._gone = 0  # how many are not here

    def __len__(self) -> int:
        """The number of windows that are here."""
        return len(self.hold) - self._gone

    def find(self, windows: Windows) -> Ints:
        """Where windows of these groups and starts stand; −1 for those that do not."""
        found: Ints = find(self.windows.group, self.windows.le, windows.group, windows.le)
        if self._gone:
            found[~self.here[found]] = -1  # what is not found stays so, whatever stands at the end
        return found

    def recall(self, windows: Windows, memory: Memory) -> None:
        """Bring the states of windows that stand here to mind."""
        assert self.states is not None
        found = self.find(windows)
        same = found >= 0
        same[same] = self.windows.re[found[same]] == windows.re[same]
        if same.any():
            states = memory.states[same] = self.states[found[same]]
            memory.known[same] = [state is not UNKNOWN for state in states.tolist()]

    def taken(self, which: Bools) -> tuple[Windows, Rows]:
        """Some windows and their rows, with the rows' ``window`` counting the windows taken."""
        chosen, window = rows_of(which, self.rows.window)
        rows = Rows(*(column[chosen] for column in self.rows))
        return self.windows.take(np.flatnonzero(which)), rows._replace(window=window)

    def drop(self, which: Bools) -> tuple[Windows, Rows]:
        """Forget some windows that are here; they and their rows are handed back."""
        dropped = self.taken(which)
        self.here &= ~which
        self._gone += len(dropped[0].le)
        return dropped

    def tidied(self) -> OutputPart:
        """The same without what is not here."""
        if not self._gone:
            return self
        windows, rows = self.taken(self.here)
        return OutputPart(windows, self.hold[self.here], rows, None if self.states is None else self.states[self.here])

    @property
    def wants_tidying(self) -> bool:
        return self._gone > 0 and (len(self.hold) < OUTPUT_PARTS.now or 2 * self._gone > len(self.hold))

    def with_more(self, more: OutputPart) -> OutputPart:
        """One part of two tidy ones; no window is in both."""
        windows = Windows(*(np.concatenate(pair) for pair in zip(self.windows, more.windows, strict=True)))
        hold = np.concatenate([self.hold, more.hold])
        rows = joined([self.rows, more.rows._replace(window=more.rows.window + len(self.hold))])
        both = self.states is not None and more.states is not None
        states = np.concatenate([self.states, more.states]) if both else None
        if self._precedes(more.windows):
            return OutputPart(windows, hold, rows, states)
        order = order_by(windows.group, windows.le)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        rows = rows._replace(window=place[rows.window])
        return OutputPart(windows.take(order), hold[order], rows, None if states is None else states[order])

    def _precedes(self, windows: Windows) -> bool:
        """Whether windows come after all that are there, as those of one group mostly do."""
        if not len(self) or not len(windows.le):
            return True
        last, first = self.windows.group[-1], windows.group[0]
        return bool(last < first or (last == first and self.windows.le[-1] < windows.le[0]))


class Outputs:
    """The windows that are out and may still change, in parts of which each is at least twice as long as the next.

    So what changes a few of many windows rewrites few.
    """

    def __init__(self, layout: Layout, *, stateful: bool = False) -> None:
        self.parts: list[OutputPart] = []
        self._layout, self._width, self._stateful = layout, layout.width, stateful

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def has(self, windows: Windows) -> Bools:
        """Which windows, by their groups and starts, are out."""
        found = np.zeros(len(windows.le), np.bool_)
        for part in self.parts:
            found |= part.find(windows) >= 0
        return found

    def recall(self, windows: Windows) -> Memory:
        """The states of windows, where they are kept."""
        memory = Memory.none(len(windows.le))
        for part in self.parts if self._stateful else ():
            part.recall(windows, memory)
        return memory

    def where(self, test: Callable[[OutputPart], Bools]) -> list[Bools]:
        """Which windows of each part pass a test."""
        return [test(part) & part.here for part in self.parts]

    def none(self) -> list[Bools]:
        """No window of any part."""
        return [np.zeros(len(part.hold), np.bool_) for part in self.parts]

    def chosen(self, which: Sequence[Bools]) -> Windows:
        """Some windows of each part."""
        found = [part.windows.take(some) for part, some in zip(self.parts, which, strict=True)]
        return Windows(*map(np.concatenate, zip(*found, strict=True))) if found else NO_WINDOWS

    def least_held(self, side: Literal["le", "re"], frontier: int) -> int:
        """The least start or end of a window that is held at a frontier."""
        return min((least(getattr(p.windows, side), p.hold, p.here, frontier) for p in self.parts), default=FOREVER)

    def drop(self, which: Sequence[Bools]) -> tuple[Windows, Rows]:
        """Forget some windows of each part; they and their rows are handed back."""
        dropped = [part.drop(some) for part, some in zip(self.parts, which, strict=True) if some.any()]
        if not dropped:
            return NO_WINDOWS, no_rows(self._width)
        self.parts = [part.tidied() if part.wants_tidying else part for part in self.parts if len(part)]
        starts = np.cumsum([0, *(len(windows.le) for windows, _ in dropped)])
        rows = [rows._replace(window=rows.window + start) for (_, rows), start in zip(dropped, starts, strict=False)]
        return Windows(*map(np.concatenate, zip(*(windows for windows, _ in dropped), strict=True))), joined(rows)

    def add(self, windows: Windows, hold: Ints, rows: Rows, memory: Memory | None = None) -> None:
        """Remember windows that are not there yet."""
        if not len(hold):
            return
        states = memory.states if self._stateful and memory is not None else None
        self.parts.append(OutputPart(windows, hold, rows, states))
        while len(self.parts) > 1 and len(self.parts[-2].hold) < max(OUTPUT_PARTS.now, 2 * len(self.parts[-1].hold)):
            last = self.parts.pop().tidied()
            self.parts[-1] = self.parts[-1].tidied().with_more(last)

    def all(self) -> OutputPart:
        """All windows in one part."""
        whole = OutputPart(
            NO_WINDOWS, np.empty(0, np.int64), no_rows(self._width), no_states(0) if self._stateful else None
        )
        for part in self.parts:
            whole = whole.with_more(part.tidied())
        self.parts = [whole] if len(whole) else []
        return whole

    def save(self) -> State:
        whole = self.all()
        return dict(zip(SAVED, (*whole.windows, whole.hold, *whole.rows), strict=True))

    def restore(self, state: State) -> None:
        arrays = [array(state, name) for name in SAVED]
        states = no_states(len(arrays[3])) if self._stateful else None
        part = OutputPart(Windows(*arrays[:3]), arrays[3], Rows(*arrays[4:]), states)
        self.parts = [part] if len(part) else []

    def live_strings(self) -> Ints:
        return self._layout.string_codes(self.all().rows.cells)

    def live_groups(self) -> Ints:
        return self.all().windows.group

    def live_rows(self) -> int:
        return len(self)


def joined(parts: Sequence[Rows]) -> Rows:
    """Rows one after the other."""
    return Rows(*map(np.concatenate, zip(*parts, strict=True)))


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
    found: tuple[Ints, Ints] = nets_loop(Interner(identity.shape[1], room).intern(identity), w)
    return found


def least_held(held: Windows, groups: Ints) -> Ints:
    """For each of some sorted groups the least start of a window that is held; FOREVER where none is."""
    out = np.full(len(groups), FOREVER)
    at = np.searchsorted(groups, held.group)
    known = at < len(groups)
    known[known] = groups[at[known]] == held.group[known]
    np.minimum.at(out, at[known], held.le[known])
    return out
