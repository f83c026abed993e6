"""Sorted rows of sums: group, place, then an accumulator's columns. Rows of equal group and place are one."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.accumulators import Values, add_event, add_rows, carry_row

GROUP: Final = 0
PLACE: Final = 1
SUMS: Final = 2  # the first column of the sums


def gathered(group: Ints, place: Ints, event: Ints, w: Ints, values: Values, spec: Ints, width: int) -> Cells:
    """Signed events at places of groups as rows of sums, in order."""
    rows: Cells = _gathered(order_by(group, place), group, place, event, w, *values, spec, width)
    return rows


def merged(first: Cells, second: Cells, spec: Ints) -> Cells:
    """Two sorted sets of rows as one; what cancels is gone."""
    if not len(second):
        return first
    rows, count = _merged(first, second, spec)
    kept: Cells = rows[:count]
    return kept if 2 * count > len(rows) else kept.copy()


@njit(cache=True)
def _gathered(order, group, place, event, w, cells, nulls, spec, width):  # type: ignore[no-untyped-def]
    count = 0
    for n in range(len(order)):
        at = order[n]
        before = order[n - 1]
        count += n == 0 or group[at] != group[before] or place[at] != place[before]
    rows = np.zeros((count, SUMS + width), np.int64)
    row = -1
    for n in range(len(order)):
        at = order[n]
        if row < 0 or rows[row, GROUP] != group[at] or rows[row, PLACE] != place[at]:
            row += 1
            rows[row, GROUP], rows[row, PLACE] = group[at], place[at]
        add_event(rows, row, SUMS, spec, cells, nulls, event[at], w[at])
    return rows


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
