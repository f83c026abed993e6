"""Aggregates that compare values: extremes, first and last, percentiles, distinct counts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np

from streamproof.events import weights
from streamproof.events.schema import Type
from streamproof.kernels.cells import Cells, Ints, float_bits
from streamproof.kernels.interning import Interner
from streamproof.kernels.windows.exact import Floats, too_many_terms
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.segments import Bools, Members, best, totals

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


def first_or_last(column: int, kept: Kept, *, last: bool) -> Evaluate:
    """The first or the last value in the order of le, re, payload."""

    def evaluate(members: Members) -> Column:
        keys = members.le, members.re, kept.ranks(members)
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
    """How many different values there are."""

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
