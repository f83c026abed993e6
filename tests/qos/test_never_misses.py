"""Whatever is admitted never misses, whatever legal arrivals do; what is refused misses, or the test was careful."""

from __future__ import annotations

from fractions import Fraction
from math import ceil

import pytest

from streamproof.qos.simulate import make_scenario, run_policy
from streamproof.qos.verifier import SchedulabilityVerifier
from tests.qos.sets import random_set

FAST, ALL = 400, 5000


def misses_of(seed: int) -> tuple[bool, str, int]:
    """Whether a set is admitted, by which test, and how many deadlines it misses over several kinds of arrivals."""
    queries, machine = random_set(seed)
    verdict = SchedulabilityVerifier(machine).check(queries, first=False)
    flows, missed = verdict.flows, 0
    longest = max((float(flow.delay) for flow in flows if flow.delay < float("inf")), default=100.0)
    duration = Fraction(int(min(4000, 400 + 4 * longest)))
    scenarios = [
        make_scenario(flows, machine, duration=duration, blocker=blocker) for blocker in range(min(3, len(flows)))
    ]
    scenarios += [make_scenario(flows, machine, duration=duration, arrivals="random", seed=seed + n) for n in range(2)]
    for scenario in scenarios:
        assert scenario.grid.exact
        outcomes = run_policy(scenario, machine, machine.policy)
        missed += sum(outcome.misses for outcome in outcomes.values())
        if verdict.schedulable:
            for flow, outcome in zip(flows, outcomes.values(), strict=True):
                assert outcome.max_delay <= flow.delay, (seed, flow.name)
                assert outcome.max_backlog <= ceil(flow.backlog), (seed, flow.name)
    return verdict.schedulable, verdict.test, missed


def check(seeds: range) -> dict[str, int]:
    found = {"reserved": 0, "policed": 0, "refused with a miss": 0, "refused without": 0}
    for seed in seeds:
        admitted, test, missed = misses_of(seed)
        if admitted:
            assert missed == 0, f"seed {seed}: admitted by the {test} test, and {missed} deadlines missed"
            found[test] += 1
        else:
            found["refused with a miss" if missed else "refused without"] += 1
    return found


def test_what_is_admitted_never_misses() -> None:
    found = check(range(FAST))
    assert found["reserved"] > 40 and found["policed"] > 40, found  # noqa: PT018
    assert found["refused with a miss"] > 40, found


@pytest.mark.slow
def test_what_is_admitted_never_misses_in_thousands_of_sets() -> None:
    found = check(range(FAST, FAST + ALL))
    print(found)
    assert min(found.values()) > 300, found
