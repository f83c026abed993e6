"""Aggregates over the members of a window.

>>> from streamproof.events.schema import FLOAT64
>>> aggregate("percentile", (0.25,), [1, 2, None, 3], FLOAT64), aggregate("var_samp", (), [4], FLOAT64)
(1.5, None)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any

from streamproof.events.schema import Type
from streamproof.plan.aggregates import unsupported
from streamproof.workbench.evaluator.values import EXACT, fit, identity, order


def aggregate(fn: str, params: tuple[Any, ...], values: Sequence[Any], result: Type) -> Any:
    """One value from those of all members, which come in the order of le, re, payload."""
    if fn == "count":
        return len(values)
    known = [value for value in values if value is not None]
    if fn == "count_values":
        return len(known)
    if fn == "count_distinct":
        return len({identity(value) for value in known})
    if fn not in _AGGREGATES:
        raise unsupported(fn, "evaluator")
    return fit(_AGGREGATES[fn](known, *params), result) if known else None


def total(values: Sequence[Any]) -> Any:
    """The exact sum; of floats, rounded once."""
    if isinstance(values[0], float):
        return _float_total(values)
    if isinstance(values[0], Decimal):
        result = Decimal(0)
        for value in values:
            result = EXACT.add(result, value)
        return result
    return sum(values)


def _float_total(values: Sequence[float]) -> float:
    special = [value for value in values if not math.isfinite(value)]
    if special:
        return sum(special)  # NaN, an infinity, or NaN from two infinities
    try:
        return math.fsum(values)
    except OverflowError:
        return _as_float(sum(map(Fraction, values), Fraction(0)))


def _as_float(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def _finite(values: Sequence[Any]) -> bool:
    return all(math.isfinite(value) for value in values)


def mean(values: Sequence[Any]) -> float:
    if not _finite(values):
        return _float_total([float(value) for value in values])
    return _as_float(sum(map(Fraction, values), Fraction(0)) / len(values))


def variance(values: Sequence[Any], less: int) -> float | None:
    """The mean square distance from the mean, of the values as floats; ``less`` 1 divides by n − 1."""
    if len(values) <= less:
        return None
    if not _finite(values):
        return math.nan
    numbers = [Fraction(float(value)) for value in values]
    middle = sum(numbers, Fraction(0)) / len(numbers)
    return _as_float(sum(((x - middle) ** 2 for x in numbers), Fraction(0)) / (len(numbers) - less))


def deviation(values: Sequence[Any], less: int) -> float | None:
    found = variance(values, less)
    return None if found is None else math.sqrt(found)


def percentile(values: Sequence[Any], p: float) -> float:
    """The value at the rank p·(n − 1), interpolated linearly between its neighbours."""
    ordered = sorted((float(value) for value in values), key=order)
    rank = p * (len(ordered) - 1)
    low, high = ordered[math.floor(rank)], ordered[math.ceil(rank)]
    return low if identity(low) == identity(high) else low + (high - low) * (rank - math.floor(rank))


_AGGREGATES: dict[str, Callable[..., Any]] = {
    "sum": total,
    "avg": mean,
    "min": lambda values: min(values, key=order),
    "max": lambda values: max(values, key=order),
    "var_samp": lambda values: variance(values, 1),
    "var_pop": lambda values: variance(values, 0),
    "stdev_samp": lambda values: deviation(values, 1),
    "stdev_pop": lambda values: deviation(values, 0),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "median": lambda values: percentile(values, 0.5),
    "percentile": percentile,
}
