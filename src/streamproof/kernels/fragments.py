"""The gaps in covers: which stretches of each lifetime nothing covers, and how they change.

>>> from streamproof.kernels.store import ints
>>> gaps(ints(0), ints(10), ints(0, 0), ints(2, 4), ints(4, 6))
Spans(row=array([0, 0]), le=array([0, 6]), re=array([ 2, 10]))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.runs import KEY, LEAST


class Spans(NamedTuple):
    """Stretches of time, each of a numbered row; in the order of rows, then of time."""

    row: Ints
    le: Ints
    re: Ints


class Change(NamedTuple):
    """Stretches that come (+1) or go (−1)."""

    row: Ints
    le: Ints
    re: Ints
    sign: Ints


def gaps(start: Ints, end: Ints, row: Ints, le: Ints, re: Ints) -> Spans:
    """What is left of ``[start, end)`` of each row by the covers ``[le, re)``, which come in the order of rows, then le."""
    return Spans(*_gaps(start, end, row, le, re))


def difference(old: Spans, new: Spans) -> Change:
    """What turns the old stretches into the new ones; stretches that stay are left out."""
    return Change(*_difference(*old, *new))


def apart(rows: Cells, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Intervals, in the order of keys and starts, united to stretches that do not meet.

    Gives key, low, start and end of each stretch, where low is the end of the key's stretch before. A lifetime that
    meets several stretches and starts before the end of the first is found by the first alone, if others ask for
    ``le >= low``: so a search by stretches finds each event once.
    """
    key, low, first, last = _apart(np.ascontiguousarray(rows[:, KEY]), start, end)
    return key, low, first, last


@njit(cache=True)
def _gaps(start, end, row, le, re):  # type: ignore[no-untyped-def]
    most = len(start) + len(row)
    out_row, out_le, out_re = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    size = at = 0
    for n in range(len(start)):
        free = start[n]  # everything before it is covered or done
        while at < len(row) and row[at] == n:
            if le[at] > free and free < end[n]:
                out_row[size], out_le[size], out_re[size] = n, free, min(le[at], end[n])
                size += 1
            free = max(free, re[at])
            at += 1
        if free < end[n]:
            out_row[size], out_le[size], out_re[size] = n, free, end[n]
            size += 1
    return out_row[:size], out_le[:size], out_re[:size]


@njit(cache=True)
def _difference(old_row, old_le, old_re, new_row, new_le, new_re):  # type: ignore[no-untyped-def]
    most = len(old_row) + len(new_row)
    row, le, re = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64)
    sign = np.empty(most, np.int64)
    i = j = size = 0
    while i < len(old_row) or j < len(new_row):
        order = 1
        if j >= len(new_row):
            order = -1
        elif i < len(old_row):
            before = (old_row[i], old_le[i], old_re[i])
            after = (new_row[j], new_le[j], new_re[j])
            order = 0 if before == after else (-1 if before < after else 1)
        if order < 0:
            row[size], le[size], re[size], sign[size] = old_row[i], old_le[i], old_re[i], -1
        if order > 0:
            row[size], le[size], re[size], sign[size] = new_row[j], new_le[j], new_re[j], 1
        if order <= 0:
            i += 1
        if order >= 0:
            j += 1
        if order != 0:
            size += 1
    return row[:size], le[:size], re[:size], sign[:size]


@njit(cache=True)
def _apart(key, start, end):  # type: ignore[no-untyped-def]
    keys, low = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    first, last = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
    size = 0
    for n in range(len(key)):
        goes_on = size > 0 and keys[size - 1] == key[n]
        if goes_on and start[n] <= last[size - 1]:
            last[size - 1] = max(last[size - 1], end[n])
            continue
        keys[size], first[size], last[size] = key[n], start[n], end[n]
        low[size] = last[size - 1] if goes_on else LEAST
        size += 1
    return keys[:size], low[:size], first[:size], last[:size]
