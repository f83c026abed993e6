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
from typing import Final, Literal

import pyarrow as pa

from streamproof.errors import RunError, StreamproofError
from streamproof.events.order import no_values
from streamproof.events.schema import BOOL, FLOAT64, NULL, Type
from streamproof.kernels.expressions import logic, numbers, strings, times, udf
from streamproof.kernels.expressions.casts import cast, widen
from streamproof.kernels.expressions.columns import Columns, Datum, spread
from streamproof.kernels.expressions.comparison import COMPARE
from streamproof.kernels.expressions.decimals import rounded
from streamproof.kernels.expressions.logic import Evaluate
from streamproof.kernels.expressions.numbers import Kernel
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit
from streamproof.plan.functions import common_type
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
            return spread(widen(self.evaluate(columns), self.type), columns.rows)
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
        case Cast(arg, to, strict):
            inner = _compile(arg, scope)
            return lambda columns: cast(inner(columns), to, strict=strict)
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


# --- calls ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Eager:
    """A function of all its arguments' values.

    ``takes`` says in which types: each its own, the common one, floats or booleans. A function that is not ``strict``
    sees nulls; of the others the result is null where an argument is.
    """

    run: Kernel
    takes: Literal["given", "alike", "floats", "bools", "numbers"] = "given"
    strict: bool = True


@dataclass(frozen=True, slots=True)
class Lazy:
    """A function that decides on which rows its arguments are evaluated."""

    build: Callable[[Sequence[Evaluate], Type], Evaluate]


def _call(expr: Call, scope: Scope) -> Evaluate:
    parts = [_compile(arg, scope) for arg in expr.args]
    result = type_of(expr, scope)
    implementation = IMPLEMENTATIONS[expr.fn]
    if result == NULL:
        return _null(parts)
    if isinstance(implementation, Lazy):
        return implementation.build(parts, result)
    common = _taken(implementation, [type_of(arg, scope) for arg in expr.args], result)
    if common is None:
        return lambda columns: _run(implementation, [part(columns) for part in parts], result)
    widened = [_widened(arg, common) for arg in expr.args]

    def evaluate(columns: Columns) -> Datum:
        args = [part(columns) for part in parts]
        return _run(implementation, [wide(arg) for wide, arg in zip(widened, args, strict=True)], result)

    return evaluate


def _widened(expr: Expr, to: Type) -> Callable[[Datum], Datum]:
    """How an argument's values become those of another type; of a constant they are computed once."""
    if not isinstance(expr, Lit):
        return lambda datum: widen(datum, to)
    known: list[Datum] = []

    def once(datum: Datum) -> Datum:
        if not known:
            known.append(widen(datum, to))
        return known[0]

    return once


def _null(parts: Sequence[Evaluate]) -> Evaluate:
    """A call of nulls alone. Its arguments are evaluated, because they may fail."""

    def evaluate(columns: Columns) -> Datum:
        for part in parts:
            part(columns)
        return pa.scalar(None)

    return evaluate


def _taken(implementation: Eager, types: Sequence[Type], result: Type) -> Type | None:
    """The one type that the arguments are brought to; None if each keeps its own."""
    match implementation.takes:
        case "alike":
            common = common_type(types)
            return BOOL if common == NULL else common  # any type will do for nulls
        case "floats":
            return FLOAT64
        case "bools":
            return BOOL
        case "numbers":  # decimals multiply with their own scales
            return FLOAT64 if result == FLOAT64 else None
    return None


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
    return Eager(lambda args, to: compare(*args), "alike")


def _apply(expr: Apply, scope: Scope) -> Evaluate:
    module, result = scope.udf(expr.fn), type_of(expr, scope)
    parts = [_compile(arg, scope) for arg in expr.args]
    takes = module.takes or tuple(type_of(arg, scope) for arg in expr.args)

    def evaluate(columns: Columns) -> Datum:
        args = [widen(part(columns), kind) for part, kind in zip(parts, takes, strict=True)]
        spread_args = [spread(arg, columns.rows) for arg in args]
        return udf.call_module(module, spread_args, columns.rows, result, lost=columns.lost)

    return evaluate


IMPLEMENTATIONS: Final[dict[str, Eager | Lazy]] = {
    "add": Eager(numbers.add, "alike"),
    "sub": Eager(numbers.sub, "alike"),
    "mul": Eager(numbers.mul, "numbers"),
    "div": Eager(numbers.div, "floats"),
    "floordiv": Eager(numbers.floordiv, "alike"),
    "mod": Eager(numbers.mod, "alike"),
    "neg": Eager(numbers.neg),
    **{fn: _compare(fn) for fn in COMPARE},
    "same": Eager(logic.same, "alike", strict=False),
    "in": Eager(logic.in_, "alike", strict=False),
    "is_null": Eager(logic.is_null, strict=False),
    "and": Eager(logic.and_, "bools", strict=False),
    "or": Eager(logic.or_, "bools", strict=False),
    "not": Eager(logic.not_, "bools"),
    "coalesce": Lazy(logic.coalesce),
    "nullif": Eager(logic.nullif, strict=False),
    "least": Eager(logic.least, "alike", strict=False),
    "greatest": Eager(logic.greatest, "alike", strict=False),
    "abs": Eager(numbers.absolute),
    "sign": Eager(numbers.sign),
    "round": Eager(numbers.round_),
    "floor": Eager(numbers.floor),
    "ceil": Eager(numbers.ceil),
    "sqrt": Eager(numbers.sqrt, "floats"),
    "ln": Eager(numbers.ln, "floats"),
    "log10": Eager(numbers.log10, "floats"),
    "exp": Eager(numbers.exp, "floats"),
    "power": Eager(numbers.power, "floats"),
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
