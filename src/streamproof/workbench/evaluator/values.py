"""Payload values: when two are the same, and which comes first.

NaN equals NaN and stands above all numbers, −0.0 equals 0.0, strings compare by code point, null comes last.

>>> same_value(float("nan"), float("nan")), same_value(-0.0, 0.0), same_value(None, 0)
(True, True, False)
>>> sorted([2.0, None, float("nan"), 1.0], key=order)
[1.0, 2.0, nan, None]
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.plan.expr import INT64_MAX, INT64_MIN

Payload = dict[str, Any]
Row = tuple[int, int, Payload]
EXACT = Context(prec=200)


def identity(value: Any) -> Hashable:
    """Equal for values that are the same, different for others."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0  # −0.0 + 0.0 is 0.0
    found: Hashable = value
    return found


def payload_identity(payload: Mapping[str, Any], names: Iterable[str]) -> tuple[Hashable, ...]:
    return tuple(identity(payload[name]) for name in names)


def same_value(a: Any, b: Any) -> bool:
    return identity(a) == identity(b)


def order(value: Any) -> tuple[Any, ...]:
    """A key to sort by: numbers, then NaN, then null."""
    if value is None:
        return (2,)
    return (1,) if isinstance(value, float) and math.isnan(value) else (0, value)


def fit(value: Any, kind: Type) -> Any:
    """A computed number as a value of its type; one that is too large for it is the error ``overflow``."""
    if value is None:
        return None
    if kind.kind == "int64" and not INT64_MIN <= value <= INT64_MAX:
        raise RunError(f"{value} does not fit into int64", name="overflow")
    if kind.kind == "decimal":
        return rescale(value, kind)
    return value


def rescale(value: Decimal, kind: Type, *, rounding: str = ROUND_HALF_UP) -> Decimal:
    """A decimal with the scale of its type."""
    if value and value.adjusted() > kind.precision - kind.scale:
        raise RunError(f"{value} does not fit into {kind}", name="overflow")
    scaled = value.quantize(Decimal(1).scaleb(-kind.scale), rounding=rounding, context=EXACT)
    if scaled and scaled.adjusted() >= kind.precision - kind.scale:
        raise RunError(f"{value} does not fit into {kind}", name="overflow")
    return scaled or abs(scaled)  # there is no −0


def widen(value: Any, to: Type) -> Any:
    """A value as one of a wider type: integers become decimals or floats, decimals floats."""
    if value is None or isinstance(value, bool):
        return value
    if to == FLOAT64:
        return float(value)
    return rescale(Decimal(value), to) if to.kind == "decimal" else value


def of_type(value: Any, kind: Type) -> Any:
    """What a module gave, as a value of the declared type; anything else is the error ``module_failed``."""
    wanted = PYTHON[kind.kind]
    given = type(value)
    if value is None or given is wanted:
        return value if kind.kind != "decimal" or value is None else _declared(value, kind)
    if given is int and wanted in (float, Decimal):
        return widen(value, kind)
    raise RunError(f"{value!r} is not of type {kind}", name="module_failed")


def _declared(value: Decimal, kind: Type) -> Decimal:
    try:
        found = rescale(value, kind)
    except (RunError, ArithmeticError):
        found = None
    if found != value or found is None:
        raise RunError(f"{value!r} is not of type {kind}", name="module_failed")
    return found


PYTHON: dict[str, type] = {
    "int64": int,
    "float64": float,
    "string": str,
    "bool": bool,
    "decimal": Decimal,
    "date": date,
    "timestamp": datetime,
    "null": type(None),
}
