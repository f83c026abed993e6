"""Casts, one function per pair of types.

>>> from streamproof.events.schema import FLOAT64, INT64, decimal
>>> cast(2.5, FLOAT64, INT64), cast(3.5, FLOAT64, INT64), cast(2.5, FLOAT64, decimal(3, 0))
(3, 4, Decimal('3'))

Halves go away from zero, as the function ``round`` takes them.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.workbench.evaluator.values import EXACT, fit, rescale


def cast(value: Any, source: Type, to: Type) -> Any:
    """The value as another type. A number out of range is ``overflow``, text that cannot be read is ``bad_input``."""
    if value is None or source == to:
        return value
    if source.kind == "string":
        return _from_text(value, to)
    match to.kind:
        case "string":
            return _to_text(value)
        case "bool":
            return bool(value != 0)
        case "int64":
            return _to_int(value)
        case "float64":
            return float(value)
        case "decimal":
            return _to_decimal(value, to)
        case "date":
            return value.astimezone(UTC).date()
        case "timestamp":
            return datetime.combine(value, time(), UTC)
    raise AssertionError(f"no cast from {source} to {to}")


def _to_int(value: Any) -> int:
    if isinstance(value, float):
        if not math.isfinite(value):
            raise RunError(f"{value} is not a whole number", name="overflow")
        if abs(value) >= 2.0**63:  # a whole number by itself, and perhaps one of hundreds of digits
            return int(fit(int(value), INT64))
        return int(fit(int(Decimal(value).quantize(Decimal(1), rounding=ROUND_HALF_UP, context=EXACT)), INT64))
    if isinstance(value, Decimal):
        return int(fit(int(_to_decimal(value, Type("decimal", 38, 0))), INT64))
    return int(value)


def _to_decimal(value: Any, to: Type) -> Decimal:
    if isinstance(value, float) and not math.isfinite(value):
        raise RunError(f"{value} is not a decimal", name="overflow")
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)  # the digits that people see
    return rescale(number, to, rounding=ROUND_HALF_UP)


def _to_text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case float():
            return repr(value + 0.0)  # −0.0 is 0.0
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return f"{value:f}"
    return str(value)


def _from_text(text: str, to: Type) -> Any:
    try:
        return _READERS[to.kind](text.strip(" "), to)
    except (ValueError, ArithmeticError, RunError):
        raise RunError(f"{text!r} is not a {to}", name="bad_input") from None


def _read_int(text: str, to: Type) -> int:
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        raise ValueError
    return int(fit(int(text), INT64))


def _read_float(text: str, to: Type) -> float:
    number = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?"
    if not re.fullmatch(rf"{number}|[+-]?(inf|infinity)|nan", text, re.IGNORECASE):
        raise ValueError
    return float(text)


def _read_decimal(text: str, to: Type) -> Decimal:
    _read_float(text, FLOAT64)
    number = EXACT.create_decimal(text)
    if not number.is_finite():
        raise ValueError
    return rescale(number, to, rounding=ROUND_HALF_UP)


def _read_bool(text: str, to: Type) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _read_date(text: str, to: Type) -> date:
    if not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        raise ValueError
    return date.fromisoformat(text)


def _read_timestamp(text: str, to: Type) -> datetime:
    clock = r"[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?"
    if not re.fullmatch(rf"[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}[T ]{clock}(Z|[+-][0-9]{{2}}(:?[0-9]{{2}})?)", text):
        raise ValueError
    return datetime.fromisoformat(text).astimezone(UTC)


_READERS = {
    "int64": _read_int,
    "float64": _read_float,
    "decimal": _read_decimal,
    "bool": _read_bool,
    "date": _read_date,
    "timestamp": _read_timestamp,
}
