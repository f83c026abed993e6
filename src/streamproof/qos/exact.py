"""Numbers that decide admission are exact: fractions, read from what users write and shown as people read them.

>>> exact("1/150"), exact(0.1), exact("0.25")
(Fraction(1, 150), Fraction(1, 10), Fraction(1, 4))
>>> shown(exact("1/3")), shown(12), shown(exact("0.51"))
('0.3333', '12', '0.51')
"""

from __future__ import annotations

import math
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Final, TypeAlias

from streamproof.documents import fraction
from streamproof.errors import PlanError, StreamproofError
from streamproof.events.time import duration

Exact: TypeAlias = "int | float | str | Decimal | Fraction"
"""A number as users write it; a float means its shortest decimal text."""

NANOS_PER_MS: Final = 10**6
MOST: Final = Fraction(10**15)  # of what users write; results may be larger
LEAST: Final = 1 / MOST


def exact(value: Exact, *, at: str | None = None) -> Fraction:
    """A number without rounding; text may be a decimal or a ratio such as ``1/150``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal | Fraction):
        raise PlanError(f"{value!r} is not a number", at=at, fix='write a number, or a ratio as text: "1/150"')
    if isinstance(value, float) and not math.isfinite(value):
        raise PlanError(f"{value} is not a finite number", at=at, fix="give a number such as 2.5")
    try:
        found = Fraction(value) if isinstance(value, int | Fraction) else fraction(str(value))
    except StreamproofError as error:
        raise error.located(at or "a number") from None
    except (ValueError, ZeroDivisionError, OverflowError):
        raise PlanError(f"{value!r} is not a number", at=at, fix='write a number, or a ratio: "1/150"') from None
    if not isinstance(value, Fraction) and found and not LEAST <= abs(found) <= MOST:
        raise PlanError(
            f"{str(value)[:40]} is out of reach", at=at, fix="numbers lie between 1e-15 and 1e15: use other units"
        )
    return found


def millis(span: Exact | timedelta, *, at: str | None = None) -> Fraction:
    """A length of time in milliseconds: plain numbers are milliseconds, text has a unit.

    >>> millis("1.5 s"), millis(20)
    (Fraction(1500, 1), Fraction(20, 1))
    """
    if isinstance(span, timedelta) or (isinstance(span, str) and not _is_number(span)):
        try:
            return Fraction(duration(str(span) if not isinstance(span, timedelta) else span, "ns"), NANOS_PER_MS)
        except PlanError as error:
            raise error.located(at or "a duration") from None
    return exact(span, at=at)


def _is_number(text: str) -> bool:
    try:
        fraction(text)
    except (ValueError, ZeroDivisionError):
        return False
    return True


def positive(value: Exact, what: str, *, at: str | None = None) -> Fraction:
    """A number above zero, or an error that says what it is."""
    found = exact(value, at=at)
    if found <= 0:
        raise PlanError(f"{what} must be positive, got {shown(found)}", at=at, fix="give a number above 0")
    return found


def shown(value: Fraction | float) -> str:
    """A number for people: four digits that matter, whole numbers in full."""
    if isinstance(value, float) and not math.isfinite(value):
        return "∞" if value > 0 else "−∞"
    number: Fraction = Fraction(value)
    if number.denominator == 1:
        return f"{int(number):,}"
    text = f"{float(number):,.4g}" if abs(number) < 1000 else f"{float(number):,.0f}"
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def shown_ms(value: Fraction | float) -> str:
    """Milliseconds with the unit that reads best.

    >>> shown_ms(Fraction(12)), shown_ms(Fraction(2500)), shown_ms(Fraction(1, 20))
    ('12 ms', '2.5 s', '0.05 ms')
    """
    if isinstance(value, float) and not math.isfinite(value):
        return shown(value)
    return f"{shown(value)} ms" if abs(float(value)) < 1000 else f"{shown(Fraction(value) / 1000)} s"


def rounded(value: Fraction | float | None, digits: int = 6) -> float | None:
    """A number as JSON holds it; what has no bound is null."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return round(float(value), digits)
