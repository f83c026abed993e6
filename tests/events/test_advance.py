"""advance_time on physical events: the worked cases, and the laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.advance import Advance
from streamproof.events.physical import Cti, Event, Insert, PhysicalStream, Retract
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator

CASES = json.loads((Path(__file__).parents[1] / "data/algebra.json").read_text(encoding="utf-8"))["cases"]
EMPTY = Schema()


def shown(stream: PhysicalStream) -> list[list[object]]:
    return [["cti", e["t"]] if e["kind"] == "cti" else [e["kind"], e["le"], e["re"]] for e in stream.to_dicts()]


@pytest.mark.parametrize("case", [c for c in CASES if c["level"] == "advance_time"], ids=lambda case: case["id"])
def test_case(case: dict[str, Any]) -> None:
    settings, events = case["input"]["settings"], case["input"]["events"]
    stream = PhysicalStream.from_dicts([{"id": str(n), "payload": {}, **event} for n, event in enumerate(events)])
    advance = Advance(every=settings["every"], delay=settings["delay"], late=settings["policy"])
    printed = shown(advance.apply(stream))
    if settings["final_inf"]:
        printed += shown(advance.finish(EMPTY))
    assert printed == case["expected"]


def test_a_straddling_event_starts_at_the_cti_and_its_retraction_follows() -> None:
    events: list[Event] = [
        Insert("a", 10, 11, {}),
        Insert("b", 5, 20, {}),
        Retract("b", 5, 20, 15, {}),
        Insert("c", 1, 9, {}),
    ]
    advance = Advance(every=1, late="adjust")
    out = advance.apply(PhysicalStream.from_events(events)).to_events()
    assert out == [Insert("a", 10, 11, {}), Cti(10), Insert("b", 10, 20, {}), Retract("b", 10, 20, 15, {})]
    assert (advance.dropped, advance.adjusted) == (1, 2)


def test_an_id_that_comes_again_gets_a_new_one_while_the_old_event_lives_on() -> None:
    events: list[Event] = [
        Insert("a", 1, 9, {}),
        Insert("b", 5, 6, {}),
        Retract("a", 1, 9, 1, {}),  # too late: only what is not sealed goes
        Insert("a", 7, 8, {}),
        Retract("a", 7, 8, 7, {}),
    ]
    out = Advance(every=2, late="adjust").apply(PhysicalStream.from_events(events)).to_events()
    assert out[3:] == [Retract("a", 1, 9, 5, {}), Insert("a~", 7, 8, {}), Cti(7), Retract("a~", 7, 8, 7, {})]


def test_by_duration_a_cti_comes_when_time_has_moved_that_far() -> None:
    stream = PhysicalStream.from_events([Insert(str(t), t, t + 1, {}) for t in (0, 3, 9, 12, 31)])
    out = Advance(every_duration=10).apply(stream).to_events()
    assert [event.t for event in out if isinstance(event, Cti)] == [0, 12, 31]


def test_a_duration_counts_from_the_last_cti_of_the_stream_too() -> None:
    stream = PhysicalStream.from_events([Cti(-4), *(Insert(str(t), t, t + 1, {}) for t in (0, 4))], schema=EMPTY)
    whole, parts = Advance(every_duration=5), Advance(every_duration=5)
    out = whole.apply(stream)
    assert [event.t for event in out.to_events() if isinstance(event, Cti)] == [-4, 4]
    assert PhysicalStream.concat([parts.apply(stream.slice(0, 1)), parts.apply(stream.slice(1))]) == out


@st.composite
def changing_streams(draw: st.DrawFn) -> list[Event]:
    """Matched retractions in any order of arrival, and CTIs; an id may come again when its event is gone."""
    ends: dict[str, tuple[int, int]] = {}
    events: list[Event] = []
    free: list[str] = []
    for number in range(draw(st.integers(0, 14))):
        if draw(st.integers(0, 5)) == 0:
            events.append(Cti(draw(st.integers(-5, 40))))
        elif ends and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(ends)))
            le, re = ends[name]
            new = draw(st.integers(le, le + 20).filter(lambda end, re=re: end != re))
            events.append(Retract(name, le, re, new, {}))
            if new <= le:
                del ends[name]
                free.append(name)
            else:
                ends[name] = (le, new)
        else:
            le = draw(st.integers(-5, 40))
            re = draw(st.one_of(st.integers(le + 1, le + 20), st.just(FOREVER)))
            name = free.pop() if free and draw(st.booleans()) else str(number)
            ends[name] = (le, re)
            events.append(Insert(name, le, re, {}))
    return events


settings_of = st.one_of(
    st.fixed_dictionaries({"every": st.integers(1, 4)}), st.fixed_dictionaries({"every_duration": st.integers(1, 10)})
)


@given(changing_streams(), settings_of, st.integers(0, 10), st.sampled_from(["drop", "adjust"]))
def test_the_result_is_always_legal(events: list[Event], often: dict[str, int], delay: int, late: Any) -> None:
    stream = PhysicalStream.from_events(events, schema=EMPTY)
    Validator().check(Advance(**often, delay=delay, late=late).apply(stream))


@given(changing_streams(), settings_of, st.integers(0, 10), st.sampled_from(["drop", "adjust"]), st.integers(0, 14))
def test_chunks_do_not_matter(events: list[Event], often: dict[str, int], delay: int, late: Any, cut: int) -> None:
    stream = PhysicalStream.from_events(events, schema=EMPTY)
    whole, parts = Advance(**often, delay=delay, late=late), Advance(**often, delay=delay, late=late)
    split = [parts.apply(stream.slice(0, cut)), parts.apply(stream.slice(cut))]
    assert PhysicalStream.concat(split) == whole.apply(stream)
    assert (parts.dropped, parts.adjusted) == (whole.dropped, whole.adjusted)
