"""What a query is promised: service curves, from a wish or given, and the bounds that follow.

>>> from streamproof.qos.arrivals import TokenBucket
>>> curve = RateLatency("1/2", 10)
>>> delay_bound(TokenBucket(5, "1/2"), curve), backlog_bound(TokenBucket(5, "1/2"), curve)
(Fraction(20, 1), Fraction(10, 1))
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import inf
from typing import Protocol

from streamproof.arguments import doors
from streamproof.errors import PlanError
from streamproof.qos.arrivals import Arrival, TokenBucket
from streamproof.qos.curves import Curve, rate_latency
from streamproof.qos.exact import Exact, exact, millis, positive, shown, shown_ms
from streamproof.qos.minplus import horizontal, vertical


class Service(Protocol):
    """How soon tasks are served, at the latest."""

    @property
    def curve(self) -> Curve: ...
    def time_for(self, number: int) -> Fraction: ...  # how long n tasks that come at once may take


@dataclass(frozen=True)
class RateLatency:
    """Nothing for ``latency`` milliseconds, then ``rate`` tasks per millisecond."""

    rate: Fraction
    latency: Fraction

    def __init__(self, rate: Exact, latency: Exact, *, at: str = "service") -> None:
        object.__setattr__(self, "rate", positive(rate, "a rate", at=f"{at}.rate_per_ms"))
        wait = exact(latency, at=f"{at}.latency_ms")
        if wait < 0:
            raise PlanError(f"a latency must not be negative, got {shown(wait)}", at=f"{at}.latency_ms")
        object.__setattr__(self, "latency", wait)

    @property
    def curve(self) -> Curve:
        return rate_latency(self.rate, self.latency)

    def time_for(self, number: int) -> Fraction:
        return self.latency + number / self.rate


@dataclass(frozen=True)
class ServiceCurve:
    """Any curve that is 0 at 0."""

    curve: Curve

    def __post_init__(self) -> None:
        if self.curve.after(0) != 0 or self.curve.rate <= 0:
            raise PlanError(
                "a service curve is 0 at first and rises in the long run", fix="start it at [0, 0] and give it a rate"
            )

    def time_for(self, number: int) -> Fraction:
        return Fraction(self.curve.reaches(number))


@doors
@dataclass(frozen=True)
class QoS:
    """What a user wishes: no result later than ``max_latency``, no more than ``max_backlog`` events waiting.

    >>> QoS(max_latency="500 ms", max_backlog=10_000).latency_ms
    Fraction(500, 1)
    """

    max_latency: str | int | float | Fraction
    max_backlog: int | float | Fraction | None = None

    def __post_init__(self) -> None:
        at = "qos"
        if self.latency_ms <= 0:
            raise PlanError(
                f"max_latency must be positive, got {shown_ms(self.latency_ms)}", at=f"{at}.max_latency",
                fix='give a time such as "500 ms": nothing is instant',
            )  # fmt: skip
        if self.backlog is not None and self.backlog < 1:
            raise PlanError(
                f"max_backlog must be at least 1, got {shown(self.backlog)}", at=f"{at}.max_backlog",
                fix="give the number of events that may wait",
            )  # fmt: skip

    @property
    def latency_ms(self) -> Fraction:
        return millis(self.max_latency, at="qos.max_latency")

    @property
    def backlog(self) -> Fraction | None:
        return None if self.max_backlog is None else exact(self.max_backlog, at="qos.max_backlog")


def from_wish(wish: QoS, arrivals: list[Arrival], blocking: Fraction, *, late: bool = False) -> list[RateLatency]:
    """One service curve per input that keeps the wish: the least rate that leaves ``blocking`` ms of latency.

    ``late`` gives every task nearly all the time that is wished for, at a rate that nobody could reserve: the best
    deadlines where inputs are policed.

    >>> from_wish(QoS("30 ms"), [TokenBucket(10, 1)], Fraction(1))
    [RateLatency(rate=Fraction(1, 1), latency=Fraction(20, 1))]
    """
    longest = _longest_latency(wish, arrivals)
    return [_curve_for(arrival, wish.latency_ms, min(longest, wish.latency_ms), blocking, late) for arrival in arrivals]


def _longest_latency(wish: QoS, arrivals: list[Arrival]) -> Fraction:
    """The latency that the backlog admits: ``(b − Σσ) / Σρ``."""
    if wish.backlog is None:
        return wish.latency_ms
    bursts = sum((a.buckets[-1][0] for a in arrivals), Fraction(0))
    rates = sum((a.buckets[-1][1] for a in arrivals), Fraction(0))
    return (wish.backlog - bursts) / rates


def _curve_for(arrival: Arrival, wanted: Fraction, longest: Fraction, blocking: Fraction, late: bool) -> RateLatency:
    burst, rate = arrival.buckets[-1]
    least = min(blocking, wanted / 2)
    speed = max(rate, 1000 * burst / wanted if late else burst / (wanted - least))
    return RateLatency(speed, max(Fraction(0), min(wanted - burst / speed, longest)))


def delay_bound(arrival: Arrival, service: Service) -> Fraction | float:
    """The longest that a task waits until it is done: the horizontal deviation."""
    if isinstance(service, RateLatency) and isinstance(arrival, TokenBucket):
        if arrival.rate > service.rate:
            return inf
        return service.latency + max(1 / service.rate, *(_lag(point, service.rate) for point in _corners(arrival)))
    return horizontal(arrival.curve, service.curve)


def backlog_bound(arrival: Arrival, service: Service) -> Fraction | float:
    """The most tasks that wait: the vertical deviation."""
    if isinstance(service, RateLatency) and isinstance(arrival, TokenBucket) and arrival.peak is None:
        return arrival.burst + arrival.rate * service.latency if arrival.rate <= service.rate else inf
    return vertical(arrival.curve, service.curve)


def _corners(arrival: TokenBucket) -> list[tuple[Fraction, Fraction]]:
    """Where the curve of an arrival bends: times and heights."""
    corners = [(Fraction(0), min(burst for burst, _ in arrival.buckets))]
    if len(arrival.buckets) == 2 and arrival.peak is not None and arrival.peak > arrival.rate:
        time = (arrival.burst - 1) / (arrival.peak - arrival.rate)
        corners.append((time, arrival.burst + arrival.rate * time))
    return corners


def _lag(corner: tuple[Fraction, Fraction], rate: Fraction) -> Fraction:
    time, height = corner
    return height / rate - time
