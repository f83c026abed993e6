"""Draws: fixed words for ever, even spreads, exact choices, permutations."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.generate.draws import MOST, below, exactly, key_of, part_of, words

KEYS = st.integers(0, 2**64 - 1)
GAMMA, MASK = 0x9E3779B97F4A7C15, 2**64 - 1


def splitmix(state: int) -> int:
    """The published generator, one word at a time: https://prng.di.unimi.it/splitmix64.c"""
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 & MASK
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB & MASK
    return z ^ (z >> 31)


@given(KEYS, st.lists(st.integers(0, MOST)))
def test_words_are_those_of_splitmix64(key: int, index: list[int]) -> None:
    expected = [splitmix((key + (i + 1) * GAMMA) & MASK) for i in index]
    assert words(key, np.array(index, np.int64)).tolist() == expected


def test_the_first_words_of_seed_0_are_the_published_ones() -> None:
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert words(0, np.arange(3)).tolist() == published


@given(KEYS, st.integers(1, 2**62))
def test_numbers_stay_below_their_limit(key: int, limit: int) -> None:
    numbers = below(words(key, np.arange(50)), limit)
    assert numbers.min() >= 0
    assert numbers.max() < limit


@pytest.mark.parametrize("limit", [3, 10, 2**31 + 11])
def test_numbers_are_spread_evenly(limit: int) -> None:
    numbers = below(words(key_of(1, "spread"), np.arange(60_000)), limit)
    thirds = np.bincount(numbers * 3 // limit, minlength=3)
    expected = np.bincount(np.arange(limit) * 3 // limit) / limit * 60_000 if limit < 100 else np.full(3, 20_000)
    assert np.all(np.abs(thirds - expected) < 600)


@given(KEYS, st.integers(0, 700), st.integers(0, 700))
def test_exactly_so_many_are_chosen(key: int, total: int, wanted: int) -> None:
    wanted = min(wanted, total)
    chosen = exactly(key, np.arange(total + 10), total, wanted)
    assert chosen.sum() == wanted
    assert not chosen[total:].any()


@given(KEYS, st.lists(st.integers(0, 999), min_size=1))
def test_each_choice_is_told_on_its_own(key: int, index: list[int]) -> None:
    every = exactly(key, np.arange(1000), 1000, 321)
    assert exactly(key, np.array(index), 1000, 321).tolist() == every[index].tolist()


def test_choices_are_spread_over_the_whole() -> None:
    chosen = exactly(key_of(5, "spread"), np.arange(256 * 400), 256 * 400, 256 * 40)
    by_block, by_place = chosen.reshape(400, 256).sum(axis=1), chosen.reshape(400, 256).sum(axis=0)
    assert set(by_block.tolist()) <= {25, 26}
    assert 15 < by_place.min() <= by_place.max() < 70


def test_every_small_choice_is_made_by_some_seed() -> None:
    seen = {tuple(np.flatnonzero(exactly(key_of(s, "c"), np.arange(6), 6, 3)).tolist()) for s in range(400)}
    assert len(seen) == 20


def test_shares_round_halves_up() -> None:
    assert [part_of(n, Fraction(1, 4)) for n in range(7)] == [0, 0, 1, 1, 1, 1, 2]


def test_keys_differ_by_every_part() -> None:
    keys = {key_of(seed, a, b) for seed in range(4) for a in ("x", "y") for b in ("v", "w", 1)}
    assert len(keys) == 24
    assert key_of(0, "ab", "c") != key_of(0, "a", "bc")
