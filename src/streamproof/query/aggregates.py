"""Aggregates for `Windowed.aggregate`: one name per function of `plan.aggregates`, which says what each means.

>>> count()
Aggregate(fn='count', arg=None, params=())
>>> percentile("v * 2", 0.9).params
(0.9,)
>>> print(sum.__doc__)
sum(v): the sum; int64 overflow is an error.

Law: every aggregate function is here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streamproof import arguments
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.query.column import Expression, to_expr

Over: TypeAlias = Callable[[Expression], Aggregate]


def _over(name: str) -> Over:
    def build(expression: Expression) -> Aggregate:
        return Aggregate(name, to_expr(expression))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}(v): {AGGREGATES[name].summary}."
    return arguments.door(build)


@arguments.door
def count(expression: Expression = None) -> Aggregate:
    """The number of events; ``count("v")`` is the number of values of v that are not null."""
    return Aggregate("count") if expression is None else Aggregate("count_values", to_expr(expression))


@arguments.door
def percentile(expression: Expression, p: float) -> Aggregate:
    """The value at rank ``p`` between 0 and 1, interpolated linearly."""
    return Aggregate("percentile", to_expr(expression), (p,))


sum: Over = _over("sum")  # noqa: A001  # the library's own names
avg: Over = _over("avg")
min: Over = _over("min")  # noqa: A001
max: Over = _over("max")  # noqa: A001
stdev_samp: Over = _over("stdev_samp")
stdev_pop: Over = _over("stdev_pop")
var_samp: Over = _over("var_samp")
var_pop: Over = _over("var_pop")
first: Over = _over("first")
last: Over = _over("last")
median: Over = _over("median")
count_values: Over = _over("count_values")
count_distinct: Over = _over("count_distinct")
