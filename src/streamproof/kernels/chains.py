"""Chains of touching lifetimes of one key.

At each instant, the chains that end there and the lifetimes that start there pair up in order: the earliest begun chain
goes on with the lifetime that ends first. Chains left over are done, lifetimes left over begin chains.

>>> from streamproof.kernels.runs import ints
>>> rows = ordered(ints(1, 1, 1), ints(0, 2, 5), ints(5, 5, 9), ints(1, 1, 1), np.empty((3, 0), np.int64))
>>> stitched(rows, np.empty((0, 5), np.int64), 0)[:, 1:3].tolist()
[[0, 9], [2, 5]]
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.events import weights
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.compiled import loop
from streamproof.kernels.runs import KEY, LE, PAYLOAD, RE, W, ordered
from streamproof.kernels.sorting import order_by


def stitched(rows: Cells, known: Cells, base: int) -> Cells:
    """The chains of each key. Rows that started before the base continue what ``known`` origins began."""
    events, began, goes_on = _linked(rows, known, base)
    last = ~goes_on
    return _rows(events[last], began[last], np.empty((int(last.sum()), 0), np.int64))


def origins(rows: Cells, known: Cells, base: int, new_base: int) -> Cells:
    """For each lifetime across the new base, where its chain began: key, the lifetime's start, and that as a cell."""
    events, began, _ = _linked(rows, known, base)
    across = (events[:, LE] < new_base) & (events[:, RE] >= new_base)
    events, began = events[across], began[across]
    events[:, RE] = FOREVER  # which origin belongs to which end is open
    return _rows(events, events[:, LE], began.reshape(-1, 1))


def _rows(events: Cells, starts: Ints, cells: Cells) -> Cells:
    key, re = np.ascontiguousarray(events[:, KEY]), np.ascontiguousarray(events[:, RE])
    return ordered(key, np.ascontiguousarray(starts), re, np.ones(len(key), np.int64), np.ascontiguousarray(cells))


def _linked(rows: Cells, known: Cells, base: int) -> tuple[Cells, Ints, npt.NDArray[np.bool_]]:
    """Each lifetime by itself, where its chain began, and whether the chain goes on after it."""
    if (count := weights.total(np.maximum(rows[:, W], 0))) > weights.MOST_LISTED:
        raise weights.too_long(count, weights.MOST_LISTED, at="chains of touching lifetimes")
    events, begun = (np.repeat(part, np.maximum(part[:, W], 0), axis=0) for part in (rows, known))
    by_end = order_by(np.ascontiguousarray(events[:, KEY]), np.ascontiguousarray(events[:, RE]))
    began, goes_on = _link(events, by_end, begun, base)
    return events, began, goes_on


@njit(cache=True)
def _link(events, by_end, begun, base):  # type: ignore[no-untyped-def]
    began = np.empty(len(events), np.int64)
    goes_on = np.zeros(len(events), np.bool_)
    first = ended = origin = 0
    while first < len(events):
        key, t = events[first, KEY], events[first, LE]
        last = first
        while last < len(events) and events[last, KEY] == key and events[last, LE] == t:
            began[last] = t
            last += 1
        if t < base:
            origin = _continue_known(events, first, last, begun, origin, began)
        else:
            ended = _continue_ended(events, first, last, by_end, ended, began, goes_on)
        first = last
    return began, goes_on


@loop
def _continue_known(events, first, last, begun, at, began):  # type: ignore[no-untyped-def]
    """Lifetimes with one start, in the order of their ends, continue the origins of that start in order."""
    key, t = events[first, KEY], events[first, LE]
    while at < len(begun) and (begun[at, KEY] < key or (begun[at, KEY] == key and begun[at, LE] < t)):
        at += 1
    for n in range(first, last):
        if at < len(begun) and begun[at, KEY] == key and begun[at, LE] == t:
            began[n] = begun[at, PAYLOAD]
            at += 1
    return at


@njit(cache=True)
def _continue_ended(events, first, last, by_end, at, began, goes_on):  # type: ignore[no-untyped-def]
    """Lifetimes with one start, in the order of their ends, continue chains that end there, the earliest first."""
    key, t = events[first, KEY], events[first, LE]
    while at < len(by_end) and (
        events[by_end[at], KEY] < key or (events[by_end[at], KEY] == key and events[by_end[at], RE] < t)
    ):
        at += 1
    stop = at
    while stop < len(by_end) and events[by_end[stop], KEY] == key and events[by_end[stop], RE] == t:
        stop += 1
    ended = by_end[at:stop]
    earliest = np.argsort(began[ended])
    for n in range(min(stop - at, last - first)):
        before = ended[earliest[n]]
        goes_on[before] = True
        began[first + n] = began[before]
    return stop
