"""Counts, least and greatest values over snapshots: live events, and what holds after each boundary that is out.

A change sweeps the events of its group from the first instant that it changes on, and the snapshots that come out are
compared with those that were there. Other groups are not looked at, but for those that have a boundary due.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

import numpy as np

from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Bools, Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.sorting import order_by
from streamproof.kernels.state import Matrix, StoredRows, by_number
from streamproof.kernels.store import Store, ordered, pick
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.kernels.windows.inspect import Affected, EventView, WindowView
from streamproof.kernels.windows.recompute.strategy import affected_by
from streamproof.kernels.windows.shared.members import Events, Spans
from streamproof.kernels.windows.shared.members_loops import first_of_each
from streamproof.kernels.windows.shared.progress import Progress, Step
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.stretches import Timelines, longer
from streamproof.kernels.windows.shared.stretches_loops import LEAST_ROOM, NEVER, SIZE, VALUES
from streamproof.kernels.windows.shared.sums import Scratch, changed_pairs
from streamproof.kernels.windows.snapshot_extremes.sweep_loops import earliest, sweep
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.typing import Scope, type_of

KINDS: Final = ("int64", "float64", "timestamp", "date", "bool")  # one cell each, that says how they are ordered
MAGNITUDE: Final = np.int64(2**63 - 1)


def are_extremes(aggs: tuple[tuple[str, Aggregate], ...], scope: Scope) -> bool:
    """Whether all aggregates of a node are counts, or least and greatest values of one cell each."""
    return all(
        agg.fn == "count"
        or (agg.fn in ("min", "max") and agg.arg is not None and type_of(agg.arg, scope).kind in KINDS)
        for _, agg in aggs
    )


class SnapshotExtremes(Progress):
    """One node over all groups."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        super().__init__(typed, context)
        self.stored = StoredColumns(typed.inputs[0].schema, context, payload=False)
        self._columns: list[int | None] = []  # per result: which extreme it is; None for a count
        self._extremes: list[tuple[int, bool, bool]] = []  # the column kept, whether the least is asked for, floats
        for _, agg in node.aggs:
            if agg.fn == "count":
                self._columns.append(None)
                continue
            assert agg.arg is not None
            self._columns.append(len(self._extremes))
            is_float = self.stored.type_of(agg.arg).kind == "float64"
            self._extremes.append((self.stored.column(agg.arg), agg.fn == "min", is_float))
        self._output = Layout.of(typed.schema)
        self._scratch = Scratch()
        self._forget()

    def _forget(self) -> None:
        """No event at all."""
        width = self.stored.layout.width if self._extremes else 1
        self.store = Store(width, most=self.context.limits.events_listed)
        self.reached = Timelines(1 + 2 * len(self._extremes))
        self.nexts = np.zeros(0, np.int64)  # per group: its next boundary

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, delta: Delta) -> Delta:
        step = self._advance(delta)
        if not len(delta) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        emitted = self._emit(*self._sweep(*self._take_in(delta, step.due), step))
        if self.frontier >= FOREVER:
            self._forget()
        self.store.drop(self.frontier)
        self.sealed = max(self.sealed, self.lively.sealed(self.frontier, self._opened()))
        return emitted.at(self.sealed)

    def _take_in(self, delta: Delta, due: int) -> tuple[Ints, Ints]:
        """Store the events of a batch; the groups to look at, and from when on each."""
        rows = ordered(delta.group, delta.le, delta.re, delta.w, self.stored.encode(delta))
        spans = Spans.of(Events.of(rows), "members")
        if len(rows):
            self._hold(int(rows[-1, KEY]) + 1)
        self.store.put(rows)
        groups = np.empty(len(self.nexts), np.int64)
        times = np.empty(len(self.nexts), np.int64)
        count = earliest(spans.group, spans.lo, self.nexts, due, groups, times)
        return groups[:count], times[:count]

    def _hold(self, groups: int) -> None:
        self.reached.admit(groups)
        if groups > len(self.nexts):
            known = len(self.nexts)
            self.nexts = longer(self.nexts, groups)
            self.nexts[known:] = NEVER

    def _sweep(self, groups: Ints, times: Ints, step: Step) -> tuple[Cells, Cells]:
        """The rows (group, le, re, w) that come out, and their values; both are in scratch memory."""
        times = np.minimum(times, step.due + 1)  # also of boundaries that are not due, the next one is needed
        starts, events, rows = self._events(groups, times)
        most = int(np.diff(starts).max(initial=0))
        known = int(self.reached.stretches[groups, SIZE].sum())
        total, width = known + 2 * len(rows) + 3 * len(groups) + 4, self.reached.rows.shape[1]
        if self.reached.used + 2 * total + LEAST_ROOM * len(groups) > len(self.reached.rows):
            self.reached.make_room(4 * total + LEAST_ROOM * len(groups), step.frontier_before)
        matrix = self._scratch.matrix
        scratch = matrix("fresh", 2 * most + 2, width), matrix("heaps", 1 + len(self._extremes), most + 1)
        sizes = np.empty(1 + len(self._extremes), np.int64)  # of the heaps
        out = matrix("emitted", 2 * total, 4), matrix("found", 2 * total, width - VALUES)
        reached = self.reached.rows, self.reached.stretches, self.nexts, self.reached.used
        size, self.reached.used = sweep(
            groups, times, starts, events, *self._ranks(rows), reached,
            (step.frontier, step.due, self.lively.by_start), (*scratch, sizes, matrix("sums", 2, width - VALUES)), out,
        )  # fmt: skip
        return out[0][:size], out[1][:size]

    def _events(self, groups: Ints, times: Ints) -> tuple[Ints, tuple[Ints, Ints, Ints], Cells]:
        """Where the events of each group begin, their lifetimes and weights, and their rows, in the order of starts."""
        found = self.store.overlapping(groups, times - 1, np.full(len(groups), NEVER))
        rows, query = found.rows, found.query
        if len(found.parts) > 1:
            order = order_by(query, np.ascontiguousarray(rows[:, LE]))
            rows, query = pick(rows, order), query[order]
        starts = np.empty(len(groups) + 1, np.int64)
        first_of_each(query, starts)
        le, re, w = (np.ascontiguousarray(rows[:, n]) for n in (LE, RE, W))
        return starts, (le, re, w), rows

    def _ranks(self, rows: Cells) -> tuple[Cells, Bools]:
        """Per extreme and event a number of which the greatest wins, and whether there is a value; ends come first."""
        ranks = np.empty((1 + len(self._extremes), len(rows)), np.int64)
        known = np.ones(ranks.shape, np.bool_)
        layout = self.stored.layout
        ranks[0] = ~rows[:, RE]
        for n, (column, least, is_float) in enumerate(self._extremes, 1):
            cells = rows[:, PAYLOAD + layout.columns[column][1]]
            ranks[n] = _turned(cells, least, is_float)
            known[n] = ~layout.nulls(rows, column)
        return ranks, known

    def _emit(self, emitted: Cells, found: Cells) -> Delta:
        """Rows with values as a delta of results."""
        at_end = self.lively.stamp == "point_end"
        if at_end and len(emitted) and emitted[:, 2].max() >= FOREVER:
            finite = emitted[:, 2] < FOREVER
            emitted, found = emitted[finite], found[finite]
        cells = self._results(found)
        changed = changed_pairs(emitted, cells)
        if changed is not None:
            emitted, cells = emitted[changed], cells[changed]
        group, le, re, w = (emitted[:, n].copy() for n in range(4))
        if at_end:
            le, re = re, re + 1
        made = Delta(group, le, re, w, tuple(self._output.decode(cells, self.context.strings)))
        return made.net(not at_end)  # snapshots that end at one instant differ, unless only their ends are told

    def _results(self, found: Cells) -> Cells:
        cells = np.zeros((len(found), self._output.width), np.int64)
        for bit, (which, (_, cell)) in enumerate(zip(self._columns, self._output.columns, strict=True)):
            if which is None:
                cells[:, cell] = found[:, 0]
                continue
            _, least, is_float = self._extremes[which]
            known = found[:, 1 + 2 * which]
            cells[:, cell] = np.where(known, _back(found[:, 2 + 2 * which], least, is_float), 0)
            cells[:, -1] |= (1 - known) << bit
        return cells

    def _opened(self) -> int:
        """The start of the earliest open snapshot, where that holds the output back."""
        if self.lively.emission != "final":
            return self.frontier
        return self.reached.opened(self.frontier)

    # --- state --------------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Part]:
        return {
            "time": self.time,
            "nexts": Matrix(lambda: by_number(self.nexts, nothing=NEVER), self._restore_nexts, counted=False),
            "reached": Matrix(lambda: self.reached.export(self.frontier), self._restore_reached),
            "events": StoredRows(self.store, grouped=True),
        }

    def _restore_nexts(self, rows: Cells) -> None:
        self._hold(int(rows[:, 0].max(initial=-1)) + 1)
        self.nexts[rows[:, 0]] = rows[:, 1]

    def _restore_reached(self, rows: Cells) -> None:
        self._hold(int(rows[:, 0].max(initial=-1)) + 1)
        self.reached.restore(rows)

    def restored(self) -> None:
        self.store.drop(self.frontier)

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The snapshots that have members, from the open one on."""
        sizes: dict[int, dict[int, int]] = {}  # per group: instants, and how many events there are then
        for group, time, _, size in self.reached.export(self.frontier)[:, :4].tolist():
            sizes.setdefault(group, {})[time] = size
        stored = self.store.events()
        reached = {group: max(times) for group, times in sizes.items()}
        lifetimes = list(
            zip(*(column.tolist() for column in (stored.key, stored.le, stored.re, stored.w)), strict=True)
        )
        for group, le, re, _ in lifetimes:
            for time in (le, re):
                if time > reached.get(group, self.frontier - 1):
                    sizes.setdefault(group, {})[time] = sum(
                        w for g, le, re, w in lifetimes if g == group and le <= time < re
                    )
        shown = []
        for group, found in sorted(sizes.items()):
            times = sorted(found)
            shown += [WindowView(group, le, re, found[le]) for le, re in pairwise(times) if found[le]]
        return tuple(shown)

    def events(self) -> tuple[EventView, ...]:
        """The retained events."""
        columns = self.store.events()[:4]
        return tuple(EventView(*row) for row in zip(*(column.tolist() for column in columns), strict=True))

    def affected(self, change: Delta) -> Affected:
        """What a change does to the windows; afterwards it has changed them, so ask a copy."""
        return affected_by(self, change)


def _turned(cells: Ints, least: bool, is_float: bool) -> Ints:
    """Cells as numbers that are ordered as the values are, the wanted one greatest; NaN is above all numbers."""
    keys = cells ^ ((cells >> 63) & MAGNITUDE) if is_float else cells
    return ~keys if least else keys


def _back(keys: Ints, least: bool, is_float: bool) -> Ints:
    """The inverse of `_turned`."""
    keys = ~keys if least else keys
    return keys ^ ((keys >> 63) & MAGNITUDE) if is_float else keys
