"""Admission: every query in turn is admitted with its bounds, or refused with the reason and the remedies.

>>> from streamproof.qos.arrivals import TokenBucket
>>> from streamproof.qos.service import QoS
>>> from streamproof.qos.tasks import Cost, QueryInput
>>> machine = Machine.of(1000, policy="qed")
>>> slow = QosQuery("hourly", (QueryInput(Cost(980_000), TokenBucket(1, "1/3600000")),), "window", qos=QoS("1 hour"))
>>> fast = QosQuery("alerts", (QueryInput(Cost(150_000), TokenBucket(1, "1/2000")),), qos=QoS("1 s"))
>>> print(admit([slow, fast], machine)[1].text)  # doctest: +ELLIPSIS
alerts wants 1 s: at 1 s the demand of 150 ms plus 980 ms of blocking by `hourly` exceeds the supply by 130 ms; ...
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final, TypeAlias

from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.batching import BatchPlan, plan_batches
from streamproof.qos.demand import DemandViolation
from streamproof.qos.exact import rounded, shown, shown_ms
from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Flow, QosQuery
from streamproof.qos.verifier import Machine, Schedulability, SchedulabilityVerifier, Test, with_capacity

CLOSE: Final = Fraction(1, 500)  # bisection ends when both ends differ by this share
FARTHEST: Final = 2**24  # how much a value is stretched before a remedy is given up


@dataclass(frozen=True)
class Admitted:
    """A query that runs, and what it is promised. Times are milliseconds."""

    query: QosQuery
    flows: tuple[Flow, ...]
    test: Test
    plan: BatchPlan | None
    admitted: bool = True

    @property
    def delay_bound(self) -> Fraction | float:
        return max(flow.delay for flow in self.flows)

    @property
    def backlog_bound(self) -> Fraction | float:
        return sum(flow.backlog for flow in self.flows)

    @property
    def text(self) -> str:
        bounds = f"delay at most {shown_ms(self.delay_bound)}, backlog at most {shown(self.backlog_bound)}"
        return f"{self.query.name} is admitted ({self.test}): {bounds}"

    def as_dict(self) -> dict[str, object]:
        return {
            "name": self.query.name,
            "admitted": True,
            "test": self.test,
            "delay_bound_ms": rounded(self.delay_bound),
            "backlog_bound": rounded(self.backlog_bound),
            **_quantiles(self.query),
        }


@dataclass(frozen=True)
class Refused:
    """A query that does not run: where it does not fit, who is in the way, and what would help."""

    query: QosQuery
    accepted: tuple[QosQuery, ...]  # those it would have run beside
    machine: Machine
    admitted: bool = False

    @cached_property
    def violation(self) -> DemandViolation | None:
        """Where it does not fit; None where its wish contradicts itself."""
        if _contradiction(self.query) is not None:
            return None
        return SchedulabilityVerifier(self.machine).check([*self.accepted, self.query]).violation

    @cached_property
    def remedies(self) -> dict[str, object]:
        """What would let it in, each change alone, found by bisection when it is first asked for."""
        if _contradiction(self.query) is not None:
            return {"max_backlog": rounded(_least_backlog(self.query))}
        return _remedies(self.query, self.accepted, self.machine)

    @cached_property
    def text(self) -> str:
        """The refusal for people."""
        contradiction = _contradiction(self.query)
        if contradiction is not None or self.violation is None:
            return contradiction or f"{self.query.name} is refused"
        return _text(self.query, self.violation, self.remedies)

    def as_dict(self) -> dict[str, object]:
        found = self.violation
        where: dict[str, object] = {"at_ms": None, "demand": {}, "blocker": None}
        if found is not None:
            where = {
                "at_ms": rounded(found.at),
                "demand": {name: rounded(work) for name, work in found.demand.items()},
                "demand_ms": rounded(found.total),
                "blocker": found.blocker,
                "blocking_ms": rounded(found.blocking),
                "excess_ms": rounded(found.excess),
            }
        bounds = {"delay_bound_ms": None, "backlog_bound": None}
        head = {"name": self.query.name, "admitted": False, **bounds}
        return {**head, **where, "remedies": self.remedies, "reason": self.text, **_quantiles(self.query)}


Decision: TypeAlias = Admitted | Refused


def _quantiles(query: QosQuery) -> dict[str, object]:
    stated = {part.name or query.name: part.cost for part in query.inputs if part.cost.quantile is not None}
    if not stated:
        return {}
    return {
        "cost": {
            name: {"quantile": rounded(cost.quantile), "ops": rounded(cost.declared)} for name, cost in stated.items()
        }
    }


# --- the whole set ----------------------------------------------------------------------------------------------------


def admit(queries: Sequence[QosQuery], machine: Machine) -> list[Decision]:
    """Every query in turn: admitted if it fits beside those admitted before it."""
    verifier = SchedulabilityVerifier(machine)
    refused: dict[int, Refused] = {}
    accepted = list(queries)
    if not _fit_together(accepted, verifier):
        beside = verifier.beside([])
        for number, query in enumerate(queries):
            if _contradiction(query) is None and beside.fits(query):
                beside.add(query)
            else:
                refused[number] = refuse(query, list(beside.accepted), machine)
        accepted = beside.accepted
    verdict = verifier.check(accepted)
    plan = plan_batches(verdict.flows, machine) if machine.policy != "qed" and accepted else None
    admitted = iter(_promises(accepted, verdict, plan))
    return [refused[n] if n in refused else next(admitted) for n in range(len(queries))]


def _promises(accepted: Sequence[QosQuery], verdict: Schedulability, plan: BatchPlan | None) -> Iterator[Admitted]:
    flows = list(verdict.flows)
    for query in accepted:
        own, flows = flows[: len(query.inputs)], flows[len(query.inputs) :]
        yield Admitted(query, tuple(own), verdict.test, plan)


def _fit_together(queries: Sequence[QosQuery], verifier: SchedulabilityVerifier) -> bool:
    if any(_contradiction(query) for query in queries):
        return False
    return verifier.check(queries, first=False).schedulable


def _contradiction(query: QosQuery) -> str | None:
    """A wish that no machine can keep."""
    wish = query.qos
    if wish is None or wish.backlog is None:
        return None
    bursts = sum((part.arrival.buckets[-1][0] for part in query.inputs), Fraction(0))
    if wish.backlog >= bursts:
        return None
    return (
        f"{query.name} wants a backlog of at most {shown(wish.backlog)}, but {shown(bursts)} may come at once; "
        f"a backlog of {shown(_least_backlog(query))} is the least that can be kept"
    )


def _least_backlog(query: QosQuery) -> Fraction:
    bursts = sum((part.arrival.buckets[-1][0] for part in query.inputs), Fraction(0))
    return Fraction(-int(-bursts // 1))


# --- refusals ---------------------------------------------------------------------------------------------------------


def refuse(query: QosQuery, accepted: Sequence[QosQuery], machine: Machine) -> Refused:
    """The refusal of a query that does not fit beside others."""
    return Refused(query, tuple(accepted), machine)


def _text(query: QosQuery, found: DemandViolation, remedies: dict[str, object]) -> str:
    blocking = f" plus {shown_ms(found.blocking)} of blocking by `{found.blocker}`" if found.blocker else ""
    reason = (
        f"{query.name} wants {shown_ms(query.wanted_ms)}: at {shown_ms(found.at)} the demand of {shown_ms(found.total)}"
        f"{blocking} exceeds the supply by {shown_ms(found.excess)}"
    )
    helpful = [text for text in map(_helpful, remedies.items()) if text]
    if not helpful:
        return f"{reason}; nothing simple would help"
    return f"{reason}; {helpful[0]} would be admitted" + "".join(f", or {other} would" for other in helpful[1:])


def _helpful(remedy: tuple[str, object]) -> str:
    name, value = remedy
    amount = Fraction(str(value)) if isinstance(value, int | float) else Fraction(0)
    texts = {
        "max_latency_ms": shown_ms(amount),
        "latency_ms": f"a latency of {shown_ms(amount)} in its service curve",
        "burst": f"a burst of {shown(amount)}",
        "rate_per_ms": f"a rate of {shown(amount)} per ms",
        "quantum_ms": f"window tasks cut at {shown_ms(amount)} (p-qed)",
        "ops_per_ms": f"a capacity of {shown(amount)} operations per ms",
        "test": f"the {value} test",
    }
    return texts.get(name, "")


def _remedies(query: QosQuery, accepted: Sequence[QosQuery], machine: Machine) -> dict[str, object]:
    """What would let the query in, each change alone, by bisection."""
    here = SchedulabilityVerifier(machine).beside(accepted)

    def fits(changed: QosQuery, on: Machine | None = None) -> bool:
        return (here if on is None else SchedulabilityVerifier(on).beside(accepted)).fits(changed)

    found: dict[str, object] = {}
    if query.qos is not None:
        found["max_latency_ms"] = least_value(query.qos.latency_ms, lambda value: fits(query.with_latency(value)))
    elif isinstance(query.service, RateLatency):
        start = max(query.service.latency, Fraction(1, 1000))
        found["latency_ms"] = least_value(start, lambda value: fits(query.with_latency(value)))
    if isinstance(query.inputs[0].arrival, TokenBucket):
        burst, rate = query.inputs[0].arrival.burst, query.inputs[0].arrival.rate
        found["burst"] = _most_whole(burst, lambda value: fits(query.with_arrival(burst=value)))
        found["rate_per_ms"] = most_value(rate, lambda value: fits(query.with_arrival(rate=value)))
    found["quantum_ms"] = _quantum([*accepted, query], machine)
    found["ops_per_ms"] = least_value(machine.capacity, lambda value: fits(query, with_capacity(machine, value)))
    if machine.test == "reserved" and fits(query, replace(machine, test="policed")):
        found["test"] = "policed"
    return {name: value for name, value in found.items() if value is not None}


def _quantum(queries: Sequence[QosQuery], machine: Machine) -> float | None:
    """The largest quantum with which the whole set fits, where some task is a window task."""
    longest = [part.cost.declared for query in queries if query.task == "window" for part in query.inputs]
    if not longest:
        return None

    def fits(quantum: Fraction) -> bool:
        cut = replace(machine, policy="p-qed", quantum=quantum * machine.capacity)
        return _fit_together(queries, SchedulabilityVerifier(cut))

    start = max(longest) / machine.capacity
    if machine.cut is not None:
        start = min(start, machine.cut / machine.capacity)
    return most_value(start, fits)


def least_value(start: Fraction, fits: Callable[[Fraction], bool]) -> float | None:
    """The least value above one that does not fit, rounded up to three digits."""
    factor = 2
    while not fits(start * factor):
        factor *= 2
        if factor > FARTHEST:
            return None
    low, high = start * factor / 2, start * factor
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (low, middle) if fits(middle) else (middle, high)
    tidy = _tidy(high, up=True)
    return rounded(tidy if fits(tidy) else high, 9)


def most_value(start: Fraction, fits: Callable[[Fraction], bool]) -> float | None:
    """The largest value below one that does not fit, rounded down to three digits."""
    factor = 2
    while not fits(start / factor):
        factor *= 2
        if factor > FARTHEST:
            return None
    low, high = start / factor, start * 2 / factor
    while high - low > CLOSE * high:
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    tidy = _tidy(low, up=False)
    return rounded(tidy if fits(tidy) else low, 9)


def _most_whole(start: Fraction, fits: Callable[[Fraction], bool]) -> int | None:
    """The largest whole number of at least 1, below one that does not fit."""
    low, high = 1, int(-(-start // 1))
    if high <= 1 or not fits(Fraction(1)):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(Fraction(middle)) else (low, middle)
    return low


def _tidy(value: Fraction, *, up: bool) -> Fraction:
    """Three digits that matter.

    >>> float(_tidy(Fraction(123456), up=True)), float(_tidy(Fraction(1, 3), up=False))
    (124000.0, 0.333)
    """
    unit = Fraction(1)
    while value / unit >= 1000:
        unit *= 10
    while value / unit < 100:
        unit /= 10
    whole = value / unit // 1
    return unit * (whole + 1 if up and whole * unit < value else whole)
