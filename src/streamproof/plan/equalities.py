"""The equalities of a condition over two inputs: what a join on equal keys can use of it.

>>> from streamproof.plan.parse import parse
>>> keys, rest = keyed(parse("l.k = r.k and l.v < r.v"))
>>> [(key.left, key.right) for key in keys], rest == parse("l.v < r.v")
([(Col(name='k', side='l'), Col(name='k', side='r'))], True)
"""

from __future__ import annotations

from dataclasses import dataclass

from streamproof.plan.expr import TRUE, Call, Expr, all_of, columns_of, conjuncts
from streamproof.plan.functions import may_fail


@dataclass(frozen=True, slots=True)
class EqualKeys:
    """An expression of each side, equal in every pair; ``null_safe`` if null equals null."""

    left: Expr
    right: Expr
    null_safe: bool


def keyed(on: Expr) -> tuple[list[EqualKeys], Expr]:
    """The equalities between the sides that can never fail, and the rest of a bound condition."""
    keys, rest = [], []
    for part in conjuncts(on):
        equality = None if may_fail(part) else equality_of(part)
        if equality is not None:
            keys.append(equality)
        elif part != TRUE:
            rest.append(part)
    return keys, all_of(rest)


def equality_of(part: Expr) -> EqualKeys | None:
    """The equality that a condition is, if it is one between the sides."""
    if not (isinstance(part, Call) and part.fn in ("eq", "same")):
        return None
    first, second = part.args
    sides = [{column.side for column in columns_of(arg)} for arg in part.args]
    if sides == [{"l"}, {"r"}]:
        return EqualKeys(first, second, part.fn == "same")
    return EqualKeys(second, first, part.fn == "same") if sides == [{"r"}, {"l"}] else None
