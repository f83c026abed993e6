"""Times and lengths of time in the unit of a source, from picoseconds to seconds; nothing is rounded.

>>> TICKS["us"], shown(90_000, "ms"), shown(86_400 * 3 // 2, "s")
(1000000, '1m 30s', '1d 12h')
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from streamproof.errors import InputError, did_you_mean
from streamproof.events.time import Unit, show_moment

TimeUnit: TypeAlias = Literal["ps", "ns", "us", "ms", "s"]
TIME_UNITS: Final[tuple[TimeUnit, ...]] = get_args(TimeUnit)
TICKS: Final[dict[TimeUnit, int]] = {"ps": 10**12, "ns": 10**9, "us": 10**6, "ms": 10**3, "s": 1}
_STEPS: Final = ((31_557_600, "y"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))
_FINE: Final = (("ms", 10**3), ("us", 10**6), ("ns", 10**9), ("ps", 10**12))


def read_unit(text: object, at: str) -> TimeUnit:
    for unit in TIME_UNITS:
        if text == unit:
            return unit
    raise InputError(f"{text!r} is not a time unit", at=at, fix=did_you_mean(str(text), TIME_UNITS))


def ticks_within(lowest_ms: Fraction, highest_ms: Fraction, unit: TimeUnit) -> tuple[int, int]:
    """The whole ticks that lie between two lengths of time in milliseconds.

    >>> ticks_within(Fraction(500), Fraction(2000), "s")
    (1, 2)
    """
    factor = Fraction(TICKS[unit], 1000)
    return -(-lowest_ms * factor // 1), highest_ms * factor // 1


def shown(ticks: float, unit: TimeUnit | None) -> str:
    """A length of time for people: its two largest parts."""
    if unit is None:
        return f"{ticks:,.0f}"
    seconds = Fraction(ticks) / TICKS[unit]
    if seconds < 0:
        return "-" + shown(-ticks, unit)
    if seconds < 1:
        return _fine(seconds)
    for place, (size, name) in enumerate(_STEPS):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            if name == "s":
                return f"{float(seconds):.4g}s"
            part, next_name = _STEPS[place + 1]
            more = int(rest // part)
            return f"{whole}{name} {more}{next_name}" if more else f"{whole}{name}"
    return "0s"


def _fine(seconds: Fraction) -> str:
    for name, scale in _FINE:
        if seconds * scale >= 1:
            return f"{float(seconds * scale):.4g}{name}"
    return "0s"


def _rounded(milliseconds: int) -> int:
    """A rounder length, longer by at most a twentieth."""
    for size in (86_400_000, 3_600_000, 60_000, 1000):
        longer = -(-milliseconds // size) * size
        if longer * 20 <= milliseconds * 21:
            return longer
    return milliseconds


def spark_interval(ticks: int, unit: TimeUnit | None) -> str:
    """A delay as `withWatermark` takes it: never shorter than asked.

    >>> [spark_interval(ticks, "ms") for ticks in (86_400_000, 1_500, 0, 49_904_154_000)]
    ['1 day', '1500 milliseconds', '0 seconds', '578 days']
    """
    milliseconds = _rounded(-(-ticks * 1000 // TICKS[unit or "ms"]))
    for size, name in ((86_400_000, "day"), (3_600_000, "hour"), (60_000, "minute"), (1000, "second")):
        if milliseconds % size == 0 and (milliseconds or name == "second"):
            count = milliseconds // size
            return f"{count} {name}" + ("" if count == 1 else "s")
    return f"{milliseconds} milliseconds"


def moment_text(tick: int, unit: TimeUnit) -> str:
    """A tick as an instant, without zeros that say nothing.

    >>> moment_text(1_500_000, "us"), moment_text(7, "ps")
    ('1970-01-01T00:00:01.5Z', '7 ps')
    """
    if unit == "ps":
        return f"{tick} ps"
    plain: Unit = unit
    text = show_moment(tick, plain)
    return text.rstrip("Z").rstrip("0") + "Z" if "." in text else text
