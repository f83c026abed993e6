"""Dense streams: legal, with disorder, chains of retractions, duplicates, infinities, ties, nulls and CTIs.

Times come from a small domain, so that events touch and overlap more than in any stream made from facets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER, Unit
from streamproof.workbench.case import CaseStream, Row
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.smaller_streams import moved

Payload = dict[str, Any]

EARLIEST, LATEST, LONGEST = -8, 20, 9
FAR = (10**15, 2**53 + 1, -(2**60), FOREVER - 45, BEGINNING + 20)

VALUES: Mapping[str, Sequence[Any]] = {
    "k": ("a", "b", None, "c"),
    "s": (
        "a", "", "A b", " x ", None, "12", "-3", "true", "x%y", "it's", "é", "日本", "1.5", "a_b\\", "2024-05-01",
        "ßİ", "1e400", "2024-05-01T10:00Z", "20240501", "0.05", "9223372036854775808", "😀x", "a\nb", "-1e-7",
        "Infinity", "NaN",
    ),
    "v": (0, 1, 2, 3, 5, 7, -1, -4, 10, None),
    "u": (0, 1, 2, -3, 1000, None),
    "f": (0.0, 1.0, 0.5, -0.0, -1.5, 2.25, 3.0, None, float("nan"), float("inf"), float("-inf"), 0.1),
    "g": (0.0, 1.0, 0.5, -2.5, 4.0, 0.125, None),
    "h": (1e308, -1e308, 5e-324, 1e16, 0.1, 2.5e-9, 9.0e18, -9223372036854775808.0, 123456.789, None),
    "b": (True, False, None),
    "d": (Decimal("0.00"), Decimal("1.50"), Decimal("-2.25"), Decimal("2.50"), Decimal("12345678.99"), None),
    "t": (
        datetime(2024, 2, 29, 12, 30, 15, tzinfo=UTC), datetime(1970, 1, 1, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 500_000, tzinfo=UTC), datetime(2023, 1, 1, 0, 0, 0, 1, tzinfo=UTC), None,
    ),
    "day": (date(2024, 5, 1), date(1970, 1, 1), date(1965, 12, 31), None),
    "z": (None,),
}  # fmt: skip
TYPES = {
    "k": "string", "s": "string", "v": "int64", "u": "int64", "f": "float64", "g": "float64", "h": "float64",
    "b": "bool", "d": "decimal(10,2)", "t": "timestamp", "day": "date", "z": "null",
}  # fmt: skip
UNITS: tuple[Unit | None, ...] = (None, None, "s", "ms", "us", "ns")


def random_schema(choices: Choices, unit: Unit | None) -> Schema:
    """A few columns; most streams have a key and a number."""
    names = [name for name, percent in (("k", 80), ("v", 85), ("f", 40)) if choices.chance(percent)]
    rare = [name for name in TYPES if name not in ("k", "v", "f")]
    for _ in range(choices.integer(0, 2)):
        name = choices.pick(rare)
        if name not in names:
            names.append(name)
    return Schema.of({name: TYPES[name] for name in names}, unit=unit)


HABITS: tuple[str, ...] = (
    "dense", "ties", "equal_starts", "equal_ends", "meeting", "one_group", "equal_rows", "strange", "single", "empty",
)  # fmt: skip
"""What a dense stream may be like: the first is like nothing else.

Few different values; events that all start or end together, or each where another ends; all of one group; all equal;
null, NaN and both zeros; one event; none.
"""
_FEW: Mapping[str, Sequence[Any]] = {
    "string": ("a", "b", None), "int64": (1, 2, None), "float64": (1.0, 0.5, None), "bool": (True, None),
}  # fmt: skip
_STRANGE: Mapping[str, Sequence[Any]] = {
    "string": ("", None, "a"), "int64": (0, None, -1), "float64": (0.0, -0.0, float("nan"), None),
    "bool": (False, None),
}  # fmt: skip


def random_stream(
    choices: Choices,
    schema: Schema,
    *,
    most: int = 12,
    far: bool = True,
    like: Sequence[Row] = (),
    habit: str = "dense",
) -> CaseStream:
    """A stream of up to ``most`` steps, each an insert, a retraction or a CTI; now and then ``far`` away from 0.

    Times and payloads of the rows in ``like`` are used again, so that two streams have something to do with each other.
    """
    writer = _StreamWriter(choices, schema, far=far, like=like, habit=habit)
    if habit in ("single", "empty"):
        return writer.write(1 if habit == "single" else 0)
    return writer.write(choices.integer(0 if choices.chance(15) else most // 3, most))


class _StreamWriter:
    def __init__(
        self, choices: Choices, schema: Schema, *, far: bool, like: Sequence[Row] = (), habit: str = "dense"
    ) -> None:
        self.choices = choices
        self.schema = schema
        self.like = [row for row in like if row[0] > BEGINNING and row[1] < FOREVER]
        self.live: dict[str, Row] = {}
        self.sealed = BEGINNING
        self.events: list[Event] = []
        self.lasting = choices.chance(35)  # whether events may last forever
        self.moving = choices.chance(20)  # points whose times are corrected, again and again
        self.plain = not self.moving and choices.chance(25)  # without retractions and CTIs
        self.changing = 60 if self.moving else choices.pick((30, 30, 60))  # percent of the steps change an event
        self.far = choices.pick(FAR) if far and choices.chance(2) else 0  # times far from 0
        self.alike = choices.chance(20)  # few different payloads and times, so that many events are equal or touch
        self.habit = habit
        self.plain = self.plain or habit == "single"
        self.alike = self.alike or habit == "equal_rows"
        self.start, self.end = choices.integer(EARLIEST, LATEST), LATEST + choices.integer(1, LONGEST)
        self.key = {name: choices.pick(_values(name, kind.kind)) for name, kind in schema}
        self.longest = 1 if self.moving or choices.chance(20) else 3 if self.alike else LONGEST

    def write(self, steps: int) -> CaseStream:
        for _ in range(steps):
            self._step()
        if self.choices.chance(70):
            self.events.append(Cti(FOREVER))
        return CaseStream(self.schema, tuple(moved(event, self.far) for event in self.events))

    def _step(self) -> None:
        if self.plain or not self.choices.chance(self.changing + 10):
            self._insert()
        elif self.choices.chance(1000 // (self.changing + 10)):  # one step in ten is a CTI
            self._cti()
        elif self._open():
            self._retract()
        else:
            self._insert()

    def _insert(self) -> None:
        le, re = self._lifetime()
        if self.sealed <= le < re:
            self._put(le, re, self._payload())

    def _put(self, le: int, re: int, payload: Payload) -> None:
        name = f"e{len(self.events)}"
        self.live[name] = (le, re, payload)
        self.events.append(Insert(name, le, re, payload))

    def _lifetime(self) -> tuple[int, int]:
        if self.habit in ("equal_starts", "equal_ends", "meeting"):
            return self._together()
        if self.live and self.choices.chance(15):  # the same times again
            le, re, _ = self.choices.pick(list(self.live.values()))
            return le, re
        if self.like and self.choices.chance(50):  # begin where an event of another stream begins or ends
            le, re, _ = self.choices.pick(self.like)
            start = self.choices.pick((le, re, le, re - 1, le + 1))
            return start, start + self.choices.integer(1, self.longest)
        low = max(self.sealed, EARLIEST)
        le = self.choices.integer(low, max(low, EARLIEST + 6 if self.alike else LATEST))
        if self.lasting and self.sealed == BEGINNING and self.choices.chance(2):
            le = BEGINNING
        if self.lasting and self.choices.chance(20):
            return le, FOREVER
        return le, max(le, EARLIEST) + self.choices.integer(1, self.longest)

    def _together(self) -> tuple[int, int]:
        """A lifetime that has an instant in common with those before it."""
        length = self.choices.integer(1, self.longest)
        if self.habit == "equal_starts":
            return self.start, self.start + length
        if self.habit == "equal_ends":
            return self.end - length, self.end
        ends = [re for _, re, _ in self.live.values() if re < FOREVER] or [self.start]
        start = self.choices.pick(ends)
        return start, start + length

    def _payload(self) -> Payload:
        again = 97 if self.habit == "equal_rows" else 80 if self.alike else 25
        if self.live and self.choices.chance(again):  # the same payload again
            return dict(self.choices.pick(list(self.live.values()))[2])
        values = {name: self.choices.pick(self._domain(name, kind.kind)) for name, kind in self.schema}
        if self.like and self.habit not in ("one_group", "strange", "ties") and self.choices.chance(60):
            other = self.choices.pick(self.like)[2]
            values |= {name: value for name, value in other.items() if name in values}
        return values

    def _domain(self, name: str, kind: str) -> Sequence[Any]:
        """The values that a column may have."""
        if self.habit == "one_group" and kind in ("string", "bool", "date"):
            return (self.key[name],)
        few = {"ties": _FEW, "strange": _STRANGE}.get(self.habit, {})
        return few.get(kind) or _values(name, kind)

    def _open(self) -> list[str]:
        """The events that may still change."""
        return [name for name, (le, re, _) in self.live.items() if le >= self.sealed or re >= self.sealed]

    def _retract(self) -> None:
        name = self.choices.pick(self._open())
        le, re, payload = self.live[name]
        if le >= max(self.sealed, EARLIEST) and self.choices.chance(90 if self.moving else 40):
            self._move(name)
            return
        re_new = self.choices.pick(self._new_ends(le, re))
        self.events.append(Retract(name, le, re, re_new, payload))
        if re_new <= le:
            del self.live[name]
        else:
            self.live[name] = (le, re_new, payload)

    def _move(self, name: str) -> None:
        """The event was at another time, or lasted otherwise: what changes for others may cancel in part."""
        le, re, payload = self.live.pop(name)
        self.events.append(Retract(name, le, re, le, payload))
        start = max(self.sealed, le + self.choices.integer(-3, 3))
        length = re - le if re < FOREVER and self.choices.chance(70) else self.choices.integer(1, self.longest)
        self._put(start, start + length, payload)

    def _new_ends(self, le: int, re: int) -> list[int]:
        """Ends that the event may get: shorter, longer, or none at all."""
        least = self.sealed if le < self.sealed else max(le, EARLIEST)
        ends = [least + step for step in range(LONGEST) if least + step != re]
        if le >= self.sealed:
            ends.append(le)  # it never was
        if self.lasting and re != FOREVER:
            ends.append(FOREVER)
        return ends

    def _cti(self) -> None:
        self.sealed = max(self.sealed, EARLIEST) + self.choices.integer(0, 6)
        self.events.append(Cti(self.sealed))


def _values(name: str, kind: str) -> Sequence[Any]:
    """The values of a column: those of its name, or of a name with its type."""
    if name in VALUES and TYPES[name].partition("(")[0] == kind:
        return VALUES[name]
    return next((VALUES[other] for other, known in TYPES.items() if known.partition("(")[0] == kind), (None,))
