"""Casts of constant text and of null become constants: that is how dates, times, decimals and NaN are written.

>>> from streamproof.events.schema import DATE, STRING
>>> cast_to(Lit("2024-05-01", STRING), DATE)
Lit(value=datetime.date(2024, 5, 1), type=Type('date'))
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import Final

from streamproof.errors import PlanError
from streamproof.events.schema import STRING, Type
from streamproof.plan.expr import NULL_LITERAL, Cast, Expr, Lit, Value

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
