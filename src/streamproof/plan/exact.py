"""Aggregates of floats that do not depend on any order: sums are rounded once, from the exact sum.

This is the meaning, one list of values at a time, for engines that only find which values belong together: the
databases and Spark in batch mode. Kernels and the evaluator of the workbench have their own ways, which agree with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final

from streamproof.plan.expr import Value


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
        special = [value for value in values if not math.isfinite(value)]
        return sum(special) if special else _rounded(sum(map(Fraction, values), Fraction(0)))


def _rounded(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def mean(values: Sequence[float], count: int | None = None) -> float:
    """The sum by the count, which is that of the values if not given; where a sum is too large, a mean need not be.

    >>> mean([1.0, 2.0]), mean([1e308, 1e308]), mean([1.0, 2.0], count=4)
    (1.5, 1e+308, 0.75)
    """
    found, number = total(values), len(values) if count is None else count
    if math.isfinite(found) or not all(map(math.isfinite, values)):
        return found / number
    return _rounded(sum(map(Fraction, values), Fraction(0)) / number)


def variance(values: Sequence[float], *, freedom: int) -> float | None:
    """The sum of squared deviations over n − freedom; null where that is 0.

    >>> variance([1.0, 3.0], freedom=1), variance([5.0], freedom=0), variance([5.0], freedom=1)
    (2.0, 0.0, None)
    """
    if len(values) <= freedom:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    middle = mean(values)
    deviations = [value - middle for value in values]
    rest = total(deviations)  # what rounding the mean left over
    squares = total([d * d for d in deviations]) - rest * rest / len(values)
    if not math.isfinite(squares):  # the squares leave the floats; the variance may still be one
        return _exact_variance(values, freedom)
    return max(0.0, squares) / (len(values) - freedom)


def _exact_variance(values: Sequence[float], freedom: int) -> float:
    """
    >>> _exact_variance([0.0, 0.0, 1e308], 1), _exact_variance([0.0, 1.4e154], 1)
    (inf, 9.8e+307)
    """
    numbers = [Fraction(value) for value in values]
    middle = sum(numbers, Fraction(0)) / len(numbers)
    return _rounded(sum(((x - middle) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - freedom))


def percentile(values: Sequence[float], p: float) -> float:
    """The value at rank p·(n − 1), between its neighbours by a straight line; NaN is the greatest.

    >>> percentile([4.0, 1.0, 2.0], 0.25)
    1.5
    """
    ordered = sorted(values, key=lambda value: (math.isnan(value), 0.0 if math.isnan(value) else value))
    rank = p * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low if low == high else low + (high - low) * (rank - math.floor(rank))


def _root(found: float | None) -> float | None:
    return None if found is None else math.sqrt(found)


def exact(fn: str, params: tuple[Value, ...], values: Sequence[float]) -> float | None:
    """The aggregate of at least one float."""
    p = params[0] if params else 0.5
    assert isinstance(p, int | float)
    return EXACT[fn](values, float(p))


EXACT: Final[dict[str, Callable[[Sequence[float], float], float | None]]] = {
    "sum": lambda values, _: total(values),
    "avg": lambda values, _: mean(values),
    "var_samp": lambda values, _: variance(values, freedom=1),
    "var_pop": lambda values, _: variance(values, freedom=0),
    "stdev_samp": lambda values, _: _root(variance(values, freedom=1)),
    "stdev_pop": lambda values, _: _root(variance(values, freedom=0)),
    "median": percentile,
    "percentile": percentile,
}
