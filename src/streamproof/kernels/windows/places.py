"""Rows for the different pairs of group and place in a batch.

>>> out = Scratch()
>>> row, rows = laid_out(np.array([7, 4, 7]), np.array([1, 9, 1]), 1, out)
>>> row.tolist(), rows.tolist()
([0, 1, 0], [[7, 1, 0], [4, 9, 0]])
>>> by_group(rows, out).tolist()
[[4, 9, 0], [7, 1, 0]]
"""

from __future__ import annotations

from typing import Final

import numpy as np

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.sums import GROUP, PLACE, SUMS, Scratch

SPARSE: Final = 4  # a table of all pairs may have so many fields per row


def laid_out(group: Ints, place: Ints, width: int, out: Scratch) -> tuple[Ints, Cells]:
    """For each event the number of its row; and the rows (group, place, then zeros), in scratch memory.

    Where events are dense, rows are in the order of places, as events mostly are: then the rows of one place, to which
    events are added next, lie together. `by_group` brings them into the order of groups.
    """
    row = np.empty(len(group), np.int64)
    if not len(group):
        return row, out.matrix("rows", 0, SUMS + width)
    low_group, high_group, low_place, high_place = _ranges(group, place)
    groups = high_group - low_group + 1
    fields = (high_place - low_place + 1) * groups
    if fields <= SPARSE * len(group) + 1024:
        rows = out.matrix("rows", min(fields, len(group)), SUMS + width)
        table = out.matrix("table", 1, fields)[0]
        return row, rows[: _tabled(group, place, low_group, low_place, groups, table, row, rows)]
    rows = out.matrix("rows", len(group), SUMS + width)
    return row, rows[: _sorted(group, place, order_by(group, place), row, rows)]


def by_group(rows: Cells, out: Scratch) -> Cells:
    """The rows of `laid_out` in the order of groups, then places."""
    low, high, is_ordered = _order(rows)
    if is_ordered:
        return rows
    ordered = out.matrix("ordered", *rows.shape)
    _regroup(rows, low, np.zeros(high - low + 2, np.int64), ordered)
    return ordered


@loop
def _ranges(group, place):  # type: ignore[no-untyped-def]
    """The least and greatest group and place."""
    low_group, high_group, low_place, high_place = group[0], group[0], place[0], place[0]
    for n in range(1, len(group)):
        low_group, high_group = min(low_group, group[n]), max(high_group, group[n])
        low_place, high_place = min(low_place, place[n]), max(high_place, place[n])
    return low_group, high_group, low_place, high_place


@loop
def _tabled(group, place, low_group, low_place, groups, table, row, rows):  # type: ignore[no-untyped-def]
    """By a table of all pairs that there could be; how many there are."""
    table[:] = 0
    for n in range(len(group)):
        row[n] = (place[n] - low_place) * groups + group[n] - low_group
        table[row[n]] = 1
    rows[:] = 0
    count = field = 0
    for a in range(len(table) // groups):
        for b in range(groups):
            if table[field]:
                table[field] = count
                rows[count, GROUP], rows[count, PLACE] = low_group + b, low_place + a
                count += 1
            field += 1
    for n in range(len(group)):
        row[n] = table[row[n]]
    return count


@loop
def _sorted(group, place, order, row, rows):  # type: ignore[no-untyped-def]
    """By sorting; how many there are."""
    rows[:] = 0
    count = 0
    for at in order:
        if count == 0 or group[at] != rows[count - 1, GROUP] or place[at] != rows[count - 1, PLACE]:
            rows[count, GROUP], rows[count, PLACE] = group[at], place[at]
            count += 1
        row[at] = count - 1
    return count


@loop
def _order(rows):  # type: ignore[no-untyped-def]
    """The least and the greatest group, and whether groups come in order."""
    is_ordered = True
    low = high = rows[0, GROUP] if len(rows) else 0
    for n in range(1, len(rows)):
        is_ordered &= rows[n, GROUP] >= rows[n - 1, GROUP]
        low, high = min(low, rows[n, GROUP]), max(high, rows[n, GROUP])
    return low, high, is_ordered


@loop
def _regroup(rows, low, ends, out):  # type: ignore[no-untyped-def]
    """Sort by counting how many rows each group has; ``ends`` is zero for one group more than there are."""
    for n in range(len(rows)):
        ends[rows[n, GROUP] - low + 1] += 1
    for n in range(1, len(ends)):
        ends[n] += ends[n - 1]
    for n in range(len(rows)):
        at = ends[rows[n, GROUP] - low]
        ends[rows[n, GROUP] - low] += 1
        for m in range(rows.shape[1]):
            out[at, m] = rows[n, m]
