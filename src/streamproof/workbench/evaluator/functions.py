"""The built-in functions on Python values: one line each, after `plan.functions`.

Arguments come without nulls, unless the function is in `SEES_NULL`.

>>> STRICT["mod"](-7, 3), STRICT["floordiv"](-7, 2), STRICT["substr"]("abcd", 2, 2), STRICT["like"]("ab", "a_")
(-1, -4, 'bc', True)
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Decimal
from typing import Any

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.workbench.evaluator.values import EXACT, order, same_value

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


# --- arithmetic -------------------------------------------------------------------------------------------------------


def divide(a: float, b: float) -> float | None:
    return None if b == 0 else a / b


def floor_divide(a: Any, b: Any) -> Any:
    if b == 0:
        return None
    return a // b if isinstance(a, int) else floor(a / b)


def modulo(a: Any, b: Any) -> Any:
    """The remainder with the sign of ``a``."""
    if b == 0:
        return None
    if isinstance(a, int):
        return _sign(a) * (abs(a) % abs(b))
    return math.nan if math.isinf(a) else math.fmod(a, b)


def _sign(x: Any) -> int:
    return int(x > 0) - int(x < 0)


def multiply(a: Any, b: Any) -> Any:
    return EXACT.multiply(a, b) if isinstance(a, Decimal) else a * b


def add(a: Any, b: Any) -> Any:
    return EXACT.add(a, b) if isinstance(a, Decimal) else a + b


def negative(a: Any) -> Any:
    return EXACT.minus(a) if isinstance(a, Decimal) else -a


def floor(x: Any) -> Any:
    return _whole(x, ROUND_FLOOR, math.floor)


def ceil(x: Any) -> Any:
    return _whole(x, ROUND_CEILING, math.ceil)


def _whole(x: Any, rounding: str, of_float: Callable[[float], int]) -> Any:
    if isinstance(x, Decimal):
        return x.quantize(Decimal(1), rounding=rounding, context=EXACT)
    if isinstance(x, float):
        return float(of_float(x)) if math.isfinite(x) else x
    return x


def round_(x: Any, digits: int = 0) -> Any:
    """Halves away from zero."""
    if isinstance(x, float):
        if not math.isfinite(x):
            return x
        return _round_float(x, digits)
    rounded = Decimal(x).quantize(Decimal(1).scaleb(-min(digits, 0)), rounding=ROUND_HALF_UP, context=EXACT)
    return int(rounded) if isinstance(x, int) else rounded


def _round_float(x: float, digits: int) -> float:
    if digits > 308:
        return x
    if digits < -308:
        return 0.0
    if digits < 0:
        return _nearest(x / 10.0**-digits) * 10.0**-digits
    scaled = x * 10.0**digits
    return _nearest(scaled) / 10.0**digits if math.isfinite(scaled) else x


def _nearest(x: float) -> float:
    whole = math.floor(abs(x))
    return math.copysign(whole + (abs(x) - whole >= 0.5), x)


def power(a: float, b: float) -> float | None:
    if (a < 0 and not b.is_integer() and math.isfinite(b)) or (a == 0 and b < 0):
        return None
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf if a > 0 or b % 2 == 0 else -math.inf


def exp(a: float) -> float:
    try:
        return math.exp(a)
    except OverflowError:
        return math.inf


def above_zero(fn: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda x: None if x <= 0 else fn(x)


# --- text -------------------------------------------------------------------------------------------------------------


def substr(text: str, start: int, length: int | None = None) -> str:
    """The characters at the positions p with ``start <= p < start + length``; the first position is 1."""
    end = len(text) + 1 if length is None else start + length
    return "".join(char for position, char in enumerate(text, 1) if start <= position < end)


def one_letter(char: str, changed: str) -> str:
    """Letter by letter: one whose other form is two letters stays as it is."""
    return changed if len(changed) == 1 else char


def like(text: str, pattern: str) -> bool:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    regex = "".join(wild.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


# --- times ------------------------------------------------------------------------------------------------------------


def instant(ticks: int, per_second: int) -> datetime | None:
    if ticks in (BEGINNING, FOREVER):
        return None  # the infinities are no instants
    try:
        return EPOCH + timedelta(microseconds=ticks * 10**6 // per_second)
    except OverflowError:
        raise RunError(f"the tick {ticks} lies outside of the years 1 to 9999", name="overflow") from None


def _moment(value: date | datetime) -> datetime:
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def part(read: Callable[[datetime], int]) -> Callable[[date | datetime], int]:
    return lambda value: read(_moment(value))


# --- functions that see null ------------------------------------------------------------------------------------------


def and_(a: bool | None, b: bool | None) -> bool | None:
    if a is False or b is False:
        return False
    return None if a is None or b is None else True


def or_(a: bool | None, b: bool | None) -> bool | None:
    if a is True or b is True:
        return True
    return None if a is None or b is None else False


def in_(value: Any, *others: Any) -> bool | None:
    if value is None:
        return None
    if any(other is not None and same_value(value, other) for other in others):
        return True
    return None if None in others else False


def least(*values: Any) -> Any:
    return min((value for value in values if value is not None), key=order, default=None)


def greatest(*values: Any) -> Any:
    return max((value for value in values if value is not None), key=order, default=None)


SEES_NULL: dict[str, Callable[..., Any]] = {
    "and": and_,
    "or": or_,
    "in": in_,
    "same": lambda a, b: (a is None and b is None) or (None not in (a, b) and same_value(a, b)),
    "is_null": lambda a: a is None,
    "least": least,
    "greatest": greatest,
}
STRICT: dict[str, Callable[..., Any]] = {
    "add": add,
    "sub": lambda a, b: add(a, negative(b)),
    "mul": multiply,
    "div": divide,
    "floordiv": floor_divide,
    "mod": modulo,
    "neg": negative,
    "eq": same_value,
    "ne": lambda a, b: not same_value(a, b),
    "lt": lambda a, b: order(a) < order(b),
    "lte": lambda a, b: order(a) <= order(b),
    "gt": lambda a, b: order(a) > order(b),
    "gte": lambda a, b: order(a) >= order(b),
    "not": lambda a: not a,
    "abs": lambda a: EXACT.abs(a) if isinstance(a, Decimal) else abs(a),
    "sign": _sign,
    "round": round_,
    "floor": floor,
    "ceil": ceil,
    "sqrt": lambda x: None if x < 0 else math.sqrt(x),
    "ln": above_zero(math.log),
    "log10": above_zero(math.log10),
    "exp": exp,
    "power": power,
    "concat": lambda *parts: "".join(parts),
    "lower": lambda s: "".join(one_letter(char, char.lower()) for char in s),
    "upper": lambda s: "".join(one_letter(char, char.upper()) for char in s),
    "trim": lambda s: s.strip(" "),
    "ltrim": lambda s: s.lstrip(" "),
    "rtrim": lambda s: s.rstrip(" "),
    "substr": substr,
    "length": len,
    "replace": lambda s, old, new: s.replace(old, new) if old else s,
    "contains": lambda s, part: part in s,
    "starts_with": str.startswith,
    "ends_with": str.endswith,
    "like": like,
    "instant": instant,
    "year": part(lambda t: t.year),
    "month": part(lambda t: t.month),
    "day": part(lambda t: t.day),
    "hour": part(lambda t: t.hour),
    "minute": part(lambda t: t.minute),
    "second": part(lambda t: t.second),
    "day_of_week": part(datetime.isoweekday),
    "day_of_year": part(lambda t: t.timetuple().tm_yday),
    "epoch": part(lambda t: (t - EPOCH) // timedelta(seconds=1)),
}
