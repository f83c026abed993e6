"""Counts, sums and means over tumbling and hopping windows, from sums per pane instead of events.

A pane is the greatest common divisor of size and hop, so every window is a run of panes. A window's members are the
events that start in its panes, and those that started before and live on: ``starts`` has sums by the pane in which
events start, ``moves`` the change from pane to pane of what lives on. What was emitted before is computed again from
the sums before the change, exactly; so no event and no output is kept.

A batch costs what it changes: the groups of its events, and the groups with windows that become due.
"""

from __future__ import annotations

import math

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import StoredRows
from streamproof.kernels.store import Store
from streamproof.kernels.windows.hopping_sums.dense_batch import (
    DenseSums,
    collected,
    dense_bounds,
    dense_rows,
    dense_sums_of,
    enlist_anew,
    slide_together,
)
from streamproof.kernels.windows.hopping_sums.pane_store import DueQueue, PaneStore, RunningSums
from streamproof.kernels.windows.hopping_sums.sliding_loops import (
    DUE_BEFORE,
    PER_HOP,
    PER_WINDOW,
    adjust,
    announce,
    complete,
    correct,
)
from streamproof.kernels.windows.inspect import Affected, EventView, Span, WindowView, affected_sums, spans_of
from streamproof.kernels.windows.recompute.strategy import Recompute
from streamproof.kernels.windows.shared.grid import GridWindows, outside_of_time, unbounded
from streamproof.kernels.windows.shared.progress import Progress, Step
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.sums import Accumulators, Entries, Scratch, Values, summed
from streamproof.kernels.windows.shared.sums_loops import GROUP, PLACE, SUMS
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.limits import too_many_rows
from streamproof.plan.windows import Hopping, Tumbling
from streamproof.thresholds import SLIDES_KEPT


class HoppingSums(Progress):
    """One node over all groups, as sums per pane."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        assert isinstance(node.window, Tumbling | Hopping)
        super().__init__(typed, context)
        self.stored = StoredColumns(typed.inputs[0].schema, context, payload=False)
        self.grid = GridWindows(node.window, self.lively, context)
        self.layout = Layout.of(typed.schema)
        self.sums = Accumulators(node.aggs, self.stored, self.layout)
        self.pane = math.gcd(self.grid.size, self.grid.hop)
        self._empty()
        self._scratch = Scratch(), Scratch()
        self._numbers_of_events = np.arange(0)
        self._emitted, self._found = np.empty((4, 64), np.int64), np.empty((64, 0), np.int64)  # used again and again

    def _empty(self) -> None:
        """Nothing is held."""
        self.starts, self.moves = PaneStore(self.sums.width), PaneStore(self.sums.width)
        self.due_queue = DueQueue()
        self._empty_running()
        self.long = Store(width=1)  # events without a start or an end, or in more windows than the limit

    def _empty_running(self) -> None:
        self.running = RunningSums(self.sums.width, worth=self.grid.size >= SLIDES_KEPT.now * self.grid.hop)
        self.running.admit(len(self.due_queue.links))

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, delta: Delta) -> Delta:
        step = self._advance(delta)
        delta = self._without_no_start(self.grid.inside(delta))
        self._check_limits(step)
        if not len(delta) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        emitted = self._emit(delta, step)
        self._forget(step.frontier)
        opened = self.grid.opened(self.frontier)
        self.sealed = max(self.sealed, self.lively.sealed(self.frontier, opened))
        return emitted.at(self.sealed).net()  # windows of a group differ, and so do results that replace others

    def _without_no_start(self, delta: Delta) -> Delta:
        """Events without a start may be taken back, until a frontier seals them; long ones are remembered."""
        if len(delta) and self._has_long(delta):
            no_start = delta.le <= BEGINNING
            self._refuse_early(delta.take(~no_start))
            windows = self.grid.last(delta.re) - self.grid.first(np.where(no_start, 0, delta.le)) + 1
            outside = delta.re >= FOREVER - self.grid.size - self.grid.hop
            long = no_start | outside | (windows > self.context.limits.windows_per_event)
            if long.any():
                le, re, w = delta.le[long], delta.re[long], delta.w[long]
                self.long.add(delta.group[long], le, re, w, np.zeros((len(le), 1), np.int64))
                delta = delta.take(~no_start)
        return delta

    def _refuse_early(self, delta: Delta) -> None:
        """An event whose first window would start before time does."""
        early = self.grid.start(self.grid.first(delta.le)) <= BEGINNING
        if early.any():
            raise outside_of_time(int(delta.le[early][0]), int(delta.re[early][0]))

    def _has_long(self, delta: Delta) -> bool:
        """Whether one of the events may have no start, too many windows, or one that leaves the range of time."""
        around = self.grid.size + self.grid.hop
        extent = delta.extent
        late, early = extent.greatest_re >= FOREVER - around, extent.least_le <= BEGINNING + around
        return late or early or self.grid.may_be_many(extent.longest)

    def _check_limits(self, step: Step) -> None:
        if not len(self.long):
            return
        stored = self.long.events()
        if step.frontier > BEGINNING and (stored.le <= BEGINNING).any():
            raise unbounded(BEGINNING, int(stored.re[0]))
        if step.frontier >= FOREVER:
            self.grid.refuse_no_end(stored)
        later = stored.le > BEGINNING
        self.grid.refuse_many(stored.le[later], stored.re[later], step)

    def _emit(self, delta: Delta, step: Step) -> Delta:
        """The rows that change; the sums are then as they are after the change."""
        values, numbers = self._read(delta), self._numbers(step)
        first = (delta.le - self.grid.offset) // self.pane
        entries = Entries(delta.group, first, self._every(len(delta)), delta.w)
        bounds = None
        if len(delta) and delta.extent.longest == 1 and not len(self.moves):
            bounds = dense_bounds(entries, self.starts, numbers)
        if bounds is None:
            size = self._emit_by_group(*self._changes(delta, entries, values), numbers)
        else:
            size = self._emit_dense(dense_sums_of(entries, values, self.sums, bounds, self._scratch[0]), numbers)
        return summed(self._emitted[:, :size].T, self._found[:size], self.sums, self.typed, self.lively)

    def _read(self, delta: Delta) -> Values:
        """The arguments of a batch, after the sums are brought into the layout that they need."""
        spec = self.sums.spec
        values = self.sums.read(delta)
        if spec is not self.sums.spec:
            for panes in (self.starts, self.moves):
                panes.convert(self.sums, spec)
            self._empty_running()
        return values

    def _changes(self, delta: Delta, entries: Entries, values: Values) -> tuple[Cells, Cells]:
        """What a batch changes in the sums."""
        starts = collected(entries, values, self.sums, self._scratch[0])
        if not len(delta) or delta.extent.longest == 1:
            return starts, starts[:0]
        first, last = entries.place, (delta.re - 1 - self.grid.offset) // self.pane
        lasting = np.flatnonzero(first != last)
        ending = lasting[delta.re[lasting] < FOREVER]
        both = np.concatenate([lasting, ending])
        places = np.concatenate([first[lasting], last[ending]])
        signed = np.concatenate([delta.w[lasting], -delta.w[ending]])
        moving = Entries(delta.group[both], places, both, signed)
        return starts, collected(moving, values, self.sums, self._scratch[1])

    def _every(self, count: int) -> Ints:
        """The numbers of so many events."""
        if count > len(self._numbers_of_events):
            self._numbers_of_events = np.arange(2 * count)
        return self._numbers_of_events[:count]

    def _emit_by_group(self, starts: Cells, moves: Cells, numbers: Ints) -> int:
        """Write the rows that change, group by group; returns their number."""
        self._admit(_groups_of(starts, moves))
        size = self._correct(starts, moves, numbers)
        self._put(starts, moves, numbers)
        return self._complete(numbers, size)

    def _emit_dense(self, dense: DenseSums, numbers: Ints) -> int:
        """Write the rows that change, all groups together; returns their number. Only what may still change is put."""
        bounds, out = dense.bounds, self._scratch[0]
        self._admit(bounds.high_group + 1)
        beyond_due = int(numbers[DUE_BEFORE] * numbers[PER_HOP] + numbers[PER_WINDOW])
        late = dense.rows(bounds.low_place, min(beyond_due, bounds.high_place + 1) - 1, out)
        size = self._correct(late, late[:0], numbers)
        open_from = self._first_open(self.frontier) * (self.grid.hop // self.pane)
        kept = dense.rows(open_from, bounds.high_place, out)
        self._make_room(size, more=dense_rows(bounds, numbers))
        size = slide_together(dense, self.starts, numbers, self._emitted, self._found, size, out)
        self.starts.put(kept, self.sums.spec)
        enlist_anew(self.due_queue, self.starts, numbers)
        self.running.forget(FOREVER)
        return size

    def _put(self, starts: Cells, moves: Cells, numbers: Ints) -> None:
        """Bring changes into the sums, and their groups where their next windows may now be."""
        for panes, changes, moving in ((self.starts, starts, False), (self.moves, moves, True)):
            if len(changes):
                panes.put(changes, self.sums.spec)
                announce(changes, numbers, self.due_queue.heads, self.due_queue.links)
                if len(self.running.at):
                    adjust(self.running.at, self.running.sums, changes, numbers, self.sums.spec, moving)

    def _admit(self, groups: int) -> None:
        """Make room for so many groups."""
        for part in (self.starts, self.moves, self.due_queue, self.running):
            part.admit(groups)

    def _numbers(self, step: Step) -> Ints:
        """What the loops over windows need to know; they name its places."""
        grid = self.grid
        return np.array([
            grid.size // self.pane, grid.hop // self.pane, self._first_open(step.frontier_before),
            grid.last_due(step.due_before), grid.last_due(step.due), self.pane, grid.offset,
            SLIDES_KEPT.now,
        ])  # fmt: skip

    def _correct(self, starts: Cells, moves: Cells, numbers: Ints) -> int:
        """Write the rows that replace others; returns their number."""
        held = self.starts.rows, self.starts.stretches, self.moves.rows, self.moves.stretches
        scratch = np.empty((2, self.sums.width), np.int64), np.empty((2, 5), np.int64)
        size, whole, done = 0, False, np.zeros(2, np.int64)
        self._make_room(size)
        while not whole:
            out = self._emitted, self._found
            size, whole = correct(held, (starts, moves), numbers, scratch, out, size, done)
            if not whole:  # the next group alone may need more than there is, however little is written so far
                self._make_room(len(self._found))
        return size

    def _complete(self, numbers: Ints, size: int) -> int:
        """Write the rows of windows that are due now, after others; returns the number of all."""
        held = self.starts.rows, self.starts.stretches, self.moves.rows, self.moves.stretches
        whole = False
        while not whole:
            self._make_room(size)
            queue, running = (self.due_queue.heads, self.due_queue.links), (self.running.at, self.running.sums)
            out = self._emitted, self._found
            size, whole = complete(held, queue, running, numbers, self.sums.spec, out, size)
        return size

    def _make_room(self, size: int, *, more: int = 0) -> None:
        """See to it that twice as many rows can be written as there are, and at least so many more."""
        room, needed = len(self._found), size + max(size, more) + 2
        if size > (most := self.context.limits.events_listed):
            raise too_many_rows(most, at="")
        if self._found.shape[1] == self.sums.width and room > needed:
            return
        room = max(room, 2 * needed + 64)
        emitted, found = np.empty((4, room), np.int64), np.empty((room, self.sums.width), np.int64)
        if size:
            emitted[:, :size], found[:size] = self._emitted[:, :size], self._found[:size]
        self._emitted, self._found = emitted, found

    def _first_open(self, frontier: int) -> int:
        """The number of the first window that ends after the frontier."""
        return (max(frontier, BEGINNING + 1) - self.grid.offset - self.grid.size) // self.grid.hop + 1

    def _forget(self, frontier: int) -> None:
        """Only panes of windows that are open stay; what lives on from before is one row per group."""
        if frontier >= FOREVER:
            self._empty()
            return
        if self.starts.wants_sweeping() or self.moves.wants_sweeping():
            self.settle()
        self.long.drop(frontier - self.grid.size)  # until then a window of an event that has ended may become due

    def settle(self) -> None:
        window = self._first_open(self.frontier)
        first = window * (self.grid.hop // self.pane)
        self.running.forget(window)
        self.starts.forget(first, spec=self.sums.spec, fold=False)
        self.moves.forget(first, spec=self.sums.spec, fold=True)

    # --- state --------------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Part]:
        long = StoredRows(self.long, grouped=True)
        return {"sums": self.sums, "time": self.time, "starts": self.starts, "moves": self.moves, "long": long}

    def restored(self) -> None:
        self.due_queue = DueQueue()
        self._empty_running()
        due = self.lively.due(self.frontier, self.seen)
        numbers = self._numbers(Step(self.frontier, self.frontier, due, due))
        held = self.starts.export(), self.moves.export()
        self._admit(_groups_of(*held))
        for rows in held:
            announce(rows, numbers, self.due_queue.heads, self.due_queue.links)

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The open windows that have members, as far as a pane has sums."""
        per_window, per_hop = self.grid.size // self.pane, self.grid.hop // self.pane
        shown = []
        self.settle()
        held = self.starts.export(), self.moves.export()
        for group in np.unique(np.concatenate([rows[:, GROUP] for rows in held])).tolist():
            starts, moves = (rows[rows[:, GROUP] == group] for rows in held)
            places = np.concatenate([starts[:, PLACE], moves[:, PLACE]])
            first = max(self._first_open(self.frontier), (int(places.min()) - per_window) // per_hop + 1)
            last = min(int(places.max()) // per_hop, self.grid.last_due(FOREVER))
            for k in range(first, last + 1):
                inside = (starts[:, PLACE] >= k * per_hop) & (starts[:, PLACE] < k * per_hop + per_window)
                size = int(starts[inside, SUMS].sum() + moves[moves[:, PLACE] < k * per_hop, SUMS].sum())
                le = self.grid.offset + k * self.grid.hop
                shown += [WindowView(group, le, le + self.grid.size, size)] if size else []
        return tuple(shown)

    def events(self) -> tuple[EventView, ...]:
        return ()

    def affected(self, change: Delta) -> Affected:
        """What a change does to the windows; afterwards it has changed them, so ask a copy."""
        before, spans = self.windows(), spans_of(Recompute(self.typed, self.context).read(change))
        self.on_batch(change.at(BEGINNING))
        near = {Span(*row) for row in zip(*(c.tolist() for c in self.grid.near(spans, FOREVER)), strict=True)}
        found = affected_sums(before, self.windows(), spans)
        return Affected(*(tuple(w for w in windows if w in near) for windows in (found.retract, found.insert)))


def _groups_of(*changes: Cells) -> int:
    """One more than the greatest group of rows in order."""
    return max((int(rows[-1, GROUP]) + 1 for rows in changes if len(rows)), default=0)
