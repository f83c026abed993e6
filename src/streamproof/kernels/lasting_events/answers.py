"""From questions to results: the aggregates of the rows that each question sees.

Aggregates that combine (counts, sums, means, extremes of numbers) share work between overlapping ranges, see `folds`;
the others look at the members of each range.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout, float_bits
from streamproof.kernels.lasting_events import folds
from streamproof.kernels.lasting_events.scopes import Questions, Stretch
from streamproof.kernels.runs import LE, PAYLOAD, W
from streamproof.kernels.windows import exact
from streamproof.kernels.windows.aggregates import Aggregates, mean_of_limbs, sum_overflow
from streamproof.kernels.windows.exact import FloatSums, Scale
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Bools, Members, Windows, spread
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.driving import During

_SUMMED: Final = ("int64", "float64", "decimal")
_COMPARED: Final = ("int64", "float64", "date", "timestamp", "bool")


class Answers:
    """The aggregates of one node."""

    def __init__(self, node: During, kept: Kept, types: list[Type], context: Context) -> None:
        self.layout = Layout.of(types)
        self._context, self._kept, self._latest = context, kept, node.latest
        self._general = Aggregates(node.aggs, kept, self.layout)
        self.parts = None if node.latest else _parts(node.aggs, kept)
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
        rows = data.rows[low:high]
        columns = [part.columns(rows, self._kept.layout) for part in self.parts]
        ops = np.concatenate([np.zeros(0, np.int64), *(part.ops(c) for part, c in zip(self.parts, columns, strict=True))])
        matrix = np.ascontiguousarray(np.column_stack([c.matrix for c in columns]))
        order = np.lexsort((asked.last, asked.first))
        first, last = asked.first[order] - low, asked.last[order] - low
        found = np.empty((len(order), matrix.shape[1]), np.int64)
        found[order] = folds.folded(matrix, ops, first, last)
        return self._finished(found, columns, asked)

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


@dataclass(frozen=True, slots=True)
class Contribution:
    """What rows add to an aggregate: columns to combine, and for floats the scale of their limbs."""

    matrix: Cells
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One aggregate that combines."""

    fn: str
    column: int
    kind: Type

    def ops(self, given: Contribution) -> Ints:
        greatest = self.fn in ("min", "max")
        return np.array([folds.GREATEST if greatest else folds.ADD] * given.matrix.shape[1], np.int64)

    def columns(self, rows: Cells, layout: Layout) -> Contribution:
        """The columns of each row; a null adds nothing."""
        w = np.ascontiguousarray(rows[:, W])
        if self.fn == "count":
            return Contribution(w.reshape(-1, 1))
        cells = rows[:, PAYLOAD:]
        known = ~layout.nulls(cells, self.column)
        cell = layout.columns[self.column][1]
        values = np.ascontiguousarray(cells[:, cell])
        if self.fn in ("min", "max"):
            keys = _order_keys(values, self.kind)
            keys = ~keys if self.fn == "min" else keys
            return Contribution(np.where(known, keys, folds.NOTHING).reshape(-1, 1))
        return self._sums(values, cells, cell, known, w)

    def _sums(self, values: Ints, cells: Cells, cell: int, known: Bools, w: Ints) -> Contribution:
        """The count of known values, then the limbs of their sum."""
        event = np.flatnonzero(known)
        counted = np.where(known, w, 0).reshape(-1, 1)
        if self.kind == FLOAT64:
            scale = Scale.of(values[event])
            limbs = np.zeros((len(values), 3 + scale.count), np.int64)
            exact.add_floats(limbs, 3, 0, scale.base, values, event, event, w[event])
            return Contribution(np.column_stack([counted, limbs]), scale)
        if self.kind == INT64:
            limbs = np.zeros((len(values), exact.INT_LIMBS), np.int64)
            exact.add_ints(limbs, 0, values, event, event, w[event])
            return Contribution(np.column_stack([counted, limbs]))
        limbs = np.zeros((len(values), exact.DECIMAL_LIMBS), np.int64)
        high = np.ascontiguousarray(cells[:, cell + 1])
        exact.add_decimals(limbs, 0, values, high, event, event, w[event])
        return Contribution(np.column_stack([counted, limbs]))

    def result(self, found: Cells, given: Contribution, asked: Questions) -> tuple[Cells, Bools]:
        """The aggregate of each range, and where it is null."""
        if self.fn == "count":
            return found.copy(), np.zeros(len(found), np.bool_)
        if self.fn in ("min", "max"):
            keys = np.ascontiguousarray(found[:, 0])
            nulls = keys == folds.NOTHING
            keys = ~keys if self.fn == "min" else keys
            return _values(keys, self.kind).reshape(-1, 1), nulls
        count, limbs = np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1:])
        return (self._sum if self.fn == "sum" else self._mean)(limbs, count, given, asked), count == 0

    def _sum(self, limbs: Cells, count: Ints, given: Contribution, asked: Questions) -> Cells:
        if self.kind == FLOAT64:
            assert given.scale is not None
            return float_bits(FloatSums(given.scale, limbs).totals()).reshape(-1, 1)
        values, lost = exact.whole(limbs) if self.kind == INT64 else exact.decimals(limbs)
        if lost.any():
            t = int(asked.t[int(lost.argmax())])
            raise sum_overflow(t, t + 1, self.kind)
        found: Cells = values.reshape(len(values), -1)
        return found

    def _mean(self, limbs: Cells, count: Ints, given: Contribution, asked: Questions) -> Cells:
        if self.kind == FLOAT64:
            assert given.scale is not None
            return float_bits(FloatSums(given.scale, limbs).means(count)).reshape(-1, 1)
        means = mean_of_limbs(limbs, count)
        return float_bits(means if self.kind == INT64 else means / 10.0**self.kind.scale).reshape(-1, 1)


def _parts(aggs: tuple[tuple[str, Aggregate], ...], kept: Kept) -> list[Part] | None:
    """The aggregates, if all of them combine."""
    found: list[Part] = []
    for _, agg in aggs:
        if agg.fn == "count":
            found.append(Part("count", 0, INT64))
            continue
        assert agg.arg is not None
        kind = kept.type_of(agg.arg)
        fits = agg.fn in ("sum", "avg") and kind.kind in _SUMMED
        if not fits and not (agg.fn in ("min", "max") and kind.kind in _COMPARED):
            return None
        found.append(Part(agg.fn, kept.column(agg.arg), kind))
    return found


def _of_nothing(aggs: tuple[tuple[str, Aggregate], ...], layout: Layout) -> Cells:
    """The results where nothing is seen: counts are 0, all else is null."""
    cells = np.zeros((1, layout.width), np.int64)
    for bit, (_, agg) in enumerate(aggs):
        if agg.fn not in ("count", "count_distinct"):
            cells[0, -1] |= 1 << bit
    return cells


def _order_keys(values: Ints, kind: Type) -> Ints:
    """Integers that sort as the values do."""
    if kind == FLOAT64:  # sign and magnitude become one order; the one NaN is the greatest
        return values ^ ((values >> 63) & np.int64(2**63 - 1))
    return values


def _values(keys: Ints, kind: Type) -> Ints:
    """The inverse of `_order_keys`."""
    return _order_keys(keys, kind)
