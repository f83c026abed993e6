"""Aggregates of many overlapping ranges of rows: the sharing algorithms, which all give the same.

A row is some int64 columns, each of which adds up or has a greatest value. A range is ``[first, last)``; one opens at
its first row (a lasting event begins) and is asked for at its last (it ends).

- `delayed` (DWM): every range is scanned when it ends
- `running` (SLES): every row is added to all ranges that are open
- `slices` (SLES*): a row is added to the last slice alone; slices begin where ranges begin, and a range that ends
  combines its slices
- `two_stacks` (FIFO): ranges end in the order in which they began; the older part is combined once, from its end
- `prefixes`: where all columns add up, what is before a range is taken off

>>> rows = np.array([[1], [2], [4], [8]])
>>> first, last = np.array([0, 1, 1]), np.array([2, 4, 2])
>>> [fold(rows, ADDS, first, last).ravel().tolist() for fold in (delayed, running, slices, prefixes)]
[[3, 14, 2], [3, 14, 2], [3, 14, 2], [3, 14, 2]]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.kernels.cells import Cells, Ints

Ops: TypeAlias = "npt.NDArray[np.int64]"
ADD: Final = 0
GREATEST: Final = 1
NOTHING: Final = -(2**63)  # the greatest of no values
ADDS: Final = np.zeros(1, np.int64)
Fold: TypeAlias = "Callable[[Cells, Ops, Ints, Ints], Cells]"


def chosen(ops: Ops, first: Ints, last: Ints) -> Fold:
    """The algorithm for these columns and ranges."""
    if not ops.any():
        return prefixes
    return two_stacks if in_turn(first, last) else slices


def folded(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """The combined columns of each range, by whatever is fastest. Law: equal to `delayed`."""
    return chosen(ops, first, last)(rows, ops, first, last)


def in_turn(first: Ints, last: Ints) -> bool:
    """Whether ranges end in the order in which they begin."""
    return bool((first[1:] >= first[:-1]).all() and (last[1:] >= last[:-1]).all())


def delayed(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Scan every range."""
    found: Cells = _delayed(rows, ops, first, last)
    return found


def running(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Add every row to all open ranges."""
    found: Cells = _running(rows, ops, first, last, np.argsort(first, kind="stable"))
    return found


def slices(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """Combine slices between begins."""
    order = np.argsort(last, kind="stable")
    found: Cells = _slices(rows, ops, first, last, np.unique(first), order)
    return found


def two_stacks(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """For ranges that end in turn."""
    found: Cells = _two_stacks(rows, ops, first, last)
    return found


def prefixes(rows: Cells, ops: Ops, first: Ints, last: Ints) -> Cells:
    """For columns that add up."""
    found: Cells = _prefixes(rows, first, last)
    return found


@njit(cache=True, inline="always")
def _combine(out, n, rows, m, ops):  # type: ignore[no-untyped-def]
    for c in range(len(ops)):
        if ops[c] == ADD:
            out[n, c] += rows[m, c]
        elif rows[m, c] > out[n, c]:
            out[n, c] = rows[m, c]


@njit(cache=True, inline="always")
def _clear(out, n, ops):  # type: ignore[no-untyped-def]
    for c in range(len(ops)):
        out[n, c] = 0 if ops[c] == ADD else NOTHING


@njit(cache=True)
def _nothing(count, ops):  # type: ignore[no-untyped-def]
    out = np.empty((count, len(ops)), np.int64)
    for n in range(count):
        _clear(out, n, ops)
    return out


@njit(cache=True)
def _delayed(rows, ops, first, last):  # type: ignore[no-untyped-def]
    out = _nothing(len(first), ops)
    for n in range(len(first)):
        for row in range(first[n], last[n]):
            _combine(out, n, rows, row, ops)
    return out


@njit(cache=True)
def _running(rows, ops, first, last, order):  # type: ignore[no-untyped-def]
    out = _nothing(len(first), ops)
    is_open = np.empty(len(first), np.int64)
    count = begun = 0
    for row in range(len(rows)):
        while begun < len(order) and first[order[begun]] <= row:
            is_open[count] = order[begun]
            count += 1
            begun += 1
        kept = 0
        for n in range(count):
            if last[is_open[n]] > row:  # what has ended is let go
                is_open[kept] = is_open[n]
                kept += 1
                _combine(out, is_open[n], rows, row, ops)
        count = kept
    return out


@njit(cache=True)
def _slices(rows, ops, first, last, begins, order):  # type: ignore[no-untyped-def]
    """Ranges in the order of their ends. Slices are kept in a list; one that no open range begins at joins the one
    before it, so there are never more than open ranges."""
    out = _nothing(len(first), ops)
    wanted = np.zeros(len(begins) + 1, np.int64)  # how many open ranges begin at each slice
    slice_of = np.searchsorted(begins, first)
    for n in range(len(first)):
        wanted[slice_of[n]] += 1
    values = _nothing(len(begins), ops)
    after = np.arange(1, len(begins) + 1)  # the next slice that is there
    before = np.arange(-1, len(begins))
    row = begins[0] if len(begins) else 0
    opened = -1  # the last slice that has begun
    for k in range(len(order)):
        n = order[k]
        while row < last[n]:
            while opened + 1 < len(begins) and begins[opened + 1] <= row:
                opened += 1
            _combine(values, opened, rows, row, ops)
            row += 1
        if last[n] > first[n]:
            at = slice_of[n]
            while at < len(begins) and begins[at] < last[n]:
                _combine(out, n, values, at, ops)
                at = after[at]
        wanted[slice_of[n]] -= 1
        at = slice_of[n]
        if wanted[at] == 0 and at < opened and before[at] >= 0:  # it joins the slice before it
            _combine(values, before[at], values, at, ops)
            after[before[at]] = after[at]
            if after[at] < len(begins):
                before[after[at]] = before[at]
    return out


@njit(cache=True)
def _two_stacks(rows, ops, first, last):  # type: ignore[no-untyped-def]
    """``older`` holds combined suffixes up to ``turn``; what came later is combined in one row."""
    out = _nothing(len(first), ops)
    older = np.empty_like(rows)
    newer = _nothing(1, ops)
    turn = end = 0
    for n in range(len(first)):
        start = first[n]
        if start >= turn:  # everything older has ended: turn the newer rows over
            for row in range(last[n] - 1, start - 1, -1):
                for c in range(len(ops)):
                    older[row, c] = rows[row, c]
                if row + 1 < last[n]:
                    _combine(older, row, older, row + 1, ops)
            turn = end = last[n]
            _clear(newer, 0, ops)
        while end < last[n]:
            _combine(newer, 0, rows, end, ops)
            end += 1
        if last[n] > start:
            if start < turn:
                _combine(out, n, older, start, ops)
            _combine(out, n, newer, 0, ops)
    return out


@njit(cache=True)
def _prefixes(rows, first, last):  # type: ignore[no-untyped-def]
    width = rows.shape[1]
    sums = np.zeros((len(rows) + 1, width), np.int64)
    for row in range(len(rows)):
        for c in range(width):
            sums[row + 1, c] = sums[row, c] + rows[row, c]
    out = np.zeros((len(first), width), np.int64)
    for n in range(len(first)):
        if last[n] > first[n]:
            for c in range(width):
                out[n, c] = sums[last[n], c] - sums[first[n], c]
    return out
