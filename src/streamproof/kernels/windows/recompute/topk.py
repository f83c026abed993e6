"""The events of rank at most k in each window: ties are all kept and leave gaps, nulls come last, NaN is greatest.

Before events are stored, a prefilter leaves out those that only pass by: where a window gets its last events with the
batch that brings them, nothing can change it later, so an event behind k others of it is of no use to anybody, and need
not be sorted, kept, looked for and forgotten. Events are compared stretch by stretch, as they come: what is behind k
others of its stretch is behind them in the window.
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING
from streamproof.kernels.cells import Cells, Ints, Layout, Strings
from streamproof.kernels.windows.recompute.recompute_loops import near_top, ranks, stretches
from streamproof.kernels.windows.shared.grid import GridWindows
from streamproof.kernels.windows.shared.members import NO_WINDOWS, Events, Members
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan import nodes
from streamproof.thresholds import WATCHED


class Ranking:
    """The ranking of one node."""

    def __init__(self, node: nodes.TopK, stored: StoredColumns, layout: Layout) -> None:
        self._k = node.k
        self._by = [(stored.column(expr), direction == "desc") for expr, direction in node.by]
        self._stored = stored
        self._layout = layout
        self._ranked = node.rank is not None
        self._payload = Layout.of(stored.types[: stored.payload])

    def best(self, members: Members) -> tuple[Ints, Cells]:
        """The members that are kept, and the cells of their rows."""
        if not len(members.w):
            return members.window, self._rows(members.cells, members.window)
        keys = self._all_keys(members)
        columns = _side_by_side(keys)
        at = self._candidates(members, columns)
        at = at[np.lexsort((*(key[at] for key in keys[::-1]), members.window[at]))]
        rank = np.empty(len(at), np.int64)
        size = ranks(members.window, members.w, columns, at, rank, self._k)
        return at[:size], self._rows(members.cells[at[:size]], rank[:size])

    def ahead(self, members: Members) -> Ints:
        """The members behind fewer than k others of their window, and perhaps a few more; all of a window below 0."""
        return self._candidates(members, _side_by_side(self._all_keys(members)))

    def _candidates(self, members: Members, keys: Cells) -> Ints:
        """The members that may be among the first, so that only these are sorted."""
        if self._k > WATCHED.now or not len(members.w) or members.w.min() < 1:
            return np.arange(len(members.w))
        found = np.empty(len(members.w), np.int64)
        return found[: near_top(members.window, keys, np.empty(self._k, np.int64), found)]

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
        out[:, -1] = cells[:, -1] & ((1 << self._stored.payload) - 1)
        if self._ranked:
            out[:, payload.width - 1] = rank
        return out


def _side_by_side(keys: list[Ints]) -> Cells:
    return keys[0].reshape(-1, 1) if len(keys) == 1 else np.column_stack(keys)


def prefiltered(
    events: Events, grid: GridWindows, frontier: int, ranking: Ranking, layout: Layout, strings: Strings
) -> Events:
    """The events that may matter to a ranking on a grid, when time has come up to a frontier."""
    if frontier <= BEGINNING or grid.hop != grid.size or not len(events.w) or events.w.min() < 1:
        return events
    stretch = np.empty(len(events.w), np.int64)
    if stretches(events.group, events.le, events.re, grid.offset, grid.size, frontier, stretch) == len(stretch):
        return events
    ahead: Ints = ranking.ahead(
        Members(NO_WINDOWS, stretch, events.le, events.re, events.w, stretch, events.cells, layout, strings)
    )
    return events if len(ahead) == len(stretch) else events.take(ahead)
