"""Expressions as text, in the notation that `parse` reads: ``parse(to_text(e)) == e``.

>>> from streamproof.plan.parse import parse
>>> to_text(parse("(a+b)*c > 1 AND NOT x IS NULL"))
'(a + b) * c > 1 and not x is null'
"""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Final

from sqlglot import exp

from streamproof.errors import PlanError
from streamproof.events.schema import Type
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, Value, literal
from streamproof.plan.grammar import condition
from streamproof.plan.parse import parse

_INFIX: Final[dict[str, tuple[str, int]]] = {
    "or": ("or", 1), "and": ("and", 2), "eq": ("=", 4), "ne": ("<>", 4), "lt": ("<", 4), "lte": ("<=", 4),
    "gt": (">", 4), "gte": (">=", 4), "same": ("is not distinct from", 4), "like": ("like", 4),
    "add": ("+", 6), "sub": ("-", 6), "mul": ("*", 7), "div": ("/", 7), "floordiv": ("//", 7), "mod": ("%", 7),
}  # fmt: skip
_NOT, _COMPARE, _NEG, _ATOM = 3, 4, 8, 9
_SQL_TYPES: Final = {"int64": "bigint", "float64": "double", "string": "varchar", "bool": "boolean",
                     "timestamp": "timestamptz"}  # fmt: skip


def to_text(expr: Expr) -> str:
    """The text of an expression, with parentheses where they are needed."""
    return _show(expr)[0]


def _show(expr: Expr) -> tuple[str, int]:
    """The text and how tightly its outermost operator binds."""
    match expr:
        case Col(name, side):
            return (f"{side}." if side else "") + quote(name.removeprefix("\0")), _ATOM  # times of a bound expression
        case Lit(value, kind):
            text = _constant(value, kind)
            return text, _NEG if text.startswith("-") else _ATOM
        case Call(fn, args):
            return _call(fn, args)
        case Apply(fn, args):
            return f"{_function_name(fn)}({', '.join(map(to_text, args))})", _ATOM
        case Cast(arg, implied=True):
            return _show(arg)
        case Cast(arg, to, strict):
            return f"{'cast' if strict else 'try_cast'}({to_text(arg)} as {_type(to)})", _ATOM
        case Case(branches, default):
            whens = "".join(f" when {to_text(when)} then {to_text(then)}" for when, then in branches)
            return f"case{whens} else {to_text(default)} end", _ATOM


def _call(fn: str, args: tuple[Expr, ...]) -> tuple[str, int]:
    if fn in _INFIX and len(args) == 2:
        word, strength = _INFIX[fn]
        # comparisons do not chain, so both sides bind tighter; the others group to the left
        left = _tight(args[0], strength + (strength == _COMPARE))
        return f"{left} {word} {_tight(args[1], strength + 1)}", strength
    if fn == "not":
        return f"not {_tight(args[0], _NOT)}", _NOT
    if fn == "neg":
        return f"-({to_text(args[0])})", _NEG
    if fn == "is_null":
        return f"{_tight(args[0], _COMPARE + 1)} is null", _COMPARE
    if fn == "in":
        return f"{_tight(args[0], _COMPARE + 1)} in ({', '.join(map(to_text, args[1:]))})", _COMPARE
    if fn == "trim":  # its argument may be followed by words of its own, so comparisons need parentheses
        return f"trim({_tight(args[0], _COMPARE + 1)})", _ATOM
    return f"{fn}({', '.join(map(to_text, args))})", _ATOM


def _tight(expr: Expr, strength: int) -> str:
    text, bound = _show(expr)
    return text if bound >= strength else f"({text})"


def _type(kind: Type) -> str:
    return _SQL_TYPES.get(kind.kind, str(kind))


def _constant(value: Value, kind: Type) -> str:
    match value:
        case None:
            return "null" if kind.kind == "null" else f"cast(null as {_type(kind)})"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case float():
            return repr(value) if math.isfinite(value) else f"cast('{value}' as double)"
        case str():
            return "'" + value.replace("'", "''") + "'"
        case datetime():
            return f"cast('{value.isoformat().replace('+00:00', 'Z')}' as timestamptz)"
        case date() | Decimal():
            return f"cast('{value}' as {_type(kind)})"


_SIMPLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@lru_cache(maxsize=4096)
def quote(name: str) -> str:
    """A name as a column in text: bare where that reads back as the same name, else in double quotes.

    >>> quote("v"), quote("two words"), quote("select")
    ('v', '"two words"', '"select"')
    """
    if _SIMPLE.fullmatch(name) and _reads_as_column(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _reads_as_column(name: str) -> bool:
    """In sums, and as an argument: some words begin something else there."""
    try:
        parsed = condition(f"1 < {name} + f({name}, {name} + 1)")
    except PlanError:
        return False
    columns = list(parsed.find_all(exp.Column))
    return len(columns) == 3 and all(column.name == name and not column.table for column in columns)


def _function_name(name: str) -> str:
    return name if _SIMPLE.fullmatch(name) and _reads_as_function(name) else '"' + name.replace('"', '""') + '"'


def _reads_as_function(name: str) -> bool:
    try:
        return parse(f"{name}(1)") == Apply(name, (literal(1),))
    except PlanError:
        return False
