"""Admission of micro-batches: its formula, and batches in virtual time that never miss once admitted."""

from __future__ import annotations

import random
from fractions import Fraction
from heapq import heappop, heappush

import pytest

from streamproof.errors import PlanError
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.costs import PushCost
from streamproof.qos.spark_admission import MicroBatches, admit_batches, plan_triggers


def random_flow(draw: random.Random, name: str) -> MicroBatches:
    period = draw.choice([100, 200, 250, 400])
    return MicroBatches(
        name,
        TokenBucket(draw.randint(1, 50), Fraction(draw.randint(1, 20), 100)),
        period=period,
        latency=int(period * draw.choice([1.5, 2, 3, 5])),
        batch_ms=draw.randint(5, 60),
        row_ms=Fraction(draw.randint(0, 40), 100),
    )


def longest_delays(flows: list[MicroBatches], share: Fraction, offsets: list[int], until: int) -> dict[str, float]:
    """Greedy rows, a batch every period with all that has come, earliest deadline first, one at a time."""
    releases = []  # when, which flow, its deadline, cost, and when its oldest row came
    for number, flow in enumerate(flows):
        taken, time, rows = 0, Fraction(offsets[number]), []
        while (came := flow.arrival.moment(len(rows) + 1)) < until:
            rows.append(came)
        while time < until:
            here = sum(1 for came in rows[taken:] if came <= time)
            cost = (flow.batch_ms + flow.row_ms * here) / share
            oldest = rows[taken] if here else None
            releases.append((time, number, time + flow.latency - flow.period, cost, oldest))
            taken, time = taken + here, time + flow.period
    releases.sort()
    now, position, waiting = Fraction(0), 0, []
    longest = dict.fromkeys((flow.name for flow in flows), 0.0)
    while position < len(releases) or waiting:
        while position < len(releases) and releases[position][0] <= now:
            _, number, due, cost, oldest = releases[position]
            heappush(waiting, (due, position, number, cost, oldest))
            position += 1
        if not waiting:
            now = releases[position][0]
            continue
        _, _, number, cost, oldest = heappop(waiting)
        now += cost
        if oldest is not None:
            name = flows[number].name
            longest[name] = max(longest[name], float(now - oldest))
    return longest


def test_admitted_micro_batches_keep_their_latencies() -> None:
    admitted = 0
    for seed in range(200):
        draw = random.Random(seed)
        flows = [random_flow(draw, f"q{n}") for n in range(draw.randint(1, 3))]
        share = Fraction(draw.choice([80, 100]), 100)
        if not admit_batches(flows, share=share).admitted:
            continue
        admitted += 1
        for offsets in ([0] * 3, [draw.randint(1, 99) for _ in range(3)]):
            found = longest_delays(flows, share, offsets, 1500)
            assert all(found[flow.name] <= flow.latency for flow in flows), seed
    assert admitted > 25


def overrun(flows: list[MicroBatches], share: Fraction, until: int) -> Fraction | None:
    """The first time at which demand and blocking exceed the supply, by the formula at every whole batch and row."""
    steps = set()
    for flow in flows:
        due = flow.latency - flow.period
        steps |= {due + n * flow.period for n in range(until // int(flow.period) + 1)}
        rows = range(int(flow.arrival.burst), int(flow.arrival.burst + flow.arrival.rate * until) + 1)
        steps |= {max(due, (row - flow.arrival.burst) / flow.arrival.rate + due - flow.period) for row in rows}
    for time in sorted(step for step in steps if step <= until):
        work = max((flow.longest for flow in flows if flow.latency - flow.period > time), default=Fraction(0))
        for flow in flows:
            since = time - flow.latency + flow.period
            if since >= 0:
                rows = int(flow.arrival.burst + flow.arrival.rate * (since + flow.period))
                work += flow.batch_ms * (since // flow.period + 1) + flow.row_ms * rows
        if work > share * time:
            return time
    return None


def test_what_is_admitted_is_what_the_formula_says_at_every_time() -> None:
    found = {"admitted": 0, "refused": 0}
    for seed in range(120):
        draw = random.Random(seed)
        flows, share = (
            [random_flow(draw, f"q{n}") for n in range(draw.randint(1, 3))],
            Fraction(draw.choice([50, 100]), 100),
        )
        verdict, wrong = admit_batches(flows, share=share), overrun(flows, share, 2000)
        if verdict.violation is None:
            assert wrong is None, seed
        elif sum(flow.load for flow in flows) < share and verdict.violation.at <= 2000:
            assert verdict.violation.at == wrong, seed
        found["admitted" if verdict.admitted else "refused"] += 1
    assert min(found.values()) > 20, found


def test_the_formula_by_hand() -> None:
    flow = MicroBatches("a", TokenBucket(10, "1/10"), period=100, latency=300, batch_ms=20, row_ms=1)
    assert (flow.rows_per_trigger, flow.longest) == (20, 40)
    assert flow.demand(Fraction(199)) == 0
    assert flow.demand(Fraction(200)) == 20 * (0 + 1) + 1 * 20  # α(100) rows
    assert flow.demand(Fraction(300)) == 20 * 2 + 30
    assert flow.load == Fraction(3, 10)


def test_a_refusal_says_what_would_help() -> None:
    calm = MicroBatches("calm", TokenBucket(10, "1/10"), period=1000, latency=6000, batch_ms=1500, row_ms=1)
    tight = MicroBatches("tight", TokenBucket(10, "1/10"), period=400, latency=900, batch_ms=100, row_ms=1)
    verdict = admit_batches([calm, tight])
    assert not verdict.admitted
    calm = MicroBatches("calm", TokenBucket(10, "1/10"), period=3000, latency=9000, batch_ms=800, row_ms=1)
    verdict = admit_batches([calm, tight])
    assert verdict.text.startswith(
        "tight wants 900 ms: at 500 ms the demand of 150 ms plus 1.11 s of blocking by `calm`"
    )
    least = verdict.remedies()["latency_ms"]
    assert admit_batches([calm, tight.with_latency(Fraction(str(least)))]).admitted


def test_triggers_are_as_rare_as_they_can_be() -> None:
    cost = PushCost(100.0, 0.1)
    found = plan_triggers("a", TokenBucket(100, "1/10"), "2 s", cost, others=())
    assert found.admitted
    assert found.flows[0].period == 1000
    beside = plan_triggers("b", TokenBucket(100, "1/10"), "1 s", cost, others=found.flows)
    assert beside.admitted
    assert beside.flows[1].rows_per_trigger == int(100 + beside.flows[1].period / 10)
    hopeless = plan_triggers("c", TokenBucket(100, "1/10"), "150 ms", cost, others=beside.flows)
    assert not hopeless.admitted


def test_nonsense_is_refused() -> None:
    with pytest.raises(PlanError, match="a latency of 100 ms cannot be kept with a trigger every 100 ms"):
        MicroBatches("a", TokenBucket(1, 1), period=100, latency=100, batch_ms=1, row_ms=0)
    with pytest.raises(PlanError, match="a cost must be positive, got 0"):
        MicroBatches("a", TokenBucket(1, 1), period=100, latency=200, batch_ms=0, row_ms=0)
