"""Agreement with the response-time analysis of the package response-time-analysis, which is proven in Coq.

Both apply to sporadic tasks with relative deadlines on one processor under EDF: a task with gap ``p`` and deadline
``d`` is a token bucket of 1 and ``1/p`` under a rate-latency curve of at least that rate whose bound is ``d``.
Time is discrete there, so a section blocks for one tick less than it takes.
"""

from __future__ import annotations

import random
from fractions import Fraction

import pytest
from response_time_analysis import edf
from response_time_analysis.model import (
    WCET,
    ArrivalCurvePrefix,
    Deadline,
    FloatingNonPreemptive,
    FullyNonPreemptive,
    FullyPreemptive,
    IdealProcessor,
    Sporadic,
    Task,
    taskset,
)

from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.demand import Demand
from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Flow

HORIZON = 200_000


def flow(name: str, cost: int, gap: int, deadline: int) -> Flow:
    """Its tasks fall due ``deadline`` after they come."""
    wait = min(gap, deadline)
    return Flow(
        name, name, Fraction(cost), TokenBucket(1, Fraction(1, gap)), RateLatency(Fraction(1, wait), deadline - wait)
    )


def draw_tasks(draw: random.Random) -> list[tuple[int, int, int, int]]:
    """Costs, gaps, deadlines and sections: from easy to hopeless."""
    tasks, load = [], draw.uniform(0.4, 1.0)
    for _ in range(draw.randint(2, 5)):
        gap = draw.randint(8, 60)
        cost = max(1, min(gap, int(gap * load * draw.uniform(0.1, 0.5))))
        deadline = max(cost, int(gap * draw.uniform(0.4, 2.0)))
        tasks.append((cost, gap, deadline, draw.choice([cost, cost, 1, max(1, cost // 2)])))
    return tasks


def theirs(tasks: list[tuple[int, int, int, int]]) -> bool:
    """Whether every response-time bound is within the deadline."""

    def execution(cost: int, section: int) -> FullyPreemptive | FullyNonPreemptive | FloatingNonPreemptive:
        if section == cost:
            return FullyNonPreemptive(WCET(cost))
        return FullyPreemptive(WCET(cost)) if section == 1 else FloatingNonPreemptive(WCET(cost), section)

    known = [Task(Sporadic(gap), execution(cost, section), Deadline(due)) for cost, gap, due, section in tasks]
    for task, (_, _, due, _) in zip(known, tasks, strict=True):
        bound = edf.rta(taskset(*known), task, IdealProcessor(), horizon=HORIZON).response_time_bound
        if bound is None or bound > due:
            return False
    return True


def ours(tasks: list[tuple[int, int, int, int]], *, discrete: bool) -> bool:
    flows = [flow(f"t{n}", cost, gap, due) for n, (cost, gap, due, _) in enumerate(tasks)]
    sections = [Fraction(section - 1 if discrete else section) for *_, section in tasks]
    return Demand(flows, sections, Fraction(1)).search() is None


def compare(seeds: range) -> dict[str, int]:
    found = {"both": 0, "neither": 0, "only theirs": 0}
    for seed in seeds:
        tasks = draw_tasks(random.Random(seed))
        if sum(Fraction(cost, gap) for cost, gap, *_ in tasks) >= 1:
            continue  # their busy window has no bound there
        mine, other = ours(tasks, discrete=True), theirs(tasks)
        assert other or not mine, f"seed {seed}: admitted here, not schedulable there: {tasks}"
        assert mine or not ours(tasks, discrete=False), "a longer section never helps"
        found["both" if mine else "only theirs" if other else "neither"] += 1
    return found


def test_sporadic_tasks_agree_one_by_one() -> None:
    found = compare(range(300))
    assert found["both"] > 60, found
    assert found["neither"] > 30, found
    assert found["only theirs"] == 0, found


@pytest.mark.slow
def test_sporadic_tasks_agree_in_thousands_of_sets() -> None:
    """Theirs also knows that a task in its last section is not interrupted, which once in thousands of sets matters."""
    found = compare(range(300, 5300))
    assert found["only theirs"] <= 2, found
    assert found["both"] > 2000, found


def test_bursts_that_are_admitted_are_schedulable_there() -> None:
    """Bursts as arrival-curve prefixes; every task of a burst falls due by the bound of its flow."""
    admitted = 0
    for seed in range(150):
        draw = random.Random(seed)
        flows, known, dues = [], [], []
        for n in range(draw.randint(2, 4)):
            cost, gap, burst = draw.randint(1, 5), draw.randint(30, 80), draw.randint(1, 4)
            service = RateLatency(Fraction(1, draw.choice([gap, gap // 2])), draw.randint(5, 60))
            made = Flow(f"t{n}", f"t{n}", Fraction(cost), TokenBucket(burst, Fraction(1, gap)), service)
            due = int(-(-made.delay // 1))
            steps = [(1, burst), *((k * gap + 1, burst + k) for k in range(1, 40))]
            known.append(Task(ArrivalCurvePrefix(40 * gap, steps), FullyNonPreemptive(WCET(cost)), Deadline(due)))
            flows.append(made)
            dues.append(due)
        if Demand(flows, [f.cost for f in flows], Fraction(1)).search() is not None:
            continue
        admitted += 1
        for task, due in zip(known, dues, strict=True):
            bound = edf.rta(taskset(*known), task, IdealProcessor(), horizon=HORIZON).response_time_bound
            assert bound is not None, seed
            assert bound <= due, seed
    assert admitted > 30
