"""Lifetimes: what each pattern looks like, and the inverse that finds events by time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import InputError, PlanError
from streamproof.events.order import Ints
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.generate.facets import Facets
from streamproof.generate.lifetimes import lifetimes
from streamproof.generate.stream import generated
from tests.generate.space import Words, facet_words


def ends_of(facets: Facets, count: int = 400, seed: int = 5) -> tuple[Ints, Ints]:
    lives, index = lifetimes(facets, count, seed=seed), np.arange(count)
    return lives.starts(index), lives.ends(index)


@given(facet_words(), st.integers(0, 2**64 - 1))
def test_starts_never_decrease_and_every_event_lasts(words: Words, seed: int) -> None:
    le, re = ends_of(Facets(**words), seed=seed)
    assert np.all(np.diff(le.astype(object)) >= 0)
    assert np.all(re > le)


@given(facet_words(), st.integers(0, 2**64 - 1), st.integers(-5, 3000))
def test_the_first_event_from_a_time_on(words: Words, seed: int, time: int) -> None:
    facets = Facets(**words)
    lives = lifetimes(facets, 300, seed=seed)
    time = min(max(BEGINNING, time + (0 if callable(facets.pattern) else facets.start)), FOREVER)
    expected = np.searchsorted(lives.starts(np.arange(300)), time, side="left")
    assert lives.first_from(np.array([time])).tolist() == [expected]


@given(facet_words(), st.lists(st.integers(0, 299), min_size=1))
def test_each_lifetime_is_told_on_its_own(words: Words, index: list[int]) -> None:
    lives = lifetimes(Facets(**words), 300, seed=3)
    every, some = np.arange(300), np.array(index)
    for ask in (lives.starts, lives.ends, lives.origins):
        assert ask(some).tolist() == ask(every)[index].tolist()


def test_disjoint_events_leave_a_tick_between_them() -> None:
    le, re = ends_of(Facets(pattern="disjoint"))
    assert np.all(le[1:] > re[:-1])
    assert len(set((le[1:] - re[:-1]).tolist())) > 10


def test_back_to_back_events_touch() -> None:
    le, re = ends_of(Facets(pattern="back_to_back", duration="long"))
    assert np.array_equal(le[1:], re[:-1])


@pytest.mark.parametrize("duration", ["point", "short", "long"])
def test_staggered_endpoints_are_one_tick_apart(duration: str) -> None:
    le, re = ends_of(Facets(pattern="staggered", duration=duration))
    assert np.all(le % 2 == 0)
    assert np.all(re % 2 == 1)
    assert np.all(np.isin(re[:20] + 1, np.arange(0, re.max() + 2, 2)))


def test_duplicates_come_in_fours() -> None:
    le, re = ends_of(Facets(pattern="duplicates", keys="unique", overlap="low"))
    assert len(set(zip(le.tolist(), re.tolist(), strict=True))) == 100
    stream = generated({"v": "int64"}, 8, 5, Facets(pattern="duplicates", keys="unique", liveliness="never"))
    values = stream.rows["v"].to_pylist()
    assert values[0] == values[3] != values[4] == values[7]


def test_infinite_events_never_end_and_some_never_start() -> None:
    le, re = ends_of(Facets(duration="infinite"))
    assert np.all(re == FOREVER)
    assert np.sum(le == BEGINNING) == 16


@pytest.mark.parametrize(
    ("duration", "least", "most"), [("short", 2, 20), ("long", 200, 2000), ((3, 5), 3, 5), (9, 9, 9)]
)
def test_lengths_fill_their_range(duration: str | int | tuple[int, int], least: int, most: int) -> None:
    le, re = ends_of(Facets(duration=duration), count=20_000)
    assert ((re - le).min(), (re - le).max()) == (least, most)


@pytest.mark.parametrize(("overlap", "alive"), [("low", 0.25), ("medium", 4), ("high", 64), (10, 10)])
@pytest.mark.parametrize("duration", ["point", "short", "long"])
def test_overlap_is_how_many_events_are_alive(overlap: str | int, alive: float, duration: str) -> None:
    le, re = ends_of(Facets(duration=duration, overlap=overlap), count=50_000)
    assert (re - le).sum() / (le[-1] - le[0]) == pytest.approx(alive, rel=0.02)


def few() -> Iterator[tuple[int, int]]:
    yield 3, 5
    yield 1, 9


def backwards() -> Iterator[tuple[int, int]]:
    yield 3, 5
    yield 9, 1


@pytest.mark.parametrize(
    ("pattern", "shape", "what", "at"),
    [
        (few, "interval", "few gave 2 lifetimes, and 3 events are wanted", None),
        (backwards, "interval", "(9, 1) is not a lifetime", "backwards, lifetime 1"),
        (lambda: [(1, 2.5)] * 3, "interval", "(1, 2.5) is not a lifetime", "<lambda>, lifetime 0"),
        (lambda: [(1, 2), (4, 6), (5, 6)], "point", "a point lasts one tick", "<lambda>, lifetime 1: (4, 6)"),
    ],
)
def test_own_lifetimes_are_checked(pattern: object, shape: str, what: str, at: str | None) -> None:
    with pytest.raises(InputError) as raised:
        lifetimes(Facets(pattern=pattern, shape=shape), 3, seed=0)  # type: ignore[arg-type]  # on purpose
    assert (raised.value.what, raised.value.at) == (what, at)


def test_lifetimes_beyond_time_are_refused() -> None:
    with pytest.raises(PlanError) as raised:
        generated({}, 2**31 - 1, 0, Facets(start=2**61, duration=2**40, overlap=0.25))
    assert (raised.value.name, raised.value.what) == ("overflow", "the lifetimes lie outside ±2^62 ticks")
