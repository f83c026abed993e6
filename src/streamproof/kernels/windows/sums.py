"""Sorted rows of sums: group, place, then an accumulator's columns. Rows of equal group and place are one."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.sorting import order_by
from streamproof.kernels.windows.accumulators import Accumulators, Values, add_rows, carry_row

GROUP: Final = 0
PLACE: Final = 1
SUMS: Final = 2  # the first column of the sums


class Entries(NamedTuple):
    """Signed events at places of groups."""

    group: Ints
    place: Ints
    event: Ints  # which event of the batch
    w: Ints


class Scratch:
    """Matrices for the time of one batch, in memory that is used again: asking the system for pages costs as much as
    filling them."""

    def __init__(self) -> None:
        self._memory: dict[str, Ints] = {}

    def matrix(self, name: str, rows: int, columns: int) -> Cells:
        """A matrix with anything in it, good until the next one of that name."""
        size = rows * columns
        if name not in self._memory or len(self._memory[name]) < size:
            self._memory[name] = np.empty(size + size // 4, np.int64)
        return self._memory[name][:size].reshape(rows, columns)


def gathered(
    entries: Entries, values: Values, sums: Accumulators, out: Scratch, *, lead: int = SUMS
) -> tuple[Cells, Ints, Ints]:
    """Events as rows of sums from column ``lead`` on; in which order the events came in, and the row of each then.

    The rows are in scratch memory.
    """
    order = order_by(entries.group, entries.place)
    group, place = entries.group[order], entries.place[order]
    row = _numbered(group, place)
    rows = out.matrix("gathered", int(row[-1]) + 1 if len(row) else 0, lead + sums.width)
    _lay_out(rows, row, group, place)
    sums.add(rows, lead, row, entries.event[order], entries.w[order], values)
    return rows, order, row


def merged(first: Cells, second: Cells, spec: Ints, out: Cells, *, lead: int = SUMS) -> Cells:
    """Two sorted sets of rows as one, in ``out``; what cancels is gone."""
    count = _merged(first, second, spec, lead, out)
    return out[:count]


@njit(cache=True)
def _numbered(group, place):  # type: ignore[no-untyped-def]
    """The number of each pair of group and place, which are in order."""
    row = np.empty(len(group), np.int64)
    count = 0
    for n in range(len(group)):
        count += n == 0 or group[n] != group[n - 1] or place[n] != place[n - 1]
        row[n] = count - 1
    return row


@loop
def _lay_out(rows, row, group, place):  # type: ignore[no-untyped-def]
    """Rows of groups and places, with all sums zero."""
    last = -1
    for n in range(len(row)):
        if row[n] != last:
            last = row[n]
            for m in range(rows.shape[1]):
                rows[last, m] = 0
            rows[last, GROUP], rows[last, PLACE] = group[n], place[n]


@loop
def _merged(first, second, spec, lead, rows):  # type: ignore[no-untyped-def]
    width = first.shape[1]
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
        meets = i < len(first) and not before(second, j, first, i)
        if meets:
            add_rows(rows, count, SUMS, first, i, SUMS, 1)
            i += 1
        j += 1
        if meets or rows[count, SUMS] == 0:  # carries must not pile up, nor hide that nothing is left
            carry_row(rows, count, lead, spec)
        count += not is_nothing(rows, count, SUMS)
    return count


@njit(cache=True, inline="always")
def is_nothing(rows, row, lead):  # type: ignore[no-untyped-def]
    """Whether all sums of a row are zero, which begin at column ``lead``."""
    anything = np.int64(0)
    for n in range(lead, rows.shape[1]):
        anything |= rows[row, n]
    return anything == 0


@njit(cache=True, inline="always")
def before(a, i, b, j):  # type: ignore[no-untyped-def]
    """Whether a row comes strictly before another."""
    return a[i, GROUP] < b[j, GROUP] or (a[i, GROUP] == b[j, GROUP] and a[i, PLACE] < b[j, PLACE])


@loop
def until(rows, start, group):  # type: ignore[no-untyped-def]
    """Where a group's rows end that begin at ``start``; there, if it has none."""
    end = start
    while end < len(rows) and rows[end, GROUP] == group:
        end += 1
    return end
