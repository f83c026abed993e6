"""Strategies for payloads, histories and legal physical streams."""

from __future__ import annotations

from datetime import UTC, date, datetime

from hypothesis import strategies as st

from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.schema import Schema, Type, decimal
from streamproof.events.time import FOREVER

SMALL = Schema.of({"k": "string", "v": "int64"})

VALUES = {
    "int64": st.integers(-(2**63), 2**63 - 1) | st.integers(-2, 2),
    "float64": st.floats(width=64) | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
    "string": st.text("ab, \t\n\r\"'\\\x00\x1b0=é\U0001f600", max_size=4)
    | st.sampled_from(["", '"', "a,b", "line\nbreak", "null", "inf", "é\U0001f600", "1", "\r", "=1+1", "\x1b[31m"]),
    "bool": st.booleans(),
    "decimal": st.decimals(-999, 999, places=2, allow_nan=False),
    "date": st.dates(date(1, 1, 1), date(9999, 12, 31)),
    "timestamp": st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)),
    "null": st.none(),
}
TYPES = [Type(kind) for kind in VALUES if kind != "decimal"] + [decimal(7, 2)]
NAMES = st.sampled_from(["v", "k", "id", "kind", "re_new", "payload.x", "t", "a b", 'q"', "é", "W"])


def payloads(schema: Schema) -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({name: st.none() | VALUES[kind.kind] for name, kind in schema})


def small_payloads() -> st.SearchStrategy[dict[str, object]]:
    return st.fixed_dictionaries({"k": st.sampled_from(["a", "b", None]), "v": st.integers(0, 1)})


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    names = draw(st.lists(NAMES, unique=True, max_size=4))
    unit = draw(st.sampled_from([None, "us", "s"]))
    return Schema(tuple((name, draw(st.sampled_from(TYPES))) for name in names), unit)


def lifetimes(least: int = -5) -> st.SearchStrategy[tuple[int, int]]:
    return st.tuples(st.integers(least, least + 12), st.integers(1, 9) | st.just(FOREVER)).map(
        lambda pair: (pair[0], FOREVER if pair[1] == FOREVER else pair[0] + pair[1])
    )


@st.composite
def rows(draw: st.DrawFn, schema: Schema = SMALL, *, most: int = 8) -> list[tuple[int, int, dict[str, object]]]:
    values = small_payloads() if schema is SMALL else payloads(schema)
    return [(*draw(lifetimes()), draw(values)) for _ in range(draw(st.integers(0, most)))]


@st.composite
def legal_events(draw: st.DrawFn, schema: Schema = SMALL, *, most: int = 14) -> list[Event]:
    """A stream that keeps every rule: inserts, changes and CTIs in an order that is allowed."""
    values = small_payloads() if schema is SMALL else payloads(schema)
    events: list[Event] = []
    live: dict[str, Insert] = {}
    cti = -8
    for number in range(draw(st.integers(0, most))):
        step = draw(st.sampled_from(["insert", "insert", "retract", "cti"]))
        changeable = [e for e in live.values() if e.re >= cti]
        if step == "cti":
            cti += draw(st.integers(0, 4))
            events.append(Cti(cti))
        elif step == "retract" and changeable:
            old = draw(st.sampled_from(changeable))
            least = max(old.le, cti)
            new = draw(st.integers(least, least + 9) | st.just(FOREVER))
            new = new if new != old.re else new + 1 if new < FOREVER else least
            new = draw(st.integers(old.le - 2, old.le)) if new <= old.le else new  # a full retraction may say less
            events.append(Retract(old.id, old.le, old.re, new, old.payload))
            live.pop(old.id)
            if new > old.le:
                live[old.id] = Insert(old.id, old.le, new, old.payload)
        else:
            le, re = draw(lifetimes(cti))
            free = [name for name in ("a", "b", "c") if name not in live or live[name].re < cti]
            event = Insert(draw(st.sampled_from([*free, f"e{number}"])), le, re, draw(values))
            live[event.id] = event
            events.append(event)
    return [*events, Cti(FOREVER)] if draw(st.booleans()) else events
