"""What the lifetimes of each key cover: maximal runs, and snapshots; and where those that reach an instant began.

All take the rows of a run without payload, and the origins of rows that started before the base: one row per key, whose
cell says where what reaches the base began.

>>> from streamproof.kernels.runs import ints, ordered
>>> rows = ordered(ints(1, 1), ints(0, 3), ints(5, 9), ints(1, 1), np.empty((2, 0), np.int64))
>>> nothing = np.empty((0, 5), np.int64)
>>> runs(rows, nothing, 0)[:, 1:3].tolist(), snapshots(rows, nothing, 0)[:, 1:3].tolist()
([[0, 9]], [[0, 3], [3, 5], [5, 9]])
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells
from streamproof.kernels.compiled import loop
from streamproof.kernels.runs import KEY, LE, LEAST, PAYLOAD, RE, W


def runs(rows: Cells, origins: Cells, base: int) -> Cells:
    """The maximal stretches of each key that its lifetimes cover; touching ones are one."""
    found: Cells = _runs(rows, _starts(rows, origins, base))
    return found


def snapshots(rows: Cells, origins: Cells, base: int) -> Cells:
    """The stretches between neighbouring ends of each key's lifetimes that one of them covers."""
    found: Cells = _snapshots(rows, _starts(rows, origins, base))
    return found


def run_origins(rows: Cells, origins: Cells, base: int, new_base: int) -> Cells:
    """For each key with a lifetime across the new base, where its run began."""
    found: Cells = _run_origins(rows, _starts(rows, origins, base), new_base)
    return found


def last_boundaries(rows: Cells, origins: Cells, base: int, new_base: int) -> Cells:
    """For each key with a lifetime across the new base, the last start or end before it."""
    found: Cells = _last_boundaries(rows, _starts(rows, origins, base), new_base)
    return found


@njit(cache=True)
def _starts(rows, origins, base):  # type: ignore[no-untyped-def]
    """Where rows count from: their own start, or their key's origin if that lies before the base."""
    out = np.empty(len(rows), np.int64)
    at = 0
    for n in range(len(rows)):
        while at < len(origins) and origins[at, KEY] < rows[n, KEY]:
            at += 1
        out[n] = rows[n, LE]
        if rows[n, LE] < base and at < len(origins) and origins[at, KEY] == rows[n, KEY]:
            out[n] = origins[at, PAYLOAD]
    return out


@njit(cache=True)
def _runs(rows, starts):  # type: ignore[no-untyped-def]
    out = np.empty((len(rows), PAYLOAD), np.int64)
    size = 0
    for n in range(len(rows)):
        if rows[n, W] <= 0:
            continue
        if size > 0 and out[size - 1, KEY] == rows[n, KEY] and starts[n] <= out[size - 1, RE]:
            out[size - 1, RE] = max(out[size - 1, RE], rows[n, RE])
            continue
        out[size, KEY], out[size, LE], out[size, RE], out[size, W] = rows[n, KEY], starts[n], rows[n, RE], 1
        size += 1
    return out[:size]


@njit(cache=True)
def _run_origins(rows, starts, new_base):  # type: ignore[no-untyped-def]
    found = _runs(rows[rows[:, LE] < new_base], starts[rows[:, LE] < new_base])
    return _origin_rows(found[found[:, RE] >= new_base])  # the last run of a key, if any


@njit(cache=True)
def _last_boundaries(rows, starts, new_base):  # type: ignore[no-untyped-def]
    out = np.empty((len(rows), PAYLOAD), np.int64)
    size = first = 0
    while first < len(rows):
        last, boundary, lives = first, LEAST, False
        while last < len(rows) and rows[last, KEY] == rows[first, KEY]:
            if rows[last, LE] < new_base and rows[last, W] > 0:
                boundary = max(boundary, starts[last], rows[last, RE] if rows[last, RE] < new_base else LEAST)
                lives = lives or rows[last, RE] >= new_base
            last += 1
        if lives:
            out[size, KEY], out[size, LE], out[size, RE], out[size, W] = rows[first, KEY], boundary, 0, 1
            size += 1
        first = last
    return _origin_rows(out[:size])


@njit(cache=True)
def _origin_rows(found):  # type: ignore[no-untyped-def]
    """Rows whose cell says where they start."""
    out = np.empty((len(found), PAYLOAD + 1), np.int64)
    for n in range(len(found)):
        out[n, KEY], out[n, LE], out[n, RE], out[n, W] = found[n, KEY], 0, FOREVER, 1
        out[n, PAYLOAD] = found[n, LE]
    return out


@njit(cache=True)
def _snapshots(rows, starts):  # type: ignore[no-untyped-def]
    out = np.empty((2 * len(rows), PAYLOAD), np.int64)
    size = first = 0
    while first < len(rows):
        last = first
        while last < len(rows) and rows[last, KEY] == rows[first, KEY]:
            last += 1
        counted = rows[first:last, W] > 0
        begins = np.sort(starts[first:last][counted])
        ends = np.sort(rows[first:last, RE].copy()[counted])
        size = _sweep(begins, ends, rows[first, KEY], out, size)
        first = last
    return out[:size]


@loop
def _sweep(begins, ends, key, out, size):  # type: ignore[no-untyped-def]
    """Write the snapshots of one key; gives how many rows are written now."""
    i = j = alive = 0
    here = LEAST
    while j < len(ends):
        following = min(begins[i], ends[j]) if i < len(begins) else ends[j]
        if alive > 0:
            out[size, KEY], out[size, LE], out[size, RE], out[size, W] = key, here, following, 1
            size += 1
        while i < len(begins) and begins[i] == following:
            i += 1
            alive += 1
        while j < len(ends) and ends[j] == following:
            j += 1
            alive -= 1
        here = following
    return size
