"""Expressions of a plan as Spark columns, node by node, with their types.

What each function means on Spark stands in `functions` and `casts`; here is which type each argument is brought to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.casts import CASTS, decimal_to_float
from streamproof.engines.spark.batch.functions import FUNCTIONS
from streamproof.engines.spark.batch.literals import constant as constant_of
from streamproof.engines.spark.batch.literals import null_of, opaque
from streamproof.engines.spark.batch.relation import Env, Value
from streamproof.engines.spark.rows import sql_type
from streamproof.events.schema import BOOL, FLOAT64, INT64, MAX_PRECISION, NULL, STRING, Type, decimal
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, columns_of, operands, walk
from streamproof.plan.functions import as_decimal, common_type, result_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import Column

ALIKE = frozenset({"eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "coalesce", "least", "greatest", "nullif"})
FLOATING = frozenset({"div", "sqrt", "ln", "log10", "exp", "power"})
BOOLEAN = frozenset({"and", "or", "not"})
TEXTUAL = frozenset({"concat", "lower", "upper", "trim", "ltrim", "rtrim", "length", "replace", "contains",
                     "starts_with", "ends_with", "like", "substr"})  # fmt: skip
FOLDED = frozenset({"add", "sub", "mul", "neg", "abs", "floordiv", "round"})  # Spark itself raises in these
MAY_FAIL = FOLDED | {"instant"}


def translate(expr: Expr, env: Env) -> Value:
    """The column of an expression without user-defined functions."""
    match expr:
        case Col():
            found = env[expr]
            return null_of(NULL) if found.type == NULL else found
        case Lit(value, kind):
            return constant_of(value, kind)
        case Call(fn):
            return _call(fn, [translate(arg, env) for arg in operands(expr)], env)
        case Cast(arg, to, strict):
            return _cast(translate(arg, env), to, strict=strict)
        case Case(branches, default):
            pairs = [(translate(when, env), translate(then, env)) for when, then in branches]
            return _case(pairs, translate(default, env))
        case Apply(fn):
            raise AssertionError(f"{fn} must be a column before an expression reads it")


def convert(value: Value, to: Type) -> Value:
    """A value in a wider type: what happens by itself between numbers, and to null."""
    if value.type == to:
        return value
    if value.type == NULL:
        return null_of(to)
    if to == FLOAT64 and value.type.kind == "decimal":
        return Value(decimal_to_float(value.column), to, atom=False)
    return Value(value.column.cast(sql_type(to)), to, atom=value.atom, constant=value.constant)


def column_of(expr: Expr, env: Env, to: Type | None = None) -> Column:
    """The column of an expression, perhaps in a wider type."""
    found = translate(expr, env)
    return (found if to is None else convert(found, to)).column


def _call(fn: str, args: Sequence[Value], env: Env) -> Value:
    kinds = tuple(arg.type for arg in args)
    result = result_type(fn, kinds)
    if result == NULL:
        return null_of(NULL)
    ready = [convert(arg, to) for arg, to in zip(args, _wanted(fn, kinds, result), strict=True)]
    constant = all(arg.constant for arg in ready)
    if constant and fn in FOLDED:
        ready = [opaque(arg, env) for arg in ready]
    return Value(FUNCTIONS[fn](ready, result), result, constant=constant)


def _wanted(fn: str, kinds: tuple[Type, ...], result: Type) -> tuple[Type, ...]:
    """The type that each argument of a function is brought to."""
    if fn in ALIKE:
        return (common_type(kinds) or NULL,) * len(kinds)
    if fn in FLOATING:
        return (FLOAT64,) * len(kinds)
    if fn in BOOLEAN:
        return (BOOL,) * len(kinds)
    if fn in ("add", "sub", "floordiv", "mod") or (fn == "mul" and result.kind != "decimal"):
        return (result,) * len(kinds)
    if fn == "mul":
        return tuple(decimal(MAX_PRECISION, as_decimal(kind).scale) if kind != NULL else result for kind in kinds)
    if fn == "round":
        return (kinds[0] if kinds[0] != NULL else result, *(INT64 for _ in kinds[1:]))
    return tuple(_some_type(fn, kind, place) for place, kind in enumerate(kinds))


def _some_type(fn: str, kind: Type, place: int) -> Type:
    """A null argument still needs a type that Spark accepts there."""
    if kind != NULL:
        return kind
    return STRING if fn in TEXTUAL and not (fn == "substr" and place > 0) else INT64


def _cast(value: Value, to: Type, *, strict: bool) -> Value:
    if value.type == to:
        return value
    if value.type == NULL:
        return null_of(to)
    return Value(CASTS[value.type.kind, to.kind](value, to, strict), to, constant=value.constant)


def _case(branches: list[tuple[Value, Value]], default: Value) -> Value:
    result = common_type([value.type for _, value in branches] + [default.type]) or NULL
    (condition, value), *rest = branches
    found = f.when(convert(condition, BOOL).column, convert(value, result).column)
    for condition, value in rest:
        found = found.when(convert(condition, BOOL).column, convert(value, result).column)
    constant = default.constant and all(part.constant for branch in branches for part in branch)
    return Value(found.otherwise(convert(default, result).column), result, constant=constant)


def may_fail(expr: Expr, env: Env) -> bool:
    """Whether an expression can raise on some row: then it must not meet rows that the plan would not show it."""
    decimals = any(env[column].type.kind == "decimal" for column in columns_of(expr) if column in env)
    return any(_part_may_fail(part, decimals=decimals) for part in walk(expr))


def _part_may_fail(part: Expr, *, decimals: bool) -> bool:
    match part:
        case Call(fn):
            return fn in MAY_FAIL or (decimals and fn in ALIKE)  # decimals of two widths meet in a third
        case Cast(strict=strict):
            return strict
    return isinstance(part, Apply)


def any_may_fail(exprs: Iterable[Expr], env: Env) -> bool:
    return any(may_fail(expr, env) for expr in exprs)
