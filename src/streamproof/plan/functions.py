"""The function library: each built-in's name, arity and type rule, and what it means.

The meanings hold on every engine: null in, null out, unless the summary says otherwise.

>>> FUNCTIONS["round"].summary
'nearest number with n digits after the point (0), halves away from zero'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.notation import merge_types
from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, MAX_PRECISION, NULL, STRING, TIMESTAMP, Type, decimal
from streamproof.plan.expr import Apply, Call, Cast, Expr, walk

TypeRule: TypeAlias = Callable[[tuple[Type, ...]], Type | None]
"""From argument types to the result's; None where the function does not take them."""
Widening: TypeAlias = Callable[[tuple[Type, ...]], tuple[Type, ...]]
"""From argument types that the function takes to those that it is computed in. Law: the result is of the same type."""


@dataclass(frozen=True, slots=True)
class Function:
    """One built-in function. ``most`` None means any number of arguments."""

    name: str
    least: int
    most: int | None
    rule: TypeRule
    widens: Widening  # what `bind` casts arguments to, so that engines need not
    takes: str  # what the arguments must be, for errors
    summary: str
    overflows: bool = False  # a number in it may not fit its type, which is an error

    def result(self, types: tuple[Type, ...]) -> Type:
        """The type of the result, or the error that says what the function takes."""
        self.check_count(len(types))
        result = self.rule(types)
        if result is None:
            got = ", ".join(map(str, types))
            raise PlanError(
                f"{self.name} takes {self.takes}, got {got}", fix="cast the arguments", name="type_mismatch"
            )
        return result

    def check_count(self, given: int) -> None:
        """Refuse a call with too few or too many arguments."""
        if given < self.least or (self.most is not None and given > self.most):
            counts = f"{self.least}" if self.most == self.least else f"{self.least} to {self.most or 'any number of'}"
            fix = f"give {self.takes}"
            raise PlanError(f"{self.name} takes {counts} arguments, got {given}", fix=fix, name="type_mismatch")


def common_type(types: Iterable[Type]) -> Type | None:
    """The least type that holds values of all these types; None if there is none.

    >>> common_type([INT64, NULL, FLOAT64])
    Type('float64')
    >>> common_type([INT64, STRING]) is None
    True
    """
    result = NULL
    for kind in types:
        joined = merge_types(result, kind)
        if joined is None:
            return None
        result = joined
    return result


def as_decimal(kind: Type) -> Type:
    """An exact type as a decimal: int64 has up to 19 digits."""
    return decimal(19, 0) if kind == INT64 else kind


def _all(wanted: Type, result: Type | None = None) -> TypeRule:
    return lambda types: (result or wanted) if all(t in (wanted, NULL) for t in types) else None


def _numbers(types: tuple[Type, ...]) -> bool:
    return all(t.is_numeric or t == NULL for t in types)


def _add(types: tuple[Type, ...]) -> Type | None:
    joined = common_type(types) if _numbers(types) else None
    if joined is None or joined.kind != "decimal":
        return joined
    return decimal(min(MAX_PRECISION, joined.precision + 1), joined.scale)


def _multiply(types: tuple[Type, ...]) -> Type | None:
    joined = common_type(types) if _numbers(types) else None
    if joined is None or joined.kind != "decimal":
        return joined
    a, b = (as_decimal(t) if t != NULL else decimal(1, 0) for t in types)
    scale = a.scale + b.scale
    return decimal(min(MAX_PRECISION, a.precision + b.precision), scale) if scale <= MAX_PRECISION else None


def _whole_or_float(types: tuple[Type, ...]) -> Type | None:
    joined = common_type(types)
    return joined if joined in (INT64, FLOAT64, NULL) else None


def _same_number(types: tuple[Type, ...]) -> Type | None:
    return types[0] if _numbers(types) else None


def _to_whole(types: tuple[Type, ...]) -> Type | None:
    if not _numbers(types):
        return None
    first = types[0]
    # 9.9 rounds up to 10: one digit more before the point
    return decimal(min(MAX_PRECISION, first.precision - first.scale + 1), 0) if first.kind == "decimal" else first


def _rounded(types: tuple[Type, ...]) -> Type | None:
    if len(types) == 1:
        return _to_whole(types)
    return types[0] if types[0] in (INT64, FLOAT64, NULL) and types[1] in (INT64, NULL) else None


def _float(types: tuple[Type, ...]) -> Type | None:
    return FLOAT64 if _numbers(types) else None


def _compare(types: tuple[Type, ...]) -> Type | None:
    return BOOL if common_type(types) is not None else None


def _common(types: tuple[Type, ...]) -> Type | None:
    return common_type(types)


def _anything(types: tuple[Type, ...]) -> Type | None:
    return BOOL


def _substr(types: tuple[Type, ...]) -> Type | None:
    return STRING if types[0] in (STRING, NULL) and all(t in (INT64, NULL) for t in types[1:]) else None


def _time_part(types: tuple[Type, ...]) -> Type | None:
    return INT64 if types[0] in (TIMESTAMP, DATE, INT64, NULL) else None


def _instant(types: tuple[Type, ...]) -> Type | None:
    return TIMESTAMP if all(t in (INT64, NULL) for t in types) else None


# --- what arguments are brought to ------------------------------------------------------------------------------------


def _as(kind: Type) -> Widening:
    """All of one type, whatever they are."""
    return lambda types: (kind,) * len(types)


def _as_one(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """Their common type; of nothing but nulls any will do."""
    joined = common_type(types)
    return (BOOL if joined is None or joined == NULL else joined,) * len(types)


def _factors(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """Decimals multiply with the scales that they have."""
    joined = common_type(types)
    if joined is None or joined.kind != "decimal":
        return _as_one(types)
    return tuple(_factor(kind) for kind in types)


def _factor(kind: Type) -> Type:
    return decimal(1, 0) if kind == NULL else as_decimal(kind)


def _as_is(first: Type, *others: Type) -> Widening:
    """Each keeps its type; the types are those of nulls, the last for all that follow."""
    nulls = (first, *others)
    return lambda types: tuple(nulls[min(n, len(nulls) - 1)] if kind == NULL else kind for n, kind in enumerate(types))


def _compared(types: tuple[Type, ...]) -> tuple[Type, ...]:
    """The first in its own type, which is the result's; the function itself compares numbers of two types."""
    first, second = types
    return first, first if second == NULL else second


_NUMBERS = "numbers"
_STRINGS = "strings"
_ALIKE = "values of one type"
_INSTANT = "a timestamp, a date or ticks with a unit"

_LIBRARY: Final = (
    Function("add", 2, 2, _add, _as_one, _NUMBERS, "a + b; int64 overflow is an error", overflows=True),
    Function("sub", 2, 2, _add, _as_one, _NUMBERS, "a - b; int64 overflow is an error", overflows=True),
    Function("mul", 2, 2, _multiply, _factors, _NUMBERS, "a * b; int64 overflow is an error", overflows=True),
    Function("div", 2, 2, _float, _as(FLOAT64), _NUMBERS, "a / b as a float; null if b is 0"),
    Function(
        "floordiv", 2, 2, _whole_or_float, _as_one, "integers or floats",
        "a // b rounded down; null if b is 0", overflows=True,
    ),
    Function("mod", 2, 2, _whole_or_float, _as_one, "integers or floats", "a % b with the sign of a; null if b is 0"),
    Function("neg", 1, 1, _same_number, _as_is(INT64), "a number", "-a", overflows=True),
    Function("eq", 2, 2, _compare, _as_one, _ALIKE, "a = b; NaN equals NaN"),
    Function("ne", 2, 2, _compare, _as_one, _ALIKE, "a <> b"),
    Function("lt", 2, 2, _compare, _as_one, _ALIKE, "a < b; NaN is above all numbers"),
    Function("lte", 2, 2, _compare, _as_one, _ALIKE, "a <= b"),
    Function("gt", 2, 2, _compare, _as_one, _ALIKE, "a > b"),
    Function("gte", 2, 2, _compare, _as_one, _ALIKE, "a >= b"),
    Function(
        "same", 2, 2, _compare, _as_one, _ALIKE,
        "a is not distinct from b: equality where null equals null; never null",
    ),
    Function("in", 2, None, _compare, _as_one, _ALIKE, "the first equals one of the others"),
    Function("is_null", 1, 1, _anything, _as_is(BOOL), "anything", "whether a is null; never null"),
    Function("and", 2, 2, _all(BOOL), _as(BOOL), "booleans", "three-valued and"),
    Function("or", 2, 2, _all(BOOL), _as(BOOL), "booleans", "three-valued or"),
    Function("not", 1, 1, _all(BOOL), _as(BOOL), "a boolean", "three-valued not"),
    Function("coalesce", 1, None, _common, _as_one, _ALIKE, "the first that is not null"),
    Function(
        "nullif", 2, 2, lambda t: t[0] if _compare(t) else None, _compared, _ALIKE, "null if a = b, else a",
        overflows=True,  # a number of one type may have no place in the common one
    ),
    Function("least", 1, None, _common, _as_one, _ALIKE, "the least that is not null"),
    Function("greatest", 1, None, _common, _as_one, _ALIKE, "the greatest that is not null"),
    Function("abs", 1, 1, _same_number, _as_is(INT64), "a number", "the magnitude", overflows=True),
    Function(
        "sign", 1, 1, lambda t: INT64 if _numbers(t) else None, _as_is(INT64), "a number",
        "-1, 0 or 1 (0 for NaN)",
    ),
    Function(
        "round", 1, 2, _rounded, _as_is(INT64), "a number and digits (none for a decimal)",
        "nearest number with n digits after the point (0), halves away from zero", overflows=True,
    ),
    Function("floor", 1, 1, _to_whole, _as_is(INT64), "a number", "the greatest whole number not above"),
    Function("ceil", 1, 1, _to_whole, _as_is(INT64), "a number", "the least whole number not below"),
    Function("sqrt", 1, 1, _float, _as(FLOAT64), "a number", "square root; null below 0"),
    Function("ln", 1, 1, _float, _as(FLOAT64), "a number", "natural logarithm; null at 0 and below"),
    Function("log10", 1, 1, _float, _as(FLOAT64), "a number", "decimal logarithm; null at 0 and below"),
    Function("exp", 1, 1, _float, _as(FLOAT64), "a number", "e to the power of a"),
    Function(
        "power", 2, 2, _float, _as(FLOAT64), _NUMBERS,
        "a to the power of b as a float; null where it has no real value",
    ),
    Function("concat", 1, None, _all(STRING), _as(STRING), _STRINGS, "the strings in a row; also written a || b"),
    Function("lower", 1, 1, _all(STRING), _as(STRING), "a string", "in small letters"),
    Function("upper", 1, 1, _all(STRING), _as(STRING), "a string", "in capital letters"),
    Function("trim", 1, 1, _all(STRING), _as(STRING), "a string", "without blanks (U+0020) at both ends"),
    Function("ltrim", 1, 1, _all(STRING), _as(STRING), "a string", "without blanks at the start"),
    Function("rtrim", 1, 1, _all(STRING), _as(STRING), "a string", "without blanks at the end"),
    Function(
        "substr", 2, 3, _substr, _as_is(STRING, INT64), "a string, a start and a length",
        "the characters from position start (the first is 1), at most length of them",
    ),
    Function("length", 1, 1, _all(STRING, INT64), _as(STRING), "a string", "the number of code points"),
    Function(
        "replace", 3, 3, _all(STRING), _as(STRING), _STRINGS,
        "every b in a becomes c; an empty b changes nothing",
    ),
    Function("contains", 2, 2, _all(STRING, BOOL), _as(STRING), _STRINGS, "whether b occurs in a"),
    Function("starts_with", 2, 2, _all(STRING, BOOL), _as(STRING), _STRINGS, "whether a begins with b"),
    Function("ends_with", 2, 2, _all(STRING, BOOL), _as(STRING), _STRINGS, "whether a ends with b"),
    Function(
        "like", 2, 2, _all(STRING, BOOL), _as(STRING), _STRINGS,
        "a matches b: % is any text, _ one character, \\ escapes",
    ),
    Function(
        "instant", 1, 2, _instant, _as(INT64), "ticks of a stream with a unit", "ticks as a timestamp", overflows=True,
    ),
    Function("year", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the year, in UTC"),
    Function("month", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the month, 1 to 12"),
    Function("day", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the day of the month"),
    Function("hour", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the hour, 0 to 23"),
    Function("minute", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the minute"),
    Function("second", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "the second, without fraction"),
    Function("day_of_week", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "1 for Monday to 7 for Sunday"),
    Function("day_of_year", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "1 to 366"),
    Function("epoch", 1, 1, _time_part, _as_is(TIMESTAMP), _INSTANT, "whole seconds since 1970, rounded down"),
)  # fmt: skip
FUNCTIONS: Final[dict[str, Function]] = {function.name: function for function in _LIBRARY}
OTHER_NAMES: Final = {
    "ceiling": "ceil", "char_length": "length", "character_length": "length", "day_of_month": "day",
    "dayofmonth": "day", "dayofweek_iso": "day_of_week", "dayofyear": "day_of_year", "endswith": "ends_with",
    "ifnull": "coalesce", "isodow": "day_of_week", "lcase": "lower", "len": "length", "nvl": "coalesce",
    "pow": "power", "signum": "sign", "startswith": "starts_with", "ucase": "upper",
}  # fmt: skip
"""What functions of the library are also called in text."""
TIME_PARTS: Final = ("year", "month", "day", "hour", "minute", "second", "day_of_week", "day_of_year", "epoch")


def result_type(fn: str, types: tuple[Type, ...]) -> Type:
    """The type of a call of a built-in."""
    return FUNCTIONS[fn].result(types)


def may_fail(expr: Expr) -> bool:
    """Whether a bound expression may be an error on some row, and so must not meet rows that the plan hides from it.

    >>> from streamproof.plan.parse import parse
    >>> may_fail(parse("v > 1")), may_fail(parse("v + 1 > 1"))
    (False, True)
    """
    return any(_may_fail_itself(part) for part in walk(expr))


def _may_fail_itself(part: Expr) -> bool:
    match part:
        case Call(fn):
            return FUNCTIONS[fn].overflows
        case Cast(strict=strict):
            return strict
    return isinstance(part, Apply)
