"""What rows contribute to aggregates that combine: columns that add up, or have a greatest value.

Sums are exact, as limbs; see `kernels.windows.exact`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.kernels.cells import Cells, Ints, Layout, float_bits
from streamproof.kernels.lasting_events import folds
from streamproof.kernels.lasting_events.scopes import Questions
from streamproof.kernels.runs import PAYLOAD, W
from streamproof.kernels.windows import exact
from streamproof.kernels.windows.aggregates import mean_of_limbs, sum_overflow
from streamproof.kernels.windows.exact import FloatSums, Scale
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Bools
from streamproof.plan.aggregates import Aggregate

_SUMMED: Final = ("int64", "float64", "decimal")
_COMPARED: Final = ("int64", "float64", "date", "timestamp", "bool")


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

    @property
    def greatest(self) -> bool:
        """Whether its columns have a greatest value; else they add up."""
        return self.fn in ("min", "max")

    def limbs(self, width: int) -> int | None:
        """Where the limbs of a sum begin among its columns."""
        if self.fn not in ("sum", "avg"):
            return None
        return 4 if self.kind == FLOAT64 else 1

    def nothing(self) -> Contribution:
        """The contribution of no rows."""
        if self.fn in ("count", "min", "max"):
            return Contribution(np.empty((0, 1), np.int64))
        if self.kind == FLOAT64:
            scale = Scale.of(np.empty(0, np.int64))
            return Contribution(np.empty((0, 4 + scale.count), np.int64), scale)
        count = exact.INT_LIMBS if self.kind == INT64 else exact.DECIMAL_LIMBS
        return Contribution(np.empty((0, 1 + count), np.int64))

    def ops(self, given: Contribution) -> Ints:
        return np.array([folds.GREATEST if self.greatest else folds.ADD] * given.matrix.shape[1], np.int64)

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
        if len(count) and int(count.max()) > exact.MOST_TERMS:
            t = int(asked.t[int(count.argmax())])
            raise exact.too_many_terms(t, t + 1, int(count.max()))
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


def together(first: Contribution, second: Contribution) -> Contribution:
    """The rows of both, one after the other; limbs of floats on one scale."""
    if first.scale is None or second.scale is None:
        return Contribution(np.concatenate([first.matrix, second.matrix]))
    scale = first.scale.joined(second.scale)
    parts = [
        np.column_stack([given.matrix[:, :4], known.spread(given.matrix[:, 4:], scale)])
        for given, known in ((first, first.scale), (second, second.scale))
    ]
    return Contribution(np.concatenate(parts), scale)


def parts_of(aggs: tuple[tuple[str, Aggregate], ...], kept: Kept) -> list[Part] | None:
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


def _order_keys(values: Ints, kind: Type) -> Ints:
    """Integers that sort as the values do."""
    if kind == FLOAT64:  # sign and magnitude become one order; the one NaN is the greatest
        return values ^ ((values >> 63) & np.int64(2**63 - 1))
    return values


def _values(keys: Ints, kind: Type) -> Ints:
    """The inverse of `_order_keys`."""
    return _order_keys(keys, kind)
