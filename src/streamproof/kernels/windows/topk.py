"""The events of rank at most k in each window: ties are all kept and leave gaps, nulls come last, NaN is greatest."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Members
from streamproof.plan import nodes

MOST_WATCHED = 64  # so many of a window are kept in order while its members are looked at


class Ranking:
    """The ranking of one node."""

    def __init__(self, node: nodes.TopK, kept: Kept, layout: Layout) -> None:
        self._k = node.k
        self._by = [(kept.column(expr), direction == "desc") for expr, direction in node.by]
        self._kept = kept
        self._layout = layout
        self._ranked = node.rank is not None
        self._payload = Layout.of(kept.types[: kept.payload])

    def best(self, members: Members) -> tuple[Ints, Cells]:
        """The members that are kept, and the cells of their rows."""
        keys = [key for column, descending in self._by for key in self._keys(members, column, descending)]
        if not len(members.w):
            return members.window, self._rows(members.cells, members.window)
        near = self._candidates(members, keys)
        at, rank = self._ranked_of(members.window[near], members.w[near], [key[near] for key in keys])
        at = near[at]
        return at, self._rows(members.cells[at], rank)

    def _candidates(self, members: Members, keys: list[Ints]) -> Ints:
        """The members that may be among the first, so that only these are sorted."""
        if self._k > MOST_WATCHED or not len(members.w) or members.w.min() < 1:
            return np.arange(len(members.w))
        columns = keys[0].reshape(-1, 1) if len(keys) == 1 else np.column_stack(keys)
        found = np.empty(len(members.w), np.int64)
        return found[: _near_top(members.window, columns, np.empty(self._k, np.int64), found)]

    def _ranked_of(self, window: Ints, w: Ints, keys: list[Ints]) -> tuple[Ints, Ints]:
        """The rows of rank at most k in order, and their ranks."""
        order = np.lexsort((*keys[::-1], window))
        rank = _ranks(window[order], w[order], [key[order] for key in keys])
        return order[rank <= self._k], rank[rank <= self._k]

    def _keys(self, members: Members, column: int, descending: bool) -> list[Ints]:
        known = members.known(column)
        keys = [~key if descending else key for key in members.order_keys(column)]
        if known.all():
            return keys
        return [(~known).astype(np.int64), *(np.where(known, key, 0) for key in keys)]

    def _rows(self, cells: Cells, rank: Ints) -> Cells:
        payload = self._payload
        out = np.zeros((len(cells), self._layout.width), np.int64)
        out[:, : payload.width - 1] = cells[:, : payload.width - 1]
        out[:, -1] = cells[:, -1] & ((1 << self._kept.payload) - 1)
        if self._ranked:
            out[:, payload.width - 1] = rank
        return out


def _ranks(window: Ints, w: Ints, keys: list[Ints]) -> Ints:
    """For members in order: one more than how many events of the window come strictly before."""
    if not len(window):
        return window
    new_window = np.ones(len(window), np.bool_)
    new_window[1:] = window[1:] != window[:-1]
    new_rank = new_window.copy()
    for key in keys:
        new_rank[1:] |= key[1:] != key[:-1]
    before = np.cumsum(w) - w  # events before, those of windows before included
    place = np.arange(len(window))
    first = np.maximum.accumulate(np.where(new_window, place, 0))
    tied = np.maximum.accumulate(np.where(new_rank, place, 0))
    return before[tied] - before[first] + 1


@loop
def _near_top(window, keys, top, found):  # type: ignore[no-untyped-def]
    """Find the members that fewer than k others of their window come strictly before, and perhaps a few more.

    ``top`` is for k members, the first ones so far in order. How many were found.
    """
    k = len(top)
    size = first = 0
    while first < len(window):
        last, held = first, 0
        while last < len(window) and window[last] == window[first]:
            if held < k or _before(keys, last, top[k - 1]):
                held = _insert(keys, top, held, last)
            last += 1
        for member in range(first, last):
            if held < k or not _before(keys, top[k - 1], member):
                found[size] = member
                size += 1
        first = last
    return size


@njit(cache=True, inline="always")
def _before(keys, a, b):  # type: ignore[no-untyped-def]
    """Whether one member comes strictly before another."""
    for n in range(keys.shape[1]):
        if keys[a, n] != keys[b, n]:
            return keys[a, n] < keys[b, n]
    return False


@njit(cache=True, inline="always")
def _insert(keys, top, held, member):  # type: ignore[no-untyped-def]
    """Put a member in its place among the first; how many there are then."""
    at = min(held, len(top) - 1)
    while at > 0 and _before(keys, member, top[at - 1]):
        top[at] = top[at - 1]
        at -= 1
    top[at] = member
    return min(held + 1, len(top))
