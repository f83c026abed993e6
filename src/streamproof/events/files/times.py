"""Columns of times as ticks, whatever they are written as, and local times as instants.

Twice a year clocks are changed: one hour of local times comes twice, another never.

>>> from datetime import datetime
>>> twice = datetime(2024, 10, 27, 2, 30)
>>> instant(twice, "Europe/Berlin", "earlier").isoformat(), instant(twice, "Europe/Berlin", "later").isoformat()
('2024-10-27T02:30:00+02:00', '2024-10-27T02:30:00+01:00')

Around such a change a local time is one of two instants, by the clock of before and by that of after; ``ambiguous``
says which of them is meant. A time that comes never is so treated as well: its instants lie an hour around the change.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.rejects import Faults
from streamproof.events.files.values import items
from streamproof.events.notation import show_value
from streamproof.events.order import Flags, Ints, ints
from streamproof.events.time import (
    BEGINNING,
    END_SECOND,
    FIRST_SECOND,
    FOREVER,
    TICKS_PER_SECOND,
    Unit,
    read_tick,
    to_tick,
)

Ambiguous: TypeAlias = Literal["refuse", "earlier", "later"]
AMBIGUOUS: Final[tuple[Ambiguous, ...]] = get_args(Ambiguous)
_OFFSET: Final = re.compile(r"([+-])([01][0-9]|2[0-3]):([0-5][0-9])")
_PER_SECOND: Final = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@cache
def zone_called(name: str, at: str | None = None) -> tzinfo:
    """The zone of a name, or of an offset like ``+02:00``.

    >>> zone_called("+02:00").utcoffset(None)
    datetime.timedelta(seconds=7200)
    """
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        sign = -1 if offset.group(1) == "-" else 1
        return timezone(sign * timedelta(hours=int(offset.group(2)), minutes=int(offset.group(3))))
    if name == "UTC":
        return UTC
    known = available_timezones()
    if name not in known:
        alike = {zone.lower(): zone for zone in known}
        fix = f'did you mean "{alike[name.lower()]}"?' if name.lower() in alike else did_you_mean(name, sorted(known))
        raise InputError(f"unknown time zone {name!r}", at=at or f"assume_zone={name}", fix=_short(fix))
    return ZoneInfo(name)


def _short(fix: str) -> str:
    """Not the names of all zones there are."""
    near = fix.partition("?")[0] + "? " if fix.startswith("did you mean") else ""
    return f"{near}zones are called like Europe/Berlin, UTC or +02:00"


def instant(moment: datetime, zone: str, ambiguous: Ambiguous) -> datetime:
    """The instant of a local time in a zone."""
    where = zone_called(zone)
    one, other = (moment.replace(tzinfo=where, fold=fold) for fold in (0, 1))
    if one.utcoffset() == other.utcoffset():
        return one
    if ambiguous == "refuse":
        never = one.astimezone(UTC).astimezone(where).replace(tzinfo=None) != moment
        raise InputError(f"the local time '{moment}' {'never comes' if never else 'comes twice'} in {zone}", fix=FIX)
    return (min if ambiguous == "earlier" else max)(one, other, key=lambda each: each.astimezone(UTC))


FIX: Final = "write the zone of such times, or decide: ambiguous=earlier, or ambiguous=later (--map)"


def zoned(array: pa.Array, zone: str, ambiguous: Ambiguous, name: str, faults: Faults) -> pa.Array:
    """A column of local times as instants. Times that cannot be decided are faults."""
    try:
        early, late = (
            pc.assume_timezone(array, zone, ambiguous=side, nonexistent=side) for side in ("earliest", "latest")
        )
        values, others = ints(early.cast(pa.int64())), ints(late.cast(pa.int64()))
        unclear = np.flatnonzero(values != others)
    except pa.ArrowInvalid:  # this computer has no zones for Arrow, or a time lies beyond what it reckons with
        values, unclear = ints(array.cast(pa.int64())).copy(), np.flatnonzero(array.is_valid().to_numpy(False))
    if len(unclear):
        values = values.copy()
        _decide(values, unclear, array, zone, ambiguous, name=name, faults=faults)
    kind = pa.timestamp(array.type.unit, "UTC")
    return pa.array(values, pa.int64(), mask=array.is_null().to_numpy(zero_copy_only=False)).cast(kind)


def _decide(
    values: Ints, unclear: Ints, array: pa.Array, zone: str, ambiguous: Ambiguous, *, name: str, faults: Faults
) -> None:
    """The values of unclear times, one by one: these are few."""
    per_second = _PER_SECOND[array.type.unit]
    local = ints(array.cast(pa.int64()))
    for index in unclear.tolist():
        seconds, rest = divmod(int(local[index]), per_second)
        try:
            moment = datetime(1970, 1, 1) + timedelta(seconds=seconds)  # it is a local time
            found = instant(moment, zone, ambiguous)
            whole = found.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
            values[index] = (whole.days * 86_400 + whole.seconds) * per_second + rest
        except InputError as error:
            faults.put(index, f'column "{name}": {error.what}')
        except OverflowError:
            faults.put(index, f'column "{name}": the local time is not within the years 1 to 9999')


_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,100}")
_FINER: Final = re.compile(r"[.,][0-9]{6}([0-9]+)")  # than a microsecond
_YEARS: Final = (FIRST_SECOND, END_SECOND)


class Clock(NamedTuple):
    """How the times of a file are meant."""

    unit: Unit | None
    zone: str | None = None  # of times that say none
    numbers: bool = True  # plain numbers are ticks
    ambiguous: Ambiguous = "refuse"  # what to make of local times that are shown twice or never
    dated: bool = False  # plain numbers are instants that somebody gave the unit of: they lie in the years 1 to 9999


def looks_numeric(array: pa.Array) -> bool:
    """Whether times are plain numbers: by type, or by the first text.

    >>> looks_numeric(pa.array([None, "17"])), looks_numeric(pa.array(["2024-05-01T00:00:00Z"]))
    (True, False)
    """
    if not pa.types.is_string(array.type):
        return not pa.types.is_temporal(array.type)
    known = array.drop_null()
    return not len(known) or known[0].as_py() in ("inf", "-inf") or bool(_NUMBER.fullmatch(known[0].as_py().strip()))


def ticks(
    array: pa.Array, name: str, clock: Clock, faults: Faults, *, needed: Flags | None = None, null: int | None = None
) -> Ints:
    """The times of a column as ticks. Rows without one are faults, unless ``null`` says what null means.

    >>> faults = Faults()
    >>> ticks(pa.array(["1970-01-01T00:00:01Z", None]), "time", Clock("ms", numbers=False), faults).tolist()[0]
    1000
    >>> faults.why
    {1: 'the time in "time" is missing'}
    """
    needed = np.ones(len(array), np.bool_) if needed is None else needed
    absent: Flags = array.is_null().to_numpy(zero_copy_only=False)
    if null is None:
        faults.add(absent & needed, f'the time in "{name}" is missing')
    values = _values(array, name, clock, faults, needed & ~absent)
    if null is not None:
        values = np.where(absent, null, values)
    faults.add(needed & ((values < BEGINNING) | (values > FOREVER)), f'the time in "{name}" lies outside ±2^62 ticks')
    if clock.dated and clock.unit is not None:
        low, high = years_in(clock.unit)
        odd = ((values < low) | (values >= high)) & (values > BEGINNING) & (values < FOREVER)
        faults.add(needed & odd, f'the time in "{name}" is not within the years 1 to 9999: is {clock.unit} its unit?')
    return values


def years_in(unit: Unit) -> tuple[int, int]:
    """From which tick, and up to which, instants lie in the years 1 to 9999.

    >>> years_in("s")
    (-62135596800, 253402300800)
    """
    low, high = (bound * TICKS_PER_SECOND[unit] for bound in _YEARS)
    return max(low, BEGINNING), min(high, FOREVER)


def _values(array: pa.Array, name: str, clock: Clock, faults: Faults, wanted: Flags) -> Ints:
    kind = array.type
    if pa.types.is_integer(kind) and clock.numbers:
        if pa.types.is_uint64(kind):  # what int64 cannot hold is beyond all ticks, and stays so
            array = pc.min_element_wise(array, pa.scalar(2**63 - 1, kind), skip_nulls=False)
        return ints(array.cast(pa.int64()))
    if pa.types.is_timestamp(kind) and (kind.tz or clock.zone):
        instants = array if kind.tz else zoned(array, clock.zone or "UTC", clock.ambiguous, name, faults)
        return _rescaled(ints(instants.cast(pa.int64())), kind.unit, clock)
    fast = _from_text(array, name, clock, faults) if pa.types.is_string(kind) else None
    return fast if fast is not None else _one_by_one(array, name, clock, faults, wanted)


def _rescaled(values: Ints, unit: Unit, clock: Clock) -> Ints:
    """Ticks of one unit in another; finer parts are cut off."""
    have, want = TICKS_PER_SECOND[unit], TICKS_PER_SECOND[clock.unit or "us"]
    if want <= have:
        return values // (have // want)
    factor = want // have
    too_far = np.abs(values) > FOREVER // factor
    return np.where(too_far, np.sign(values) * (FOREVER + 1), values * np.where(too_far, 1, factor))


def _from_text(array: pa.Array, name: str, clock: Clock, faults: Faults) -> Ints | None:
    """All texts at once, if they are all of one kind."""
    try:
        if clock.numbers:
            array = pc.replace_with_mask(array, pc.fill_null(pc.equal(array, "inf"), False), pa.scalar(str(FOREVER)))
            array = pc.replace_with_mask(array, pc.fill_null(pc.equal(array, "-inf"), False), pa.scalar(str(BEGINNING)))
            if pc.any(pc.match_substring(array, "x", ignore_case=True)).as_py():
                return None  # what Arrow would take for hexadecimal
            return ints(array.cast(pa.int64()))
        unit = clock.unit or "us"
        found = array.cast(pa.timestamp(unit, None if clock.zone else "UTC"))
        if clock.zone:
            found = zoned(found, clock.zone, clock.ambiguous, name, faults)
        return ints(found.cast(pa.int64()))
    except pa.ArrowInvalid:
        return None


def _one_by_one(array: pa.Array, name: str, clock: Clock, faults: Faults, wanted: Flags) -> Ints:
    values = np.zeros(len(array), np.int64)
    known = items(array)
    for index in np.flatnonzero(wanted).tolist():
        try:
            values[index] = tick_of(known[index], clock)
        except (InputError, OverflowError, ValueError) as error:
            what = error.what if isinstance(error, InputError) else f"{show_value(known[index])} is not a time"
            faults.put(index, f'column "{name}": {what}')
    return values


def tick_of(value: object, clock: Clock) -> int:
    """One time as a tick.

    >>> tick_of("1970-01-01T01:00:00+01:00", Clock("s", numbers=False)), tick_of("inf", Clock(None)) == FOREVER
    (0, True)
    """
    if value in ("inf", "-inf"):
        return read_tick(value)
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) <= 2**53:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        if not clock.numbers:
            raise InputError(f"the number {value} among instants needs a unit")
        return read_tick(value)
    text = value.strip() if isinstance(value, str) else str(value)
    finer = _FINER.search(text)
    if finer is None:
        return to_tick(_moment(text, clock), clock.unit or "us")
    exact = to_tick(_moment(text[: finer.start(1)] + text[finer.end() :], clock), "ns")
    return (exact + int(finer.group(1).ljust(3, "0")[:3])) * TICKS_PER_SECOND[clock.unit or "us"] // 10**9


def _moment(text: str, clock: Clock) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        return moment
    if clock.zone is None:
        raise InputError(f"the time {show_value(text)} has no zone")
    return instant(moment, clock.zone, clock.ambiguous)
