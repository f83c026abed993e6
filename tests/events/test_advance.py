"""advance_time on physical events: the worked cases, and the laws."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.advance import Advance
from streamproof.events.event import Cti, Event, Insert, Retract
from streamproof.events.order import ints
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
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


@pytest.mark.parametrize("late", ["drop", "adjust"])
@pytest.mark.parametrize("shared", [False, True])
def test_what_is_remembered_is_bounded_by_what_can_still_change(late: Any, shared: bool) -> None:
    advance, sizes = Advance(every=1, late=late), []
    for start in range(0, 20_000, 500):
        events: list[Event] = []
        for n in range(start, start + 500):
            events.append(Insert(f"e{n}", n, n + 1, {}))
            events.append(Insert(f"late{n}", n - 5, n + 3 - n % 7, {}))
            if n >= 3:
                events.append(Retract(f"late{n - 3}", n - 8, n - (n - 3) % 7, n - 8, {}))
        stream = PhysicalStream.from_events(events)
        if shared:
            places = np.arange(len(stream))
            advance.apply_share(stream, places, stream.kinds, ints(stream.rows["le"]))
        else:
            advance.apply(stream)
        sizes.append(len(json.dumps(advance.save())))
    assert max(sizes) <= sizes[0] + 500, "of 20,000 late events a few are remembered"


def test_a_change_of_a_forgotten_event_is_dropped_and_counted() -> None:
    events: list[Event] = [
        Insert("a", 50, 51, {}),
        Insert("b", 3, 9, {}),
        Insert("c", 3, 70, {}),
        Insert("d", 60, 61, {}),
    ]
    advance = Advance(every=1)
    advance.apply(PhysicalStream.from_events(events))
    assert list(advance.save()["delivered"]) == ["c"]  # type: ignore[call-overload]  # a mapping by id
    changes: list[Event] = [Retract("b", 3, 9, 3, {}), Retract("c", 3, 70, 65, {}), Retract("a", 50, 51, 50, {})]
    assert advance.apply(PhysicalStream.from_events(changes)).to_events() == []
    assert advance.dropped == 5
    advance.apply(PhysicalStream.from_events([Insert("e", 66, 67, {})]))
    assert advance.save()["delivered"] == {}
    assert advance.apply(PhysicalStream.from_events([Retract("c", 3, 65, 3, {})])).to_events() == []
    assert advance.dropped == 6


def test_an_id_keeps_its_new_name_as_long_as_an_older_event_of_it_lives() -> None:
    stream = PhysicalStream.from_events(
        [
            Insert("a", 1, 90, {}), Insert("b", 5, 6, {}), Retract("a", 1, 90, 1, {}), Insert("a", 7, 8, {}),
            Insert("c", 80, 81, {}), Insert("a", 85, 86, {}), Insert("d", 95, 96, {}), Insert("a", 97, 98, {}),
        ]
    )  # fmt: skip
    out = Validator().check(Advance(every=1).apply(stream)).to_events()
    assert [event.id for event in out if isinstance(event, Insert)] == ["a", "b", "a~", "c", "a~", "d", "a"]
