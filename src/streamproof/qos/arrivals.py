"""What a query's input may send: token buckets, curves, and the smallest ones that fit a trace.

>>> flow = TokenBucket(5, "1/2")
>>> [str(flow.moment(n)) for n in (1, 5, 6, 7)]
['0', '0', '2', '4']
>>> from_trace([0, 0, 1, 10], rate="1/5").burst
Fraction(14, 5)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from streamproof.arguments import door, doors
from streamproof.errors import PlanError
from streamproof.qos.curves import Curve, token_bucket
from streamproof.qos.exact import NANOS_PER_MS, Exact, exact, positive, shown
from streamproof.qos.minplus import minimum

Bucket = tuple[Fraction, Fraction]
"""A burst and a rate per millisecond."""


class Arrival(Protocol):
    """How fast the tasks of one input may come."""

    @property
    def buckets(self) -> tuple[Bucket, ...]: ...  # token buckets that all hold
    @property
    def curve(self) -> Curve: ...
    def moment(self, number: int) -> Fraction: ...  # the earliest time of the n-th task after an idle time


@doors
@dataclass(frozen=True)
class TokenBucket:
    """At most ``burst`` tasks at once and ``rate`` per millisecond; with a ``peak``, one by one at most so fast."""

    burst: Fraction
    rate: Fraction
    peak: Fraction | None = None

    def __init__(self, burst: Exact, rate: Exact, *, peak: Exact | None = None, at: str = "arrival") -> None:
        size, speed = exact(burst, at=f"{at}.burst"), positive(rate, "a rate", at=f"{at}.rate_per_ms")
        if size < 1:
            raise PlanError(
                f"a burst must be at least 1 task, got {shown(size)}", at=f"{at}.burst", fix="tasks come whole: give 1"
            )
        top = None if peak is None else positive(peak, "a peak rate", at=f"{at}.peak_per_ms")
        if top is not None and top < speed:
            raise PlanError(
                f"the peak rate {shown(top)} is below the rate {shown(speed)}", at=f"{at}.peak_per_ms",
                fix="give a peak of at least the rate, or leave it out",
            )  # fmt: skip
        for name, value in (("burst", size), ("rate", speed), ("peak", top)):
            object.__setattr__(self, name, value)

    @cached_property
    def buckets(self) -> tuple[Bucket, ...]:
        """The token buckets that all hold; the one with the lowest rate comes last."""
        plain = (self.burst, self.rate)
        return (plain,) if self.peak is None or self.burst == 1 else ((Fraction(1), self.peak), plain)

    @cached_property
    def curve(self) -> Curve:
        return minimum(*(token_bucket(burst, rate) for burst, rate in self.buckets))

    def moment(self, number: int) -> Fraction:
        """The earliest time of the n-th task after an idle time."""
        return max(Fraction(0), *((number - burst) / rate for burst, rate in self.buckets))


@dataclass(frozen=True)
class ArrivalCurve:
    """Any curve, for instance a staircase. It must be sub-additive, as `minplus.closure` makes one."""

    curve: Curve

    @property
    def buckets(self) -> tuple[Bucket, ...]:
        """One token bucket above the curve: its last line, moved up until nothing is above it."""
        rate = self.curve.rate
        if rate <= 0:
            raise PlanError("an arrival curve needs a rate in the long run", fix="let its last piece rise")
        burst = max(self.curve.after(x) - rate * x for x in self.curve.breakpoints)
        return ((burst, rate),)

    def moment(self, number: int) -> Fraction:
        return Fraction(self.curve.reaches(number))


# --- from a trace -----------------------------------------------------------------------------------------------------


@door
def from_trace(times: Sequence[float] | npt.NDArray[np.float64], *, rate: Exact | None = None) -> TokenBucket:
    """The smallest token bucket that a trace of arrival times (milliseconds) keeps; by default at its mean rate.

    Law: the burst is the least: with any smaller one the trace breaks the bucket.
    """
    nanos = _nanos(times)
    if len(nanos) < 2 or nanos[-1] == nanos[0]:
        raise PlanError("a trace needs two arrivals at different times", fix="record more, or give burst and rate")
    mean = Fraction(len(nanos), int(nanos[-1] - nanos[0])) * NANOS_PER_MS
    speed = mean if rate is None else positive(rate, "a rate", at="rate")
    peak = _peak(nanos)
    return TokenBucket(_burst(nanos, speed), speed, peak=peak if peak is not None and peak >= speed else None)


def smallest_burst(times: Sequence[float] | npt.NDArray[np.float64], rate: Exact) -> Fraction:
    """The least burst with which a trace keeps a rate.

    >>> smallest_burst([0, 10, 20], "1/10")
    Fraction(1, 1)
    """
    return _burst(_nanos(times), positive(rate, "a rate"))


def peak_rate(times: Sequence[float] | npt.NDArray[np.float64]) -> Fraction | None:
    """One over the shortest gap, in tasks per millisecond; None where two arrive at once."""
    return _peak(_nanos(times))


def _nanos(times: Sequence[float] | npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    found = np.rint(np.asarray(times, dtype=np.float64) * NANOS_PER_MS).astype(np.int64)
    if np.any(np.diff(found) < 0):
        raise PlanError("the times of a trace must not go back", fix="sort the trace by arrival")
    return found


def _burst(nanos: npt.NDArray[np.int64], rate: Fraction) -> Fraction:
    """``1 + max over m <= n of (n − m) − ρ (a_n − a_m)``, in whole numbers: exact."""
    per_nano = rate / NANOS_PER_MS
    if len(nanos) == 0:
        return Fraction(1)
    since = (nanos - nanos[0]).astype(object)
    level = np.arange(len(nanos)).astype(object) * per_nano.denominator - since * per_nano.numerator
    return 1 + Fraction(int((level - np.minimum.accumulate(level)).max()), per_nano.denominator)


def _peak(nanos: npt.NDArray[np.int64]) -> Fraction | None:
    gap = int(np.diff(nanos).min()) if len(nanos) > 1 else 0
    return Fraction(NANOS_PER_MS, gap) if gap else None


# --- at run time ------------------------------------------------------------------------------------------------------

_FULL: Final = Fraction(0)


class Policer:
    """Watches whether arrivals keep their buckets. Times are milliseconds; what breaks a bucket is counted, not paid.

    >>> police = Policer(TokenBucket(2, 1))
    >>> [police.conforms(t) for t in (0, 0, 0, 1)]
    [True, True, False, True]
    """

    def __init__(self, arrival: Arrival) -> None:
        self._buckets = [(float(burst), float(rate)) for burst, rate in arrival.buckets]
        self._levels = [burst for burst, _ in self._buckets]
        self._last: float | None = None
        self.seen = 0
        self.broken = 0

    def conforms(self, time: float) -> bool:
        """Whether a task that comes now is within the curve."""
        return self.admit(1, time) == 1

    def admit(self, count: int, time: float) -> int:
        """How many of so many tasks that come now are within the curve."""
        passed = 0.0 if self._last is None else max(0.0, time - self._last)
        self._last = time if self._last is None else max(time, self._last)
        self._levels = [
            min(burst, level + rate * passed) for (burst, rate), level in zip(self._buckets, self._levels, strict=True)
        ]
        fits = min(count, int(min(self._levels) + 1e-9))
        self._levels = [level - fits for level in self._levels]
        self.seen += count
        self.broken += count - fits
        return fits
