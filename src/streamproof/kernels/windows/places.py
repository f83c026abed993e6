"""The events of a batch as sums by group and place.

Where events are dense, a table of all pairs that there could be takes their sums, without sorting them.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamproof.kernels.cells import Cells
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.accumulators import Accumulators, Values
from streamproof.kernels.windows.sums import GROUP, PLACE, SUMS, Entries, Scratch, gathered, is_nothing

SPARSE: Final = 4  # a table of all pairs may have so many fields per event


def collected(entries: Entries, values: Values, sums: Accumulators, out: Scratch) -> Cells:
    """Events as rows (group, place, sums) in the order of groups, then places; they are in scratch memory."""
    if len(entries.group):
        low_group, high_group, low_place, high_place = _ranges(entries.group, entries.place)
        groups, places = high_group - low_group + 1, high_place - low_place + 1
        if groups * places <= SPARSE * len(entries.group) + 1024:
            return _tabled(entries, values, sums, out, (low_group, groups, low_place, places))
    return gathered(entries, values, sums, out)[0]


def _tabled(
    entries: Entries, values: Values, sums: Accumulators, out: Scratch, ranges: tuple[int, int, int, int]
) -> Cells:
    """By a table in the order of places, as events mostly are: then the fields to which they are added lie together."""
    low_group, groups, low_place, places = ranges
    field = out.matrix("field", 1, len(entries.group))[0]
    table = out.matrix("table", groups * places, sums.width)
    _find_fields(entries.group, entries.place, low_group, groups, low_place, field, table)
    sums.add(table, 0, field, entries.event, entries.w, values)
    rows = out.matrix("rows", min(len(table), len(field)) + 1, SUMS + sums.width)
    return rows[: _regrouped(table, low_group, low_place, np.zeros(groups + 1, np.int64), rows)]


@loop
def _ranges(group, place):  # type: ignore[no-untyped-def]
    """The least and greatest group and place."""
    low_group, high_group, low_place, high_place = group[0], group[0], place[0], place[0]
    for n in range(1, len(group)):
        low_group, high_group = min(low_group, group[n]), max(high_group, group[n])
        low_place, high_place = min(low_place, place[n]), max(high_place, place[n])
    return low_group, high_group, low_place, high_place


@loop
def _find_fields(group, place, low_group, groups, low_place, field, table):  # type: ignore[no-untyped-def]
    """For each event its field; the table is empty then."""
    table[:] = 0
    for n in range(len(group)):
        field[n] = (place[n] - low_place) * groups + group[n] - low_group


@loop
def _regrouped(table, low_group, low_place, ends, rows):  # type: ignore[no-untyped-def]
    """The fields that have anything, by group; how many. ``ends`` is zero for one group more than there are.

    Whether a field has anything, no processor guesses well; so every one is written, the others into the last row.
    """
    groups = len(ends) - 1
    for first in range(0, len(table), groups):
        for b in range(groups):
            ends[b + 1] += not is_nothing(table, first + b, 0)
    for b in range(groups):
        ends[b + 1] += ends[b]
    for a in range(len(table) // groups):
        for b in range(groups):
            field = a * groups + b
            counts = not is_nothing(table, field, 0)
            at = ends[b] if counts else len(rows) - 1
            ends[b] += counts
            rows[at, GROUP], rows[at, PLACE] = low_group + b, low_place + a
            for n in range(table.shape[1]):
                rows[at, SUMS + n] = table[field, n]
    return ends[groups]
