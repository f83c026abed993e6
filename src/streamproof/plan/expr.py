"""Expressions: a small whitelisted tree over payload columns.

Expressions are data. They are written as SQL-flavoured text (`plan.parse`) or in Python (`query.column`), typed by
`plan.typing`, and each engine translates them by itself; no text of a plan ever reaches an evaluator.

>>> Call("gt", (Col("v"), literal(5)))
Call(fn='gt', args=(Col(name='v', side=None), Lit(value=5, type=Type('int64'))))
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from itertools import chain
from typing import Final, Literal, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Type, decimal

Value: TypeAlias = "int | float | str | bool | Decimal | date | datetime | None"
Side: TypeAlias = Literal["l", "r"]
INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
LIFE_START: Final = "\0le"
LIFE_END: Final = "\0re"
"""What a lifetime's start and end are called once an expression is bound: no payload column can have such a name."""


@dataclass(frozen=True, slots=True)
class Col:
    """A payload column; ``side`` tells the input in conditions over two (``l.v``, ``r.v``).

    ``le`` and ``re`` name the event's lifetime where a node admits them and payload has no such column;
    ``streamproof_le`` and ``streamproof_re`` name it where payload has one.
    """

    name: str
    side: Side | None = None


@dataclass(frozen=True, slots=True)
class Lit:
    """A constant with its type, so that 1, 1.0 and true stay three things."""

    value: Value
    type: Type


@dataclass(frozen=True, slots=True)
class Call:
    """A built-in function or operator, named as in `plan.functions`."""

    fn: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Apply:
    """A user-defined function by its registered name."""

    fn: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion; one that fails is an error if strict, else null (``try_cast``).

    One that `plan.typing.bind` put in is ``implied``: text leaves it out, and it is strict only if it can fail.
    """

    arg: Expr
    to: Type
    strict: bool = True
    implied: bool = field(default=False, repr=False)


@dataclass(frozen=True, slots=True)
class Case:
    """The value of the first branch whose condition is true, else the default."""

    branches: tuple[tuple[Expr, Expr], ...]
    default: Expr


Expr: TypeAlias = "Col | Lit | Call | Apply | Cast | Case"
NULL_LITERAL = Lit(None, NULL)
TRUE = Lit(True, BOOL)


def literal(value: object) -> Lit:
    """A Python value as a constant.

    >>> literal(2.5), literal(None)
    (Lit(value=2.5, type=Type('float64')), Lit(value=None, type=Type('null')))
    """
    match value:
        case None:
            return NULL_LITERAL
        case bool():
            return Lit(value, BOOL)
        case int():
            if not INT64_MIN <= value <= INT64_MAX:
                raise PlanError(f"the integer {value} does not fit into 64 bits", name="overflow", fix="write a float")
            return Lit(value, INT64)
        case float():
            return Lit(value, FLOAT64)
        case str():
            return Lit(value, STRING)
        case Decimal():
            return Lit(value, _decimal_type(value))
        case datetime():
            if value.tzinfo is None:
                raise PlanError(f"the time {value.isoformat()} has no zone", fix="add one, e.g. tzinfo=UTC")
            return Lit(value.astimezone(UTC), TIMESTAMP)
        case date():
            return Lit(value, DATE)
    raise PlanError(f"{value!r} cannot stand in an expression", fix="use a number, string, boolean, date, time or null")


def _decimal_type(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise PlanError(f"{value} is not a decimal number", fix="use a float for NaN and infinities")
    scale = max(0, -exponent)
    return decimal(max(len(digits) + max(0, exponent), scale, 1), scale)


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(args=args) | Apply(args=args):
            return args
        case Cast(arg=arg):
            return (arg,)
        case Case(branches=branches, default=default):
            return (*(part for branch in branches for part in branch), default)
    return ()


def operands(call: Call) -> tuple[Expr, ...]:
    """The arguments of a function. Texts that are joined to joined texts are all joined at once.

    >>> operands(Call("concat", (Call("concat", (Col("a"), Col("b"))), Col("c"))))
    (Col(name='a', side=None), Col(name='b', side=None), Col(name='c', side=None))
    """
    if call.fn != "concat":
        return call.args
    nested = (operands(arg) if isinstance(arg, Call) and arg.fn == "concat" else (arg,) for arg in call.args)
    return tuple(chain.from_iterable(nested))


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all its parts, outermost first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Rebuild bottom-up, with ``change`` applied to every part.

    >>> transform(Call("neg", (Col("a"),)), lambda e: Col("b") if e == Col("a") else e)
    Call(fn='neg', args=(Col(name='b', side=None),))
    """
    match expr:
        case Call() | Apply():
            expr = replace(expr, args=tuple(transform(arg, change) for arg in expr.args))
        case Cast():
            expr = replace(expr, arg=transform(expr.arg, change))
        case Case(branches=branches, default=default):
            changed = tuple((transform(when, change), transform(then, change)) for when, then in branches)
            expr = Case(changed, transform(default, change))
    return change(expr)


def replaced_calls(
    expr: Expr, answer: Callable[[Apply | Cast, tuple[Expr, ...]], Expr], guard: tuple[Expr, ...] = ()
) -> Expr:
    """The expression with each call of a user's function, and each cast, replaced by what is answered for it.

    The arguments of a call come replaced already. Its guard are the conditions under which its value is asked for: a
    call inside a CASE stands for the rows alone that reach it.
    """
    match expr:
        case Apply(args=args):
            return answer(replace(expr, args=tuple(replaced_calls(arg, answer, guard) for arg in args)), guard)
        case Call(args=args):
            return replace(expr, args=tuple(replaced_calls(arg, answer, guard) for arg in args))
        case Cast(arg=arg):
            return answer(replace(expr, arg=replaced_calls(arg, answer, guard)), guard)
        case Case(branches, default):
            made = []
            for condition, value in branches:
                asked = replaced_calls(condition, answer, guard)
                holds = Call("same", (asked, TRUE))
                made.append((asked, replaced_calls(value, answer, (*guard, holds))))
                guard = (*guard, Call("not", (holds,)))
            return Case(tuple(made), replaced_calls(default, answer, guard))
    return expr


def as_written(expr: Expr) -> Expr:
    """The expression without the casts that `plan.typing.bind` put in.

    >>> as_written(Call("eq", (Cast(Col("a"), FLOAT64, implied=True), Col("b"))))
    Call(fn='eq', args=(Col(name='a', side=None), Col(name='b', side=None)))
    """
    return transform(expr, lambda part: part.arg if isinstance(part, Cast) and part.implied else part)


def columns_of(expr: Expr) -> frozenset[Col]:
    """The columns an expression reads."""
    return frozenset(part for part in walk(expr) if isinstance(part, Col))


def user_functions(expr: Expr) -> tuple[Apply, ...]:
    """The calls of user-defined functions inside an expression."""
    return tuple(part for part in walk(expr) if isinstance(part, Apply))


def all_of(conditions: list[Expr]) -> Expr:
    """The conjunction of conditions; of none, true."""
    if not conditions:
        return TRUE
    first, *rest = conditions
    for condition in rest:
        first = Call("and", (first, condition))
    return first


def conjuncts(expr: Expr) -> list[Expr]:
    """The inverse of `all_of`: the conditions that must all hold.

    >>> len(conjuncts(all_of([Col("a"), Col("b"), Col("c")])))
    3
    """
    if isinstance(expr, Call) and expr.fn == "and":
        return [part for arg in expr.args for part in conjuncts(arg)]
    return [expr]


_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d{1,6})?)?(Z|[+-]\d{2}(:?\d{2})?)?", re.ASCII)
_NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,9})?", re.ASCII)
_ROOM: Final = Context(prec=2000)  # more digits than any decimal has
_SPECIAL_FLOATS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf"), "-inf": float("-inf")}


def cast_to(arg: Expr, to: Type, *, strict: bool = True) -> Expr:
    """A cast, or the constant it makes: of null, the null of that type."""
    if arg == NULL_LITERAL:
        return Lit(None, to)
    if not (isinstance(arg, Lit) and arg.type == STRING and isinstance(arg.value, str)):
        return Cast(arg, to, strict)
    try:
        value = _constant(arg.value, to)
    except (ValueError, InvalidOperation, OverflowError):
        if not strict:
            return Lit(None, to)
        raise PlanError(
            f"{arg.value!r} is not a {to}",
            fix={"timestamp": "write an ISO time with a zone, e.g. '2024-05-01T12:00:00Z'"}.get(to.kind),
            name="type_mismatch",
        ) from None
    return Cast(arg, to, strict) if value is None else Lit(value, to)


def _constant(text: str, to: Type) -> Value:
    """The value that engines read in a column's text, where the types have constants."""
    word = text.strip(" ")
    match to.kind:
        case "date":
            return date.fromisoformat(_whole(_DATE, word))
        case "timestamp":
            moment = datetime.fromisoformat(_whole(_TIME, word))
            if moment.tzinfo is None:
                raise ValueError("no zone")
            return moment.astimezone(UTC)
        case "decimal":
            return _decimal(Decimal(_whole(_NUMBER, word)), to)
        case "float64":
            return _SPECIAL_FLOATS.get(word.lower())
    return None


def _whole(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(text)
    return text


def _decimal(number: Decimal, to: Type) -> Decimal:
    """With the digits of the type, halves away from zero."""
    if number and number.adjusted() > to.precision:
        raise ValueError("too large")
    if number.adjusted() < -to.scale - 1:
        return Decimal(0).scaleb(-to.scale)
    found = number.quantize(Decimal(1).scaleb(-to.scale), ROUND_HALF_UP, _ROOM)
    if found and found.adjusted() >= to.precision - to.scale:
        raise ValueError("too large")
    return found
