"""Count windows: ``[s_i, s_{i+n−1} + 1)`` over the distinct starts (or finite ends) of a group's events.

Members are the events that start (or end) inside, so an event lies in the store as the point of its start (or end).
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.base import State
from streamproof.kernels.cells import Ints
from streamproof.kernels.store import Events as Stored
from streamproof.kernels.store import Store
from streamproof.kernels.windows.boundaries import Boundaries
from streamproof.kernels.windows.changes import Events, Spans
from streamproof.kernels.windows.frames import least_held
from streamproof.kernels.windows.liveliness import Liveliness, Step
from streamproof.kernels.windows.outputs import Outputs, Part
from streamproof.kernels.windows.segments import Bools, Windows, covered, firsts_from, spread
from streamproof.kernels.windows.snapshot import by_group
from streamproof.plan.windows import CountEnd, CountStart


class Counts:
    """The count windows of all groups."""

    def __init__(self, window: CountStart | CountEnd, lively: Liveliness) -> None:
        self.n = window.n
        self.at_end = isinstance(window, CountEnd)
        self.points = Boundaries()  # distinct starts (or ends) that windows can still be made of
        # whether lifetimes lie among the cells: where results read them, or events are in the order of their starts
        self.timed = self.at_end or lively.watch != "members"
        self._lively = lively

    def placed(self, events: Events) -> Events:
        """Events as points, with their lifetimes among the cells where results read them."""
        cells = events.cells
        if self.timed:
            cells = np.column_stack([events.le, events.re, cells])
        point = events.re if self.at_end else events.le
        placed = Events(events.group, point, point + 1, events.w, cells)
        return placed.take(events.re < FOREVER) if self.at_end else placed

    def apply(self, events: Events) -> None:
        self.points.add(events.group, events.le, events.w)

    def near(self, spans: Spans, due: int) -> Windows:
        """The windows that contain a changed point."""
        at = self.points.first_from(spans.group, spans.lo)
        present = ~self.points.ends_group(at, spans.group)
        present[present] = self.points.time[at[present]] == spans.lo[present]
        first = np.maximum(at - self.n + 1, 0)
        windows = self._windows(covered(first, np.maximum(at + present - first, 0)))
        windows = windows.take(self._lively.is_due(windows, due))
        return windows.take(_contains(spans, windows))

    def _windows(self, at: Ints) -> Windows:
        """The windows that start at these places, as far as enough points follow."""
        points, last = self.points, at + self.n - 1
        at, last = at[last < len(points)], last[last < len(points)]
        whole = points.group[at] == points.group[last]
        at, last = at[whole], last[whole]
        return Windows(points.group[at], points.time[at], points.time[last] + 1)

    def newly_due(self, step: Step, store: Store) -> Windows:
        times = self.points.time if self._lively.by_start else self.points.time + 1
        reached = np.flatnonzero((times > step.due_before) & (times <= step.due))
        places = reached if self._lively.by_start else reached - self.n + 1
        return self._windows(places[places >= 0])

    def stale(self, spans: Spans, near: Windows, outputs: Part) -> tuple[Bools, Bools]:
        known = outputs.windows
        after = firsts_from(known.group, known.le, spans.group, spans.lo + 1)  # windows that start later
        source, at = spread(np.maximum(after - self.n, 0), np.minimum(after, self.n))
        inside = (known.group[at] == spans.group[source]) & (known.re[at] > spans.lo[source])
        gone = np.zeros(len(outputs.hold), np.bool_)
        gone[at[inside]] = True
        return np.ones(len(near.le), np.bool_), gone

    def forget(self, frontier: int, outputs: Outputs, stored: Stored) -> Bools:
        points = self.points
        groups = np.unique(points.group)
        sealed = points.first_from(groups, np.full(len(groups), frontier))  # the first point that is not sealed
        begin = firsts_from(points.group, points.time, groups, np.full(len(groups), np.iinfo(np.int64).min))
        first = np.maximum(sealed - self.n + 1, begin)  # n − 1 sealed points may still be joined by later ones
        has = first < sealed
        least = np.full(len(groups), frontier)
        least[has] = points.time[first[has]]
        least = np.minimum(least, least_held(self._lively.closed(outputs, frontier), groups))
        points.keep(points.time >= by_group(points.group, groups, least, frontier))
        return stored.le >= by_group(stored.key, groups, least, frontier)

    def opened(self, frontier: int) -> int:
        begun = self.points.time[self.points.time < frontier]
        return int(begun.min()) if len(begun) else frontier

    def snapshot(self) -> State:
        return {"group": self.points.group, "time": self.points.time, "count": self.points.count}

    def restore(self, state: State) -> None:
        self.points.group, self.points.time, self.points.count = (
            value for value in state.values() if isinstance(value, np.ndarray)
        )


def _contains(spans: Spans, windows: Windows) -> Bools:
    """Which windows contain a changed point."""
    return spans.merged().meet(windows.group, windows.le, windows.re)
