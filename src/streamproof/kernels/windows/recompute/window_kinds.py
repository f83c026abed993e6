"""What a kind of window knows: which windows there are, which of them a change touches, what may be forgotten.

A grid is in `shared.grid`. Here are the kinds whose windows depend on events; both keep *boundaries*, the instants of
each group with how many events each belongs to.

Snapshots lie between consecutive distinct endpoints. A boundary that disappears also changes the windows that merely
touch it. When events are forgotten, the start of the snapshot that contains the frontier stays, so no boundary moves.

    events      [0 ───────── 6)                     a retraction of [4, 9) removes the boundaries 4 and 9:
                        [4 ───────── 9)             [0, 4) and [4, 6) go, [0, 6) comes
    snapshots   [0 ──── 4)[4 6)[6 ─ 9)

Count windows are ``[s_i, s_{i+n−1} + 1)`` over the distinct starts (or finite ends) of a group's events. Members are
the events that start (or end) inside, so an event lies in the store as the point of its start (or end).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.base import Part
from streamproof.kernels.cells import Bools, Ints
from streamproof.kernels.sorting import order_by
from streamproof.kernels.state import Declared, Fields
from streamproof.kernels.store import Store, StoredEvents
from streamproof.kernels.windows.recompute.recompute_loops import merge
from streamproof.kernels.windows.shared.members import Events, Spans, Windows, covered, once, spread
from streamproof.kernels.windows.shared.members_loops import firsts_from
from streamproof.kernels.windows.shared.outputs import OutputPart, Outputs, least_held
from streamproof.kernels.windows.shared.progress import Liveliness, Step
from streamproof.plan.windows import CountEnd, CountStart


class WindowKind(Part, Protocol):
    """One kind of window over the events of all groups."""

    def placed(self, events: Events) -> Events:
        """Events as they lie in the store, where a window's members are those that overlap it."""
        ...

    def apply(self, events: Events) -> None:
        """Take in changes, as placed."""
        ...

    def near(self, spans: Spans, due: int) -> Windows:
        """The due windows that changes in these spans may touch."""
        ...

    def newly_due(self, step: Step, store: Store) -> Windows:
        """The windows that time made due."""
        ...

    def stale(self, spans: Spans, near: Windows, outputs: OutputPart) -> tuple[Bools, Bools]:
        """Which of the near windows need a new result, and which outputs, if they are here, are no longer theirs."""
        ...

    def forget(self, frontier: int, outputs: Outputs, stored: StoredEvents) -> Bools:
        """Forget what only final windows needed; which stored events are still needed."""
        ...

    def opened(self, frontier: int) -> int:
        """The least start of a window that can still get members, now or later."""
        ...


class SnapshotWindows(Declared):
    """The snapshots of all groups."""

    def __init__(self, lively: Liveliness) -> None:
        self.bounds = Boundaries()  # endpoints; of a group with live events, from the open snapshot's start on
        self._lively = lively

    def placed(self, events: Events) -> Events:
        return events

    def apply(self, events: Events) -> None:
        group, w = np.concatenate([events.group, events.group]), np.concatenate([events.w, events.w])
        self.bounds.add(group, np.concatenate([events.le, events.re]), w)

    def near(self, spans: Spans, due: int) -> Windows:
        spans = spans.merged()
        bounds = self.bounds
        first = bounds.first_from(spans.group, spans.lo)
        first -= ~bounds.ends_group(first - 1, spans.group)  # the window that ends at lo or later
        beyond = bounds.first_from(spans.group, spans.hi + 1)
        _, at = spread(first, np.maximum(beyond - first, 0))
        windows = self._windows(once(at))
        return windows.take(self._lively.is_due(windows, due))

    def _windows(self, at: Ints) -> Windows:
        """The windows that start at these places; the last place of a group starts none."""
        bounds = self.bounds
        at = at[at + 1 < len(bounds)]
        at = at[bounds.group[at + 1] == bounds.group[at]]
        return Windows(bounds.group[at], bounds.time[at], bounds.time[at + 1])

    def newly_due(self, step: Step, store: Store) -> Windows:
        bounds = self.bounds
        if step.due == step.due_before or not len(bounds):
            return self._windows(np.empty(0, np.int64))
        # a window is due by its start or by its end; in the latter case it starts one place before
        reached = np.flatnonzero((bounds.time > step.due_before) & (bounds.time <= step.due))
        places = reached if self._lively.by_start else reached[reached > 0] - 1
        return self._windows(places)

    def stale(self, spans: Spans, near: Windows, outputs: OutputPart) -> tuple[Bools, Bools]:
        spans = spans.merged()
        gone = self._touched(spans, outputs)
        found = outputs.find(near)
        same = found >= 0
        same[same] = outputs.windows.re[found[same]] == near.re[same]
        same &= ~spans.meet(near.group, near.le, near.re)  # it only touches a change
        gone[found[same]] = False
        return ~same, gone

    def _touched(self, spans: Spans, outputs: OutputPart) -> Bools:
        """The outputs that overlap or touch a span."""
        known = outputs.windows
        gone = np.zeros(len(outputs.hold), np.bool_)
        first = firsts_from(known.group, known.le, spans.group, spans.lo)
        before = np.maximum(first - 1, 0)
        if len(known.le):
            first -= (first > 0) & (known.group[before] == spans.group) & (known.re[before] >= spans.lo)
        _, at = spread(first, firsts_from(known.group, known.le, spans.group, spans.hi + 1) - first)
        gone[at] = True
        return gone

    def forget(self, frontier: int, outputs: Outputs, stored: StoredEvents) -> Bools:
        live = (stored.re >= frontier) & (stored.le < frontier)
        groups = np.unique(stored.key[live])
        bounds = self.bounds
        base = bounds.time[bounds.first_from(groups, np.full(len(groups), frontier)) - 1]
        base = np.minimum(base, least_held(self._lively.closed(outputs, frontier), groups))
        bounds.keep(bounds.time >= by_group(bounds.group, groups, base, frontier))
        return (stored.re >= frontier) | (stored.re > by_group(stored.key, groups, base, FOREVER))

    def opened(self, frontier: int) -> int:
        begun = self.bounds.time[self.bounds.time < frontier]
        return int(begun.min()) if len(begun) else frontier

    def parts(self) -> dict[str, Part]:
        return {"boundaries": Fields(self.bounds, "group", "time", "count")}


def by_group(wanted: Ints, groups: Ints, values: Ints, default: int) -> Ints:
    """For each wanted group its value among sorted groups."""
    if not len(groups):
        return np.full(len(wanted), default)
    at = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
    return np.where(groups[at] == wanted, values[at], default)


class CountWindows(Declared):
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

    def stale(self, spans: Spans, near: Windows, outputs: OutputPart) -> tuple[Bools, Bools]:
        known = outputs.windows
        after = firsts_from(known.group, known.le, spans.group, spans.lo + 1)  # windows that start later
        source, at = spread(np.maximum(after - self.n, 0), np.minimum(after, self.n))
        inside = (known.group[at] == spans.group[source]) & (known.re[at] > spans.lo[source])
        gone = np.zeros(len(outputs.hold), np.bool_)
        gone[at[inside]] = True
        return np.ones(len(near.le), np.bool_), gone

    def forget(self, frontier: int, outputs: Outputs, stored: StoredEvents) -> Bools:
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

    def parts(self) -> dict[str, Part]:
        return {"boundaries": Fields(self.points, "group", "time", "count")}


def _contains(spans: Spans, windows: Windows) -> Bools:
    """Which windows contain a changed point."""
    return spans.merged().meet(windows.group, windows.le, windows.re)


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
        kept = merge(old, (group[order], time[order], count[order]), out)
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
