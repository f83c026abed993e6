"""Deltas without rows that cancel, at little cost where few can.

A row can only cancel one of the other sign with the same group and lifetime. Those are found by a table of marks, and
only they are compared whole.

>>> from streamproof.events.schema import Schema
>>> from streamproof.events.batch import Batch
>>> schema = Schema.of({"v": "int64"})
>>> rows = [(1, 5, 1, {"v": 7}), (1, 5, -1, {"v": 7}), (2, 5, -1, {"v": 7})]
>>> delta = Delta.from_batch(Batch.from_rows(schema, rows))
>>> without_cancelling(delta, Layout.of(schema), Strings()).le.tolist()
[2]
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numba import njit

from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.compiled import loop
from streamproof.kernels.delta import Delta, consolidate, net_weights

PLUS, MINUS, BOTH = 1, 2, 3


def without_cancelling(delta: Delta, layout: Layout, strings: Strings) -> Delta:
    """The same sum with nothing that cancels. Law: `consolidate` of both is equal."""
    if not len(delta) or delta.extent.least_w > 0 or delta.extent.greatest_w < 0:
        return delta
    suspects = _suspects(delta.group, delta.le, delta.re, delta.w)
    if not suspects.any():
        return delta
    if suspects.all():
        return consolidate(delta, layout, strings)
    doubtful = np.flatnonzero(suspects)
    totals, firsts = net_weights(delta, doubtful, layout, strings)
    w = delta.w.copy()
    w[doubtful] = 0
    w[doubtful[firsts]] = totals
    return replace(delta, w=w).take(w != 0)


@loop
def _mark(group, le, re, mask):  # type: ignore[no-untyped-def]
    """The place of a group and lifetime in the table."""
    h = np.uint64(group) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ np.uint64(le)) * np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(29)
    h = (h ^ np.uint64(re)) * np.uint64(0x94D049BB133111EB)
    return (h ^ (h >> np.uint64(32))) & mask


@njit(cache=True)
def _suspects(group, le, re, w):  # type: ignore[no-untyped-def]
    """Which rows share their mark with one of the other sign; rows of weight zero are always suspect."""
    size = 64
    while size < 8 * len(le):
        size *= 2
    mask = np.uint64(size - 1)
    marks = np.zeros(size, np.uint8)
    for n in range(len(le)):
        marks[_mark(group[n], le[n], re[n], mask)] |= PLUS if w[n] > 0 else MINUS
    out = np.empty(len(le), np.bool_)
    for n in range(len(le)):
        out[n] = w[n] == 0 or marks[_mark(group[n], le[n], re[n], mask)] == BOTH
    return out
