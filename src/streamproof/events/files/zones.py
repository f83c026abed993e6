"""Local times as instants. Twice a year clocks are changed: one hour of local times comes twice, another never.

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
from typing import Final, Literal, TypeAlias, get_args
from zoneinfo import ZoneInfo, available_timezones

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.rejects import Faults
from streamproof.events.order import Ints, ints

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
