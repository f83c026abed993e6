"""Instants and their parts, in UTC and rounded down.

Instants are microseconds since 1970; all arithmetic is on these whole numbers, so no time zone database is needed.

>>> parts(pc.hour)([pa.array([-1]).cast(pa.timestamp("us", "UTC"))], INT64).to_pylist()
[23]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import RunError
from streamproof.events.order import Flags, Ints
from streamproof.events.schema import INT64, TIMESTAMP, Type
from streamproof.events.time import BEGINNING, FOREVER, TICKS_PER_SECOND
from streamproof.kernels.expressions.columns import Datum, Values, either, null_flags, raw, relabel, vector

SECOND: Final = 10**6
DAY: Final = 86_400 * SECOND
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31
_NAIVE: Final = pa.timestamp("us")


def instant(args: Sequence[Datum], to: Type) -> pa.Array:
    """Ticks as an instant, rounded down to microseconds; null for the infinities, an error outside the years 1 to 9999.

    >>> instant([pa.array([1500, 2**62]), pa.scalar(1000)], TIMESTAMP)[0].as_py().isoformat()
    '1970-01-01T00:00:01.500000+00:00'
    """
    ticks, per_second = args
    if isinstance(per_second, pa.Scalar) and per_second.as_py() in TICKS_PER_SECOND.values():
        micros, outside = _by_unit(raw(ticks), per_second.as_py())
    else:
        micros, outside = _by_rate(raw(ticks), raw(per_second))
    infinite = (raw(ticks) == FOREVER) | (raw(ticks) == BEGINNING) | (raw(per_second) == 0)
    unknown = either(null_flags(*args), infinite)
    lost = outside & ~infinite if unknown is None else outside & ~unknown
    if np.any(lost):
        found = np.broadcast_to(raw(ticks), np.shape(lost))[lost][0]
        what = f"the tick {found} lies outside the years 1 to 9999"
        raise RunError(what, fix="compare ticks instead of instants", name="overflow")
    return vector(micros, to.arrow, unknown)


def _by_unit(ticks: Ints, per_second: int) -> tuple[Ints, Flags]:
    """Microseconds of ticks of one of our units, and which are outside of the calendar."""
    if per_second > SECOND:
        micros = ticks // (per_second // SECOND)
        return micros, (ticks == FOREVER) | (ticks == BEGINNING)
    factor = SECOND // per_second
    outside = (ticks < FIRST_DAY * DAY // factor) | (ticks >= (LAST_DAY + 1) * DAY // factor)
    with np.errstate(all="ignore"):  # those outside may overflow
        return ticks * factor, outside


def _by_rate(ticks: Values, per_second: Values) -> tuple[Ints, Flags]:
    """The same for any number of ticks per second."""
    senseless = (ticks == FOREVER) | (ticks == BEGINNING) | (per_second == 0)
    ticks, per_second = np.where(senseless, 0, ticks), np.where(per_second == 0, 1, per_second)
    with np.errstate(all="ignore"):  # the least int64 by -1 is outside anyway
        seconds = ticks // per_second
    outside = senseless | (seconds < FIRST_DAY * 86_400) | (seconds >= (LAST_DAY + 1) * 86_400)
    micros = np.where(outside, 0, seconds) * SECOND + _fraction(ticks - seconds * per_second, per_second)
    return micros, outside


def _fraction(rest: Values, per_second: Values) -> Values:
    """The microseconds in a rest of less than a second."""
    if np.abs(per_second).max(initial=1) > 2**43:  # the product may pass 64 bits
        rest, per_second = rest.astype(object), per_second.astype(object)
    return np.asarray(rest * SECOND // per_second).astype(np.int64)


def parts(part: Callable[[pa.Array], pa.Array]) -> Callable[[Sequence[Datum], Type], pa.Array]:
    """A part of instants or dates by Arrow's function for it."""

    def run(args: Sequence[Datum], to: Type) -> pa.Array:
        return pc.cast(part(relabel(instants(args[0]), _NAIVE)), to.arrow)

    return run


def instants(array: pa.Array) -> pa.Array:
    """Dates as the instants at which they begin; instants as they are."""
    return date_to_timestamp(array, TIMESTAMP) if pa.types.is_date(array.type) else array


def day_of_week(array: pa.Array) -> pa.Array:
    return pc.day_of_week(array, count_from_zero=False, week_start=1)


def epoch(array: pa.Array) -> pa.Array:
    """Whole seconds since 1970, rounded down."""
    return vector(raw(array) // SECOND, INT64.arrow, null_flags(array))


def date_to_timestamp(array: pa.Array, to: Type) -> pa.Array:
    """The instant at which each date begins; null outside of the years 1 to 9999."""
    days = raw(array).astype(np.int64)
    outside = (days < FIRST_DAY) | (days > LAST_DAY)
    return vector(np.where(outside, 0, days) * DAY, to.arrow, either(null_flags(array), outside))


def timestamp_to_date(array: pa.Array, to: Type) -> pa.Array:
    days = raw(array) // DAY
    return vector(days.astype(np.int32), to.arrow, null_flags(array))


def days_from_civil(year: Ints, month: Ints, day: Ints) -> Ints:
    """The days from 1970-01-01 to a date of the Gregorian calendar.

    Years begin in March here, so that the leap day is the last of its year.

    >>> days_from_civil(np.array([1970, 2000, 1]), np.array([1, 3, 1]), np.array([1, 1, 1])).tolist()
    [0, 11017, -719162]
    """
    shifted = year - (month <= 2)
    era, of_era = shifted // 400, shifted % 400
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    days: Ints = era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468
    return days


def is_date(year: Ints, month: Ints, day: Ints) -> Flags:
    """Whether a date exists, in the years 1 to 9999."""
    leap = (year % 4 == 0) & ((year % 100 != 0) | (year % 400 == 0))
    lengths = np.array([0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31])
    known = (month >= 1) & (month <= 12)
    last = lengths[np.where(known, month, 0)] + (leap & (month == 2))
    exists: Flags = known & (year >= 1) & (year <= 9999) & (day >= 1) & (day <= last)
    return exists


TIME_PARTS: Final = {
    "year": parts(pc.year),
    "month": parts(pc.month),
    "day": parts(pc.day),
    "hour": parts(pc.hour),
    "minute": parts(pc.minute),
    "second": parts(pc.second),
    "day_of_week": parts(day_of_week),
    "day_of_year": parts(pc.day_of_year),
    "epoch": parts(epoch),
}
