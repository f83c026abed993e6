"""Counts, sums and means over snapshots, from what changes at each boundary instead of events.

A boundary that time has reached has a row with the sums that hold from there on; one that is still ahead has how they
will change. A change adds to the rows of its own time in its own group, and one walk over them finds the snapshots that
differ; what was emitted before is computed again, exactly, so no event and no output is kept. Behind the frontier one
boundary per group stays: the start of the snapshot that contains it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.sorting import order_by
from streamproof.kernels.state import Matrix, by_number
from streamproof.kernels.windows.inspect import Affected, EventView, WindowView
from streamproof.kernels.windows.recompute.strategy import affected_by
from streamproof.kernels.windows.shared.progress import Progress
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.stretches import Timelines, longer
from streamproof.kernels.windows.shared.stretches_loops import VALUES
from streamproof.kernels.windows.shared.sums import Accumulators, Scratch, summed
from streamproof.kernels.windows.snapshot_sums import walk_loops
from streamproof.kernels.windows.snapshot_sums.future_boundaries import FutureBoundaries
from streamproof.plan import nodes
from streamproof.plan.check import Typed


class SnapshotSums(Progress):
    """One node over all groups, as sums per boundary."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        super().__init__(typed, context)
        self.stored = StoredColumns(typed.inputs[0].schema, context, payload=False)
        layout = Layout.of(typed.schema)
        self.sums = Accumulators(node.aggs, self.stored, layout)
        self._forget()
        self._passed = BEGINNING  # the frontier before the batch: what is not walked yet must not be cut by a later one

    def _forget(self) -> None:
        """No boundary at all."""
        self.reached = Timelines(self.sums.width)
        self.future = FutureBoundaries(1 + self.sums.width)
        self.no_end = np.zeros(0, np.int64)  # per group: how many events never end
        self._room = self._rooms(0, 0)
        self._scratch = Scratch()

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, delta: Delta) -> Delta:
        step = self._advance(delta)
        if not len(delta) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        size = self._walk(self._change(delta), (self.frontier, step.due, self.lively.by_start))
        self._passed = self.frontier
        _, _, rows, found = self._room
        emitted = summed(rows[:size], found[:size], self.sums, self.typed, self.lively)
        if self.frontier >= FOREVER:
            self._forget()
        self.future.settle(self.sums.spec)
        self.sealed = max(self.sealed, self.lively.sealed(self.frontier, self._opened()))
        # snapshots that end at one instant differ, unless only their ends are told
        return emitted.at(self.sealed).net(self.lively.stamp != "point_end")

    def _change(self, delta: Delta) -> Cells:
        """What the batch changes at boundaries, which are brought into the layout that its values need."""
        spec = self.sums.spec
        values = self.sums.read(delta)
        if not np.array_equal(self.sums.spec, spec):
            self._lay_out(spec)
        group, time, ending = delta.group, delta.re, np.empty(0, np.int64)
        if len(delta):
            self._hold(int(group.max()) + 1)
            if int(time.max()) >= FOREVER:
                no_end = time >= FOREVER
                ending = np.flatnonzero(~no_end)
                np.add.at(self.no_end, group[no_end], delta.w[no_end])
                group, time = group[ending], time[ending]
        group, time = np.concatenate([delta.group, group]), np.concatenate([delta.le, time])
        w = delta.w if delta.w.flags.writeable else delta.w.copy()  # or all would be compiled once more
        out = self._scratch.matrix("changes", len(group) + 1, walk_loops.EVENTS + 1 + self.sums.width)
        size = walk_loops.changes(order_by(group, time), group, time, ending, w, *values, self.sums.spec, out)
        return out[:size]

    def _hold(self, groups: int) -> None:
        self.reached.admit(groups)
        self.future.admit(groups)
        if groups > len(self.no_end):
            self.no_end = longer(self.no_end, groups)

    def _lay_out(self, spec: Ints) -> None:
        """Bring all rows from one layout of the sums into the present one."""
        reached, future, nexts = self.reached.export(self._passed), self.future.export(spec), self.future.nexts.copy()
        self.reached.restore(self.sums.converted(reached, spec))
        self.future.restore(self.sums.converted(future, spec), self.sums.spec)
        self.future.nexts[:] = nexts
        self._room = self._rooms(0, 0)

    def _walk(self, change: Cells, reach: tuple[int, int, bool]) -> int:
        """Take a batch in; returns the number of rows that come out."""
        ready = np.flatnonzero(self.future.nexts <= reach[1])
        counts = np.zeros(8, np.int64)
        while True:
            reached, future = self.reached, self.future
            counts[3:7] = reached.used, future.used, future.spare, future.doubtful
            known = (
                (reached.rows, reached.stretches),
                (future.heap, future.stretches, future.nexts, future.slots, future.free),
            )
            done = walk_loops.walk(change, *known, self.no_end, ready, reach, self._room, self.sums.spec, counts)
            reached.used, future.used, future.spare, future.doubtful = counts[3:7].tolist()
            if done:
                return int(counts[walk_loops.EMITTED])
            self._make_room(counts, len(change))

    def _make_room(self, counts: Ints, entries: int) -> None:
        """Whatever the next group needs, with some to spare."""
        needed = int(counts[walk_loops.NEEDED])
        if self.reached.used + 2 * needed > len(self.reached.rows):
            self.reached.make_room(4 * needed + entries, self._passed)
        if self.future.used + 2 * needed > len(self.future.heap) or self.future.spare < needed:
            self.future.make_room(2 * needed + entries, self.sums.spec)
        done = int(counts[walk_loops.EMITTED])
        _, tail, emitted, found = self._room
        if done + 2 * needed > len(emitted) or needed > len(tail):
            self._room = self._rooms(max(needed, len(tail)), 2 * (done + 2 * needed + entries))
            self._room[2][:done], self._room[3][:done] = emitted[:done], found[:done]

    def _rooms(self, tail: int, emitted: int) -> tuple[Cells, Cells, Cells, Cells]:
        """Where a walk writes: sums at hand, the new rows of a group, the rows that come out, and their sums."""
        width = self.sums.width
        sums, rows = np.empty((3, width), np.int64), np.empty((2 * tail, VALUES + width), np.int64)
        return sums, rows, np.empty((emitted, 4), np.int64), np.empty((emitted, width), np.int64)

    def _opened(self) -> int:
        """The start of the earliest open snapshot, where that holds the output back."""
        if self.lively.emission != "final":
            return self.frontier
        return self.reached.opened(self.frontier)

    # --- state --------------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Part]:
        return {
            "sums": self.sums,
            "time": self.time,
            "no_end": Matrix(lambda: by_number(self.no_end), self._restore_no_end),
            "reached": Matrix(lambda: self.reached.export(self.frontier), self._restore_reached),
            "future": Matrix(lambda: self.future.export(self.sums.spec), self._restore_future),
        }

    def _restore_no_end(self, rows: Cells) -> None:
        self._forget()
        self._hold(int(rows[:, 0].max(initial=-1)) + 1)
        self.no_end[rows[:, 0]] = rows[:, 1]

    def _restore_reached(self, rows: Cells) -> None:
        self._hold(int(rows[:, 0].max(initial=-1)) + 1)
        self.reached.restore(rows)

    def _restore_future(self, rows: Cells) -> None:
        self._hold(int(rows[:, 0].max(initial=-1)) + 1)
        self.future.restore(rows, self.sums.spec)

    def restored(self) -> None:
        self._passed = self.frontier
        groups = np.flatnonzero(self.no_end)
        self.future.nexts[groups[self.future.nexts[groups] > FOREVER]] = FOREVER

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The snapshots that have members, from the open one on."""
        boundaries: dict[int, list[tuple[int, int]]] = {}  # per group: instants, and how many events there are then
        for group, time, _, size in self.reached.export(self.frontier)[:, :4].tolist():
            boundaries.setdefault(group, []).append((time, size))
        for group, time, _, more in self.future.export(self.sums.spec)[:, :4].tolist():
            known = boundaries.setdefault(group, [])
            known.append((time, more + (known[-1][1] if known else 0)))
        for group in np.flatnonzero(self.no_end).tolist():
            boundaries.setdefault(group, []).append((FOREVER, 0))
        shown = []
        for group, known in sorted(boundaries.items()):
            shown += [WindowView(group, le, re, size) for (le, size), (re, _) in pairwise(known) if size]
        return tuple(shown)

    def events(self) -> tuple[EventView, ...]:
        return ()

    def affected(self, change: Delta) -> Affected:
        """What a change does to the windows; afterwards it has changed them, so ask a copy."""
        return affected_by(self, change)
