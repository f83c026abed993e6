"""Casts of constant text and of null become constants: that is how dates, times, decimals and NaN are written.

>>> from streamproof.events.schema import DATE, STRING
>>> cast_to(Lit("2024-05-01", STRING), DATE)
Lit(value=datetime.date(2024, 5, 1), type=Type('date'))
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation

from streamproof.errors import PlanError
from streamproof.events.schema import STRING, Type
from streamproof.plan.expr import NULL_LITERAL, Cast, Expr, Lit, Value

_SPECIAL_FLOATS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf"), "-inf": float("-inf")}


def cast_to(arg: Expr, to: Type, *, strict: bool = True) -> Expr:
    """A cast, or the constant it makes: of null, the null of that type."""
    if arg == NULL_LITERAL:
        return Lit(None, to)
    if not (isinstance(arg, Lit) and arg.type == STRING and isinstance(arg.value, str)):
        return Cast(arg, to, strict)
    try:
        value = _constant(arg.value, to)
    except (ValueError, InvalidOperation):
        if not strict:
            return Lit(None, to)
        raise PlanError(
            f"{arg.value!r} is not a {to}",
            fix={"timestamp": "write an ISO time with a zone, e.g. '2024-05-01T12:00:00Z'"}.get(to.kind),
            name="type_mismatch",
        ) from None
    return Cast(arg, to, strict) if value is None else Lit(value, to)


def _constant(text: str, to: Type) -> Value:
    match to.kind:
        case "date":
            return date.fromisoformat(text.strip())
        case "timestamp":
            moment = datetime.fromisoformat(text.strip())
            if moment.tzinfo is None:
                raise ValueError("no zone")
            return moment.astimezone(UTC)
        case "decimal":
            return Decimal(text.strip()).quantize(Decimal(1).scaleb(-to.scale))
        case "float64":
            return _SPECIAL_FLOATS.get(text.strip().lower())
    return None
