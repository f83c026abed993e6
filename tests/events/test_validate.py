from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.event import Cti, Event, Insert, Retract, sync
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Order, Policy, Validator
from streamproof.thresholds import lowered
from tests.events.strategies import SMALL, legal_events, lifetimes, small_payloads


def stream(events: list[Event], schema: Schema = SMALL) -> PhysicalStream:
    return PhysicalStream.from_events(events, schema=schema)


def naive(events: list[Event], shape: str | None = None, order: str | None = None) -> list[str | None]:
    """The rules one event after the other: what each event is guilty of, if those before it were dropped."""
    cti, latest = BEGINNING, BEGINNING
    live: dict[str, Insert] = {}
    guilt: list[str | None] = []
    for event in events:
        rule = _guilt(event, cti, live, shape)
        if rule is None and order == "by_le" and isinstance(event, Insert) and event.le < latest:
            rule = "order"
        guilt.append(rule)
        if rule is not None:
            continue
        if isinstance(event, Cti):
            cti = event.t
            live = {name: e for name, e in live.items() if e.re >= cti}
        elif isinstance(event, Insert):
            live[event.id] = event
            latest = max(latest, event.le)
        elif event.re_new > event.le:
            live[event.id] = replace(live[event.id], re=event.re_new)
        else:
            del live[event.id]
    return guilt


def _guilt(event: Event, cti: int, live: dict[str, Insert], shape: str | None) -> str | None:
    if isinstance(event, Insert) and event.re <= event.le:
        return "empty_lifetime"
    if sync(event) < cti:
        return "cti_backwards" if isinstance(event, Cti) else "cti_violation"
    if isinstance(event, Cti):
        return None
    known = live.get(event.id)
    if isinstance(event, Insert) and known is not None:
        return "duplicate_id"
    if isinstance(event, Retract) and known != Insert(event.id, event.le, event.re, event.payload):
        return "unmatched_retraction"
    if shape == "point":
        fine = event.re == event.le + 1 if isinstance(event, Insert) else event.re_new <= event.le
        return None if fine else "shape"
    return "shape" if shape == "edge" and event.re != FOREVER else None


def any_events() -> st.SearchStrategy[list[Event]]:
    """Streams that break rules now and then."""
    ids = st.sampled_from("abc")
    inserts = st.builds(lambda i, t, p: Insert(i, *t, p), ids, lifetimes(), small_payloads())
    points = st.builds(lambda i, t: Insert(i, t, t + 1, {"k": "a", "v": 0}), ids, st.integers(-3, 9))
    empty = st.builds(lambda i, t: Insert(i, t, t, {"k": "a", "v": 0}), ids, st.integers(-3, 9))
    times = st.integers(-5, 12)
    retractions = st.builds(
        lambda i, t, new, p: Retract(i, *t, new, p), ids, lifetimes(), times | st.just(FOREVER), small_payloads()
    )
    return st.lists(inserts | points | empty | retractions | st.builds(Cti, times), max_size=12)


@st.composite
def nearly_legal(draw: st.DrawFn) -> list[Event]:
    """A legal stream with something done to it, so that rules break deep inside."""
    events = draw(legal_events())
    for _ in range(draw(st.integers(1, 3))):
        if events:
            i, j = (draw(st.integers(0, len(events) - 1)) for _ in range(2))
            change = draw(st.sampled_from(["drop", "repeat", "swap", "later"]))
            if change == "drop":
                del events[i]
            elif change == "repeat":
                events.insert(j, events[i])
            elif change == "swap":
                events[i], events[j] = events[j], events[i]
            elif not isinstance(events[i], Cti):
                events[i] = replace(events[i], re=min(FOREVER, events[i].re + 1))  # type: ignore[union-attr]
    return events


@st.composite
def often_retracted(draw: st.DrawFn) -> list[Event]:
    """A few ids that come, change, go and come again, with now and then an event that none of it allows."""
    events, live, cti = list[Event](), dict[str, Insert](), -9
    for _ in range(draw(st.integers(0, 14))):
        known = live.get(name := draw(st.sampled_from("ab")))
        what = draw(st.sampled_from(["change", "change", "end", "end", "insert", "wrong", "cti"]))
        if what == "cti":
            cti += draw(st.integers(0, 2))
            events.append(Cti(cti))
            live = {one: event for one, event in live.items() if event.re >= cti}
        elif what == "wrong":
            events.append(Retract(name, 0, 5, 0, {"k": "a", "v": draw(st.integers(0, 1))}))
        elif known is None or what == "insert":
            le = draw(st.integers(cti, cti + 3))
            events.append(made := Insert(name, le, le + draw(st.integers(1, 9)), {"k": "a", "v": 0}))
            live.setdefault(name, made)
        else:
            after = known.le if what == "end" else draw(st.integers(max(cti, known.le + 1), max(cti, known.le) + 9))
            events.append(Retract(name, known.le, known.re, after, known.payload))
            if after > known.le:
                live[name] = replace(known, re=after)
            elif known.le >= cti:
                del live[name]
    return events


def chunked(validator: Validator, events: list[Event], size: int) -> list[Event]:
    whole = stream(events)
    return [e for i in range(0, len(events), size) for e in validator.check(whole.slice(i, size)).to_events()]


@given(legal_events(), st.integers(1, 15))
def test_every_legal_stream_passes(events: list[Event], size: int) -> None:
    validator = Validator()
    assert chunked(validator, events, size) == events
    assert validator.counts == {}


@given(
    any_events() | nearly_legal() | often_retracted(),
    st.integers(1, 13),
    st.sampled_from([None, "point", "edge", "interval"]),
    st.sampled_from([None, "by_le", "insert_first"]),
)
@example([Insert("a", 0, 1, {}), Cti(5), Insert("a", 6, 7, {})], 1, None, None)
@example([Insert("a", 0, 1, {}), Cti(5), Insert("a", 6, 7, {}), Retract("a", 6, 8, 6, {})], 9, None, None)
def test_agrees_with_a_sequential_validator(
    events: list[Event], size: int, shape: str | None, order: str | None
) -> None:
    guilt = naive(events, shape, order)
    validator = Validator(policy="dead_letter", shape=shape, order=order)  # type: ignore[arg-type]
    legal = chunked(validator, events, size)
    assert [(v.position, v.rule) for v in validator.violations] == [(i, g) for i, g in enumerate(guilt) if g]
    good = stream([e for e, g in zip(events, guilt, strict=True) if g is None])
    assert stream(legal) == good
    assert (
        validator.dead_letters.to_events() == stream([e for e, g in zip(events, guilt, strict=True) if g]).to_events()
    )
    assert sum(validator.counts.values()) == len(events) - len(legal)


SMALL_WAYS = (
    {},
    {"validator.index": 0, "validator.live": 1, "validator.chunks": 1},
    {"validator.index": 1, "validator.live": 4, "validator.chunks": 2},
    {"validator.index": 0},
)


@settings(max_examples=300)
@given(
    often_retracted() | st.lists(any_events(), min_size=4, max_size=6).map(lambda parts: list(chain(*parts))),
    st.integers(1, 5),
    st.sampled_from([None, "by_le"]),
    st.sampled_from(SMALL_WAYS),
    st.booleans(),
)
def test_what_is_remembered_is_enough(
    events: list[Event], size: int, order: Order | None, ways: dict[str, int], restarted: bool
) -> None:
    """Whenever what has ended is forgotten, however live events are found, and over restarts."""
    guilt, whole = naive(events, order=order), stream(events)
    validator, legal = Validator(policy="dead_letter", order=order), list[Event]()
    with lowered(ways):
        for start in range(0, len(events), size):
            legal += validator.check(whole.slice(start, size)).to_events()
            cti = max([BEGINNING, *(event.t for event in legal if isinstance(event, Cti))])
            assert (validator.cti, validator.rows_seen) == (cti, min(start + size, len(events)))
            if restarted:
                state, kept = json.loads(json.dumps(validator.save())), validator.remembered
                assert all(event.re >= cti for event in (kept or stream([])).to_events() if isinstance(event, Insert))
                dead, validator = validator.dead_letters, Validator(policy="dead_letter", order=order)
                validator.restore(state, kept, dead=dead)
    assert stream(legal) == stream([event for event, rule in zip(events, guilt, strict=True) if rule is None])
    bad = [event for event, rule in zip(events, guilt, strict=True) if rule is not None]
    assert validator.dead_letters.to_events() == stream(bad).to_events()
    words = Counter("bad_input" if rule == "order" else rule for rule in guilt if rule is not None)
    assert validator.counts == words


@given(any_events() | nearly_legal(), st.integers(1, 13))
@example([Insert("a", 0, 1, {}), Cti(5), Insert("a", 6, 7, {})], 9)
def test_fail_names_the_first_violation(events: list[Event], size: int) -> None:
    guilt = naive(events)
    first = next((i for i, g in enumerate(guilt) if g), None)
    if first is None:
        chunked(Validator(), events, size)
        return
    with pytest.raises(InputError) as info:
        chunked(Validator(), events, size)
    assert info.value.name == guilt[first]
    assert f"event {first} ({events[first]})" in str(info.value.at)


@given(legal_events())
def test_state_is_what_can_still_change(events: list[Event]) -> None:
    validator = Validator()
    chunked(validator, [*events, Cti(FOREVER)], 4)
    alive = {e.id for e in events if isinstance(e, Insert)}
    assert validator.live <= len(alive)
    chunked(finite := Validator(), [Insert("a", 1, 2, {}), Insert("b", 1, 9, {}), Cti(5)], 2)
    assert finite.live == 1


A = Insert("a", 1, 20, {"v": 1})
V = Schema.of({"v": "int64"})


@pytest.mark.parametrize(
    ("events", "name", "text"),
    [
        (
            [A, Cti(10), Retract("a", 1, 20, 9, {"v": 1})],
            "cti_violation",
            "a change from 9 on, but the CTI before it promised no change before 10\n"
            "  at: event 2 (retract a [1, 20) → 9); event a was [1, 20), last CTI 10\n"
            "  fix: send the event before its CTI, delay CTIs (advance_time), "
            "or let it go: policy drop or dead_letter (--on-error)",
        ),
        (
            [Insert("a", 5, 5, {"v": 1})],
            "empty_lifetime",
            "an insert without a lifetime\n  at: event 0 (insert a [5, 5))\n"
            "  fix: an insert needs re > le; a point event at t is [t, t + 1)",
        ),
        (
            [Cti(5), Cti(5), Cti(4)],
            "cti_backwards",
            "the CTI goes back from 5 to 4\n  at: event 2 (cti 4); last CTI 5\n"
            "  fix: CTIs never decrease; merge sources with union, which takes the least CTI",
        ),
        (
            [A, A],
            "duplicate_id",
            'the id "a" belongs to a live event\n  at: event 1 (insert a [1, 20)); event a was [1, 20)\n'
            "  fix: give every event an id of its own; an id is free again after a full retraction, "
            "or let it go: policy drop or dead_letter (--on-error)",
        ),
        (
            [Retract("a", 1, 20, 9, {"v": 1})],
            "unmatched_retraction",
            'the retraction names "a", but no such event is live\n  at: event 0 (retract a [1, 20) → 9)\n'
            "  fix: a retraction repeats id, le, payload and the current re of its event, "
            "or let it go: policy drop or dead_letter (--on-error)",
        ),
        (
            [A, Retract("a", 1, 19, 9, {"v": 1})],
            "unmatched_retraction",
            'the retraction does not match what "a" is now\n'
            "  at: event 1 (retract a [1, 19) → 9); event a was [1, 20)\n"
            "  fix: a retraction repeats id, le, payload and the current re of its event, "
            "or let it go: policy drop or dead_letter (--on-error)",
        ),
    ],
)
def test_errors_say_what_where_and_how_to_fix(events: list[Event], name: str, text: str) -> None:
    with pytest.raises(InputError) as info:
        Validator().check(stream(events, V))
    assert (info.value.name, str(info.value)) == (name, text)


@pytest.mark.parametrize("payload", [{"v": 2}, {"v": None}])
def test_a_retraction_repeats_the_payload(payload: dict[str, object]) -> None:
    with pytest.raises(InputError, match="does not match"):
        Validator().check(stream([A, Retract("a", 1, 20, 9, payload)], V))


def test_equality_at_the_cti_is_legal() -> None:
    events = [Insert("a", 1, 10, {"v": 1}), Cti(10), Retract("a", 1, 10, 15, {"v": 1}), Insert("b", 10, 11, {"v": 1})]
    assert len(Validator().check(stream(events, V))) == 4


def test_a_dropped_event_does_not_influence_the_next() -> None:
    late = [Cti(5), Insert("a", 4, 9, {"v": 1}), Retract("a", 4, 9, 7, {"v": 1}), Insert("a", 5, 9, {"v": 2})]
    validator = Validator(policy="drop")
    assert [str(e) for e in validator.check(stream(late, V)).to_events()] == ["cti 5", "insert a [5, 9)"]
    assert validator.counts == {"cti_violation": 1, "unmatched_retraction": 1}
    assert str(validator.violations[1]) == "unmatched_retraction: event 2 (retract a [4, 9) → 7)"
    assert len(validator.dead_letters) == 0


def test_shape_and_order_are_bad_input() -> None:
    for declared, text in (({"shape": "point"}, "point events"), ({"order": "by_le"}, "ordered by le")):
        with pytest.raises(InputError, match=text) as info:
            Validator(**declared).check(stream([A, Insert("b", 0, 9, {"v": 1})], V))  # type: ignore[arg-type]
        assert info.value.name == "bad_input"


@pytest.mark.parametrize("setting", ["policy", "shape", "order"])
def test_unknown_settings_are_refused(setting: str) -> None:
    with pytest.raises(InputError, match=f"unknown {setting} 'x'"):
        Validator(**{setting: "x"})


@pytest.mark.parametrize("policy", ["drop", "dead_letter"])
def test_only_the_first_violations_are_kept_in_words(policy: Policy) -> None:
    validator = Validator(policy=policy, keep=2)
    validator.check(stream([Insert("a", 1, 1, {"v": 1})] * 5, V))
    assert (len(validator.violations), validator.counts) == (2, {"empty_lifetime": 5})


NOTHING = {"k": None, "v": None}


def test_among_many_live_events_few_are_found_by_their_ids() -> None:
    """Small chunks beside a large memory: an index of ids answers, and forgets as the memory does."""
    many = [Insert(f"e{n}", n, n + 10_000, NOTHING) for n in range(2_000)]
    validator = Validator()
    assert chunked(validator, many, 5) == many
    assert validator.live == 2_000
    end = Retract("e7", 7, 10_007, 9_000, NOTHING)
    assert chunked(validator, [end], 1) == [end]
    with pytest.raises(InputError, match='the id "e1999" belongs to a live event'):
        chunked(validator, [Insert("e1999", 2_000, 2_001, NOTHING)], 1)
    with pytest.raises(InputError, match='names "e2000", but no such event is live'):
        chunked(validator, [Retract("e2000", 2_000, 2_001, 2_000, NOTHING)], 1)
    later = [Cti(10_000), Insert("e7", 10_000, 10_001, NOTHING), Insert("e2000", 10_000, 10_001, NOTHING)]
    assert chunked(validator, later, 1) == later
    assert validator.live == 2_001  # the first e7 ended before the CTI
