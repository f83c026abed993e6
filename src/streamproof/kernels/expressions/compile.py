"""Expressions over whole columns: an expression becomes a function from the columns of a batch to one Arrow array.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.parse import parse
>>> half = compile_expression(parse("v / 2"), Scope.one(Schema.of({"v": "int64"})))
>>> half.type, half(Columns({Col("v"): pa.array([1, None, 3])}, 3)).to_pylist()
(Type('float64'), [0.5, None, 1.5])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

import pyarrow as pa

from streamproof.errors import RunError, StreamproofError
from streamproof.events.order import no_values
from streamproof.events.schema import NULL, Type
from streamproof.kernels.expressions import logic, numbers, strings, times, udf
from streamproof.kernels.expressions.casts import cast, widen
from streamproof.kernels.expressions.columns import Columns, Datum, spread
from streamproof.kernels.expressions.comparison import COMPARE
from streamproof.kernels.expressions.decimals import rounded
from streamproof.kernels.expressions.logic import Evaluate
from streamproof.kernels.expressions.numbers import Kernel
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit
from streamproof.plan.rules import entry
from streamproof.plan.text import to_text
from streamproof.plan.typing import Scope, bind, type_of


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A compiled expression. Called with columns, it gives an array of ``type`` with one value per row."""

    expr: Expr
    type: Type
    evaluate: Evaluate

    def __call__(self, columns: Columns) -> pa.Array:
        if not columns.rows:
            return no_values(self.type.arrow)
        try:
            return spread(self.evaluate(columns), columns.rows)
        except (pa.ArrowCapacityError, MemoryError) as error:
            what, fix = "a column is larger than 2 GB, or than the memory that is left", "use smaller batches"
            raise RunError(what, at=to_text(self.expr), fix=fix, name="limit_exceeded") from error
        except StreamproofError as error:
            raise error.located(to_text(self.expr)) from error.__cause__


def compile_expression(expr: Expr, scope: Scope) -> Evaluation:
    """The evaluation of an expression over the columns of a scope; what is wrong with it is an error now."""
    bound = bind(expr, scope)
    return Evaluation(bound, type_of(bound, scope), _compile(bound, scope))


def _compile(expr: Expr, scope: Scope) -> Evaluate:
    match expr:
        case Col():
            kind = scope.type_of(expr)
            return lambda columns: widen(columns[expr], kind)
        case Lit():
            constant = _constant(expr)
            return lambda columns: constant
        case Call():
            return _call(expr, scope)
        case Cast():
            return _cast(expr, scope)
        case Case(branches, default):
            pairs = [(_compile(when, scope), _compile(then, scope)) for when, then in branches]
            return logic.case(pairs, _compile(default, scope), type_of(expr, scope))
        case Apply():
            return _apply(expr, scope)


def _constant(expr: Lit) -> pa.Scalar:
    value = expr.value
    if expr.type.kind == "decimal" and isinstance(value, Decimal | int):
        value = rounded(Decimal(value), expr.type.scale)
    return pa.scalar(value, expr.type.arrow)


def _cast(expr: Cast, scope: Scope) -> Evaluate:
    """A cast; of a constant it is computed once, when its value is first asked for: it may fail."""
    inner, to, strict = _compile(expr.arg, scope), expr.to, expr.strict
    if not isinstance(expr.arg, Lit):
        return lambda columns: cast(inner(columns), to, strict=strict)
    known: list[Datum] = []

    def once(columns: Columns) -> Datum:
        if not known:
            known.append(cast(inner(columns), to, strict=strict))
        return known[0]

    return once


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eager:
    """A function of all its arguments' values. One that is not ``strict`` sees nulls; of the others the result is null
    where an argument is.
    """

    run: Kernel
    strict: bool = True


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function that decides on which rows its arguments are evaluated."""

    build: Callable[[Sequence[Evaluate], Type], Evaluate]


def _call(expr: Call, scope: Scope) -> Evaluate:
    parts = [_compile(arg, scope) for arg in expr.args]
    result = type_of(expr, scope)
    implementation = entry(IMPLEMENTATIONS, expr.fn, "local")
    if result == NULL:
        return _null(parts)
    if isinstance(implementation, Lazy):
        return implementation.build(parts, result)
    return lambda columns: _run(implementation, [part(columns) for part in parts], result)


def _null(parts: Sequence[Evaluate]) -> Evaluate:
    """A call of nulls alone. Its arguments are evaluated, because they may fail."""

    def evaluate(columns: Columns) -> Datum:
        for part in parts:
            part(columns)
        return pa.scalar(None)

    return evaluate


def _run(implementation: Eager, args: list[Datum], result: Type) -> Datum:
    if implementation.strict and any(_is_null(arg) for arg in args):
        return pa.scalar(None, result.arrow)
    if all(isinstance(arg, pa.Scalar) for arg in args):  # a constant: computed once, for a column of one row
        return implementation.run([spread(arg, 1) for arg in args], result)[0]
    return implementation.run(args, result)


def _is_null(arg: Datum) -> bool:
    return arg.type == NULL.arrow or (isinstance(arg, pa.Scalar) and not arg.is_valid)


def _compare(fn: str) -> Eager:
    compare = COMPARE[fn]
    return Eager(lambda args, to: compare(*args))


def _apply(expr: Apply, scope: Scope) -> Evaluate:
    module, result = scope.udf(expr.fn), type_of(expr, scope)
    parts = [_compile(arg, scope) for arg in expr.args]

    def evaluate(columns: Columns) -> Datum:
        args = [spread(part(columns), columns.rows) for part in parts]
        return udf.call_module(module, args, columns.rows, result, lost=columns.lost)

    return evaluate


IMPLEMENTATIONS: Final[dict[str, Eager | Lazy]] = {
    "add": Eager(numbers.add),
    "sub": Eager(numbers.sub),
    "mul": Eager(numbers.mul),
    "div": Eager(numbers.div),
    "floordiv": Eager(numbers.floordiv),
    "mod": Eager(numbers.mod),
    "neg": Eager(numbers.neg),
    **{fn: _compare(fn) for fn in COMPARE},
    "same": Eager(logic.same, strict=False),
    "in": Eager(logic.in_, strict=False),
    "is_null": Eager(logic.is_null, strict=False),
    "and": Eager(logic.and_, strict=False),
    "or": Eager(logic.or_, strict=False),
    "not": Eager(logic.not_),
    "coalesce": Lazy(logic.coalesce),
    "nullif": Eager(logic.nullif, strict=False),
    "least": Eager(logic.least, strict=False),
    "greatest": Eager(logic.greatest, strict=False),
    "abs": Eager(numbers.absolute),
    "sign": Eager(numbers.sign),
    "round": Eager(numbers.round_),
    "floor": Eager(numbers.floor),
    "ceil": Eager(numbers.ceil),
    "sqrt": Eager(numbers.sqrt),
    "ln": Eager(numbers.ln),
    "log10": Eager(numbers.log10),
    "exp": Eager(numbers.exp),
    "power": Eager(numbers.power),
    "concat": Eager(strings.concat),
    "lower": Eager(strings.lower),
    "upper": Eager(strings.upper),
    "trim": Eager(strings.trim),
    "ltrim": Eager(strings.ltrim),
    "rtrim": Eager(strings.rtrim),
    "substr": Eager(strings.substr),
    "length": Eager(strings.length),
    "replace": Eager(strings.replace),
    "contains": Eager(strings.contains),
    "starts_with": Eager(strings.starts_with),
    "ends_with": Eager(strings.ends_with),
    "like": Eager(strings.like),
    "instant": Eager(times.instant),
    **{fn: Eager(run) for fn, run in times.TIME_PARTS.items()},
}
