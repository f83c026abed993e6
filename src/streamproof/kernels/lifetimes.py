"""What lifetimes of a key cover and leave free: gaps, runs, snapshots, and chains of touching lifetimes.

All but gaps take the rows of a run without payload, and the *origins* of rows that started before the base: per key or
chain, where what reaches the base began.

    lifetimes   [0 ────── 5)            gaps        what a cover leaves free of each lifetime
                     [3 ────── 9)       runs        [0 ─────────── 9)
                                        snapshots   [0 ─ 3)[3 ─ 5)[5 ─ 9)

Chains: at each instant, the chains that end there and the lifetimes that start there pair up in order. The earliest
begun chain goes on with the lifetime that ends first; chains left over are done, lifetimes left over begin chains.

>>> from streamproof.kernels.store import ints, ordered
>>> gaps(ints(0), ints(10), ints(0, 0), ints(2, 4), ints(4, 6))
Spans(row=array([0, 0]), le=array([0, 6]), re=array([ 2, 10]))
>>> rows = ordered(ints(1, 1), ints(0, 3), ints(5, 9), ints(1, 1), np.empty((2, 0), np.int64))
>>> nothing = np.empty((0, 5), np.int64)
>>> runs(rows, nothing, 0)[:, 1:3].tolist(), snapshots(rows, nothing, 0)[:, 1:3].tolist()
([[0, 9]], [[0, 3], [3, 5], [5, 9]])
>>> rows = ordered(ints(1, 1, 1), ints(0, 2, 5), ints(5, 5, 9), ints(1, 1, 1), np.empty((3, 0), np.int64))
>>> stitched(rows, nothing, 0)[:, 1:3].tolist()
[[0, 9], [2, 5]]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamproof.events import weights
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.lifetimes_loops import (
    apart_loop,
    difference_loop,
    gaps_by_key_loop,
    gaps_loop,
    last_boundaries_loop,
    last_ends_loop,
    link_loop,
    run_origins_loop,
    runs_loop,
    snapshots_loop,
    starts_loop,
    united,
)
from streamproof.kernels.sorting import order_by
from streamproof.kernels.store import ordered
from streamproof.kernels.store_loops import KEY, LE, RE, W


class Lifetimes(NamedTuple):
    """Lifetimes by key."""

    key: Ints
    le: Ints
    re: Ints


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
    """What is left of ``[start, end)`` of each row by the covers ``[le, re)``, which come by row, then le."""
    return Spans(*gaps_loop(start, end, row, le, re))


def gaps_by_key(lefts: Lifetimes, since: Ints, covers: Lifetimes) -> Spans:
    """What is left of ``[since, end)`` of each row by all covers of its key.

    Rows and covers come in the order of keys, then starts; the start of a row is where covers begin to matter.
    """
    return Spans(*gaps_by_key_loop(*lefts, since, *united(*covers)))


def last_ends(key: Ints, since: Ints, limit: int, covers: Lifetimes) -> Ints:
    """``since``, or the latest end of a cover of the key if that is later; ends after the limit count as the limit."""
    later: Ints = last_ends_loop(key, since, limit, covers.key, covers.re)
    return later


def difference(old: Spans, new: Spans) -> Change:
    """What turns the old stretches into the new ones; stretches that stay are left out."""
    return Change(*difference_loop(*old, *new))


def apart(key: Ints, start: Ints, end: Ints) -> tuple[Ints, Ints, Ints, Ints]:
    """Intervals, in the order of keys and starts, united to stretches that do not meet.

    Gives key, low, start and end of each stretch, where low is the end of the key's stretch before. A lifetime that
    meets several stretches and starts before the end of the first is found by the first alone, if others ask for
    ``le >= low``: so a search by stretches finds each event once.
    """
    keys, low, first, last = apart_loop(key, start, end)
    return keys, low, first, last


def runs(rows: Cells, origins: Cells, base: int) -> Cells:
    """The maximal stretches of each key that its lifetimes cover; touching ones are one."""
    found: Cells = runs_loop(rows, starts_loop(rows, origins, base))
    return found


def snapshots(rows: Cells, origins: Cells, base: int) -> Cells:
    """The stretches between neighbouring ends of each key's lifetimes that one of them covers."""
    found: Cells = snapshots_loop(rows, starts_loop(rows, origins, base))
    return found


def run_origins(rows: Cells, origins: Cells, base: int, new_base: int) -> Cells:
    """For each key with a lifetime across the new base, where its run began."""
    found: Cells = run_origins_loop(rows, starts_loop(rows, origins, base), new_base)
    return found


def last_boundaries(rows: Cells, origins: Cells, base: int, new_base: int) -> Cells:
    """For each key with a lifetime across the new base, the last start or end before it."""
    found: Cells = last_boundaries_loop(rows, starts_loop(rows, origins, base), new_base)
    return found


def stitched(rows: Cells, known: Cells, base: int) -> Cells:
    """The chains of each key. Rows that started before the base continue what ``known`` origins began."""
    events, began, goes_on = _linked(rows, known, base)
    last = ~goes_on
    return _chain_rows(events[last], began[last], np.empty((int(last.sum()), 0), np.int64))


def chain_origins(rows: Cells, known: Cells, base: int, new_base: int) -> Cells:
    """For each lifetime across the new base, where its chain began: key, the lifetime's start, and that as a cell."""
    events, began, _ = _linked(rows, known, base)
    across = (events[:, LE] < new_base) & (events[:, RE] >= new_base)
    events, began = events[across], began[across]
    events[:, RE] = FOREVER  # which origin belongs to which end is open
    return _chain_rows(events, events[:, LE], began.reshape(-1, 1))


def _chain_rows(events: Cells, starts: Ints, cells: Cells) -> Cells:
    key, re = np.ascontiguousarray(events[:, KEY]), np.ascontiguousarray(events[:, RE])
    return ordered(key, np.ascontiguousarray(starts), re, np.ones(len(key), np.int64), np.ascontiguousarray(cells))


def _linked(rows: Cells, known: Cells, base: int) -> tuple[Cells, Ints, npt.NDArray[np.bool_]]:
    """Each lifetime by itself, where its chain began, and whether the chain goes on after it."""
    if (count := weights.total(np.maximum(rows[:, W], 0))) > weights.MOST_LISTED:
        raise weights.too_long(count, weights.MOST_LISTED, at="chains of touching lifetimes")
    events, begun = (np.repeat(part, np.maximum(part[:, W], 0), axis=0) for part in (rows, known))
    by_end = order_by(np.ascontiguousarray(events[:, KEY]), np.ascontiguousarray(events[:, RE]))
    began, goes_on = link_loop(events, by_end, begun, base)
    return events, began, goes_on
