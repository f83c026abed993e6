"""Physical events as Python objects and in the JSON notation.

>>> from streamproof.events.time import FOREVER
>>> str(Retract("a", 1, FOREVER, 9, {"v": 1})), str(Cti(5))
('retract a [1, inf) → 9', 'cti 5')
>>> read_event({"kind": "cti", "t": "inf"}, 0)
Cti(t=4611686018427387904)

Law: ``read_event(write_event(e), n) == e``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from streamproof.arguments import often
from streamproof.errors import InputError, did_you_mean, printable
from streamproof.events.notation import merge_types, read_value, show_value, type_of_value, write_value
from streamproof.events.schema import NULL, Schema, Type, check_names
from streamproof.events.time import Unit, read_tick, show_tick

KEYS: Final = {
    "insert": ("kind", "id", "le", "re", "payload"),
    "retract": ("kind", "id", "le", "re", "re_new", "payload"),
    "cti": ("kind", "t"),
}
"""The keys of an event in the JSON notation; of an insert only le and re are needed."""


@often
@dataclass(frozen=True, slots=True)
class Insert:
    """A new event ``[le, re)``."""

    id: str
    le: int
    re: int
    payload: Mapping[str, object]

    def __str__(self) -> str:
        return f"insert {printable(self.id)} [{show_tick(self.le)}, {show_tick(self.re)})"


@often
@dataclass(frozen=True, slots=True)
class Retract:
    """The event ``id``, now ``[le, re)``, ends at ``re_new`` instead; at or before ``le`` it never was."""

    id: str
    le: int
    re: int
    re_new: int
    payload: Mapping[str, object]

    def __str__(self) -> str:
        return f"retract {printable(self.id)} [{show_tick(self.le)}, {show_tick(self.re)}) → {show_tick(self.re_new)}"


@often
@dataclass(frozen=True, slots=True)
class Cti:
    """A punctuation: nothing that comes later changes history before ``t``."""

    t: int

    def __str__(self) -> str:
        return f"cti {show_tick(self.t)}"


Event: TypeAlias = Insert | Retract | Cti


def sync(event: Event) -> int:
    """From when on the event changes history: no CTI before it may be later.

    >>> sync(Retract("a", 1, 20, 9, {})), sync(Retract("a", 3, 8, -5, {}))
    (9, 3)
    """
    if isinstance(event, Cti):
        return event.t
    return event.le if isinstance(event, Insert) else min(event.re, max(event.re_new, event.le))


def read_event(document: Mapping[str, object], number: int | str) -> Event:
    """The event that a JSON object stands for; ``number`` makes an id for an insert without one."""
    if not isinstance(document, Mapping):
        raise InputError(f"{show_value(document)} is not an event", fix='an event is an object like {"le": 1, "re": 5}')
    kind = document.get("kind", "insert")
    if not isinstance(kind, str) or kind not in KEYS:
        raise InputError(f"unknown kind {show_value(kind)}", fix=did_you_mean(str(kind), KEYS))
    for key in document:
        if key not in KEYS[kind]:
            raise InputError(f'a {kind} has no field "{key}"', fix=did_you_mean(str(key), KEYS[kind]))
    if kind == "cti":
        return Cti(_time(document, "t"))
    le, re, payload = _time(document, "le"), _time(document, "re"), _payload(document)
    if kind == "retract":
        return Retract(_id(document, None), le, re, _time(document, "re_new"), payload)
    return Insert(_id(document, f"#{number}"), le, re, payload)


def _time(document: Mapping[str, object], field: str) -> int:
    if field not in document:
        raise InputError(f'"{field}" is missing', fix=f'give "{field}": an integer, "inf" or "-inf"')
    return read_tick(document[field])


def _id(document: Mapping[str, object], default: str | None) -> str:
    name = document.get("id", default)
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    if not isinstance(name, str):
        raise InputError(
            f"the id {show_value(name)} is not text" if "id" in document else '"id" is missing',
            fix="a retraction names the event that it changes by its id",
        )
    return name


def _payload(document: Mapping[str, object]) -> Mapping[str, object]:
    payload = document.get("payload", {})
    if not isinstance(payload, dict):
        raise InputError(f"the payload {show_value(payload)} is not an object", fix='write "payload": {"v": 1}')
    check_names(payload, InputError)
    return payload


def write_event(event: Event) -> dict[str, object]:
    """The event in the JSON notation."""
    if isinstance(event, Cti):
        return {"kind": "cti", "t": show_tick(event.t)}
    payload = {name: write_value(value) for name, value in event.payload.items()}
    times: dict[str, object] = {"id": event.id, "le": show_tick(event.le), "re": show_tick(event.re)}
    if isinstance(event, Insert):
        return {"kind": "insert", **times, "payload": payload}
    return {"kind": "retract", **times, "re_new": show_tick(event.re_new), "payload": payload}


def typed(event: Event, schema: Schema) -> Event:
    """The event with its payload read as the schema says: text becomes decimals, dates and instants."""
    if isinstance(event, Cti):
        return event
    refuse_unknown(event.payload, schema, str(event))
    read: dict[str, object] = {}
    for name, kind in schema:
        try:
            read[name] = read_value(event.payload.get(name), kind)
        except InputError as error:
            error.what = f'column "{name}": {error.what}'
            raise error.located(str(event)) from None
    return replace(event, payload=read)


def refuse_unknown(payload: Mapping[str, object], schema: Schema, at: str) -> None:
    """Refuse payload columns that the schema does not have."""
    for name in payload:
        if name not in schema:
            raise InputError(
                f'unknown column "{name}"', at=at, fix=did_you_mean(name, schema.names), name="unknown_column"
            )


def infer_schema(events: Iterable[Event], *, unit: Unit | None = None) -> Schema:
    """The payload columns in order of appearance, each with the narrowest type that holds all its values.

    >>> events = [Insert("a", 1, 2, {"v": None}), Insert("b", 1, 2, {"v": 1, "k": "x"}), Insert("c", 1, 2, {"v": 0.5})]
    >>> infer_schema(events).columns
    (('v', Type('float64')), ('k', Type('string')))
    """
    types: dict[str, tuple[Type, Event]] = {}
    for event in events:
        if isinstance(event, Cti):
            continue
        for name, value in event.payload.items():
            types[name] = _widened(name, value, event, types.get(name))
    check_names(types, InputError)
    return Schema(tuple((name, kind) for name, (kind, _) in types.items()), unit)


def _widened(name: str, value: object, event: Event, known: tuple[Type, Event] | None) -> tuple[Type, Event]:
    """The type of a column after one more value, and the event that made it so."""
    try:
        kind = type_of_value(value)
    except InputError as error:
        error.what = f'column "{name}": {error.what}'
        raise error.located(str(event)) from None
    if known is None or known[0] == NULL:
        return kind, event
    wide = merge_types(known[0], kind)
    if wide is None:
        raise InputError(
            f'column "{name}" is {known[0]} in {known[1]}, but {kind} in {event}',
            at=str(event),
            fix="give all values of a column one type, or split it into two columns",
            name="type_mismatch",
        )
    return wide, known[1] if wide == known[0] else event
