"""The worked example: three queries on a machine of 1000 operations per millisecond."""

from __future__ import annotations

from fractions import Fraction

from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Cost, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, Policy, Test

QUERIES = (
    QosQuery("Q1", (QueryInput(Cost(200), TokenBucket(10, 1)),), service=RateLatency(1, 20)),
    QosQuery("Q2", (QueryInput(Cost(400), TokenBucket(5, "1/2")),), service=RateLatency("1/2", 10)),
    QosQuery("Q3", (QueryInput(Cost(40_000), TokenBucket(1, "1/250")),), "window", service=RateLatency("1/150", 50)),
)


def machine(policy: Policy, *, test: Test = "reserved", quantum: str = "0.5") -> Machine:
    return Machine.of(1000, policy=policy, quantum_ms=Fraction(quantum), test=test)
