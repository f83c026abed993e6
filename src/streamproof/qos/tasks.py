"""Queries as the scheduler sees them: tasks with a cost, an arrival curve and a service curve per input.

A basic task is one tuple (or one group of tuples), a window task is one window, which may be cut into pieces.

>>> query = QosQuery("Q1", (QueryInput(Cost(200), TokenBucket(10, 1)),), service=RateLatency(1, 20))
>>> flow = query.flows(Fraction(0))[0]
>>> flow.delay, flow.backlog
(Fraction(30, 1), Fraction(30, 1))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import inf
from statistics import NormalDist
from typing import Literal, NamedTuple

from streamproof.errors import PlanError
from streamproof.qos.arrivals import Arrival, TokenBucket
from streamproof.qos.exact import Exact, exact, positive, shown
from streamproof.qos.service import QoS, RateLatency, Service, ServiceCurve, backlog_bound, delay_bound, from_wish

Kind = Literal["basic", "window"]


@dataclass(frozen=True)
class Cost:
    """Operations of one task: a number, or a normal distribution of which admission takes a stated quantile.

    >>> Cost(100, deviation=10, quantile="0.99").declared
    Fraction(1233, 10)
    """

    mean: Fraction
    deviation: Fraction
    quantile: Fraction | None

    def __init__(
        self, mean: Exact, *, deviation: Exact = 0, quantile: Exact | None = None, at: str = "cost_ops"
    ) -> None:
        spread = exact(deviation, at=f"{at}.stdev")
        if spread < 0:
            raise PlanError(f"a deviation must not be negative, got {shown(spread)}", at=f"{at}.stdev")
        share = None if quantile is None else exact(quantile, at=f"{at}.quantile")
        if share is not None and not 0 < share < 1:
            raise PlanError(f"a quantile lies between 0 and 1, got {shown(share)}", at=f"{at}.quantile", fix="try 0.99")
        if spread and share is None:
            raise PlanError("a distribution of costs needs a quantile", at=at, fix='add "quantile": 0.99')
        object.__setattr__(self, "mean", positive(mean, "a cost", at=at))
        object.__setattr__(self, "deviation", spread)
        object.__setattr__(self, "quantile", share)

    @cached_property
    def declared(self) -> Fraction:
        """What admission takes: the number itself, or the quantile, rounded up to a tenth of an operation."""
        if self.quantile is None or not self.deviation:
            return self.mean
        reach = NormalDist(float(self.mean), float(self.deviation)).inv_cdf(float(self.quantile))
        return max(Fraction(-int(-reach * 10 // 1), 10), Fraction(1, 10))


@dataclass(frozen=True)
class QueryInput:
    """One input of a query: what a task of it costs, and how fast they come."""

    cost: Cost
    arrival: Arrival
    name: str = ""


class TaskLine(NamedTuple):
    """A line above a flow's demand: its height and rate, and from when on."""

    height: Fraction
    rate: Fraction
    start: Fraction


class Floats(NamedTuple):
    """The numbers of a flow in floating point, for quick bounds."""

    cost: float
    delay: float
    rate: float
    latency: float
    bursts: tuple[float, float]
    rates: tuple[float, float]
    line: tuple[float, float, float]


@dataclass(frozen=True)
class Flow:
    """One input of one query with everything decided."""

    query: str
    name: str
    cost: Fraction
    arrival: Arrival
    service: Service
    window: bool = False

    @cached_property
    def delay(self) -> Fraction | float:
        """The bound of its delay in milliseconds."""
        return delay_bound(self.arrival, self.service)

    @cached_property
    def backlog(self) -> Fraction | float:
        """The bound of its waiting tasks."""
        return backlog_bound(self.arrival, self.service)

    @cached_property
    def simple(self) -> bool:
        """Whether closed forms hold: token buckets under a rate-latency curve."""
        return isinstance(self.arrival, TokenBucket) and isinstance(self.service, RateLatency)

    @cached_property
    def line(self) -> TaskLine:
        """The long run of its demand."""
        burst, rate = self.arrival.buckets[-1]
        if not self.simple or not isinstance(self.service, RateLatency):
            return TaskLine(burst, rate, Fraction(0))
        if self.service.rate < rate:
            return TaskLine(Fraction(0), self.service.rate, self.service.latency)
        return TaskLine(burst, rate, self.service.latency + 1 / self.service.rate)

    @cached_property
    def floats(self) -> Floats:
        """Its numbers, rounded."""
        speed, wait = (self.service.rate, self.service.latency) if isinstance(self.service, RateLatency) else (1, 0)
        (first, first_rate), (last, last_rate) = self.arrival.buckets[0], self.arrival.buckets[-1]
        return Floats(
            float(self.cost), float(self.delay), float(speed), float(wait), (float(first), float(last)),
            (float(first_rate), float(last_rate)),
            (float(self.line.height), float(self.line.rate), float(self.line.start)),
        )  # fmt: skip

    def section(self, quantum: Fraction | None) -> Fraction:
        """The longest work that is not interrupted."""
        return min(self.cost, quantum) if self.window and quantum is not None else self.cost


@dataclass(frozen=True)
class QosQuery:
    """A query that wants to run: its inputs, and either a service curve or a wish."""

    name: str
    inputs: tuple[QueryInput, ...]
    task: Kind = "basic"
    service: RateLatency | ServiceCurve | None = None
    qos: QoS | None = None

    def __post_init__(self) -> None:
        if not self.inputs:
            raise PlanError(f'the query "{self.name}" has no input', fix="give at least one")
        if (self.service is None) == (self.qos is None):
            raise PlanError(
                f'the query "{self.name}" needs either a service curve or a wish', fix='give "service" or "qos"'
            )

    def flows(self, blocking: Fraction, *, late: bool = False) -> list[Flow]:
        """Its inputs with their curves, where ``blocking`` ms may pass before anything can be interrupted."""
        arrivals = [part.arrival for part in self.inputs]
        services: Sequence[Service]
        if self.qos is not None:
            services = from_wish(self.qos, arrivals, blocking, late=late)
        else:
            assert self.service is not None
            services = [self.service] * len(arrivals)
        return [
            Flow(self.name, self._label(n), part.cost.declared, part.arrival, service, self.task == "window")
            for n, (part, service) in enumerate(zip(self.inputs, services, strict=True))
        ]

    def _label(self, number: int) -> str:
        if len(self.inputs) == 1:
            return self.name
        return f"{self.name}.{self.inputs[number].name or number + 1}"

    @property
    def wanted_ms(self) -> Fraction | float:
        """The latency that it wants: its wish, or what its service curve promises."""
        if self.qos is not None:
            return self.qos.latency_ms
        return max((flow.delay for flow in self.flows(Fraction(0))), default=inf)

    def with_latency(self, value: Fraction) -> QosQuery:
        """The same with another latency: of the wish, or of the service curve."""
        if self.qos is not None:
            return replace(self, qos=QoS(value, self.qos.max_backlog))
        assert isinstance(self.service, RateLatency)
        return replace(self, service=RateLatency(self.service.rate, value))

    def with_arrival(self, *, burst: Fraction | None = None, rate: Fraction | None = None) -> QosQuery:
        """The same with another burst or rate of its (first) input."""
        first = self.inputs[0].arrival
        assert isinstance(first, TokenBucket)
        changed = TokenBucket(burst or first.burst, rate or first.rate)
        return replace(self, inputs=(replace(self.inputs[0], arrival=changed), *self.inputs[1:]))
