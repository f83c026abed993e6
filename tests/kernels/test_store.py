"""The event store against a plain list, and the runs it is made of."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.lifetimes import apart
from streamproof.kernels.sorting import order_by
from streamproof.kernels.store import Store, ints, ordered
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W, compare_all

Event = tuple[int, int, int, tuple[int, ...]]  # key, le, re, payload
TIMES = st.integers(-5, 30)
EVENTS = st.builds(
    lambda key, le, length, cell: (key, le, FOREVER if length == 9 else le + length, (cell,)),
    st.integers(0, 3),
    TIMES,
    st.integers(1, 9),
    st.integers(0, 2),
)


def arrays(events: list[tuple[Event, int]]) -> tuple[Ints, Ints, Ints, Ints, Cells]:
    key, le, re = (np.array([event[n] for event, _ in events], np.int64) for n in range(3))
    w = np.array([w for _, w in events], np.int64)
    return key, le, re, w, np.array([event[3] for event, _ in events], np.int64).reshape(-1, 1)


def total(rows: Cells) -> Counter[Event]:
    found: Counter[Event] = Counter()
    for row in rows.tolist():
        found[row[KEY], row[LE], row[RE], tuple(row[PAYLOAD:])] += row[W]
    return found


class Model:
    """What a store means: a bag of events."""

    def __init__(self) -> None:
        self.events: Counter[Event] = Counter()
        self.before = BEGINNING

    def add(self, events: list[tuple[Event, int]]) -> None:
        for event, w in events:
            self.events[event] += w
        self._forget()

    def drop(self, before: int) -> None:
        self.before = max(before, self.before)
        self._forget()

    def _forget(self) -> None:
        self.events = Counter({e: w for e, w in self.events.items() if w and e[2] >= self.before})

    def overlapping(self, key: int, start: int, end: int) -> Counter[Event]:
        return Counter({e: w for e, w in self.events.items() if e[0] == key and e[1] < end and e[2] > start})


@st.composite
def histories(draw: st.DrawFn) -> tuple[Store, Model]:
    """A store and its model after the same random changes: retractions are of events that are there."""
    store, model = Store(1), Model()
    for _ in range(draw(st.integers(0, 6))):
        there = sorted(model.events)
        gone = draw(st.sets(st.sampled_from(there), max_size=3)) if there else set()
        changes = [(event, -1) for event in sorted(gone)]
        changes += [(event, 1) for event in draw(st.lists(EVENTS, max_size=6))]
        store.add(*arrays(changes))
        model.add(changes)
        if draw(st.booleans()):
            before = draw(TIMES)
            store.drop(before)
            model.drop(before)
    return store, model


@settings(max_examples=200, deadline=None)
@given(histories(), st.lists(st.tuples(st.integers(0, 3), TIMES, TIMES), max_size=5))
def test_finds_what_a_list_would_find(pair: tuple[Store, Model], queries: list[tuple[int, int, int]]) -> None:
    store, model = pair
    key, start, end = (np.array([query[n] for query in queries], np.int64) for n in range(3))
    found = store.overlapping(key, start, end)
    for n, query in enumerate(queries):
        assert total(found.where(found.query == n).rows) == model.overlapping(*query)


@settings(max_examples=200, deadline=None)
@given(histories())
def test_no_event_is_longer_than_the_longest(pair: tuple[Store, Model]) -> None:
    store, model = pair
    assert store.longest >= max((re - le for _, le, re, _ in model.events), default=0)
    only = store.only_key()
    assert only is None or {key for key, *_ in model.events} <= {only}


@settings(max_examples=100, deadline=None)
@given(histories(), TIMES, TIMES)
def test_finds_the_events_of_all_keys_that_meet_an_interval(pair: tuple[Store, Model], start: int, end: int) -> None:
    store, model = pair
    found = np.column_stack(store.meeting(start, end)).tolist()
    assert {tuple(row) for row in found} == {e[:3] for e in model.events if e[1] < end and e[2] > start}


def test_a_long_past_is_stepped_over_without_losing_the_next_key() -> None:
    """The next key is asked about an earlier time, at which its events still lived."""
    events = [((0, t, t + 1, (0,)), 1) for t in range(5_000)] + [((1, 0, 3_000, (0,)), 1), ((2, 1, 2, (0,)), 1)]
    store = Store(1)
    store.add(*arrays(events))
    found = store.overlapping(ints(0, 1, 2), ints(6_000, 100, 0), ints(9_000, 9_000, 9_000))
    assert found.query.tolist() == [1, 2]
    assert store.meeting(4_990, 9_000)[0].tolist() == [0] * 10


@settings(max_examples=100, deadline=None)
@given(histories(), st.sets(st.integers(0, 4)))
def test_knows_all_and_those_of_a_key(pair: tuple[Store, Model], keys: set[int]) -> None:
    store, model = pair
    wanted = {event: w for event, w in model.events.items() if event[0] in keys}
    assert total(store.of_keys(np.array(sorted(keys), np.int64))) == wanted
    assert total(store.all_rows()) == model.events
    assert len(store) == len(model.events)
    assert set(store.keys().tolist()) == {event[0] for event in model.events}


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(st.tuples(st.integers(0, 3), TIMES, TIMES), max_size=5))
def test_first_starts(pair: tuple[Store, Model], queries: list[tuple[int, int, int]]) -> None:
    store, model = pair
    key, start, end = (np.array([query[n] for query in queries], np.int64) for n in range(3))
    firsts = [min([e[1] for e in model.events if e[0] == k and a <= e[1] < b], default=b) for k, a, b in queries]
    assert store.first_starts(key, start, end).tolist() == firsts


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(EVENTS, max_size=5))
def test_same_start(pair: tuple[Store, Model], events: list[Event]) -> None:
    store, model = pair
    wanted = ordered(*arrays([(event, 1) for event in events] or [((9, 9, 9, (9,)), 1)]))
    found = store.same_start(wanted, 1)
    known = {(e[0], e[1], e[3]) for e in model.events}
    asked = [(row[KEY], row[LE], tuple(row[PAYLOAD:])) for row in wanted.tolist()]
    assert set(found.query.tolist()) == {n for n, event in enumerate(asked) if event in known}
    for n, row in zip(found.query.tolist(), found.rows.tolist(), strict=True):
        assert (row[KEY], row[LE], tuple(row[PAYLOAD:])) == asked[n]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(EVENTS, st.sampled_from([-1, 1, 2])), max_size=60))
def test_ordered_is_sorted_and_has_each_event_once(events: list[tuple[Event, int]]) -> None:
    rows = ordered(*arrays(events))
    assert all(compare_all(rows, n, rows, n + 1) < 0 for n in range(len(rows) - 1))
    expected: Counter[Event] = Counter()
    for event, w in events:
        expected[event] += w
    assert total(rows) == {event: w for event, w in expected.items() if w}


def test_many_events_with_one_start_are_sorted_fast_enough() -> None:
    size = 50_000  # by insertion this would take minutes
    cells = np.random.default_rng(1).integers(0, 1000, (size, 1))
    same = np.zeros(size, np.int64)
    rows = ordered(same, same, same + 1, same + 1, cells)
    assert rows[:, PAYLOAD].tolist() == sorted(set(cells[:, 0].tolist()))
    assert rows[:, W].sum() == size


@pytest.mark.parametrize("keys", [1, 7, 5000])
def test_large_stores_with_mixed_lifetimes(keys: int) -> None:
    """Long enough for every level of the index, and several runs."""
    random = np.random.default_rng(keys)
    store, size = Store(1), 30_000
    key, le = random.integers(0, keys, size), random.integers(0, 100_000, size)
    lengths = np.where(random.random(size) < 0.01, 50_000, random.integers(1, 20, size))
    re = np.where(random.random(size) < 0.001, FOREVER, le + lengths)
    for part in np.array_split(np.arange(size), 13):
        store.add(key[part], le[part], re[part], np.ones(len(part), np.int64), part.reshape(-1, 1))
    store.drop(200)
    asked = random.integers(0, keys, 200)
    start = random.integers(-10, 100_000, 200)
    end = start + random.integers(0, 300, 200)
    found = store.overlapping(asked, start, end)
    for n in range(200):
        expected = np.flatnonzero((key == asked[n]) & (le < end[n]) & (re > start[n]) & (re >= 200))
        assert sorted(found.cells[found.query == n, 0].tolist()) == expected.tolist()


@settings(max_examples=100, deadline=None)
@given(histories(), st.lists(EVENTS, max_size=8))
def test_stretches_find_each_event_once(pair: tuple[Store, Model], asked: list[Event]) -> None:
    """A search by stretches that are apart finds every event that meets one of the intervals, once."""
    store, model = pair
    rows = ordered(*arrays([(event, 1) for event in asked])) if asked else np.empty((0, 5), np.int64)
    key, le, re = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE))
    keys, low, first, last = apart(key, le, re)
    found = total(store.overlapping(keys, first, last, low=low).rows)
    met = [model.overlapping(*event[:3]) for event in asked]
    assert found == {event: w for event, w in model.events.items() if any(event in part for part in met)}


@pytest.mark.parametrize("span", [10, 2**30, 2**55, 2**62])
def test_orders_are_stable_whatever_the_range(span: int) -> None:
    random = np.random.default_rng(span)
    first, second = random.integers(0, 5, 300), random.integers(-span, span, 300)
    second[::7] = second[0]
    for a, b in ((first, second), (second, first)):
        assert order_by(a, b).tolist() == np.lexsort((b, a)).tolist()


def test_a_retraction_takes_its_event_off_at_once() -> None:
    store = Store(1)
    store.add(ints(1, 1, 1), ints(0, 0, 5), ints(9, 9, 9), ints(1, 1, 1), np.zeros((3, 1), np.int64))
    store.add(ints(1), ints(0), ints(9), ints(-1), np.zeros((1, 1), np.int64))
    assert store.overlapping(ints(1), ints(0), ints(9)).w.tolist() == [1, 1]
    store.add(ints(1), ints(0), ints(9), ints(-1), np.zeros((1, 1), np.int64))
    assert store.overlapping(ints(1), ints(0), ints(9)).le.tolist() == [5]
