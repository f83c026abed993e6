"""The function library in Python: one name per built-in of `plan.functions`, which says what each means.

>>> lower("name")
Column('lower(name)')
>>> coalesce("v", 0) + 1
Column('coalesce(v, 0) + 1')
>>> print(round.__doc__)
round(a, …): nearest number with n digits after the point (0), halves away from zero.

Arguments are expressions, so text is SQL-flavoured text; write a constant text as ``lit("a")``.
Law: every built-in that is no operator is here, and its call is the call that its text parses to.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streamproof import arguments
from streamproof.plan.expr import Call
from streamproof.plan.functions import FUNCTIONS
from streamproof.query.column import Column, Expression, to_expr

One: TypeAlias = Callable[[Expression], Column]
Two: TypeAlias = Callable[[Expression, Expression], Column]
Three: TypeAlias = Callable[[Expression, Expression, Expression], Column]
Many: TypeAlias = Callable[..., Column]


def _builder(name: str) -> Many:
    """The function that builds calls of the built-in ``name``; how many arguments it takes is checked with the plan."""
    function = FUNCTIONS[name]

    def build(*args: Expression) -> Column:
        return Column(Call(name, tuple(map(to_expr, args))))

    shown = ", ".join("abc"[: function.least]) + ("" if function.most == function.least else ", …")
    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"{name}({shown}): {function.summary}."
    return arguments.door(build)


def _one(name: str) -> One:
    return _builder(name)


def _two(name: str) -> Two:
    return _builder(name)


# nulls and choices
coalesce: Many = _builder("coalesce")
nullif: Two = _two("nullif")
least: Many = _builder("least")
greatest: Many = _builder("greatest")

# numbers
abs: One = _one("abs")  # noqa: A001  # the library's own names
sign: One = _one("sign")
round: Many = _builder("round")  # noqa: A001
floor: One = _one("floor")
ceil: One = _one("ceil")
sqrt: One = _one("sqrt")
ln: One = _one("ln")
log10: One = _one("log10")
exp: One = _one("exp")
power: Two = _two("power")

# text
concat: Many = _builder("concat")
lower: One = _one("lower")
upper: One = _one("upper")
trim: One = _one("trim")
ltrim: One = _one("ltrim")
rtrim: One = _one("rtrim")
substr: Many = _builder("substr")
length: One = _one("length")
replace: Three = _builder("replace")
contains: Two = _two("contains")
starts_with: Two = _two("starts_with")
ends_with: Two = _two("ends_with")

# time
instant: Many = _builder("instant")
year: One = _one("year")
month: One = _one("month")
day: One = _one("day")
hour: One = _one("hour")
minute: One = _one("minute")
second: One = _one("second")
day_of_week: One = _one("day_of_week")
day_of_year: One = _one("day_of_year")
epoch: One = _one("epoch")
