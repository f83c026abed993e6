"""Simulation: the numbers of the worked example, isolation from a flood, and costs that are drawn."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest

from streamproof.errors import PlanError
from streamproof.qos.service import RateLatency
from streamproof.qos.simulate import simulate
from streamproof.qos.study import sweep
from streamproof.qos.tasks import Cost
from streamproof.qos.verifier import SchedulabilityVerifier
from tests.qos.sets import random_set
from tests.qos.worked import QUERIES, machine

ON = machine("p-qed")
FLOWS = SchedulabilityVerifier(ON).check(QUERIES).flows


def rounded(found, digits: int = 1):  # type: ignore[no-untyped-def]
    return [round(outcome.miss_percent, digits) for outcome in found.values()]


def test_adversarial_arrivals_give_the_numbers_of_the_worked_example() -> None:
    found = simulate(FLOWS, ON, duration=5000)
    assert rounded(found["fifo"]) == [7.5, 14.6, 0]
    assert rounded(found["p-qed"]) == [0, 0, 0]
    delays = [outcome.max_delay for outcome in found["p-qed"].values()]
    assert [round(delays[0], 1), round(delays[1], 1), round(delays[2])] == [4.3, 4.5, 72]
    assert rounded(found["qed"]) == rounded(found["b-qed"])  # there is no plan for batches
    assert min(rounded(found["qed"])[:2]) > 5


def test_a_flood_hurts_only_itself() -> None:
    found = simulate(FLOWS, ON, duration=5000, flood={"Q2": Fraction(2)})  # a load of 1.16
    assert rounded(found["fifo"], 0)[::2] == [100, 80]
    assert rounded(found["p-qed"])[::2] == [0, 0]
    assert found["p-qed"]["Q2"].max_delay > 1000  # it waits for what was reserved


def test_reserved_sets_are_safe_from_any_flood() -> None:
    """Theorem 2: whatever one query sends, the others miss nothing."""
    tried = 0
    for seed in range(150):
        queries, on = random_set(seed, test="reserved")
        verdict = SchedulabilityVerifier(on).check(queries, first=False)
        if not verdict.schedulable:
            continue
        noisy = verdict.flows[0].query
        rate = verdict.flows[0].arrival.buckets[-1][1] * 7
        found = simulate(verdict.flows, on, duration=1500, policies=[on.policy], flood={noisy: rate})[on.policy]
        own = {flow.name: flow.query for flow in verdict.flows}
        assert [name for name, got in found.items() if got.misses and own[name] != noisy] == [], seed
        assert all(got.misses == 0 for got in found.values())  # even the noisy one gets what was reserved
        tried += 1
    assert tried > 30


def test_drawn_costs_stay_mostly_under_their_quantile() -> None:
    costs = {"Q1": Cost(150, deviation=20, quantile="0.99")}
    found = simulate(FLOWS, ON, duration=2000, policies=["p-qed"], costs=costs, seed=3)["p-qed"]
    assert [outcome.misses for outcome in found.values()] == [0, 0, 0]
    assert found == simulate(FLOWS, ON, duration=2000, policies=["p-qed"], costs=costs, seed=3)["p-qed"]


def test_a_sweep_asks_and_simulates_at_every_rate() -> None:
    rates = ["1/4", "1/2", 2]
    steps = sweep(QUERIES, ON, "Q2", rates, duration=500, policies=["fifo", "p-qed"])
    assert [step.rate for step in steps] == [Fraction(rate) for rate in rates]
    assert [step.admitted for step in steps] == [True, True, False]
    for step in steps:
        second = replace(QUERIES[1], service=RateLatency(step.rate, 10)).with_arrival(rate=step.rate)
        flows = SchedulabilityVerifier(ON).check([QUERIES[0], second, QUERIES[2]], first=False).flows
        assert step.outcomes == simulate(flows, ON, duration=500, policies=["fifo", "p-qed"])
        assert step.missed("p-qed") == 0 or not step.admitted
    assert steps[-1].missed("fifo") > steps[0].missed("fifo")


def test_what_would_take_forever_is_refused() -> None:
    with pytest.raises(PlanError, match="window tasks would be cut into more than 20,000,000 pieces"):
        simulate(FLOWS, machine("p-qed", quantum="0.000001"), duration=5000)


def test_unknown_words_are_refused() -> None:
    with pytest.raises(PlanError, match='unknown policy "lifo"'):
        simulate(FLOWS, ON, duration=10, policies=["lifo"])  # type: ignore[list-item]
    with pytest.raises(PlanError, match='unknown arrivals "calm"'):
        simulate(FLOWS, ON, duration=10, arrivals="calm")  # type: ignore[arg-type]
