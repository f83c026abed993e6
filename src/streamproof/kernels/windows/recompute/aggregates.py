"""Aggregates over the members of windows: one row per window, all windows at once.

Every result depends on the members alone, not on their order or on how they arrived: sums are exact and rounded once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from streamproof.errors import RunError
from streamproof.events import weights
from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.events.time import BEGINNING, show_tick
from streamproof.kernels.cells import Bools, Cells, Ints, Layout, float_bits
from streamproof.kernels.interning import Interner
from streamproof.kernels.windows.shared import exact, sums_loops
from streamproof.kernels.windows.shared.exact import Floats, FloatSums, too_many_terms
from streamproof.kernels.windows.shared.members import Members
from streamproof.kernels.windows.shared.members_loops import best, largest, totals
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan.aggregates import Aggregate, unsupported


class Aggregates:
    """The aggregates of one node."""

    def __init__(self, aggs: tuple[tuple[str, Aggregate], ...], stored: StoredColumns, layout: Layout) -> None:
        self._layout = layout
        self._stored = stored
        self._columns = [_compiled(agg, stored) for _, agg in aggs]
        self._ordered = [(agg.fn, _argument(agg, stored)) for _, agg in aggs if agg.function.ordered]

    def cells(self, members: Members) -> Cells:
        """The results of all windows."""
        out = np.zeros((len(members), self._layout.width), np.int64)
        for bit, ((_, cell), column) in enumerate(zip(self._layout.columns, self._columns, strict=True)):
            values, nulls = column(members)
            values[nulls] = 0
            out[:, cell : cell + values.shape[1]] = values
            out[:, -1] |= nulls.astype(np.int64) << bit
        return out

    def holds(self, members: Members) -> Ints:
        """Per window the latest end whose change could still change the result: among ties of first and last."""
        held = np.full(len(members), BEGINNING)
        for fn, column in self._ordered:
            known = members.known(column)
            starts = members.le if fn == "first" else ~members.le
            extreme = largest(members.window[known], ~starts[known], len(members), np.iinfo(np.int64).min)
            tied = known & (~starts == extreme[members.window])
            several = totals(members.window, np.ones_like(members.w), tied, len(members)) > 1
            tied &= several[members.window]
            held = np.maximum(held, largest(members.window[tied], members.re[tied], len(members), BEGINNING))
        return held


def _argument(agg: Aggregate, stored: StoredColumns) -> int:
    assert agg.arg is not None
    kind = stored.type_of(agg.arg)
    # the mean of decimals is that of their exact sum; what lies between two values is a float anyway
    to = FLOAT64 if kind.kind == "decimal" and agg.function.as_float else None
    return stored.column(agg.arg, to=to)


def _compiled(agg: Aggregate, stored: StoredColumns) -> Evaluate:
    if agg.fn == "count":
        return _count
    assert agg.arg is not None
    column, kind = _argument(agg, stored), stored.type_of(agg.arg)
    if kind.kind == "null" and agg.fn != "count_distinct":
        return lambda members: (np.zeros((len(members), 1), np.int64), np.ones(len(members), np.bool_))
    match agg.fn:
        case "sum":
            return _sum(column, kind)
        case "avg":
            return _avg(column, kind)
        case "min" | "max":
            return extreme(column, greatest=agg.fn == "max")
        case "first" | "last":
            return first_or_last(column, stored, last=agg.fn == "last")
        case "median":
            return percentile(column, 0.5)
        case "percentile":
            p = agg.params[0]
            assert isinstance(p, int | float)
            return percentile(column, p)
        case "count_distinct":
            return count_distinct(column, kind)
        case "var_samp" | "var_pop" | "stdev_samp" | "stdev_pop":
            return _spread(column, less=1 if agg.fn.endswith("_samp") else 0, root=agg.fn.startswith("stdev"))
    raise unsupported(agg.fn, "local")


def _count(members: Members) -> Column:
    everyone = np.ones(len(members.window), np.bool_)
    return _one(totals(members.window, members.w, everyone, len(members))), np.zeros(len(members), np.bool_)


def _one(values: Ints) -> Cells:
    return values.reshape(-1, 1)


def _floats(values: Floats, nulls: Bools) -> Column:
    return _one(float_bits(values)), nulls


# --- sums -------------------------------------------------------------------------------------------------------------


def _counted(members: Members, column: int) -> tuple[Bools, Ints]:
    """Which members have a value, and how many of each window do: no more than a sum can hold."""
    known = members.known(column)
    count = totals(members.window, members.w, known, len(members))
    if len(count) and int(count.max()) > exact.MOST_TERMS:
        at = int(count.argmax())
        raise exact.too_many_terms(int(members.windows.le[at]), int(members.windows.re[at]), int(count[at]))
    return known, count


def float_sums(members: Members, values: Ints, known: Bools) -> FloatSums:
    """The exact sums of floats, given as bits."""
    bits = values[known]
    sums = FloatSums.of(bits, rows=len(members))
    sums.add(members.window[known], bits, members.w[known])
    return sums


def _int_limbs(members: Members, column: int, known: Bools) -> Cells:
    limbs = np.zeros((len(members), exact.INT_LIMBS), np.int64)
    event = np.flatnonzero(known)
    sums_loops.add_ints(limbs, 0, members.values(column), members.window[event], event, members.w[event])
    return limbs


def _decimal_limbs(members: Members, column: int, known: Bools) -> Cells:
    limbs = np.zeros((len(members), sums_loops.DECIMAL_LIMBS), np.int64)
    _, cell = members.layout.columns[column]
    event = np.flatnonzero(known)
    low, high = (np.ascontiguousarray(members.cells[:, n]) for n in (cell, cell + 1))
    sums_loops.add_decimals(limbs, 0, low, high, members.window[event], event, members.w[event])
    return limbs


def _sum(column: int, kind: Type) -> Evaluate:
    def evaluate(members: Members) -> Column:
        known, count = _counted(members, column)
        if kind == FLOAT64:
            return _floats(float_sums(members, members.values(column), known).totals(), count == 0)
        if kind == INT64:
            values, lost = sums_loops.whole(_int_limbs(members, column, known))
            _refuse_overflow(members, lost, kind)
            return _one(values), count == 0
        halves, lost = sums_loops.decimals(_decimal_limbs(members, column, known))
        _refuse_overflow(members, lost, kind)
        return halves, count == 0

    return evaluate


def _refuse_overflow(members: Members, lost: Bools, kind: Type) -> None:
    if lost.any():
        at = int(lost.argmax())
        raise sum_overflow(int(members.windows.le[at]), int(members.windows.re[at]), kind)


def sum_overflow(le: int, re: int, kind: Type) -> RunError:
    """The error of a sum that its type cannot hold."""
    wanted = "int64" if kind == INT64 else "decimal(38)"
    return RunError(
        f"a sum does not fit into {wanted}",
        at=f"window [{show_tick(le)}, {show_tick(re)})",
        fix="sum a float instead: cast the column to float64",
        name="overflow",
    )


def _avg(column: int, kind: Type) -> Evaluate:
    def evaluate(members: Members) -> Column:
        known, count = _counted(members, column)
        if kind == FLOAT64:
            means = float_sums(members, members.values(column), known).means(count)
        elif kind == INT64:
            means = mean_of_limbs(_int_limbs(members, column, known), count)
        else:
            means = mean_of_limbs(_decimal_limbs(members, column, known), count) / 10.0**kind.scale
        return _floats(means, count == 0)

    return evaluate


def mean_of_limbs(limbs: Cells, count: Ints) -> Floats:
    """Exact sums of integers divided by counts."""
    mantissa, exponent = sums_loops.rounded(limbs, 0)
    return exact.scaled(mantissa / np.maximum(count, 1), exponent)


def _spread(column: int, *, less: int, root: bool) -> Evaluate:
    def evaluate(members: Members) -> Column:
        known, count = _counted(members, column)
        variance = _variance(members, members.floats(column), known, count, less)
        with np.errstate(invalid="ignore"):
            return _floats(np.sqrt(variance) if root else variance, count <= less)

    return evaluate


def _variance(members: Members, values: Floats, known: Bools, count: Ints, less: int) -> Floats:
    """Two passes: distances from the mean, then their squares. Each term depends on its value and the mean alone,
    and sums are exact, so the order of the members does not show."""
    with np.errstate(all="ignore"):  # NaN, ∞ and null give NaN, ∞ and null
        mean = _fine_means(members, values, known, count)
        distance = values - mean[members.window]
        squares = float_sums(members, float_bits(distance * distance), known).totals()
        drift = float_sums(members, float_bits(distance), known).totals()
        found = np.maximum(squares - drift * drift / np.maximum(count, 1), 0.0) / np.maximum(count - less, 1)
    finite = known & ~np.isfinite(values)
    odd = totals(members.window, members.w, finite, len(members)) > 0
    return np.where(odd, np.nan, np.where(np.isnan(found), np.inf, found))


def _fine_means(members: Members, values: Floats, known: Bools, count: Ints) -> Floats:
    """Means with one rounding: the quotient, corrected by what its product with the count leaves over."""
    sums = float_sums(members, float_bits(values), known)
    high = sums.totals()
    divisor = np.maximum(count, 1).astype(np.float64)
    rough = sums.means(count)
    rest = float_sums(members, float_bits(values - rough[members.window]), known).totals()
    fine = rough + rest / divisor
    return np.where(np.isfinite(fine) & np.isfinite(high), fine, rough)


Column: TypeAlias = "tuple[Cells, Bools]"
"""A result's cells (one or two per window) and where it is null."""
Evaluate: TypeAlias = Callable[[Members], Column]
MOST_RANKED: Final = 1 << 52  # up to here a rank is a float


def extreme(column: int, *, greatest: bool) -> Evaluate:
    """The least or the greatest value; NaN is above all numbers."""

    def evaluate(members: Members) -> Column:
        keys = members.order_keys(column)
        first, second = keys[0], keys[-1]
        if greatest:
            first, second = ~first, ~second
        at = best(members.window, members.known(column), first, second, second, len(members))
        return _picked(members, column, at)

    return evaluate


def first_or_last(column: int, stored: StoredColumns, *, last: bool) -> Evaluate:
    """The first or the last value in the order of le, re, payload."""

    def evaluate(members: Members) -> Column:
        keys = members.le, members.re, stored.ranks(members)
        if last:
            keys = ~keys[0], ~keys[1], ~keys[2]
        return _picked(members, column, best(members.window, members.known(column), *keys, len(members)))

    return evaluate


def _picked(members: Members, column: int, at: Ints) -> Column:
    """The column's cells of one member of each window."""
    nulls = at < 0
    return cells_of(members, column)[np.where(nulls, 0, at)], nulls


def cells_of(members: Members, column: int) -> Cells:
    """The one or two cells of a column."""
    kind, cell = members.layout.columns[column]
    return members.cells[:, cell : cell + (2 if kind.kind == "decimal" else 1)]


def percentile(column: int, p: float) -> Evaluate:
    """The value at the rank p·(n − 1), interpolated linearly between its neighbours."""

    def evaluate(members: Members) -> Column:
        known = members.known(column)
        count = totals(members.window, members.w, known, len(members))
        if weights.total(count) > MOST_RANKED:
            at = int(count.argmax())
            place = int(members.windows.le[at]), int(members.windows.re[at])
            raise too_many_terms(*place, weights.total(count), most=MOST_RANKED)
        window, w, values = members.window[known], members.w[known], members.floats(column)[known]
        order = np.lexsort((values, window))  # numpy sorts NaN last
        reached = np.cumsum(w[order])  # how many values there are up to each, windows before included
        before, rank = np.cumsum(count) - count, p * np.maximum(count - 1, 0)
        low = _value_at(values[order], reached, before + np.floor(rank).astype(np.int64))
        high = _value_at(values[order], reached, before + np.ceil(rank).astype(np.int64))
        with np.errstate(all="ignore"):
            between = low + (high - low) * (rank - np.floor(rank))
        same = (low == high) | (np.isnan(low) & np.isnan(high))
        return float_bits(np.where(same, low, between)).reshape(-1, 1), count == 0

    return evaluate


def _value_at(values: Floats, reached: Ints, rank: Ints) -> Floats:
    if not len(values):
        return np.zeros(len(rank))
    at = np.searchsorted(reached, rank, side="right")
    return values[np.minimum(at, len(values) - 1)]


def count_distinct(column: int, kind: Type) -> Evaluate:
    """The number of different values."""

    def evaluate(members: Members) -> Column:
        nulls = np.zeros(len(members), np.bool_)
        if kind.kind == "null":
            return np.zeros((len(members), 1), np.int64), nulls
        known = members.known(column)
        window = members.window[known]
        identity = np.column_stack([window, cells_of(members, column)[known]])
        codes = Interner(identity.shape[1]).intern(identity)
        _, firsts = np.unique(codes, return_index=True)
        return np.bincount(window[firsts], minlength=len(members)).astype(np.int64).reshape(-1, 1), nulls

    return evaluate
