"""The heart: exactly as many events are out of order as were asked for, whatever the stream and its pieces."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.disorder.config import Experiment
from streamproof.disorder.generate import choose, half_up
from streamproof.disorder.ingestion import DelayChoice, arrivals_in
from streamproof.disorder.must_stay import mark_must_stay
from streamproof.disorder.records import Records
from streamproof.disorder.runner import Here
from streamproof.events.order import Flags, Ints

from .streams import in_store, late_events, random_arrivals, random_times


def arranged(records: Records, times: Ints, choice: DelayChoice) -> tuple[Ints, Ints, Flags]:
    """The event times in their new order, all arrivals, and who was delayed."""
    parts = [arrivals_in(records, piece, choice) for piece in range(len(records.splits))]
    arrivals = np.concatenate([arrival for arrival, _ in parts])
    delayed = np.concatenate([flags for _, flags in parts])
    order = np.lexsort((np.arange(len(times)), delayed, arrivals))
    return times[order], arrivals, delayed


def experiment_for(draw: random.Random, wanted: int, count: int) -> Experiment:
    longest = draw.choice([0, 1, 2, 5, 20, 100, 5000, 10**7])
    return Experiment(
        factor=Fraction(100 * wanted, count),
        min_delay=Fraction(draw.randint(0, longest)),
        max_delay=Fraction(longest),
        seed=draw.randint(-(2**63), 2**63 - 1),
    )


def check_exact(seed: int, most: int) -> str:
    draw = random.Random(seed)
    times, arrivals = random_times(draw, most), None
    if draw.random() < 0.2:
        times, arrivals = random_arrivals(draw, times)
    records = in_store(draw, times, arrivals)
    assert records.late == late_events(times)
    wanted = draw.randint(0 if arrivals is None else records.late, len(times))
    experiment = experiment_for(draw, wanted, len(times))
    choice, figures = choose(records, len(times), experiment, "ms", Here())
    made, arrived, delayed = arranged(records, times, choice)
    reached = min(wanted, figures.reachable)
    assert late_events(made) == reached, (seed, choice.mode)
    assert (choice.mode == "highest reachable") == (wanted > figures.reachable)
    waits = (arrived - times)[delayed]
    assert np.all((waits >= int(experiment.min_delay)) & (waits <= int(experiment.max_delay)))
    return choice.mode


@pytest.mark.parametrize("part", range(4))
def test_thousands_of_random_streams_are_hit_to_the_event(part: int) -> None:
    modes = {check_exact(seed, 60) for seed in range(1000 * part, 1000 * part + 700)}
    assert modes == {"as it is", "delay", "anchors", "repair", "highest reachable"}


@given(st.integers(0, 2**64))
@settings(max_examples=100, deadline=None)
def test_longer_streams_are_hit_to_the_event(seed: int) -> None:
    check_exact(seed, 600)


def best_by_trying(times: Ints, arrivals: Ints, late: Flags, longest: int) -> int:
    """The most events that can be out of order: every choice of delayed events is tried."""
    free = [n for n in range(len(times)) if not late[n] and arrivals[n] == times[n]]
    best = 0
    for chosen in itertools.product([False, True], repeat=len(free)):
        arrived, flags = arrivals.copy(), np.zeros(len(times), np.int64)
        for place, delayed in zip(free, chosen, strict=True):
            if delayed:
                arrived[place], flags[place] = times[place] + longest, 1
        order = np.lexsort((np.arange(len(times)), -times * flags, flags, arrived))
        best = max(best, late_events(times[order]))
    return best


@pytest.mark.parametrize("part", range(2))
def test_the_highest_reachable_factor_is_the_highest(part: int) -> None:
    for seed in range(300 * part, 300 * part + 300):
        draw = random.Random(seed)
        times, moved = random_times(draw, 8), None
        longest = draw.choice([0, 1, 2, 5, 20])
        if draw.random() < 0.3:
            times, moved = random_arrivals(draw, times)
        records = in_store(draw, times, moved)
        late = np.concatenate([records.store.get(f"late/{piece}") for piece in range(len(records.splits))])
        arrivals = np.maximum.accumulate(times) if moved is None else moved
        reachable = len(times) - mark_must_stay(records, longest)
        assert reachable == best_by_trying(times, arrivals, late, longest), seed


def test_the_same_choice_whatever_the_pieces() -> None:
    for seed in range(100):
        times = random_times(random.Random(seed), 200)
        experiment = experiment_for(random.Random(seed), random.Random(seed).randint(0, len(times)), len(times))
        outcomes = []
        for cutting in (1, 2, 3):
            records = in_store(random.Random(cutting), times)
            choice, _ = choose(records, len(times), experiment, "ms", Here())
            outcomes.append(arranged(records, times, choice)[1].tolist())
        assert outcomes[0] == outcomes[1] == outcomes[2]


def test_halves_are_rounded_up() -> None:
    assert [half_up(Fraction(n, 2)) for n in range(5)] == [0, 1, 1, 2, 2]
