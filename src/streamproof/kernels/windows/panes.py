"""Counts, sums and means over tumbling and hopping windows, from sums per pane instead of events.

A pane is the greatest common divisor of size and hop, so every window is a run of panes. A window's members are the
events that start in its panes, and those that started before and live on: ``starts`` has sums by the pane in which
events start, ``moves`` the change from pane to pane of what lives on. What was emitted before is computed again from
the sums before the change, exactly; so no event and no output is kept.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, State
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.store import Events as Stored
from streamproof.kernels.store import Store
from streamproof.kernels.windows.accumulators import Accumulators, add_rows, carry_row
from streamproof.kernels.windows.changes import check_weights
from streamproof.kernels.windows.grid import Grid, unbounded
from streamproof.kernels.windows.inspect import Affected, EventView, Span, WindowView, affected_sums, spans_of
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.liveliness import Step, liveliness_of
from streamproof.kernels.windows.outputs import Outputs
from streamproof.kernels.windows.summed import summed, written
from streamproof.kernels.windows.sums import (
    GROUP,
    PLACE,
    SUMS,
    Entries,
    Scratch,
    gathered,
    is_nothing,
    merged,
    same_sums,
    until,
)
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.windows import Hopping, Tumbling

OLD: Final = 0
NEW: Final = 1


class Panes:
    """One node over all groups, as sums per pane."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Aggregation)
        assert isinstance(node.window, Tumbling | Hopping)
        self.typed, self.context = typed, context
        self.lively = liveliness_of(typed, context.emission)
        self.grid = Grid(node.window, self.lively, context)
        self.layout = Layout.of(typed.schema)
        self.sums = Accumulators(node.aggs, Kept(typed.inputs[0].schema, context, payload=False), self.layout)
        self.pane = math.gcd(self.grid.size, self.grid.hop)
        self.starts = self._none()
        self.moves = self._none()
        self._scratch = Scratch(), Scratch()
        self.long = Store(width=1)  # events without a start or an end, or in more windows than the limit
        self.frontier = BEGINNING
        self.seen = BEGINNING  # the latest start
        self.sealed = BEGINNING  # the output's frontier

    @staticmethod
    def can(typed: Typed, context: Context) -> bool:
        """Whether a node can be run like this."""
        node = typed.node
        if not isinstance(node, nodes.Aggregation) or not isinstance(node.window, Tumbling | Hopping):
            return False
        return Accumulators.can(node.aggs, Kept(typed.inputs[0].schema, context, payload=False))

    def _none(self) -> Cells:
        return np.empty((0, SUMS + self.sums.width), np.int64)

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, delta: Delta) -> Delta:
        step = self._advance(delta)
        delta = self._without_ageless(delta)
        self._check_limits(step)
        if not len(delta) and step.frontier == step.frontier_before and step.due == step.due_before:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        starts, moves = self._changes(delta)
        emitted = self._emit(starts, moves, step)
        self._forget(step.frontier)
        nothing = Outputs(self.layout.width)
        opened = self.grid.opened(self.frontier)
        self.sealed = max(self.sealed, self.lively.sealed(self.frontier, opened, nothing))
        return emitted.at(self.sealed)

    def _advance(self, delta: Delta) -> Step:
        """Move time on."""
        before_frontier, due_before = self.frontier, self.lively.due(self.frontier, self.seen)
        self.frontier = max(self.frontier, delta.frontier)
        if len(delta):
            self.seen = max(self.seen, int(delta.le.max()))
        return Step(before_frontier, self.frontier, due_before, self.lively.due(self.frontier, self.seen))

    def _without_ageless(self, delta: Delta) -> Delta:
        """Events without a start may be taken back, until a frontier seals them; long ones are remembered."""
        check_weights(delta.w)
        limit = self.context.limits.windows_per_event
        if len(delta) and (delta.le.min() <= BEGINNING or (delta.re - delta.le).max() > limit * self.grid.hop):
            ageless = delta.le <= BEGINNING
            windows = self.grid.last(delta.re) - self.grid.first(np.where(ageless, 0, delta.le)) + 1
            long = ageless | (delta.re >= FOREVER) | (windows > limit)
            if long.any():
                le, re, w = delta.le[long], delta.re[long], delta.w[long]
                self.long.add(delta.group[long], le, re, w, np.zeros((len(le), 1), np.int64))
                delta = delta.take(~ageless)
        return delta

    def _check_limits(self, step: Step) -> None:
        if not len(self.long):
            return
        stored = self.long.events()
        if step.frontier > BEGINNING and (stored.le <= BEGINNING).any():
            raise unbounded(BEGINNING, int(stored.re[0]))
        if step.frontier >= FOREVER:
            self.grid.refuse_endless(stored)
        self.grid.refuse_many(Stored(*(column[stored.le > BEGINNING] for column in stored)), step)

    def _changes(self, delta: Delta) -> tuple[Cells, Cells]:
        """What the batch changes in the sums, which are brought into the layout that its values need."""
        spec = self.sums.spec
        values = self.sums.read(delta)
        self.starts, self.moves = (self.sums.converted(rows, spec) for rows in (self.starts, self.moves))
        event = np.arange(len(delta))
        first = (delta.le - self.grid.offset) // self.pane
        last = (delta.re - 1 - self.grid.offset) // self.pane
        lasting = np.flatnonzero(first != last)
        ending = lasting[delta.re[lasting] < FOREVER]
        both = np.concatenate([lasting, ending])
        places = np.concatenate([first[lasting], last[ending]])
        signed = np.concatenate([delta.w[lasting], -delta.w[ending]])
        starts, _, _ = gathered(Entries(delta.group, first, event, delta.w), values, self.sums, self._scratch[0])
        moves, _, _ = gathered(Entries(delta.group[both], places, both, signed), values, self.sums, self._scratch[1])
        return starts, moves

    def _emit(self, starts: Cells, moves: Cells, step: Step) -> Delta:
        """The rows that change; the sums are then as they are after the change."""
        grid, spec = self.grid, self.sums.spec
        new_starts, new_moves = (
            merged(old, new, spec, out.matrix("merged", len(old) + len(new), SUMS + self.sums.width))
            for old, new, out in ((self.starts, starts, self._scratch[0]), (self.moves, moves, self._scratch[1]))
        )
        numbers = np.array([
            grid.size // self.pane, grid.hop // self.pane, self._first_open(step.frontier_before),
            grid.last_due(step.due_before), grid.last_due(step.due), self.pane, grid.offset,
        ])  # fmt: skip
        emitted, sums = written(
            lambda *out: _walk(self.starts, self.moves, new_starts, new_moves, starts, moves, numbers, *out),
            len(new_starts), self.sums.width, self._scratch[0],
        )  # fmt: skip
        self.starts, self.moves = new_starts, new_moves  # still in scratch memory
        return summed(emitted, sums, self.sums, self.typed, self.lively)

    def _first_open(self, frontier: int) -> int:
        """The number of the first window that ends after the frontier."""
        return (max(frontier, BEGINNING + 1) - self.grid.offset - self.grid.size) // self.grid.hop + 1

    def _forget(self, frontier: int) -> None:
        """Only panes of windows that are open stay; what lives on from before is one row per group."""
        if frontier >= FOREVER:
            self.starts, self.moves, self.long = self._none(), self._none(), Store(width=1)
            return
        first = self._first_open(frontier) * (self.grid.hop // self.pane)
        self.starts = self.starts[self.starts[:, PLACE] >= first]  # a copy
        self.moves = _folded(self.moves, first, self.sums.spec)
        self.long.drop(frontier)

    # --- looking inside -----------------------------------------------------------------------------------------------

    def windows(self) -> tuple[WindowView, ...]:
        """The open windows that have members, as far as a pane has sums."""
        per_window, per_hop = self.grid.size // self.pane, self.grid.hop // self.pane
        shown = []
        for group in self.live_groups().tolist():
            starts, moves = (rows[rows[:, GROUP] == group] for rows in (self.starts, self.moves))
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
        before, spans = self.windows(), spans_of(change, self.typed, self.context)
        self.on_batch(change.at(BEGINNING))
        near = {Span(*row) for row in zip(*(c.tolist() for c in self.grid.near(spans, FOREVER)), strict=True)}
        found = affected_sums(before, self.windows(), spans)
        return Affected(*(tuple(w for w in windows if w in near) for windows in (found.retract, found.insert)))

    # --- state --------------------------------------------------------------------------------------------------------

    def snapshot(self) -> State:
        state: State = {"frontier": self.frontier, "seen": self.seen, "sealed": self.sealed}
        return {
            **state,
            **self.sums.snapshot(),
            "starts": self.starts,
            "moves": self.moves,
            "long": self.long.all_rows(),
        }

    def restore(self, state: State) -> None:
        self.sums.restore(state)
        self.frontier, self.seen, self.sealed = (_number(state, name) for name in ("frontier", "seen", "sealed"))
        self.starts, self.moves = (_matrix(state, name) for name in ("starts", "moves"))
        self.long.replace(_matrix(state, "long").copy())

    def live_strings(self) -> Ints:
        return np.empty(0, np.int64)

    def live_groups(self) -> Ints:
        return np.unique(np.concatenate([self.starts[:, GROUP], self.moves[:, GROUP], self.long.keys()]))

    def live_rows(self) -> int:
        return len(self.starts) + len(self.moves) + len(self.long)


def _number(state: State, name: str) -> int:
    value = state[name]
    assert isinstance(value, int)
    return value


def _matrix(state: State, name: str) -> Cells:
    value = state[name]
    assert isinstance(value, np.ndarray)
    return value


@njit(cache=True)
def _folded(rows, first, spec):  # type: ignore[no-untyped-def]
    """Rows of places before ``first`` as one row per group, just before it; none where it sums up to nothing."""
    out = np.empty_like(rows)
    count = at = 0
    while at < len(rows):
        group = rows[at, GROUP]
        out[count] = 0
        out[count, GROUP], out[count, PLACE] = group, first - 1
        while at < len(rows) and rows[at, GROUP] == group and rows[at, PLACE] < first:
            add_rows(out, count, SUMS, rows, at, SUMS, 1)
            at += 1
        carry_row(out, count, SUMS, spec)
        count += not is_nothing(out, count)
        while at < len(rows) and rows[at, GROUP] == group:
            out[count] = rows[at]
            count += 1
            at += 1
    return out[:count].copy()


# --- windows, group by group ------------------------------------------------------------------------------------------
# ``numbers``: panes per window, panes per hop, the first open window, the last that was due, the last that is due,
# ticks per pane, and the offset.
PER_WINDOW, PER_HOP, OPEN, DUE_BEFORE, DUE, TICKS, OFFSET = range(7)


@njit(cache=True, inline="always")
def _advance(sums, which, starts, moves, at, window, numbers):  # type: ignore[no-untyped-def]
    """Bring sums to a window. ``at``: the next start to enter, the next to leave, the next move, and both ends."""
    first = window * numbers[PER_HOP]
    beyond = first + numbers[PER_WINDOW]
    while at[which, 0] < at[which, 3] and starts[at[which, 0], PLACE] < beyond:
        add_rows(sums, which, 0, starts, at[which, 0], SUMS, 1)
        at[which, 0] += 1
    while at[which, 1] < at[which, 0] and starts[at[which, 1], PLACE] < first:
        add_rows(sums, which, 0, starts, at[which, 1], SUMS, -1)
        at[which, 1] += 1
    while at[which, 2] < at[which, 4] and moves[at[which, 2], PLACE] < first:
        add_rows(sums, which, 0, moves, at[which, 2], SUMS, 1)
        at[which, 2] += 1


@njit(cache=True, inline="always")
def _first_with(place, numbers):  # type: ignore[no-untyped-def]
    """The first window that ends after a pane begins; far away for a place that is."""
    if place == FOREVER:
        return np.int64(FOREVER)
    return (place - numbers[PER_WINDOW]) // numbers[PER_HOP] + 1


@njit(cache=True, inline="always")
def _next_change(starts, moves, cursor, ends, place):  # type: ignore[no-untyped-def]
    """The first place of a change at or after a place; far away if there is none."""
    found = np.int64(FOREVER)
    for n in range(cursor[4], ends[4]):
        if starts[n, PLACE] >= place:
            found = starts[n, PLACE]
            break
    for n in range(cursor[5], ends[5]):
        if moves[n, PLACE] >= place:
            return min(found, moves[n, PLACE])
    return found


@njit(cache=True, inline="always")
def _put(emitted, found, size, sums, which, group, window, numbers):  # type: ignore[no-untyped-def]
    le = numbers[OFFSET] + window * numbers[PER_HOP] * numbers[TICKS]
    emitted[size, 0], emitted[size, 1], emitted[size, 3] = group, le, 2 * which - 1
    emitted[size, 2] = le + numbers[PER_WINDOW] * numbers[TICKS]
    for n in range(sums.shape[1]):
        found[size, n] = sums[which, n]


@njit(cache=True)
def _walk(old_starts, old_moves, starts, moves, new_starts, new_moves, numbers, emitted, found):  # type: ignore[no-untyped-def]
    """The rows that change, with their sums: corrections of windows that were due before, and those due now.

    A row that is taken back comes just before the one that replaces it. How many rows there are; −1 for too many.
    """
    sums = np.zeros((2, starts.shape[1] - SUMS), np.int64)
    size = 0
    at = np.zeros((2, 5), np.int64)
    cursor, ends = np.zeros(6, np.int64), np.zeros(6, np.int64)
    lists = (old_starts, old_moves, starts, moves, new_starts, new_moves)
    while size >= 0:
        group = np.int64(FOREVER)
        for n in range(6):
            if cursor[n] < len(lists[n]):
                group = min(group, lists[n][cursor[n], GROUP])
        if group == FOREVER:
            break
        for n in range(6):
            ends[n] = until(lists[n], cursor[n], group)
        sums[:] = 0
        for which in (OLD, NEW):
            at[which, 0] = at[which, 1] = cursor[2 * which]
            at[which, 2], at[which, 3], at[which, 4] = cursor[2 * which + 1], ends[2 * which], ends[2 * which + 1]
        size = _corrected(lists, cursor, ends, at, sums, group, numbers, emitted, found, size)
        if size >= 0:
            size = _completed(starts, moves, at, sums, group, numbers, emitted, found, size)
        cursor[:] = ends
    return size


@njit(cache=True)
def _corrected(lists, cursor, ends, at, sums, group, numbers, emitted, found, size):  # type: ignore[no-untyped-def]
    """The windows of a group that were due before and may have changed."""
    old_starts, old_moves, starts, moves, new_starts, new_moves = lists
    window = max(numbers[OPEN], _first_with(_next_change(new_starts, new_moves, cursor, ends, -FOREVER), numbers))
    while window <= numbers[DUE_BEFORE]:
        _advance(sums, OLD, old_starts, old_moves, at, window, numbers)
        _advance(sums, NEW, starts, moves, at, window, numbers)
        if same_sums(sums, OLD, NEW):
            change = _next_change(new_starts, new_moves, cursor, ends, window * numbers[PER_HOP])
            window = max(window + 1, _first_with(change, numbers))
            continue
        if size + 2 > len(emitted):
            return -1
        for which in (OLD, NEW):
            if sums[which, 0] > 0:
                _put(emitted, found, size, sums, which, group, window, numbers)
                size += 1
        window += 1
    return size


@njit(cache=True)
def _completed(starts, moves, at, sums, group, numbers, emitted, found, size):  # type: ignore[no-untyped-def]
    """The windows of a group that are due now."""
    window = numbers[DUE_BEFORE] + 1
    while window <= numbers[DUE]:
        _advance(sums, NEW, starts, moves, at, window, numbers)
        if sums[NEW, 0] == 0:
            upcoming = starts[at[NEW, 0], PLACE] if at[NEW, 0] < at[NEW, 3] else np.int64(FOREVER)
            window = max(window + 1, _first_with(upcoming, numbers))
            continue
        if size == len(emitted):
            return -1
        _put(emitted, found, size, sums, NEW, group, window, numbers)
        size += 1
        window += 1
    return size
