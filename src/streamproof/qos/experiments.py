"""The paper's experiments: what policies do to three queries that fit, that do not, that flood, or that grow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from streamproof.qos.admission import admit
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.exact import Exact, exact
from streamproof.qos.service import RateLatency
from streamproof.qos.simulate import POLICIES, AnyPolicy, Outcome, simulate
from streamproof.qos.tasks import Query
from streamproof.qos.verifier import Machine, SchedulabilityVerifier


@dataclass(frozen=True)
class Step:
    """One rate of a sweep: whether all queries are admitted, and what every policy does to them."""

    rate: Fraction
    admitted: bool
    outcomes: dict[str, dict[str, Outcome]]

    def missed(self, policy: str) -> float:
        """The share of all tasks that miss their deadlines, in percent."""
        found = self.outcomes[policy].values()
        return 100 * sum(got.misses for got in found) / max(1, sum(got.tasks for got in found))


def sweep(
    queries: Sequence[Query],
    machine: Machine,
    name: str,
    rates: Sequence[Exact],
    *,
    duration: Exact = 5000,
    policies: Sequence[AnyPolicy] = POLICIES,
) -> list[Step]:
    """Let one query send, and reserve, more and more."""
    found = []
    for value in map(exact, rates):
        changed = [_with_rate(query, value) if query.name == name else query for query in queries]
        flows = SchedulabilityVerifier(machine).check(changed, first=False).flows
        admitted = all(decision.admitted for decision in admit(changed, machine))
        found.append(Step(value, admitted, simulate(flows, machine, duration=duration, policies=policies)))
    return found


def _with_rate(query: Query, rate: Fraction) -> Query:
    """The query with another rate, of its arrivals and of its service."""
    assert isinstance(query.service, RateLatency)
    first = query.inputs[0]
    bucket = TokenBucket(first.arrival.buckets[-1][0], rate)
    service = RateLatency(rate, query.service.latency)
    return replace(query, inputs=(replace(first, arrival=bucket), *query.inputs[1:]), service=service)
