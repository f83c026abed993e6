"""Ticks: int64 instants with a unit that the stream's schema declares.

>>> duration("5s", "ms"), duration("1 hour", "s"), duration(7, None)
(5000, 3600, 7)
>>> show_tick(FOREVER), show_tick(12)
('inf', 12)
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

from streamproof.errors import InputError, PlanError, RunError, StreamproofError

FOREVER: Final = 2**62
BEGINNING: Final = -(2**62)
FIRST_SECOND: Final = -62_135_596_800  # since 1970, of the year 1
END_SECOND: Final = 253_402_300_800  # after the year 9999: dates and times have four digits of a year

Unit: TypeAlias = Literal["ns", "us", "ms", "s"]
UNITS: Final[tuple[Unit, ...]] = get_args(Unit)
TICKS_PER_SECOND: Final[dict[Unit, int]] = {"ns": 10**9, "us": 10**6, "ms": 10**3, "s": 1}

Span: TypeAlias = "int | str | timedelta"
"""A length of time as users write it: ticks, ``"5s"`` or a timedelta. Only ticks mean something without a unit."""

_SECONDS: Final[dict[str, Fraction]] = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "ms": Fraction(1, 10**3),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
    "d": Fraction(86400),
    "w": Fraction(7 * 86400),
}
_WORDS: Final = {
    "nanosecond": "ns", "microsecond": "us", "millisecond": "ms", "sec": "s", "second": "s",
    "min": "m", "minute": "m", "hr": "h", "hour": "h", "day": "d", "week": "w", "µs": "us",
}  # fmt: skip
MAX_DURATION: Final = 100  # characters of a length of time
_DURATION: Final = re.compile(r"([+-]?\d+(?:\.\d+)?)\s*([a-zµ]+)?")


def read_unit(word: object, at: str) -> Unit:
    """The unit that a word names; there are no others.

    >>> read_unit("ms", "unit=")
    'ms'
    """
    for unit in UNITS:
        if word == unit:
            return unit
    fix = f"use one of {', '.join(UNITS)}"
    meant = _WORDS.get(str(word).lower().removesuffix("s"), _WORDS.get(str(word).lower(), str(word).lower()))
    near = f'; did you mean "{meant}"?' if meant in UNITS else ""
    raise InputError(f"unknown time unit {word!r}", at=at, fix=fix + near)


def one_unit(claims: Mapping[str, str | None]) -> Unit | None:
    """The unit that all agree on who say one, if anybody does; by who says it.

    >>> one_unit({"the mapping": None, "the source": "s"})
    's'
    """
    said = {who: read_unit(word, who) for who, word in claims.items() if word}
    if len(set(said.values())) > 1:
        (one, first), (two, second) = next((a, b) for a in said.items() for b in said.items() if a[1] != b[1])
        raise InputError(
            f"two units for one stream: {one} says {first}, {two} says {second}",
            fix="say the same unit in both, or leave one of them out",
        )
    return next(iter(said.values()), None)


def duration(span: Span, unit: Unit | None) -> int:
    """A length of time in ticks of ``unit``.

    >>> duration("2.5 s", "us")
    2500000
    >>> duration("1m 30s", "s")
    90
    """
    if isinstance(span, bool):
        raise PlanError(f"{span} is not a duration", fix='write ticks (5) or text with a unit ("5s")')
    if isinstance(span, int):
        return checked(span, "the duration")
    if isinstance(span, str) and len(span) > MAX_DURATION:
        raise PlanError(
            f"a duration has {len(span)} characters, the limit is {MAX_DURATION}", at=span[:40], name="limit_exceeded"
        )
    if isinstance(span, str) and re.fullmatch(r"\s*[+-]?\d+\s*", span):
        return checked(int(span), "the duration")
    if unit is None:
        raise PlanError(
            f"the duration {str(span)!r} needs a time unit, and this stream has none",
            fix='give plain ticks, or declare the unit of the source: source("S", unit="us")',
        )
    seconds = _seconds(span)
    ticks = seconds * TICKS_PER_SECOND[unit]
    if ticks.denominator != 1:
        raise PlanError(f"{str(span)!r} is not a whole number of ticks of 1 {unit}", fix="use a finer unit")
    return checked(int(ticks), "the duration")


def _seconds(span: str | timedelta) -> Fraction:
    if isinstance(span, timedelta):
        return Fraction(span.days * 86400 + span.seconds) + Fraction(span.microseconds, 10**6)
    total, position = Fraction(0), 0
    text = span.strip().lower()
    while position < len(text):
        match = _DURATION.match(text, position)
        word = match.group(2) if match else None
        name = word if word in _SECONDS else _WORDS.get((word or "").removesuffix("s"), _WORDS.get(word or ""))
        if match is None or name is None:
            raise PlanError(f"cannot read the duration {span!r}", fix='write e.g. "5s", "250 ms", "1 hour", "1m 30s"')
        total += Fraction(match.group(1)) * _SECONDS[name]
        position = match.end()
        while position < len(text) and text[position] in " ,":
            position += 1
    if not text:
        raise PlanError("a duration must not be empty", fix='write e.g. "5s", "250 ms", "1 hour"')
    return total


def checked(tick: int, what: str, error: type[StreamproofError] = RunError) -> int:
    """``tick`` itself if it lies within ±2^62 (both ends are the infinities), else the error ``overflow``."""
    if not BEGINNING <= tick <= FOREVER:
        raise error(f"{what} lies outside ±2^62 ticks: {tick}", fix="use a coarser time unit", name="overflow")
    return tick


def read_tick(value: object) -> int:
    """A tick from its notation in files: an integer, ``"inf"`` or ``"-inf"``.

    >>> read_tick("inf") == FOREVER, read_tick(-3)
    (True, -3)
    """
    if value == "inf":
        return FOREVER
    if value == "-inf":
        return BEGINNING
    if isinstance(value, int) and not isinstance(value, bool):
        return checked(value, "the time", InputError)
    shown = repr(value) if len(str(value)) < 100 else f"{str(value)[:99]}…"
    raise InputError(f"{shown} is not a time", fix='times are integers, "inf" or "-inf"')


def show_tick(tick: int) -> int | str:
    """The inverse of `read_tick`."""
    if tick >= FOREVER:
        return "inf"
    return "-inf" if tick <= BEGINNING else tick


def to_tick(moment: datetime, unit: Unit) -> int:
    """A zoned datetime as a tick; a naive one is refused, because nobody knows which instant it names.

    >>> to_tick(datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), "ms")
    1000
    """
    if moment.tzinfo is None:
        raise InputError(f"the time {moment.isoformat()} has no zone", fix='add one, e.g. "2024-05-01T12:00:00Z"')
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    micros = (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    return checked(micros * TICKS_PER_SECOND[unit] // 10**6, f"the time {moment.isoformat()} in {unit}")


def show_moment(tick: int, unit: Unit | None) -> str:
    """A tick for people: the ISO instant where the unit makes it one, else the number.

    >>> show_moment(1500, "ms"), show_moment(FOREVER, "ms"), show_moment(7, None)
    ('1970-01-01T00:00:01.500Z', '∞', '7')
    """
    if tick >= FOREVER:
        return "∞"
    if tick <= BEGINNING:
        return "-∞"
    if unit is None:
        return str(tick)
    per_second = TICKS_PER_SECOND[unit]
    try:
        whole = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=tick // per_second)
    except OverflowError:  # outside the years 1 to 9999
        return f"{tick} {unit}"
    fraction = f".{tick % per_second:0{len(str(per_second)) - 1}d}" if tick % per_second else ""
    return whole.strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0") + fraction + "Z"
