"""The Schedulability Verifier: which queries may run, by which test, and with which bounds.

Two tests. *reserved* (Theorem 2): every query has its service curve reserved, whatever the others send; it also keeps
the others safe from one that misbehaves. *policed*: only what the declared arrivals can demand is counted; sharper, but
it holds only as long as inputs keep their curves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, get_args

from streamproof.errors import PlanError, did_you_mean
from streamproof.qos.demand import MARGIN, Demand, DemandViolation
from streamproof.qos.exact import Exact, positive
from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Flow, QosQuery

Policy = Literal["qed", "b-qed", "p-qed"]
Test = Literal["reserved", "policed"]


@dataclass(frozen=True)
class Machine:
    """What runs the tasks: operations per millisecond, the policy, the quantum of window tasks in operations."""

    capacity: Fraction
    policy: Policy = "p-qed"
    quantum: Fraction | None = None
    test: Test = "reserved"

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            fix = did_you_mean(self.policy, get_args(Policy))
            raise PlanError(f'unknown policy "{self.policy}"', at="scheduler.policy", fix=fix)
        if self.test not in get_args(Test):
            fix = did_you_mean(self.test, get_args(Test))
            raise PlanError(f'unknown test "{self.test}"', at="scheduler.test", fix=fix)
        positive(self.capacity, "the capacity", at="capacity.ops_per_ms")
        if self.quantum is not None:
            positive(self.quantum, "the quantum", at="scheduler.quantum_ms")

    @staticmethod
    def of(
        ops_per_ms: Exact, *, policy: Policy = "p-qed", quantum_ms: Exact | None = None, test: Test = "reserved"
    ) -> Machine:
        """A machine from its configuration; the quantum is a time."""
        capacity = positive(ops_per_ms, "the capacity", at="capacity.ops_per_ms")
        quantum = None
        if quantum_ms is not None:
            quantum = positive(quantum_ms, "the quantum", at="scheduler.quantum_ms") * capacity
        return Machine(capacity, policy, quantum, test)

    @property
    def cut(self) -> Fraction | None:
        """The length at which window tasks are cut, where the policy cuts them."""
        return self.quantum if self.policy == "p-qed" else None

    def sections(self, flows: Sequence[Flow]) -> list[Fraction]:
        """The longest uninterrupted work of every flow, in operations."""
        return [flow.section(self.cut) for flow in flows]


@dataclass(frozen=True)
class Schedulability:
    """What a test found: the flows with their curves, and the violation where there is one."""

    flows: tuple[Flow, ...]
    test: Test  # which admitted, or the last that refused
    violation: DemandViolation | None

    @property
    def schedulable(self) -> bool:
        return self.violation is None


class SchedulabilityVerifier:
    """Decides whether a set of queries can be guaranteed on a machine."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self._flows: dict[
            tuple[Fraction, bool], dict[int, tuple[QosQuery, list[Flow]]]
        ] = {}  # by id; the query keeps it

    def flows(self, queries: Sequence[QosQuery], blocking: Fraction, *, late: bool = False) -> list[Flow]:
        """The flows of queries, made once for each time of blocking."""
        known = self._flows.setdefault((blocking, late), {})
        found: list[Flow] = []
        for query in queries:
            if id(query) not in known:
                known[id(query)] = (query, query.flows(blocking, late=late))
            found += known[id(query)][1]
        return found

    def beside(self, accepted: Sequence[QosQuery]) -> Beside:
        """Those that run already, summed up: one more is checked against the sum."""
        return Beside(self, list(accepted))

    def check(self, queries: Sequence[QosQuery], *, first: bool = True) -> Schedulability:
        """The verdict on a whole set. ``first`` False saves the search for the first of several violations."""
        blocking = self.blocking(queries)
        flows = self.flows(queries, blocking)
        if self.machine.test == "reserved" or self._is_reserved(flows):
            return Schedulability(tuple(flows), "reserved", self._reserved(flows))
        flows = self.flows(queries, blocking, late=True)
        return Schedulability(tuple(flows), "policed", self._policed(flows, first=first))

    def blocking(self, queries: Sequence[QosQuery]) -> Fraction:
        """``δ / C``: the longest time for which nothing can be interrupted, in milliseconds."""
        cut = self.machine.cut
        longest = Fraction(0)
        for query in queries:
            for part in query.inputs:
                cost = part.cost.declared
                longest = max(longest, min(cost, cut) if query.task == "window" and cut is not None else cost)
        return longest / self.machine.capacity

    def _policed(self, flows: Sequence[Flow], *, first: bool) -> DemandViolation | None:
        demand = Demand(flows, self.machine.sections(flows), self.machine.capacity)
        found = demand.search(anywhere=not first)
        return found if found is None or not first else demand.first(found)

    def _is_reserved(self, flows: Sequence[Flow]) -> bool:
        """Theorem 2 without its reasons: mostly floating point says so."""
        services = [flow.service for flow in flows if isinstance(flow.service, RateLatency)]
        if len(services) == len(flows):
            needed = sum(flow.floats.cost * flow.floats.rate for flow in flows)
            if needed > float(self.machine.capacity) * (1 + MARGIN):
                return False
        return self._reserved(flows) is None

    def _reserved(self, flows: Sequence[Flow]) -> DemandViolation | None:
        sections = self.machine.sections(flows)
        if not flows:
            return None
        longest = max(range(len(flows)), key=lambda n: sections[n])
        if all(isinstance(flow.service, RateLatency) for flow in flows):
            return _lines(flows, sections[longest], flows[longest].name, self.machine.capacity)
        return _curves(flows, sections[longest], flows[longest].name, self.machine.capacity)


class Beside:
    """Admitted queries as sums, so that one more query is mostly decided without looking at them again."""

    def __init__(self, verifier: SchedulabilityVerifier, accepted: list[QosQuery]) -> None:
        self.verifier, self.accepted = verifier, accepted
        self.blocking = verifier.blocking(accepted)
        self._needed, self._latency, self._load = self._sums(accepted, self.blocking)

    def _sums(
        self, queries: Sequence[QosQuery], blocking: Fraction
    ) -> tuple[Fraction | None, Fraction | None, Fraction]:
        """Reserved operations per ms and the least latency (None without closed forms), and the load."""
        flows = self.verifier.flows(queries, blocking)
        load = sum((flow.cost * flow.arrival.buckets[-1][1] for flow in flows), Fraction(0))
        services = [(flow.cost, flow.service) for flow in flows if isinstance(flow.service, RateLatency)]
        if len(services) < len(flows):
            return None, None, load
        needed = sum((cost * service.rate for cost, service in services), Fraction(0))
        return needed, min((service.latency for _, service in services), default=None), load

    def fits(self, query: QosQuery) -> bool:
        """Whether one more query can be admitted."""
        capacity = self.verifier.machine.capacity
        longest = self.verifier.blocking([query])
        if longest <= self.blocking:  # what was promised to the others stays as it is
            needed, latency, load = self._sums([query], self.blocking)
            if self._load + load > capacity:
                return False
            if needed is not None and self._needed is not None and latency is not None:
                first = latency if self._latency is None else min(latency, self._latency)
                reserved = self._needed + needed <= capacity and first >= self.blocking
                if reserved or self.verifier.machine.test == "reserved":
                    return reserved
        return self.verifier.check([*self.accepted, query], first=False).schedulable

    def add(self, query: QosQuery) -> None:
        """One more is admitted."""
        self.accepted.append(query)
        longest = max(self.blocking, self.verifier.blocking([query]))
        if longest > self.blocking or self._needed is None:
            self.blocking = longest
            self._needed, self._latency, self._load = self._sums(self.accepted, longest)
            return
        needed, latency, load = self._sums([query], self.blocking)
        self._load += load
        self._needed = None if needed is None else self._needed + needed
        if latency is not None:
            self._latency = latency if self._latency is None else min(latency, self._latency)


def _lines(flows: Sequence[Flow], section: Fraction, blocker: str, capacity: Fraction) -> DemandViolation | None:
    """Theorem 2 for rate-latency curves: ``T_i >= δ / C`` for all, and ``Σ c_i R_i <= C``."""
    blocking = section / capacity
    services = [(flow, flow.service) for flow in flows if isinstance(flow.service, RateLatency)]
    early = sorted(s.latency + 1 / s.rate for _, s in services if s.latency < blocking)
    for time in early:  # where a whole task falls due too soon
        found = _violation(flows, time, blocking, blocker, capacity, whole=True)
        if found.excess > 0:
            return found
    if early:
        return _violation(flows, blocking, blocking, blocker, capacity, whole=False)
    needed = sum((flow.cost * service.rate for flow, service in services), Fraction(0))
    if needed <= capacity:
        return None
    base = sum((flow.cost * service.rate * service.latency for flow, service in services), Fraction(0))
    crossing = (base - section) / (needed - capacity)
    time = max(crossing, *(service.latency for _, service in services)) + 1
    return _violation(flows, time, blocking, blocker, capacity, whole=False)


def _curves(flows: Sequence[Flow], section: Fraction, blocker: str, capacity: Fraction) -> DemandViolation | None:
    """Theorem 2 for any curves: at every breakpoint of their sum, and in the long run."""
    blocking = section / capacity
    total = flows[0].service.curve.times(flows[0].cost)
    for flow in flows[1:]:
        total += flow.service.curve.times(flow.cost)
    times = sorted({blocking, *(x for x in total.breakpoints if x >= blocking)})
    if total.rate > capacity:
        last = times[-1]
        times.append(last + max(Fraction(1), (capacity * last - total.after(last)) / (total.rate - capacity) + 1))
    for time in times:
        if total.after(time) + section > capacity * time or (time == blocking and total.before(time) > 0):
            return _violation(flows, time, blocking, blocker, capacity, whole=False)
    return None


def _violation(
    flows: Sequence[Flow], time: Fraction, blocking: Fraction, blocker: str, capacity: Fraction, *, whole: bool
) -> DemandViolation:
    demand: dict[str, Fraction] = {}
    for flow in flows:
        due = flow.service.curve.after(time)
        demand[flow.name] = (Fraction(int(due)) if whole else due) * flow.cost / capacity
    return DemandViolation(time, demand, blocking, blocker, capacity)


def slack(flows: Sequence[Flow], machine: Machine) -> Fraction:
    """The least time that is left at a step, over the first steps of all flows: how near a set is to refusal."""
    demand = Demand(flows, machine.sections(flows), machine.capacity)
    blocking = max(demand.sections, default=Fraction(0))
    times = {flow.service.time_for(n) for flow in flows for n in (1, 2, 3)}
    due = {time: sum((w * int(f.service.curve(time)) for f, w in zip(flows, demand.work, strict=True)), Fraction(0))
           for time in times}  # fmt: skip
    return min((time - work - blocking for time, work in due.items()), default=Fraction(0))


def with_capacity(machine: Machine, capacity: Fraction) -> Machine:
    """A faster or slower machine whose quantum takes as long."""
    quantum = None if machine.quantum is None else machine.quantum * capacity / machine.capacity
    return replace(machine, capacity=capacity, quantum=quantum)
