"""Random sets of queries, on a grid on which every time is a whole number of ticks."""

from __future__ import annotations

import random
from fractions import Fraction
from typing import Literal

from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.service import QoS, RateLatency
from streamproof.qos.tasks import Cost, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, Policy, Test

CAPACITY = Fraction(100)


def random_query(draw: random.Random, name: str, load: Fraction) -> QosQuery:
    """A query that needs about so much of the machine: tuples, windows, bursts, peaks, several inputs, wishes."""
    window = draw.random() < 0.3
    parts = []
    for number in range(2 if draw.random() < 0.15 else 1):
        cost = draw.randint(500, 4000) if window else draw.randint(10, 300)
        gap = max(1, int(cost / (load * CAPACITY)))  # ms between tasks
        rate = Fraction(1, gap)
        burst = draw.choice([1, 1, 2, 3, Fraction(5, 2), 8])
        peak = rate * draw.randint(2, 5) if draw.random() < 0.3 else None
        parts.append(QueryInput(Cost(cost), TokenBucket(burst, rate, peak=peak), f"in{number}"))
    slowest = max(Fraction(1) / part.arrival.buckets[-1][1] for part in parts)
    if draw.random() < 0.4:
        longest = int(draw.choice([2, 5, 10, 20]) * slowest) + draw.randint(1, 60)
        return QosQuery(name, tuple(parts), "window" if window else "basic", qos=QoS(Fraction(longest)))
    fastest = max(part.arrival.buckets[-1][1] for part in parts)
    service = RateLatency(fastest * draw.choice([1, 1, Fraction(3, 2), 2]), draw.randint(1, 100))
    return QosQuery(name, tuple(parts), "window" if window else "basic", service=service)


def random_set(seed: int, *, test: Test | None = None, policy: Policy | None = None) -> tuple[list[QosQuery], Machine]:
    """Some queries and a machine that is loaded between a third and a little more than it can do."""
    draw = random.Random(seed)
    count = draw.randint(2, 6)
    total = Fraction(draw.randint(30, 105), 100)
    shares = [draw.random() + 0.1 for _ in range(count)]
    queries = [
        random_query(draw, f"Q{n}", total * Fraction(share / sum(shares)).limit_denominator(1000))
        for n, share in enumerate(shares)
    ]
    policies: tuple[Policy, ...] = ("qed", "b-qed", "p-qed")
    tests: tuple[Literal["reserved", "policed"], ...] = ("reserved", "policed")
    quantum = Fraction(draw.choice([2, 5, 10]))
    machine = Machine.of(
        CAPACITY, policy=policy or draw.choice(policies), quantum_ms=quantum, test=test or draw.choice(tests)
    )
    return queries, machine
