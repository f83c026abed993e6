"""Counts, sums and means over snapshots, from what changes at each boundary instead of events.

A row per boundary of a group says how many events begin or end there and how the sums change; the sums of a snapshot
are those of all boundaries up to its start. One pass over the rows before and after a change, side by side, finds the
snapshots that differ; what was emitted before is computed again, exactly, so no event and no output is kept. A frontier
folds all boundaries before it into one per group: the start of the snapshot that contains it.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, State
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.accumulators import Accumulators, Values, add_rows, carry_row
from streamproof.kernels.windows.changes import check_weights
from streamproof.kernels.windows.inspect import Affected, EventView, WindowView, affected_sums, spans_of
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.liveliness import Step, liveliness_of
from streamproof.kernels.windows.outputs import Outputs
from streamproof.kernels.windows.summed import summed, written
from streamproof.kernels.windows.sums import GROUP, PLACE, Entries, Scratch, gathered, merged, same_sums, until
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.windows import Snapshot

ENDS: Final = 2  # how many events begin or end at a boundary
SUMS: Final = 3  # the first column of the sums
OLD: Final = 0
NEW: Final = 1


class Edges:
    """One node over all groups, as sums per boundary."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        self.typed, self.context = typed, context
        self.lively = liveliness_of(typed, context.emission)
        layout = Layout.of(typed.schema)
        self.sums = Accumulators(node.aggs, Kept(typed.inputs[0].schema, context, payload=False), layout)
        self.rows = self._none()  # boundaries in order; of a group with live events, from the open snapshot's start on
        self._scratch = Scratch()
        self.frontier = BEGINNING
        self.seen = BEGINNING  # the latest start
        self.sealed = BEGINNING  # the output's frontier

    @staticmethod
    def can(typed: Typed, context: Context) -> bool:
        """Whether a node can be run like this."""
        node = typed.node
        if not isinstance(node, nodes.Aggregation) or not isinstance(node.window, Snapshot):
            return False
        return Accumulators.can(node.aggs, Kept(typed.inputs[0].schema, context, payload=False))

    def _none(self) -> Cells:
        return np.empty((0, SUMS + self.sums.width), np.int64)

    def on_batch(self, delta: Delta) -> Delta:
        check_weights(delta.w)
        step = self._advance(delta)
        if not len(delta) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        change = self._change(delta)
        room = self._scratch.matrix("merged", len(self.rows) + len(change), change.shape[1])
        rows = merged(self.rows, change, self.sums.spec, room, lead=SUMS)
        emitted = self._emit(rows, change, step)
        self.rows = self._none() if self.frontier >= FOREVER else _folded(rows, self.frontier, self.sums.spec)
        begun = self.rows[:, PLACE][self.rows[:, PLACE] < self.frontier]
        opened = int(begun.min()) if len(begun) else self.frontier
        nothing = Outputs(1)
        self.sealed = max(self.sealed, self.lively.sealed(self.frontier, opened, nothing))
        return emitted.at(self.sealed)

    def _advance(self, delta: Delta) -> Step:
        """Move time on."""
        before, due_before = self.frontier, self.lively.due(self.frontier, self.seen)
        self.frontier = max(self.frontier, delta.frontier)
        if len(delta):
            self.seen = max(self.seen, int(delta.le.max()))
        return Step(before, self.frontier, due_before, self.lively.due(self.frontier, self.seen))

    def _change(self, delta: Delta) -> Cells:
        """What the batch changes at boundaries, which are brought into the layout that its values need."""
        spec = self.sums.spec
        values = self.sums.read(delta)
        self.rows = self.sums.converted(self.rows, spec)
        event = np.arange(len(delta))
        ending = np.flatnonzero(delta.re < FOREVER)
        finite = self._gathered(delta, values, np.concatenate([event, ending]), len(event), out=self._scratch)
        if len(ending) == len(delta):
            return finite
        # apart, because times from here to the end of time are too far apart to be sorted fast
        endless = self._gathered(delta, values, np.flatnonzero(delta.re >= FOREVER), 0, out=Scratch())
        room = np.empty((len(finite) + len(endless), finite.shape[1]), np.int64)
        return merged(finite, endless, self.sums.spec, room, lead=SUMS)

    def _gathered(self, delta: Delta, values: Values, event: Ints, starts: int, *, out: Scratch) -> Cells:
        """Boundaries of events: the first ``starts`` of them begin, the others end."""
        place = np.concatenate([delta.le[event[:starts]], delta.re[event[starts:]]])
        w = delta.w[event]
        signed = np.concatenate([w[:starts], -w[starts:]])
        entries = Entries(delta.group[event], place, event, signed)
        rows, order, row = gathered(entries, values, self.sums, out, lead=SUMS)
        _count(rows, row, w[order])
        return rows

    def _emit(self, rows: Cells, change: Cells, step: Step) -> Delta:
        by_start = self.lively.by_start
        emitted, sums = written(
            lambda *out: _walk(self.rows, rows, change, by_start, step.due_before, step.due, *out),
            2 * len(change), self.sums.width, self._scratch,
        )  # fmt: skip
        return summed(emitted, sums, self.sums, self.typed, self.lively)

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The snapshots that have members, from the open one on."""
        shown = []
        for group in self.live_groups().tolist():
            rows = self.rows[self.rows[:, GROUP] == group]
            sizes = np.cumsum(rows[:, SUMS]).tolist()
            times = rows[:, PLACE].tolist()
            ends = zip(times, times[1:], sizes, strict=False)
            shown += [WindowView(group, le, re, size) for le, re, size in ends if size]
        return tuple(shown)

    def events(self) -> tuple[EventView, ...]:
        return ()

    def affected(self, change: Delta) -> Affected:
        """What a change does to the windows; afterwards it has changed them, so ask a copy."""
        before, spans = self.windows(), spans_of(change, self.typed, self.context)
        self.on_batch(change.at(BEGINNING))
        return affected_sums(before, self.windows(), spans)

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        state: State = {"frontier": self.frontier, "seen": self.seen, "sealed": self.sealed, "rows": self.rows}
        return {**state, **self.sums.snapshot()}

    def restore(self, state: State) -> None:
        self.sums.restore(state)
        rows, frontier, seen, sealed = (state[name] for name in ("rows", "frontier", "seen", "sealed"))
        assert isinstance(rows, np.ndarray)
        assert isinstance(frontier, int)
        assert isinstance(seen, int)
        assert isinstance(sealed, int)
        self.rows, self.frontier, self.seen, self.sealed = rows, frontier, seen, sealed

    def live_strings(self) -> Ints:
        return np.empty(0, np.int64)

    def live_groups(self) -> Ints:
        return np.unique(self.rows[:, GROUP])

    def live_rows(self) -> int:
        return len(self.rows)


@njit(cache=True)
def _count(rows, row, w):  # type: ignore[no-untyped-def]
    for n in range(len(row)):
        rows[row[n], ENDS] += w[n]


@njit(cache=True)
def _folded(rows, frontier, spec):  # type: ignore[no-untyped-def]
    """Boundaries before the frontier as one per group, the last of them; none where nothing lives on."""
    out = np.empty_like(rows)
    count = at = 0
    while at < len(rows):
        group = rows[at, GROUP]
        out[count] = 0
        while at < len(rows) and rows[at, GROUP] == group and rows[at, PLACE] < frontier:
            add_rows(out, count, SUMS, rows, at, SUMS, 1)
            out[count, PLACE] = rows[at, PLACE]
            at += 1
        out[count, GROUP], out[count, ENDS] = group, 1
        carry_row(out, count, SUMS, spec)
        count += out[count, SUMS] > 0
        while at < len(rows) and rows[at, GROUP] == group:
            out[count] = rows[at]
            count += 1
            at += 1
    return out[:count].copy()


@njit(cache=True, inline="always")
def _put(emitted, found, size, sums, which, group, le, re):  # type: ignore[no-untyped-def]
    emitted[size, 0], emitted[size, 1], emitted[size, 2], emitted[size, 3] = group, le, re, 2 * which - 1
    for n in range(sums.shape[1]):
        found[size, n] = sums[which, n]


@njit(cache=True)
def _walk(before, after, change, by_start, due_before, due, emitted, found):  # type: ignore[no-untyped-def]
    """The rows that change, with their sums. How many there are; −1 for too many."""
    sums = np.zeros((2, before.shape[1] - SUMS), np.int64)
    dues = np.array([due_before, due, by_start])
    size = i = j = k = 0
    while size >= 0 and (i < len(before) or j < len(after)):
        group = before[i, GROUP] if i < len(before) else after[j, GROUP]
        if j < len(after):
            group = min(group, after[j, GROUP])
        while k < len(change) and change[k, GROUP] < group:
            k += 1
        touched = k < len(change) and change[k, GROUP] == group
        ends = until(before, i, group), until(after, j, group)
        sums[:] = 0
        # an untouched group has no snapshot to take back, only such as became due
        first = i if touched else ends[0]
        size = _walk_group(before, first, ends[0], after, j, ends[1], touched, sums, dues, emitted, found, size)
        i, j = ends
    return size


@njit(cache=True)
def _walk_group(before, i, end_before, after, j, end_after, touched, sums, dues, emitted, found, size):  # type: ignore[no-untyped-def]
    """At every boundary, before or after the change, the snapshot that ends there is closed.

    One that is on both sides with the same start and the same sums did not change. A row that is taken back comes just
    before the one that replaces it.
    """
    group = after[j, GROUP] if j < end_after else before[i, GROUP]
    start = old_start = np.int64(0)
    while i < end_before or j < end_after:
        time = after[j, PLACE] if j < end_after else before[i, PLACE]
        if i < end_before:
            time = min(time, before[i, PLACE])
        closes_old = i < end_before and before[i, PLACE] == time
        closes_new = j < end_after and after[j, PLACE] == time
        was_out = closes_old and sums[OLD, 0] > 0 and bool(dues[2]) and old_start <= dues[0]
        is_out = closes_new and sums[NEW, 0] > 0 and _is_due(start, time, touched, dues)
        if (was_out or is_out) and not (was_out and is_out and start == old_start and same_sums(sums, OLD, NEW)):
            if size + 2 > len(emitted):
                return -1
            if was_out:
                _put(emitted, found, size, sums, OLD, group, old_start, time)
                size += 1
            if is_out:
                _put(emitted, found, size, sums, NEW, group, start, time)
                size += 1
        if closes_old:
            add_rows(sums, OLD, 0, before, i, SUMS, 1)
            old_start = time
            i += 1
        if closes_new:
            add_rows(sums, NEW, 0, after, j, SUMS, 1)
            start = time
            j += 1
    return size


@njit(cache=True, inline="always")
def _is_due(start, end, touched, dues):  # type: ignore[no-untyped-def]
    """Whether a snapshot is out now; in an untouched group, and by end, only if it was not before."""
    if dues[2]:
        return start <= dues[1] and (touched or start > dues[0])
    return dues[0] < end <= dues[1]
