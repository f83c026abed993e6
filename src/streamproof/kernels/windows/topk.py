"""The events of rank at most k in each window: ties are all kept and leave gaps, nulls come last, NaN is greatest."""

from __future__ import annotations

import numpy as np

from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Members
from streamproof.plan import nodes


class Ranking:
    """The ranking of one node."""

    def __init__(self, node: nodes.TopK, kept: Kept, layout: Layout) -> None:
        self._k = node.k
        self._by = [(kept.column(expr), direction == "desc") for expr, direction in node.by]
        self._kept = kept
        self._layout = layout
        self._ranked = node.rank is not None

    def best(self, members: Members) -> tuple[Ints, Cells]:
        """The members that are kept, and the cells of their rows."""
        keys = [key for column, descending in self._by for key in self._keys(members, column, descending)]
        order = np.lexsort((*keys[::-1], members.window))
        rank = _ranks(members.window[order], members.w[order], [key[order] for key in keys])
        at, rank = order[rank <= self._k], rank[rank <= self._k]
        return at, self._rows(members.cells[at], rank)

    def _keys(self, members: Members, column: int, descending: bool) -> list[Ints]:
        known = members.known(column)
        keys = [~key if descending else key for key in members.order_keys(column)]
        return [(~known).astype(np.int64), *(np.where(known, key, 0) for key in keys)]

    def _rows(self, cells: Cells, rank: Ints) -> Cells:
        payload = Layout.of(self._kept.types[: self._kept.payload])
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
