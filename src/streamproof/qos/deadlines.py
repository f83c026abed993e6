"""Deadlines from service curves, task by task (SCED).

The n-th task falls due when the service curve, started at any earlier arrival, has caught up with it:
``D_n = max over m <= n of a_m + β⁻¹(n − m + 1)``. For rate-latency curves that is ``F_n = max(F_{n−1}, a_n) + 1/R`` and
``D_n = F_n + T``.

>>> clock = deadlines_for(RateLatency("1/2", 10))
>>> clock.add(0), clock.add(0), clock.add(50)
(12.0, 14.0, 62.0)
"""

from __future__ import annotations

from typing import Protocol

from streamproof.qos.service import RateLatency, Service


class Deadlines(Protocol):
    """Gives every task of one flow its deadline, in order of arrival. Times are milliseconds."""

    def add(self, time: float) -> float: ...


class LineDeadlines:
    """Deadlines under a rate-latency curve: one number is all that is remembered."""

    def __init__(self, service: RateLatency) -> None:
        self._gap, self._latency = float(1 / service.rate), float(service.latency)
        self._finish = float("-inf")  # when the last task would be done at the reserved rate

    def add(self, time: float) -> float:
        self._finish = max(self._finish, time) + self._gap
        return self._finish + self._latency


class CurveDeadlines:
    """Deadlines under any curve: remembers the arrivals that still matter.

    An arrival matters no more once a later one gives later deadlines and a longer queue cannot change that.
    """

    def __init__(self, service: Service) -> None:
        self._service = service
        self._times: list[float] = []  # the inverse of the curve: how long 1, 2, … tasks take
        self._open: list[tuple[float, int]] = []  # arrivals that matter, each with its number
        self._count = 0

    def add(self, time: float) -> float:
        self._count += 1
        self._open.append((time, self._count))
        found = [came + self._time_for(self._count - number + 1) for came, number in self._open]
        latest = max(found)
        if self._open[-1][0] + self._time_for(1) >= latest:  # the queue was empty: nothing before matters
            self._open = [self._open[-1]]
        return latest

    def _time_for(self, count: int) -> float:
        while len(self._times) < count:
            self._times.append(float(self._service.time_for(len(self._times) + 1)))
        return self._times[count - 1]


def deadlines_for(service: Service) -> Deadlines:
    """The deadlines of a flow under its service curve."""
    return LineDeadlines(service) if isinstance(service, RateLatency) else CurveDeadlines(service)
