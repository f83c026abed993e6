"""A batch with events of most groups at most places: sums lie place by place, without sorting events.

`DenseSums` is a field for every pair of group and place that there could be:

                group  3   4   5   6
    place 10         [ ·   2   7   1 ]      fields of one place lie together, as events mostly come
    place 11         [ 4   ·   3   1 ]
    place 12         [ 2   2   ·   9 ]

If a batch is dense enough, all groups slide over one matrix together, from window to window; what opens and closes
within the batch never enters the pane store.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.windows.hopping_sums.pane_store import DueQueue, PaneStore
from streamproof.kernels.windows.hopping_sums.sliding_loops import (
    DUE,
    DUE_BEFORE,
    PER_HOP,
    bounds,
    bring,
    enlist_anew_loop,
    find_fields,
    first_with,
    regrouped,
    slide,
    with_held,
)
from streamproof.kernels.windows.shared.sums import Accumulators, Entries, Scratch, Values, gathered
from streamproof.kernels.windows.shared.sums_loops import SUMS
from streamproof.thresholds import SHEET_FIELDS, SHEET_PER_EVENT


def dense_bounds(entries: Entries, held: PaneStore, numbers: Ints) -> Bounds | None:
    """The bounds of events and of what is held for windows that they make due; None where too much would be empty."""
    bounds = bounds_of(entries)
    if not is_dense(max(bounds.groups * bounds.places, len(held.stretches)), entries):
        return None
    first = (int(numbers[DUE_BEFORE]) + 1) * int(numbers[PER_HOP])
    whole = Bounds(*with_held(held.rows, held.stretches, first, *bounds))
    windows = len(_due_windows(whole, numbers))
    return whole if windows and is_dense(whole.groups * (whole.places + windows), entries) else None


def slide_together(
    dense: DenseSums, held: PaneStore, numbers: Ints, emitted: Cells, found: Cells, size: int, out: Scratch
) -> int:
    """Write the windows that are due now, after ``size`` other rows, for which there is room; returns the new size.

    What is held is brought into it first.
    """
    bounds, width = dense.bounds, dense.fields.shape[1]
    windows = _due_windows(bounds, numbers)
    first = windows[0] * int(numbers[PER_HOP])
    bring(held.rows, held.stretches, first, bounds.low_group, bounds.groups, bounds.low_place, dense.fields)
    sums = out.matrix("together", bounds.groups, width).reshape(-1)
    flat = dense.fields.reshape(-1), sums, width
    return int(slide(*flat, bounds.low_group, bounds.low_place, windows[0], windows[-1], numbers, emitted, found, size))


def dense_rows(bounds: Bounds, numbers: Ints) -> int:
    """Returns the most rows that windows which are due now may have."""
    return bounds.groups * len(_due_windows(bounds, numbers))


def enlist_anew(queue: DueQueue, held: PaneStore, numbers: Ints) -> None:
    """List all groups by what is held, after everything that was due."""
    enlist_anew_loop(held.rows, held.stretches, numbers, queue.heads, queue.links)


def _due_windows(bounds: Bounds, numbers: Ints) -> range:
    """The windows that are due now and have places within bounds."""
    first = max(int(numbers[DUE_BEFORE]) + 1, int(first_with(bounds.low_place, numbers)))
    return range(first, min(int(numbers[DUE]), bounds.high_place // int(numbers[PER_HOP])) + 1)


class Bounds(NamedTuple):
    """The least and greatest group and place of something."""

    low_group: int
    high_group: int
    low_place: int
    high_place: int

    @property
    def groups(self) -> int:
        return self.high_group - self.low_group + 1

    @property
    def places(self) -> int:
        return self.high_place - self.low_place + 1


class DenseSums(NamedTuple):
    """Sums for every group at every place within bounds, place by place: as events mostly come, so what they are added
    to lies together."""

    bounds: Bounds
    fields: Cells

    def rows(self, low_place: int, high_place: int, out: Scratch) -> Cells:
        """What there is from one place to another as rows (group, place, sums), in the order of groups."""
        groups, first = self.bounds.groups, max(low_place, self.bounds.low_place)
        part = self.fields[(first - self.bounds.low_place) * groups :][: max(high_place - first + 1, 0) * groups]
        rows = out.matrix("rows", len(part) + 1, SUMS + self.fields.shape[1])
        return rows[: regrouped(part, self.bounds.low_group, first, np.zeros(groups + 1, np.int64), rows)]


def collected(entries: Entries, values: Values, sums: Accumulators, out: Scratch) -> Cells:
    """Events as rows (group, place, sums) in the order of groups, then places; they are in scratch memory."""
    if len(entries.group):
        bounds = bounds_of(entries)
        if is_dense(bounds.groups * bounds.places, entries):
            dense = dense_sums_of(entries, values, sums, bounds, out)
            return dense.rows(bounds.low_place, bounds.high_place, out)
    return gathered(entries, values, sums, out)[0]


def is_dense(fields: int, entries: Entries) -> bool:
    """Whether there are not too many fields for some events."""
    return fields <= SHEET_PER_EVENT.now * len(entries.group) + SHEET_FIELDS.now


def bounds_of(entries: Entries) -> Bounds:
    """The bounds of events; there must be one."""
    return Bounds(*bounds(entries.group, entries.place))


def dense_sums_of(entries: Entries, values: Values, sums: Accumulators, bounds: Bounds, out: Scratch) -> DenseSums:
    """The sums of events within bounds, in scratch memory."""
    field = out.matrix("field", 1, len(entries.group))[0]
    fields = out.matrix("fields", bounds.groups * bounds.places, sums.width)
    find_fields(entries.group, entries.place, bounds.low_group, bounds.groups, bounds.low_place, field, fields)
    sums.add(fields, 0, field, entries.event, entries.w, values)
    return DenseSums(bounds, fields)
