"""From questions to results: the aggregates of the rows that each question sees.

Aggregates that combine (counts, sums, means, extremes of numbers) share work between overlapping ranges, see `folds`;
the others look at the members of each range.
"""

from __future__ import annotations

import numpy as np

from streamproof.events.schema import Type
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.lasting_events import folds
from streamproof.kernels.lasting_events.contributions import Contribution, parts_of, together
from streamproof.kernels.lasting_events.scopes import Questions, Stretch
from streamproof.kernels.runs import LE, PAYLOAD, W
from streamproof.kernels.windows.aggregates import Aggregates
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Members, Windows, spread
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.event_nodes import During


class Answers:
    """The aggregates of one node."""

    def __init__(self, node: During, kept: Kept, types: list[Type], context: Context) -> None:
        self.layout = Layout.of(types)
        self._context, self._kept, self._latest = context, kept, node.latest
        self._general = Aggregates(node.aggs, kept, self.layout)
        self.parts = None if node.latest else parts_of(node.aggs, kept)
        self._zero = _of_nothing(node.aggs, self.layout)

    def cells(self, asked: Questions, data: Stretch) -> Cells:
        """The results of questions, in their order."""
        out = np.repeat(self._zero, len(asked.t), axis=0)
        seen = np.flatnonzero(asked.last > asked.first)
        if len(seen):
            chosen = asked if len(seen) == len(asked.t) else asked.take(seen)
            out[seen] = self._of_members(chosen, data) if self.parts is None else self._combined(chosen, data)
        return out

    def _of_members(self, asked: Questions, data: Stretch) -> Cells:
        first, last, once = asked.first, asked.last, False
        if self._latest:
            first = self._last_rows(asked, data)
            last, once = first + 1, True
        window, row = spread(first, last - first)
        rows = data.rows[row]
        le, w = np.ascontiguousarray(rows[:, LE]), np.ascontiguousarray(rows[:, W])
        if once:
            w = np.ones_like(w)
        windows = Windows(asked.left, asked.t, asked.t + 1)
        layout, strings = self._kept.layout, self._context.strings
        return self._general.cells(Members(windows, window, le, le + 1, w, row, rows[:, PAYLOAD:], layout, strings))

    def _last_rows(self, asked: Questions, data: Stretch) -> Ints:
        """Of each range the last row in the order of start and payload."""
        cells = data.rows[:, PAYLOAD:]
        ties = Layout.of(self._kept.types[: self._kept.payload])
        nulls = cells[:, -1] & ((1 << len(ties.columns)) - 1)
        keys = ties.order_keys(np.column_stack([cells[:, : ties.width - 1], nulls]), self._context.strings)
        order = np.lexsort((*keys[::-1], data.le, data.sub))
        return order[asked.last - 1]  # subgroups and starts are where they were, so is the end of a range

    def _combined(self, asked: Questions, data: Stretch) -> Cells:
        """By folding. Only rows that some question sees are looked at."""
        assert self.parts is not None
        low, high = int(asked.first.min()), int(asked.last.max())
        columns = self._contributions(data, low, high)
        ops = np.concatenate(
            [np.zeros(0, np.int64), *(part.ops(c) for part, c in zip(self.parts, columns, strict=True))]
        )
        matrix = np.ascontiguousarray(np.column_stack([c.matrix for c in columns]))
        order = np.lexsort((asked.last, asked.first))
        first, last = asked.first[order] - low, asked.last[order] - low
        found = np.empty((len(order), matrix.shape[1]), np.int64)
        found[order] = folds.folded(matrix, ops, first, last)
        return self._finished(found, columns, asked)

    def contributions(self, rows: Cells) -> list[Contribution]:
        """What rows add to each aggregate."""
        assert self.parts is not None
        return [part.columns(rows, self._kept.layout) for part in self.parts]

    def _contributions(self, data: Stretch, low: int, high: int) -> list[Contribution]:
        """What the rows of a range add, slices among them."""
        if data.slices is None:
            return self.contributions(data.rows[low:high])
        own = self.contributions(data.rows)
        both = (together(a, b) for a, b in zip(data.slices.parts, own, strict=True))
        return [Contribution(given.matrix[data.order[low:high]], given.scale) for given in both]

    def _finished(self, found: Cells, columns: list[Contribution], asked: Questions) -> Cells:
        assert self.parts is not None
        out = np.zeros((len(found), self.layout.width), np.int64)
        at = 0
        for bit, (part, given) in enumerate(zip(self.parts, columns, strict=True)):
            width = given.matrix.shape[1]
            values, nulls = part.result(found[:, at : at + width], given, asked)
            at += width
            values[nulls] = 0
            cell = self.layout.columns[bit][1]
            out[:, cell : cell + values.shape[1]] = values
            out[:, -1] |= nulls.astype(np.int64) << bit
        return out


def _of_nothing(aggs: tuple[tuple[str, Aggregate], ...], layout: Layout) -> Cells:
    """The results where nothing is seen: counts are 0, all else is null."""
    cells = np.zeros((1, layout.width), np.int64)
    for bit, (_, agg) in enumerate(aggs):
        if agg.of_nothing is None:
            cells[0, -1] |= 1 << bit
    return cells
