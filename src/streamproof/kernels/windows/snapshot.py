"""Snapshot windows: between consecutive distinct endpoints of a group's events.

A boundary that disappears also changes the windows that merely touch it. When events are forgotten, the start of the
snapshot that contains the frontier stays, so that no boundary moves.
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
from streamproof.kernels.windows.segments import Bools, Windows, firsts_from, once, spread


class Snapshots:
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

    def stale(self, spans: Spans, near: Windows, outputs: Part) -> tuple[Bools, Bools]:
        spans = spans.merged()
        gone = self._touched(spans, outputs)
        found = outputs.find(near)
        same = found >= 0
        same[same] = outputs.windows.re[found[same]] == near.re[same]
        same &= ~spans.meet(near.group, near.le, near.re)  # it only touches a change
        gone[found[same]] = False
        return ~same, gone

    def _touched(self, spans: Spans, outputs: Part) -> Bools:
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

    def forget(self, frontier: int, outputs: Outputs, stored: Stored) -> Bools:
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

    def snapshot(self) -> State:
        return {"group": self.bounds.group, "time": self.bounds.time, "count": self.bounds.count}

    def restore(self, state: State) -> None:
        self.bounds.group, self.bounds.time, self.bounds.count = (
            value for value in state.values() if isinstance(value, np.ndarray)
        )


def by_group(wanted: Ints, groups: Ints, values: Ints, default: int) -> Ints:
    """For each wanted group its value among sorted groups."""
    if not len(groups):
        return np.full(len(wanted), default)
    at = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
    return np.where(groups[at] == wanted, values[at], default)
