"""Expressions on Python values.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.parse import parse
>>> meaning(parse("v / 2 > 1"), Scope.one(Schema.of({"v": "int64"})))(lambda column: {"v": 5}[column.name])
True
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit
from streamproof.plan.functions import common_type
from streamproof.plan.typing import Scope, type_of
from streamproof.workbench.evaluator.casts import cast
from streamproof.workbench.evaluator.functions import SEES_NULL, STRICT
from streamproof.workbench.evaluator.values import fit, of_type, same_value, widen

Read = Callable[[Col], Any]
Meaning = Callable[[Read], Any]

ALIKE = (
    "eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "least", "greatest",
    "add", "sub", "floordiv", "mod",
)  # fmt: skip
FLOATS = ("div", "sqrt", "ln", "log10", "exp", "power")


def meaning(expr: Expr, scope: Scope) -> Meaning:
    """What an expression says about an event, as a function of how to read its columns."""
    match expr:
        case Col():
            return lambda read: read(expr)
        case Lit(value, kind):
            constant = fit(value, kind)
            return lambda read: constant
        case Call():
            return _call(expr, scope)
        case Cast():
            return _cast(expr, scope)
        case Case():
            return _case(expr, scope)
        case Apply():
            return _apply(expr, scope)


def _call(expr: Call, scope: Scope) -> Meaning:
    parts = [meaning(arg, scope) for arg in expr.args]
    types = tuple(type_of(arg, scope) for arg in expr.args)
    result = type_of(expr, scope)
    common = common_type(types)

    def prepared(read: Read) -> list[Any]:
        """The arguments in the types that the function works on."""
        values = [part(read) for part in parts]
        if expr.fn in ALIKE and common is not None:
            return [widen(value, common) for value in values]
        if expr.fn in FLOATS:
            return [widen(value, FLOAT64) for value in values]
        return [widen(value, FLOAT64) for value in values] if expr.fn == "mul" and result == FLOAT64 else values

    if expr.fn == "nullif":
        assert common is not None
        return lambda read: _nullif(parts[0](read), parts[1](read), common)
    if expr.fn == "coalesce":
        return lambda read: _first_known(parts, read, result)
    if expr.fn == "mul" and result.kind == "decimal":
        return lambda read: fit(_strict("mul", [_as_decimal(part(read)) for part in parts]), result)
    if expr.fn in SEES_NULL:
        return lambda read: SEES_NULL[expr.fn](*prepared(read))
    return lambda read: fit(_strict(expr.fn, prepared(read)), result)


def _strict(fn: str, values: list[Any]) -> Any:
    return None if any(value is None for value in values) else STRICT[fn](*values)


def _as_decimal(value: Any) -> Any:
    return None if value is None else widen(value, Type("decimal", 38, 0)) if isinstance(value, int) else value


def _first_known(parts: list[Meaning], read: Read, result: Type) -> Any:
    """Like a case: what comes after the first value that is not null is never asked, so it cannot fail."""
    values = (part(read) for part in parts)
    return widen(next((value for value in values if value is not None), None), result)


def _nullif(a: Any, b: Any, common: Type) -> Any:
    equal = a is not None and b is not None and same_value(widen(a, common), widen(b, common))
    return None if equal else a


def _cast(expr: Cast, scope: Scope) -> Meaning:
    arg, source = meaning(expr.arg, scope), type_of(expr.arg, scope)

    def convert(read: Read) -> Any:
        value = arg(read)
        try:
            return cast(value, source, expr.to)
        except RunError:
            if expr.strict:
                raise
            return None

    return convert


def _case(expr: Case, scope: Scope) -> Meaning:
    result = type_of(expr, scope)
    branches = [(meaning(when, scope), meaning(then, scope)) for when, then in expr.branches]
    default = meaning(expr.default, scope)

    def choose(read: Read) -> Any:
        for when, then in branches:
            if when(read) is True:
                return widen(then(read), result)
        return widen(default(read), result)

    return choose


def _apply(expr: Apply, scope: Scope) -> Meaning:
    module, result = scope.udf(expr.fn), type_of(expr, scope)
    parts = [meaning(arg, scope) for arg in expr.args]
    takes = module.takes or tuple(type_of(arg, scope) for arg in expr.args)

    def call(read: Read) -> Any:
        args = [widen(part(read), kind) for part, kind in zip(parts, takes, strict=True)]
        return of_type(module.apply(args), result)

    return call
