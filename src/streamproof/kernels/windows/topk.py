"""The events of rank at most k in each window: ties are all kept and leave gaps, nulls come last, NaN is greatest."""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.compiled import loop
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Members
from streamproof.plan import nodes
from streamproof.thresholds import WATCHED


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
        if not len(members.w):
            return members.window, self._rows(members.cells, members.window)
        keys = self._all_keys(members)
        columns = _side_by_side(keys)
        at = self._candidates(members, columns)
        at = at[np.lexsort((*(key[at] for key in keys[::-1]), members.window[at]))]
        rank = np.empty(len(at), np.int64)
        size = _ranks(members.window, members.w, columns, at, rank, self._k)
        return at[:size], self._rows(members.cells[at[:size]], rank[:size])

    def ahead(self, members: Members) -> Ints:
        """The members behind fewer than k others of their window, and perhaps a few more; all of a window below 0."""
        return self._candidates(members, _side_by_side(self._all_keys(members)))

    def _candidates(self, members: Members, keys: Cells) -> Ints:
        """The members that may be among the first, so that only these are sorted."""
        if self._k > WATCHED.now or not len(members.w) or members.w.min() < 1:
            return np.arange(len(members.w))
        found = np.empty(len(members.w), np.int64)
        return found[: _near_top(members.window, keys, np.empty(self._k, np.int64), found)]

    def _all_keys(self, members: Members) -> list[Ints]:
        return [key for column, descending in self._by for key in self._keys(members, column, descending)]

    def _keys(self, members: Members, column: int, descending: bool) -> list[Ints]:
        keys = [~key if descending else key for key in members.order_keys(column)]
        if not members.cells[:, -1].any():  # nothing is null
            return keys
        known = members.known(column)
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


def _side_by_side(keys: list[Ints]) -> Cells:
    return keys[0].reshape(-1, 1) if len(keys) == 1 else np.column_stack(keys)


@loop
def _near_top(window, keys, top, found):  # type: ignore[no-untyped-def]
    """Find the members that fewer than k others of their window come strictly before, and perhaps a few more.

    ``top`` is for k members, the first ones so far in order. Of a window below 0 all are found. How many were found.
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
            if held < k or window[member] < 0 or not _before(keys, top[k - 1], member):
                found[size] = member
                size += 1
        first = last
    return size


@loop
def _ranks(window, w, keys, at, rank, k):  # type: ignore[no-untyped-def]
    """Of members in order, keep those of rank at most k, and write down their ranks; how many there are.

    The rank of a member is one more than how many events of its window come strictly before.
    """
    size = 0
    before = tied = np.int64(0)  # events of the window before this member, and before those that tie with it
    last = np.int64(-1)
    for n in range(len(at)):
        member = at[n]
        if last >= 0 and window[member] != window[last]:
            before = tied = np.int64(0)
        elif last >= 0 and _before(keys, last, member):
            tied = before
        if tied < k:
            at[size], rank[size] = member, tied + 1
            size += 1
        before += w[member]
        last = member
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
