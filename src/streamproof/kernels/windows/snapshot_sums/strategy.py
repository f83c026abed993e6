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
from streamproof.kernels.base import Context, State, array, number
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.inspect import Affected, EventView, WindowView
from streamproof.kernels.windows.recompute.strategy import affected_by
from streamproof.kernels.windows.shared.progress import Progress
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.sums import Accumulators, Scratch, summed
from streamproof.kernels.windows.shared.timelines import Timelines, longer
from streamproof.kernels.windows.shared.timelines_loops import SIZE, VALUES
from streamproof.kernels.windows.snapshot_sums import walk_loops
from streamproof.kernels.windows.snapshot_sums.future_boundaries import FutureBoundaries
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.windows import Snapshot


class SnapshotSums(Progress):
    """One node over all groups, as sums per boundary."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        super().__init__(typed, context)
        layout = Layout.of(typed.schema)
        self.sums = Accumulators(node.aggs, StoredColumns(typed.inputs[0].schema, context, payload=False), layout)
        self._forget()
        self._passed = BEGINNING  # the frontier before the batch: what is not walked yet must not be cut by a later one

    def _forget(self) -> None:
        """No boundary at all."""
        self.reached = Timelines(self.sums.width)
        self.ahead = FutureBoundaries(1 + self.sums.width)
        self.endless = np.zeros(0, np.int64)  # per group: how many events never end
        self._room = self._rooms(0, 0)
        self._scratch = Scratch()

    @staticmethod
    def can(typed: Typed, context: Context) -> bool:
        """Whether a node can be run like this."""
        node = typed.node
        if not isinstance(node, nodes.Aggregation) or not isinstance(node.window, Snapshot):
            return False
        return Accumulators.can(node.aggs, StoredColumns(typed.inputs[0].schema, context, payload=False))

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
        self.ahead.settle(self.sums.spec)
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
                endless = time >= FOREVER
                ending = np.flatnonzero(~endless)
                np.add.at(self.endless, group[endless], delta.w[endless])
                group, time = group[ending], time[ending]
        group, time = np.concatenate([delta.group, group]), np.concatenate([delta.le, time])
        w = delta.w if delta.w.flags.writeable else delta.w.copy()  # or all would be compiled once more
        out = self._scratch.matrix("changes", len(group) + 1, walk_loops.EVENTS + 1 + self.sums.width)
        size = walk_loops.changes(order_by(group, time), group, time, ending, w, *values, self.sums.spec, out)
        return out[:size]

    def _hold(self, groups: int) -> None:
        self.reached.hold(groups)
        self.ahead.hold(groups)
        if groups > len(self.endless):
            self.endless = longer(self.endless, groups)

    def _lay_out(self, spec: Ints) -> None:
        """Bring all rows from one layout of the sums into the present one."""
        reached, ahead, nexts = self.reached.export(self._passed), self.ahead.export(spec), self.ahead.nexts.copy()
        self.reached.restore(self.sums.converted(reached, spec))
        self.ahead.restore(self.sums.converted(ahead, spec), self.sums.spec)
        self.ahead.nexts[:] = nexts
        self._room = self._rooms(0, 0)

    def _walk(self, change: Cells, reach: tuple[int, int, bool]) -> int:
        """Take a batch in; how many rows come out."""
        ready = np.flatnonzero(self.ahead.nexts <= reach[1])
        counts = np.zeros(8, np.int64)
        while True:
            reached, ahead = self.reached, self.ahead
            counts[3:7] = reached.used, ahead.used, ahead.spare, ahead.doubtful
            known = (reached.rows, reached.places), (ahead.heap, ahead.places, ahead.nexts, ahead.slots, ahead.free)
            done = walk_loops.walk(change, *known, self.endless, ready, reach, self._room, self.sums.spec, counts)
            reached.used, ahead.used, ahead.spare, ahead.doubtful = counts[3:7].tolist()
            if done:
                return int(counts[walk_loops.EMITTED])
            self._make_room(counts, len(change))

    def _make_room(self, counts: Ints, entries: int) -> None:
        """Whatever the next group needs, with some to spare."""
        needed = int(counts[walk_loops.NEEDED])
        if self.reached.used + 2 * needed > len(self.reached.rows):
            self.reached.make_room(4 * needed + entries, self._passed)
        if self.ahead.used + 2 * needed > len(self.ahead.heap) or self.ahead.spare < needed:
            self.ahead.make_room(2 * needed + entries, self.sums.spec)
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

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The snapshots that have members, from the open one on."""
        boundaries: dict[int, list[tuple[int, int]]] = {}  # per group: instants, and how many events there are then
        for group, time, _, size in self.reached.export(self.frontier)[:, :4].tolist():
            boundaries.setdefault(group, []).append((time, size))
        for group, time, _, more in self.ahead.export(self.sums.spec)[:, :4].tolist():
            known = boundaries.setdefault(group, [])
            known.append((time, more + (known[-1][1] if known else 0)))
        for group in np.flatnonzero(self.endless).tolist():
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

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        state: State = {"frontier": self.frontier, "seen": self.seen, "sealed": self.sealed}
        endless = np.flatnonzero(self.endless)
        state["endless"] = np.column_stack([endless, self.endless[endless]])
        state["reached"], state["ahead"] = self.reached.export(self.frontier), self.ahead.export(self.sums.spec)
        return {**state, **self.sums.snapshot()}

    def restore(self, state: State) -> None:
        self.sums.restore(state)
        self._forget()
        self.frontier, self.seen, self.sealed = (number(state, name) for name in ("frontier", "seen", "sealed"))
        self._passed = self.frontier
        groups, counts = array(state, "endless").T
        reached, ahead = array(state, "reached"), array(state, "ahead")
        self._hold(1 + max(int(part.max(initial=-1)) for part in (groups, reached[:, 0], ahead[:, 0])))
        self.reached.restore(reached)
        self.ahead.restore(ahead, self.sums.spec)
        self.endless[groups] = counts
        alone = groups[self.ahead.nexts[groups] > FOREVER]
        self.ahead.nexts[alone] = FOREVER

    def live_strings(self) -> Ints:
        return np.empty(0, np.int64)

    def live_groups(self) -> Ints:
        self.reached.export(self.frontier)
        ahead = np.flatnonzero(self.ahead.places[:, SIZE])
        return np.unique(np.concatenate([self.reached.groups(), ahead, np.flatnonzero(self.endless)]))

    def live_rows(self) -> int:
        return (
            len(self.reached.export(self.frontier))
            + len(self.ahead.export(self.sums.spec))
            + int((self.endless != 0).sum())
        )
