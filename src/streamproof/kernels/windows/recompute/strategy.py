"""Any result over any window, incrementally: the windows that a change touches are computed anew from their members.

State is every live event, and the last rows of every window that may still change. A batch of changes gives spans of
time; each kind of window says which windows these touch:

    time  ────────┬───────────────────────┬──────────────────┬───────▶
    windows       │   final: forgotten    │ out, may change  │ not due yet
                  └───────────────────────┘ events and rows  └ events only
                                       closed             due
    a batch       touched windows = near its spans ∪ newly due; their old rows go out with −1, new ones with +1
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Bools, Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import StoredRows
from streamproof.kernels.store import Found, Store, ordered
from streamproof.kernels.store_loops import LE, PAYLOAD, W
from streamproof.kernels.windows import inspect
from streamproof.kernels.windows.recompute.aggregates import Aggregates
from streamproof.kernels.windows.recompute.modules import ModuleCalls
from streamproof.kernels.windows.recompute.recompute_loops import place
from streamproof.kernels.windows.recompute.topk import Ranking, prefiltered
from streamproof.kernels.windows.recompute.window_kinds import CountWindows, SnapshotWindows, WindowKind
from streamproof.kernels.windows.shared.grid import GridWindows, unbounded
from streamproof.kernels.windows.shared.members import (
    Events,
    Members,
    Rows,
    Spans,
    Windows,
    earliest_change,
    unique_windows,
)
from streamproof.kernels.windows.shared.members_loops import find, largest
from streamproof.kernels.windows.shared.outputs import Memory, Outputs, difference
from streamproof.kernels.windows.shared.progress import Liveliness, Progress, Step
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.limits import too_many_rows
from streamproof.plan.windows import CountEnd, CountStart, Snapshot
from streamproof.thresholds import MEMBERS_AT_ONCE


class Recompute(Progress):
    """One node over all groups, with every live event and the last rows of every window that may still change."""

    def __init__(self, typed: Typed, context: Context, *, keeps_all: bool = True) -> None:
        """``keeps_all`` False: events that cannot matter any more are not looked at."""
        super().__init__(typed, context)
        self._keeps_all = keeps_all
        self.evaluator = Evaluator(typed, context, self.lively)
        self.stored = self.evaluator.stored
        self.kind = kind_of(typed, self.lively, context)
        self.outputs = Outputs(self.evaluator.layout, stateful=self.evaluator.stateful)
        self._timed = isinstance(self.kind, CountWindows) and self.kind.timed
        width = self.stored.layout.width + (2 if self._timed else 0)
        self.store = Store(width, most=context.limits.events_listed)
        self.no_start = Store(width)  # events without a start: no grid can hold them once they are sealed

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, delta: Delta) -> Delta:
        step = self._advance(delta)
        delta = self.kind.inside(delta) if isinstance(self.kind, GridWindows) else delta
        events = self.read(delta)
        if not self._keeps_all:
            events = self.evaluator.prefiltered(events, self.kind, step.frontier)
        settled = ordered(*self.kind.placed(events))
        if isinstance(self.kind, GridWindows):
            settled = self._without_no_start(settled, delta, step.frontier)
        events = Events.of(settled)
        if not len(events.w) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        self.store.put(settled)
        self.kind.apply(events)
        group, rows = self._update(events, step)
        if step.frontier > step.frontier_before or self.lively.emission == "final":
            final = self._forget(step.frontier)
            group, rows = final if self.lively.emission == "final" else (group, rows)
        self._check_promise(group, rows)
        self.sealed = self._sealed()
        return self._delta(group, rows)

    def read(self, delta: Delta) -> Events:
        """The events of a delta, with what is kept of each."""
        return Events(delta.group, delta.le, delta.re, delta.w, self.stored.encode(delta))

    def _without_no_start(self, rows: Cells, delta: Delta, frontier: int) -> Cells:
        """On a grid, events without a start are kept aside: they may be taken back until a frontier seals them."""
        if len(rows) and delta.extent.least_le <= BEGINNING:
            no_start = rows[:, LE] <= BEGINNING
            self.no_start.put(rows[no_start])
            rows = rows[~no_start]
        if frontier > BEGINNING and len(self.no_start):
            raise unbounded(BEGINNING, int(self.no_start.events().re[0]))
        return rows

    def _update(self, events: Events, step: Step) -> tuple[Ints, Rows]:
        """New results for the windows that changed or became due; what that changes in the output."""
        spans = Spans.of(events, self.lively.watch)
        if isinstance(self.kind, GridWindows):
            self.kind.refuse_new(events, step)
            if step.frontier >= FOREVER:
                self.kind.refuse_no_end(self.store.events())
        windows, gone = self.touched(spans, step)
        if self.evaluator.calls_modules:
            return self._called(windows, gone, events)
        windows, hold, rows = self._computed(windows)
        old_windows, old = self.outputs.drop(gone)
        self.outputs.add(windows, hold, rows)
        return difference(old_windows.group, old, windows.group, rows)

    def _called(self, windows: Windows, gone: list[Bools], events: Events) -> tuple[Ints, Rows]:
        """What modules change in the output, that are called for the members of all windows."""
        members = self.members(windows, self.store)
        memory = self.outputs.recall(members.windows) if self.evaluator.stateful else None
        change = None if memory is None else self._change(members.windows, memory.known, events)
        rows = self.evaluator.rows(members, change, memory)
        old_windows, old = self.outputs.drop(gone)
        if self.evaluator.lost:
            rows = self._with_sealed(rows, members.windows, old_windows, old)
        self.outputs.add(members.windows, self.evaluator.holds(members), rows, memory)
        return difference(old_windows.group, old, members.windows.group, rows)

    def _computed(self, windows: Windows) -> tuple[Windows, Ints, Rows]:
        """The windows that have members, what holds each, and the rows of all.

        Members are as many as windows times events, so the windows are halved until those of a part are few enough.
        """
        done: list[tuple[Windows, Ints, Rows]] = []
        waiting, first, size = [windows], 0, 0
        while waiting:
            part = waiting.pop()
            at_once = MEMBERS_AT_ONCE.now if len(part.le) > 1 else self.context.limits.events_listed
            found = self.store.few(*part, at_once=at_once)
            if found is None:
                half = len(part.le) // 2
                waiting += [Windows(*(column[half:] for column in part)), Windows(*(column[:half] for column in part))]
                continue
            members = self._arranged(part, found)
            rows = self.evaluator.rows(members)
            size += len(rows.w)
            if size > (most := self.context.limits.events_listed):
                raise too_many_rows(most, at="")
            done.append((members.windows, self.evaluator.holds(members), rows._replace(window=rows.window + first)))
            first += len(members)
        if len(done) == 1:
            return done[0]
        parts, holds, results = zip(*done, strict=True)
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Windows(*columns), np.concatenate(holds), Rows(*map(np.concatenate, zip(*results, strict=True)))

    def touched(self, spans: Spans, step: Step) -> tuple[Windows, list[Bools]]:
        """The windows to compute anew, and the outputs that they replace, part by part."""
        # on a grid, what has only become due has no result yet: it is found by its members
        near = self.kind.near(spans, step.due_before if isinstance(self.kind, GridWindows) else step.due)
        if not len(near.le) and isinstance(self.kind, GridWindows):
            return self.kind.newly_due(step, self.store), self.outputs.none()
        # a closed window that has no output is final, or never had members
        known = ~self.lively.is_closed(near.re, step.frontier_before) | self.outputs.has(near)
        near = near.take(known)
        stale, gone = np.ones(len(near.le), np.bool_), list[Bools]()
        for part in self.outputs.parts:
            changed, replaced = self.kind.stale(spans, near, part)
            stale &= changed
            gone.append(replaced & part.here)
        near = near.take(stale)
        if step.due == step.due_before:
            return near, gone
        due = self.kind.newly_due(step, self.store)
        joined = [np.concatenate(pair) for pair in zip(near, due, strict=True)]
        return unique_windows(*joined), gone

    def members(self, windows: Windows, store: Store) -> Members:
        """The windows that have members, with these."""
        return self._arranged(windows, store.overlapping(*windows))

    def _arranged(self, windows: Windows, found: Found) -> Members:
        if len(windows.le) == 1 and len(found):
            return self._members(windows, found.query, found)
        filled = np.zeros(len(windows.le), np.bool_)
        filled[found.query] = True
        number = np.cumsum(filled) - 1
        return self._members(windows.take(filled), number[found.query], found)

    def _members(self, windows: Windows, window: Ints, found: Found) -> Members:
        window, rows, slot = _by_window(window, found, len(windows.le))
        # where lifetimes are among the cells, the store holds points instead
        times, kept = (PAYLOAD, PAYLOAD + 2) if self._timed else (LE, PAYLOAD)
        le, re, w = rows[:, times], rows[:, times + 1], np.ascontiguousarray(rows[:, W])
        if not isinstance(self.typed.node, nodes.TopK):  # a ranking does not read lifetimes
            le, re = np.ascontiguousarray(le), np.ascontiguousarray(re)
        layout = self.stored.layout
        return Members(windows, window, le, re, w, slot, rows[:, kept:], layout, self.context.strings)

    def _change(self, windows: Windows, known: Bools, events: Events) -> Members | None:
        """The signed events that changed in each window of which a state is known."""
        if not len(events.w) or not known.any():
            return None
        changed = Store(self.store.width, most=self.context.limits.events_listed)
        changed.add(*events)
        found = changed.overlapping(*windows.take(known))
        return self._members(windows, np.flatnonzero(known)[found.query], found)

    def _with_sealed(self, rows: Rows, windows: Windows, old_windows: Windows, old: Rows) -> Rows:
        """Windows whose module failed keep what is sealed of their old rows: only the rest can be taken back."""
        lost = np.array(sorted(self.evaluator.lost), np.int64)
        at = find(windows.group[lost], windows.le[lost], old_windows.group, old_windows.le)[old.window]
        kept = (at >= 0) & (old.le < self.sealed)
        again = Rows(lost[at[kept]], old.le[kept], np.minimum(old.re[kept], self.sealed), old.w[kept], old.cells[kept])
        return Rows(*(np.concatenate(pair) for pair in zip(rows, again, strict=True)))

    def _check_promise(self, group: Ints, rows: Rows) -> None:
        """A module that promised time-bound output must not reach back behind what was sealed on its word."""
        if not self.lively.time_bound:
            return
        earliest = earliest_change(group, rows.le, rows.re, rows.w, rows.cells)
        if earliest < self.sealed:
            raise RunError(
                f"{self.typed.module} changed its output from {show_tick(earliest)} on, which was sealed "
                f"up to {show_tick(self.sealed)}",
                fix='it is not time-bound: promise restriction "window_based" at most',
                name="output_in_past",
            )

    # --- cleanup ------------------------------------------------------------------------------------------------------

    def _forget(self, frontier: int) -> tuple[Ints, Rows]:
        """Forget what is final; the rows of the windows that became so."""
        windows, rows = self.outputs.drop(self.outputs.where(lambda part: self.lively.is_final(part, frontier)))
        if frontier >= FOREVER:
            self.store = Store(self.store.width, most=self.context.limits.events_listed)
            self.kind = kind_of(self.typed, self.lively, self.context)
        elif not isinstance(self.kind, GridWindows) or self.store.wants_tidying():
            self._forget_events()
        return windows.group[rows.window], rows

    def _forget_events(self) -> None:
        """Forget the events that only final windows needed."""
        if isinstance(self.kind, GridWindows) and not len(self.lively.closed(self.outputs, self.frontier).le):
            self.store.drop(self.kind.needed_from(self.frontier))
            return
        needed = self.kind.forget(self.frontier, self.outputs, self.store.events())
        if not needed.all():
            self.store.replace(self.store.all_rows()[needed])

    def settle(self) -> None:
        """Forget what was left for later: on a grid nothing depends on when events are forgotten."""
        if isinstance(self.kind, GridWindows) and BEGINNING < self.frontier < FOREVER:
            self._forget_events()

    def _sealed(self) -> int:
        opened = self.kind.opened(self.frontier)
        return max(self.sealed, self.lively.sealed(self.frontier, opened, self.outputs))

    def _delta(self, group: Ints, rows: Rows) -> Delta:
        columns = tuple(self.evaluator.layout.decode(rows.cells, self.context.strings))
        return Delta(group, rows.le, rows.re, rows.w, columns, self.sealed)

    # --- state --------------------------------------------------------------------------------------------------------

    def parts(self) -> dict[str, Part]:
        layout, first = self.stored.layout, 2 if self._timed else 0
        return {
            "time": self.time,
            "events": StoredRows(self.store, layout, first=first, grouped=True),
            "no_start": StoredRows(self.no_start, layout, first=first, grouped=True),
            "outputs": self.outputs,
            "windows": self.kind,
        }

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[inspect.WindowView, ...]:
        self.settle()
        return inspect.windows_of(self)

    def events(self) -> tuple[inspect.EventView, ...]:
        self.settle()
        return inspect.events_of(self)

    def affected(self, change: Delta) -> inspect.Affected:
        """What a change does to the windows; afterwards it has changed them, so ask a copy."""
        other = Recompute(self.typed, self.context)
        other.restore(self.save())
        return inspect.affected_members(self, other, change)


class Summing(Protocol):
    """A way to run a node that keeps no members of windows."""

    typed: Typed
    context: Context

    def on_batch(self, delta: Delta) -> Delta: ...

    def windows(self) -> tuple[inspect.WindowView, ...]: ...


def affected_by(kernel: Summing, change: Delta) -> inspect.Affected:
    """What a change does to the windows of a kernel of sums; afterwards it has changed them."""
    before, spans = kernel.windows(), inspect.spans_of(Recompute(kernel.typed, kernel.context).read(change))
    kernel.on_batch(change.at(BEGINNING))
    return inspect.affected_sums(before, kernel.windows(), spans)


def kind_of(typed: Typed, lively: Liveliness, context: Context) -> WindowKind:
    """The windows of a node."""
    node = typed.node
    assert isinstance(node, nodes.WindowNode)
    window = node.window
    if isinstance(window, Snapshot):
        return SnapshotWindows(lively)
    if isinstance(window, CountStart | CountEnd):
        return CountWindows(window, lively)
    return GridWindows(window, lively, context)


def _by_window(window: Ints, found: Found, windows: int) -> tuple[Ints, Cells, Ints]:
    """Events found, one window after the other, with the window of each and a number of the event.

    Events of one run come in the order of their windows, so they are put where they belong run by run.
    """
    if len(found.parts) == 1:
        return window, found.rows, found.parts[0][1]
    ends = np.cumsum(np.bincount(window, minlength=windows))
    places = np.concatenate([[0], ends])  # where the next event of each window goes
    rows = np.empty((len(window), found.parts[0][0].shape[1]), np.int64)
    placed, slot = np.empty(len(window), np.int64), np.empty(len(window), np.int64)
    done = offset = 0
    for part, at in found.parts:
        place(part, at, window[done : done + len(at)], offset, places, rows, placed, slot)
        done, offset = done + len(at), offset + len(part)
    return placed, rows, slot


class Evaluator:
    """The results of one node's windows."""

    def __init__(self, typed: Typed, context: Context, lively: Liveliness) -> None:
        node = typed.node
        assert isinstance(node, nodes.WindowNode)
        plain = isinstance(node, nodes.Aggregation) and lively.watch == "members"
        self.stored = StoredColumns(typed.inputs[0].schema, context, payload=not plain)
        self.layout = Layout.of(typed.schema)
        self._lively, self._strings = lively, context.strings
        match node:
            case nodes.Aggregation():
                self._how: Aggregates | Ranking | ModuleCalls = Aggregates(node.aggs, self.stored, self.layout)
            case nodes.TopK():
                self._how = Ranking(node, self.stored, self.layout)
            case _:
                self._how = ModuleCalls(typed, self.stored, self.layout, context)

    @property
    def stateful(self) -> bool:
        """Whether it keeps a state per window, and is told what changed since the last time."""
        return isinstance(self._how, ModuleCalls) and self._how.module.incremental

    @property
    def calls_modules(self) -> bool:
        """Whether user modules compute the results."""
        return isinstance(self._how, ModuleCalls)

    @property
    def lost(self) -> set[int]:
        """The windows that the last call failed for, and that have no rows therefore."""
        return self._how.lost if isinstance(self._how, ModuleCalls) else set()

    def prefiltered(self, events: Events, kind: WindowKind, frontier: int) -> Events:
        """The events that may matter: of those that only pass by, a ranking needs few."""
        if not isinstance(self._how, Ranking) or not isinstance(kind, GridWindows):
            return events
        return prefiltered(events, kind, frontier, self._how, self.stored.layout, self._strings)

    def rows(self, members: Members, change: Members | None = None, memory: Memory | None = None) -> Rows:
        """The rows of all windows. What is remembered of before becomes what is remembered of now."""
        match self._how:
            case Aggregates():
                window = np.arange(len(members))
                once = np.ones(len(window), np.int64)
                rows = Rows(window, members.windows.le, members.windows.re, once, self._how.cells(members))
            case Ranking():
                at, cells = self._how.best(members)
                window = members.window[at]
                rows = Rows(window, members.windows.le[window], members.windows.re[window], members.w[at], cells)
            case ModuleCalls():
                rows = self._how.rows(members, change, Memory.none(len(members)) if memory is None else memory)
        return self._lifetimes(rows, members.windows)

    def holds(self, members: Members) -> Ints:
        """Per window the latest end whose change would still change its rows."""
        if self._lively.watch == "ends":
            held: Ints = largest(members.window, members.re, len(members), BEGINNING)
            return held
        if isinstance(self._how, Aggregates):
            return self._how.holds(members)
        return np.full(len(members), BEGINNING)

    def _lifetimes(self, rows: Rows, windows: Windows) -> Rows:
        """Rows at the end of their windows, where the node asks for that; the end of time is no such point."""
        if self._lively.stamp != "point_end":
            return rows
        ends = windows.re[rows.window]
        at = np.flatnonzero(ends < FOREVER)
        return Rows(rows.window[at], ends[at], ends[at] + 1, rows.w[at], rows.cells[at])
