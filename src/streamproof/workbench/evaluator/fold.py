"""From a physical stream to its history, event by event, with the rules that make it legal.

>>> fold([Insert("a", 1, 9, {"v": 1}), Cti(5), Retract("a", 1, 9, 6, {"v": 1})], ["v"])
[(1, 6, {'v': 1})]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streamproof.errors import ErrorName, InputError
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.time import BEGINNING
from streamproof.workbench.evaluator.values import Row, payload_identity


def fold(events: Iterable[Event], names: Sequence[str]) -> list[Row]:
    """The bag of events that is left at the end; the first broken rule is an error."""
    current: dict[str, Row] = {}
    sealed = BEGINNING
    for event in events:
        match event:
            case Cti(t):
                _require(t >= sealed, "cti_backwards", event)
                sealed = t
            case Insert(name, le, re, payload):
                _require(le < re, "empty_lifetime", event)
                _require(le >= sealed, "cti_violation", event)
                _require(name not in current, "duplicate_id", event)
                current[name] = (le, re, {column: payload.get(column) for column in names})
            case Retract(name):
                _require(_is_open(event, sealed), "cti_violation", event)
                _require(_matches(current.get(name), event, names), "unmatched_retraction", event)
                _change(current, event)
    return list(current.values())


def _matches(known: Row | None, event: Retract, names: Sequence[str]) -> bool:
    payload = {column: event.payload.get(column) for column in names}
    return known is not None and (known[0], known[1], payload_identity(known[2], names)) == (
        event.le,
        event.re,
        payload_identity(payload, names),
    )


def _is_open(event: Retract, sealed: int) -> bool:
    """A retraction changes history from the earlier of both ends on; one to the start or before it, from the start."""
    return min(event.re, max(event.re_new, event.le)) >= sealed


def _change(current: dict[str, Row], event: Retract) -> None:
    le, _, payload = current.pop(event.id)
    if event.re_new > le:
        current[event.id] = (le, event.re_new, payload)


def _require(holds: bool, name: ErrorName, event: Event) -> None:
    if not holds:
        raise InputError(f"{event} breaks the rule {name}", name=name)
