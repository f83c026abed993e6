"""The events of a batch as sums by group and place.

Where events are dense, a sheet of all pairs that there could be takes their sums, without sorting them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamproof.kernels.cells import Cells
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.accumulators import Accumulators, Values
from streamproof.kernels.windows.sums import GROUP, PLACE, SUMS, Entries, Scratch, gathered, is_nothing
from streamproof.thresholds import SHEET_FIELDS, SHEET_PER_EVENT


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


class Sheet(NamedTuple):
    """Sums for every group at every place within bounds, place by place: as events mostly come, so what they are added
    to lies together."""

    bounds: Bounds
    fields: Cells

    def rows(self, low_place: int, high_place: int, out: Scratch) -> Cells:
        """What there is from one place to another as rows (group, place, sums), in the order of groups."""
        groups, first = self.bounds.groups, max(low_place, self.bounds.low_place)
        part = self.fields[(first - self.bounds.low_place) * groups :][: max(high_place - first + 1, 0) * groups]
        rows = out.matrix("rows", len(part) + 1, SUMS + self.fields.shape[1])
        return rows[: _regrouped(part, self.bounds.low_group, first, np.zeros(groups + 1, np.int64), rows)]


def collected(entries: Entries, values: Values, sums: Accumulators, out: Scratch) -> Cells:
    """Events as rows (group, place, sums) in the order of groups, then places; they are in scratch memory."""
    if len(entries.group):
        bounds = bounds_of(entries)
        if is_dense(bounds.groups * bounds.places, entries):
            sheet = sheet_of(entries, values, sums, bounds, out)
            return sheet.rows(bounds.low_place, bounds.high_place, out)
    return gathered(entries, values, sums, out)[0]


def is_dense(fields: int, entries: Entries) -> bool:
    """Whether there are not too many fields for some events."""
    return fields <= SHEET_PER_EVENT.now * len(entries.group) + SHEET_FIELDS.now


def bounds_of(entries: Entries) -> Bounds:
    """The bounds of events; there must be one."""
    return Bounds(*_bounds(entries.group, entries.place))


def sheet_of(entries: Entries, values: Values, sums: Accumulators, bounds: Bounds, out: Scratch) -> Sheet:
    """The sums of events within bounds, in scratch memory."""
    field = out.matrix("field", 1, len(entries.group))[0]
    fields = out.matrix("fields", bounds.groups * bounds.places, sums.width)
    _find_fields(entries.group, entries.place, bounds.low_group, bounds.groups, bounds.low_place, field, fields)
    sums.add(fields, 0, field, entries.event, entries.w, values)
    return Sheet(bounds, fields)


@loop
def _bounds(group, place):  # type: ignore[no-untyped-def]
    """The least and greatest group and place."""
    low_group, high_group, low_place, high_place = group[0], group[0], place[0], place[0]
    for n in range(1, len(group)):
        low_group, high_group = min(low_group, group[n]), max(high_group, group[n])
        low_place, high_place = min(low_place, place[n]), max(high_place, place[n])
    return low_group, high_group, low_place, high_place


@loop
def _find_fields(group, place, low_group, groups, low_place, field, fields):  # type: ignore[no-untyped-def]
    """For each event its field; all fields are empty then."""
    fields[:] = 0
    for n in range(len(group)):
        field[n] = (place[n] - low_place) * groups + group[n] - low_group


@loop
def _regrouped(fields, low_group, low_place, ends, rows):  # type: ignore[no-untyped-def]
    """The fields that have anything, by group; how many. ``ends`` is zero for one group more than there are.

    Whether a field has anything, no processor guesses well; so every one is written, the others into the last row.
    """
    groups = len(ends) - 1
    for first in range(0, len(fields), groups):
        for b in range(groups):
            ends[b + 1] += not is_nothing(fields, first + b, 0)
    for b in range(groups):
        ends[b + 1] += ends[b]
    for a in range(len(fields) // groups):
        for b in range(groups):
            field = a * groups + b
            counts = not is_nothing(fields, field, 0)
            at = ends[b] if counts else len(rows) - 1
            ends[b] += counts
            rows[at, GROUP], rows[at, PLACE] = low_group + b, low_place + a
            for n in range(fields.shape[1]):
                rows[at, SUMS + n] = fields[field, n]
    return ends[groups]
