"""A configuration studied: admission, bounds, curves to draw, and the simulation, as one result.

The experiments of the paper are here too: what policies do to three queries that fit, that do not, flood, or grow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import isfinite

from streamproof.pictures.service_curves import CurvePair
from streamproof.qos.admission import Admitted, Decision, admit
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.batching import plan_batches
from streamproof.qos.config import Config
from streamproof.qos.exact import Exact, exact, rounded, shown, shown_ms
from streamproof.qos.service import RateLatency
from streamproof.qos.simulate import POLICIES, AnyPolicy, Outcome, simulate
from streamproof.qos.tasks import Flow, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, SchedulabilityVerifier, slack

MOST_PANELS = 24  # queries that are drawn


@dataclass(frozen=True)
class Study:
    """What was found about a configuration. ``flows`` are all queries, those that were refused too."""

    config: Config
    decisions: tuple[Decision, ...]
    flows: tuple[Flow, ...]
    simulation: dict[str, dict[str, Outcome]] | None

    @property
    def load(self) -> Fraction:
        """The share of the machine that arrivals need in the long run."""
        work = sum((flow.cost * flow.arrival.buckets[-1][1] for flow in self.flows), Fraction(0))
        return work / self.config.machine.capacity

    @property
    def reserved(self) -> Fraction:
        """The share of the machine that service curves reserve."""
        rates = sum((flow.cost * flow.service.curve.rate for flow in self.flows), Fraction(0))
        return rates / self.config.machine.capacity

    def facts(self) -> Iterator[tuple[str, str]]:
        """The whole set in numbers."""
        machine = self.config.machine
        yield "load", f"{float(self.load):.3f}"
        yield "reserved", f"{float(self.reserved):.3f}"
        if not all(decision.admitted for decision in self.decisions):
            return
        yield "slack", shown_ms(slack(self.flows, machine))
        plan = plan_batches(self.flows, machine) if machine.policy != "qed" else None
        if plan is not None:
            yield "rates raised by", shown(plan.factor)
            yield "longest batch", shown_ms(plan.longest / machine.capacity)
            yield "tasks in a batch", ", ".join(f"{f.name} {n}" for f, n in zip(self.flows, plan.sizes, strict=True))

    def as_dict(self) -> dict[str, object]:
        """Everything, as ``--json`` prints it."""
        machine, found = self.config.machine, all(decision.admitted for decision in self.decisions)
        plan = plan_batches(self.flows, machine) if found and machine.policy != "qed" else None
        return {
            "policy": machine.policy,
            "load": rounded(self.load),
            "reserved": rounded(self.reserved),
            "slack_ms": rounded(slack(self.flows, machine)) if found else None,
            "batches": None if plan is None else {
                "factor": rounded(plan.factor),
                "longest_ms": rounded(plan.longest / machine.capacity),
                "sizes": dict(zip([flow.name for flow in self.flows], plan.sizes, strict=True)),
            },
            "queries": [decision.as_dict() for decision in self.decisions],
            "simulation": None if self.simulation is None else {
                policy: {name: got.as_dict() for name, got in outcomes.items()}
                for policy, outcomes in self.simulation.items()
            },
        }  # fmt: skip

    def curves(self) -> list[CurvePair]:
        """The curves of the first queries, as points."""
        admitted = {d.query.name for d in self.decisions if isinstance(d, Admitted)}
        return [_pair(flow, "" if flow.query in admitted else "(refused)") for flow in self.flows[:MOST_PANELS]]


def _pair(flow: Flow, remark: str) -> CurvePair:
    """A flow drawn until its service has caught up with its burst, and a little more."""
    delay = float(flow.delay)
    latency = float(flow.service.latency) if isinstance(flow.service, RateLatency) else 0.0
    until = Fraction(max(1.0, 1.6 * delay if isfinite(delay) else 10 * max(latency, 1.0))).limit_denominator(1000)
    arrival, service = flow.arrival.curve.corners(until), flow.service.curve.corners(until)
    return CurvePair(flow.name, arrival, service, delay, float(flow.backlog), remark)


def study(config: Config) -> Study:
    """Admission and, where it is asked for, simulation of the whole set."""
    machine, asked = config.machine, config.simulate
    decisions = admit(config.queries, machine)
    flows = SchedulabilityVerifier(machine).check(config.queries, first=False).flows
    simulation = None
    if asked is not None:
        costs = {flow.name: part.cost for flow, part in zip(flows, _parts(config), strict=True)}
        simulation = simulate(
            flows, machine, duration=asked.duration, arrivals=asked.arrivals, policies=asked.policies,
            seed=asked.seed, flood=asked.flood, costs=costs,
        )  # fmt: skip
    return Study(config, tuple(decisions), flows, simulation)


def _parts(config: Config) -> Iterator[QueryInput]:
    return (part for query in config.queries for part in query.inputs)


@dataclass(frozen=True)
class SweepStep:
    """One rate of a sweep: whether all queries are admitted, and what every policy does to them."""

    rate: Fraction
    admitted: bool
    outcomes: dict[str, dict[str, Outcome]]

    def missed(self, policy: str) -> float:
        """The share of all tasks that miss their deadlines, in percent."""
        found = self.outcomes[policy].values()
        return 100 * sum(got.misses for got in found) / max(1, sum(got.tasks for got in found))


def sweep(
    queries: Sequence[QosQuery],
    machine: Machine,
    name: str,
    rates: Sequence[Exact],
    *,
    duration: Exact = 5000,
    policies: Sequence[AnyPolicy] = POLICIES,
) -> list[SweepStep]:
    """Let one query send, and reserve, more and more."""
    found = []
    for value in map(exact, rates):
        changed = [_with_rate(query, value) if query.name == name else query for query in queries]
        flows = SchedulabilityVerifier(machine).check(changed, first=False).flows
        admitted = all(decision.admitted for decision in admit(changed, machine))
        found.append(SweepStep(value, admitted, simulate(flows, machine, duration=duration, policies=policies)))
    return found


def _with_rate(query: QosQuery, rate: Fraction) -> QosQuery:
    """The query with another rate, of its arrivals and of its service."""
    assert isinstance(query.service, RateLatency)
    first = query.inputs[0]
    bucket = TokenBucket(first.arrival.buckets[-1][0], rate)
    service = RateLatency(rate, query.service.latency)
    return replace(query, inputs=(replace(first, arrival=bucket), *query.inputs[1:]), service=service)
