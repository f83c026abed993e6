"""Expressions of a plan as Spark columns, node by node, with their types.

What each function means on Spark stands in `functions` and `casts`. Expressions are bound: their arguments have the
types that the functions are computed in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.casts import CASTS
from streamproof.engines.spark.batch.functions import FUNCTIONS
from streamproof.engines.spark.batch.relation import Env, Value, convert, null_of, opaque
from streamproof.engines.spark.batch.relation import constant as constant_of
from streamproof.events.schema import NULL, Type
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, operands
from streamproof.plan.functions import FUNCTIONS as LIBRARY
from streamproof.plan.functions import result_type
from streamproof.plan.rules import entry

if TYPE_CHECKING:
    from collections.abc import Sequence


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
        case Cast(arg, to, implied=True):
            return convert(translate(arg, env), to)
        case Cast(arg, to, strict):
            return _cast(translate(arg, env), to, strict=strict)
        case Case(branches, default):
            pairs = [(translate(when, env), translate(then, env)) for when, then in branches]
            return _case(pairs, translate(default, env))
        case Apply(fn):
            raise AssertionError(f"{fn} must be a column before an expression reads it")


def _call(fn: str, args: Sequence[Value], env: Env) -> Value:
    kinds = tuple(arg.type for arg in args)
    result = result_type(fn, kinds)
    if result == NULL:
        return null_of(NULL)
    constant = all(arg.constant for arg in args)
    if constant and LIBRARY[fn].overflows:
        args = [opaque(arg, env) for arg in args]
    return Value(entry(FUNCTIONS, fn, "spark")(args, result), result, constant=constant)


def _cast(value: Value, to: Type, *, strict: bool) -> Value:
    if value.type == to:
        return value
    if value.type == NULL:
        return null_of(to)
    return Value(entry(CASTS, (value.type.kind, to.kind), "spark")(value, to, strict), to, constant=value.constant)


def _case(branches: list[tuple[Value, Value]], default: Value) -> Value:
    (condition, value), *rest = branches
    found = f.when(condition.column, value.column)
    for condition, value in rest:
        found = found.when(condition.column, value.column)
    constant = default.constant and all(part.constant for branch in branches for part in branch)
    return Value(found.otherwise(default.column), default.type, constant=constant)
