"""Aggregates of floats that depend on no order: each is computed from exact sums, and rounded once.

Spark says which values belong together; Python adds up one list of them at a time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Final

import pyarrow as pa


def total(values: Sequence[float]) -> float:
    """The exact sum, rounded once; infinite where it is too large, as IEEE has it.

    >>> total([1e16, 1.0, -1e16]), total([1e308, 1e308]), total([1e308, 1e308, -1e308])
    (1.0, inf, 1e+308)
    """
    try:
        return math.fsum(values)
    except ValueError:  # infinities of both signs
        return math.nan
    except OverflowError:  # of the sum, or of a part of it
        odd = [value for value in values if not math.isfinite(value)]
        return sum(odd) if odd else _nearest(sum(map(Fraction, values), Fraction(0)))


def mean(values: Sequence[float], count: int | None = None) -> float:
    """The sum by the count; where the sum is too large for a float, the mean need not be.

    >>> mean([1.0, 2.0]), mean([1e308, 1e308]), mean([1.0, 2.0], count=4)
    (1.5, 1e+308, 0.75)
    """
    found, number = total(values), len(values) if count is None else count
    if math.isfinite(found) or not all(map(math.isfinite, values)):
        return found / number
    return _nearest(sum(map(Fraction, values), Fraction(0)) / number)


def variance(values: Sequence[float], freedom: int) -> float | None:
    """Squared deviations over n − freedom, corrected by what rounding the mean left over; null where that is 0.

    >>> variance([1.0, 3.0], 1), variance([5.0], 0), variance([5.0], 1)
    (2.0, 0.0, None)
    """
    if len(values) <= freedom:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    middle = mean(values)
    deviations = [value - middle for value in values]
    left_over = total(deviations)
    squares = total([d * d for d in deviations]) - left_over * left_over / len(values)
    if math.isfinite(squares):
        return max(0.0, squares) / (len(values) - freedom)
    numbers = [Fraction(value) for value in values]  # squares leave the floats; the variance may still be one
    exact = sum(numbers, Fraction(0)) / len(numbers)
    return _nearest(sum(((x - exact) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - freedom))


def _nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _root(found: float | None) -> float | None:
    return None if found is None else math.sqrt(found)


EXACT: Final[dict[str, Callable[[Sequence[float]], float | None]]] = {
    "sum": total,
    "avg": mean,
    "var_samp": lambda values: variance(values, 1),
    "var_pop": lambda values: variance(values, 0),
    "stdev_samp": lambda values: _root(variance(values, 1)),
    "stdev_pop": lambda values: _root(variance(values, 0)),
}


def of_lists(function: Callable[[Sequence[float]], float | None]) -> Callable[[pa.Array], pa.Array]:
    """The function of each list of an Arrow array; of an empty one null."""

    def work(lists: pa.Array) -> pa.Array:
        flat = lists.values.to_numpy(zero_copy_only=False).tolist()
        slices = pairwise(lists.offsets.to_pylist())
        return pa.array([function(flat[a:b]) if a < b else None for a, b in slices], pa.float64())

    return work
