"""What may be done with an expression: whether it can fail, what it reads, and putting definitions in for names.

>>> from streamproof.plan.parse import parse
>>> from streamproof.plan.text import to_text
>>> can_fail(parse("k = 'a' and v > 1")), can_fail(parse("v + 1 > 2")), can_fail(parse("is_prime(v)"))
(False, True, True)
>>> to_text(substituted(parse("sum > 5"), {"sum": parse("a + b")}))
'a + b > 5'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from streamproof.plan.expr import (
    LIFE_END,
    LIFE_START,
    Apply,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    all_of,
    columns_of,
    conjuncts,
    transform,
    user_functions,
    walk,
)
from streamproof.thresholds import LARGEST_EXPRESSION

SAFE: Final = frozenset({
    "eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "is_null", "and", "or", "not", "coalesce", "nullif", "least",
    "greatest", "lower", "upper", "trim", "ltrim", "rtrim", "length", "contains", "starts_with", "ends_with",
})  # fmt: skip
"""Functions that give a value whatever they get. Arithmetic may overflow, a text may become too long, and an engine may
refuse a pattern."""

_TIMES: Final = (LIFE_START, LIFE_END)


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression on some row might be an error. In doubt, yes."""
    return any(_can_fail_itself(part) for part in walk(expr))


def _can_fail_itself(part: Expr) -> bool:
    match part:
        case Col() | Lit() | Case():
            return False
        case Cast(strict=strict):
            return strict
        case Call(fn):
            return fn not in SAFE
        case Apply():
            return True


def names_read(expr: Expr) -> frozenset[str]:
    """The payload columns that an expression reads, without their side."""
    return frozenset(column.name for column in columns_of(expr) if column.name not in _TIMES)


def reads_time(expr: Expr) -> bool:
    """Whether the expression reads the event's lifetime."""
    return any(column.name in _TIMES for column in columns_of(expr))


def size(exprs: Iterable[Expr]) -> int:
    """How many nodes expressions have."""
    return sum(1 for expr in exprs for _ in walk(expr))


def substituted(expr: Expr, definitions: Mapping[str, Expr]) -> Expr | None:
    """The expression with every column replaced by its definition.

    None where that would call a user-defined function twice, read a column without definition, or grow too large.
    """
    for column in columns_of(expr):
        if column.name in _TIMES:
            continue
        if column.name not in definitions or user_functions(definitions[column.name]):
            return None
    uses = (part.name for part in walk(expr) if isinstance(part, Col) and part.name in definitions)
    if size([expr, *(definitions[name] for name in uses)]) > LARGEST_EXPRESSION.now:
        return None
    return with_definitions(expr, definitions)


def with_definitions(expr: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """The expression with every column that has a definition replaced by it."""

    def define(part: Expr) -> Expr:
        return definitions.get(part.name, part) if isinstance(part, Col) and part.side is None else part

    return transform(expr, define)


def both_of(first: Expr, second: Expr) -> Expr | None:
    """Both conditions as one.

    None if the second can fail, since it would see the rows that the first removes, or if one condition grew too large.
    """
    if can_fail(second) or size([first, second]) > LARGEST_EXPRESSION.now:
        return None
    return all_of([*conjuncts(first), *conjuncts(second)])
