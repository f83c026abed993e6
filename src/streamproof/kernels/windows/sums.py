"""Sorted rows of sums: group, place, then an accumulator's columns. Rows of equal group and place are one."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.accumulators import Accumulators, Values, add_rows, carry_row

GROUP: Final = 0
PLACE: Final = 1
SUMS: Final = 2  # the first column of the sums


def gathered(group: Ints, place: Ints, event: Ints, w: Ints, values: Values, sums: Accumulators) -> Cells:
    """Signed events at places of groups as rows of sums, in order."""
    order = order_by(group, place)
    row, rows = _laid_out(order, group, place, sums.width)
    sums.add(rows, SUMS, row, event[order], w[order], values)
    found: Cells = rows
    return found


def merged(first: Cells, second: Cells, spec: Ints) -> Cells:
    """Two sorted sets of rows as one; what cancels is gone."""
    if not len(second):
        return first
    rows, count = _merged(first, second, spec)
    kept: Cells = rows[:count]
    return kept if 2 * count > len(rows) else kept.copy()


@njit(cache=True)
def _laid_out(order, group, place, width):  # type: ignore[no-untyped-def]
    """The row of each event in order, and all rows with their group and place."""
    row = np.empty(len(order), np.int64)
    count = 0
    for n in range(len(order)):
        fresh = n == 0 or group[order[n]] != group[order[n - 1]] or place[order[n]] != place[order[n - 1]]
        count += fresh
        row[n] = count - 1
    rows = np.zeros((count, SUMS + width), np.int64)
    for n in range(len(order)):
        rows[row[n], GROUP], rows[row[n], PLACE] = group[order[n]], place[order[n]]
    return row, rows


@njit(cache=True)
def _merged(first, second, spec):  # type: ignore[no-untyped-def]
    width = first.shape[1]
    rows = np.empty((len(first) + len(second), width), np.int64)
    i = j = count = 0
    while i < len(first) or j < len(second):
        if j == len(second) or (i < len(first) and before(first, i, second, j)):
            for n in range(width):
                rows[count, n] = first[i, n]
            i += 1
            count += 1
            continue
        for n in range(width):
            rows[count, n] = second[j, n]
        if i < len(first) and not before(second, j, first, i):
            add_rows(rows, count, SUMS, first, i, SUMS, 1)
            i += 1
        j += 1
        carry_row(rows, count, SUMS, spec)
        count += not is_nothing(rows, count)
    return rows, count


@njit(cache=True)
def is_nothing(rows, row):  # type: ignore[no-untyped-def]
    """Whether all sums of a row are zero."""
    for n in range(SUMS, rows.shape[1]):
        if rows[row, n] != 0:
            return False
    return True


@njit(cache=True)
def before(a, i, b, j):  # type: ignore[no-untyped-def]
    """Whether a row comes strictly before another."""
    return a[i, GROUP] < b[j, GROUP] or (a[i, GROUP] == b[j, GROUP] and a[i, PLACE] < b[j, PLACE])


@njit(cache=True)
def until(rows, start, group):  # type: ignore[no-untyped-def]
    """Where a group's rows end that begin at ``start``; there, if it has none."""
    end = start
    while end < len(rows) and rows[end, GROUP] == group:
        end += 1
    return end
