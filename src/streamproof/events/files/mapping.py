"""Which columns of a file are the lifetime, the id and the payload.

>>> mapping = ColumnMapping(start="time", duration="1h", rename={"mag": "magnitude"})
>>> mapping.payload_columns(["time", "mag", "w"])
{'magnitude': 'mag', 'w': 'w'}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streamproof.arguments import doors
from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.times import AMBIGUOUS, Ambiguous, zone_called
from streamproof.events.schema import SIGNED, check_names, own_columns, payload_name
from streamproof.events.stream import CONTROL
from streamproof.events.time import Span, Unit, read_unit


@doors
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMapping:
    """How a file of your own becomes events.

    Times are Arrow timestamps, ISO instants with a zone, or integers (ticks of ``unit``). Without ``end`` and
    ``duration`` events are points ``[t, t + 1)``; an ``end`` that is null means ∞. Columns with another role are not
    payload, unless ``payload`` names them.
    """

    start: str
    end: str | None = None
    duration: Span | None = None  # a span ("1h"), or the name of a column
    id: str | None = None
    kind: str | None = None  # a column with the words insert, retract and cti
    new_end: str | None = None  # where retractions end instead; needed if kind has any
    cti: str | None = None  # where CTIs have their time, if not in ``start``
    unit: Unit | None = None  # how long a tick is; instants default to us
    payload: Sequence[str] | None = None  # the payload columns; all that have no other role
    rename: Mapping[str, str] = field(default_factory=dict)  # column → payload name
    assume_zone: str | None = None  # the zone of times that say none
    ambiguous: Ambiguous = "refuse"  # what to make of local times that its clocks show twice or never

    def __post_init__(self) -> None:
        if self.unit is not None:
            read_unit(self.unit, f"ColumnMapping(unit={self.unit!r}), or --map unit={self.unit}")
        if self.assume_zone is not None:
            zone_called(self.assume_zone)
        if self.ambiguous not in AMBIGUOUS:
            fix = did_you_mean(str(self.ambiguous), AMBIGUOUS)
            raise InputError(f"unknown choice ambiguous={self.ambiguous}", at="the mapping", fix=fix)
        if self.end is not None and self.duration is not None:
            raise InputError("a mapping has an end or a duration, not both", fix="leave one of them out")

    def roles(self, names: Sequence[str]) -> dict[str, str]:
        """The columns with a role, by role; the file must have them."""
        roles = {role: getattr(self, role) for role in ("start", "end", "id", "kind", "new_end", "cti")}
        if isinstance(self.duration, str) and self.duration in names:
            roles["duration"] = self.duration
        for role, column in roles.items():
            if column is not None:
                require(column, names, f"ColumnMapping({role}={column!r})")
        return {role: column for role, column in roles.items() if column is not None}

    def payload_columns(self, names: Sequence[str]) -> dict[str, str]:
        """The payload: its names, and the columns of the file they come from."""
        taken = set(self.roles(names).values())
        chosen = list(self.payload) if self.payload is not None else [name for name in names if name not in taken]
        for column in [*chosen, *self.rename]:
            require(column, names, "ColumnMapping(payload=…, rename=…)")
        columns = {self.rename.get(column, column): column for column in chosen}
        check_names([self.rename.get(column, column) for column in chosen], InputError)
        return columns


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnLayout(ColumnMapping):
    """A layout of our own: kind, id, le, re, re_new and the payload; or le, re, perhaps w, and the payload."""

    weight: str | None = None  # how often a row counts

    def payload_columns(self, names: Sequence[str]) -> dict[str, str]:
        taken = [*self.roles(names).values(), self.weight]
        return {payload_name(name): name for name in names if name not in taken}


def layout_of(names: Sequence[str]) -> OwnLayout:
    """Our own layout that these columns have; any other file needs a mapping.

    >>> layout_of(["le", "re", "w", "v"]).payload_columns(["le", "re", "w", "v"])
    {'v': 'v'}
    >>> named = ["streamproof_le", "streamproof_re", "w", "le"]
    >>> layout_of(named).start, layout_of(named).payload_columns(named)
    ('streamproof_le', {'w': 'w', 'le': 'le'})
    """
    events, signed = own_columns(names, CONTROL.names), own_columns(names, SIGNED)
    if len(events) == len(CONTROL):
        return OwnLayout(
            start=events["le"], end=events["re"], id=events["id"], kind=events["kind"], new_end=events["re_new"]
        )
    if {"le", "re"} <= set(signed):
        return OwnLayout(start=signed["le"], end=signed["re"], weight=signed.get("w"))
    shown = ", ".join(names[:20])
    raise InputError(
        f"the file has no columns le and re, so it is not clear when its events happen; its columns: {shown}",
        fix=f'say which column is the time: ColumnMapping(start="{_likely(names)}"), or --map start={_likely(names)}',
    )


def _likely(names: Sequence[str]) -> str:
    """A guess at the column with the time, for a helpful message."""
    words = ("time", "timestamp", "start", "date", "ts", "at")
    return next((n for word in words for n in names if word in n.lower()), names[0] if names else "time")


def require(column: str, names: Sequence[str], at: str) -> None:
    """Refuse a column that the file does not have."""
    if column not in names:
        raise InputError(
            f'the file has no column "{column}"', at=at, fix=did_you_mean(column, names), name="unknown_column"
        )
