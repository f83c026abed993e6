"""The demand of policed inputs: how much work can fall due in any busy time, and where it exceeds the supply.

Tasks come whole, so the arrival curve is taken as a staircase: the n-th task of a greedy input comes at ``a_n`` and
falls due at ``u_n``, the n-th step of its demand. The search for a step at which demand and blocking exceed the supply
goes from the end to the beginning (quick processor-demand analysis): upper bounds in floating point pass over whole
stretches, and wherever they do not suffice the step is decided with fractions.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import inf, nextafter
from typing import Final

import numpy as np
import numpy.typing as npt

from streamproof.errors import PlanError
from streamproof.qos.service import RateLatency
from streamproof.qos.tasks import Flow

MOST_STEPS: Final = 2_000_000  # that are listed to find the first violation
MOST_CHECKS: Final = 50_000  # exact evaluations of one search
MARGIN: Final = 1e-9  # floats are taken higher by this share: rounding errors are a millionth of it
ZERO: Final = Fraction(0)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class DemandViolation:
    """Where demand and blocking exceed what can be done. Times are milliseconds of work at full capacity."""

    at: Fraction
    demand: dict[str, Fraction]  # by flow
    blocking: Fraction
    blocker: str | None
    capacity: Fraction  # operations per millisecond

    @property
    def total(self) -> Fraction:
        return sum(self.demand.values(), Fraction(0))

    @property
    def excess(self) -> Fraction:
        """By how much the supply is too small."""
        return self.total + self.blocking - self.at


def step(flow: Flow, number: int) -> Fraction:
    """When the n-th task of a greedy input falls due: ``max over m <= n of a_m + β⁻¹(n − m + 1)``."""
    if flow.simple and isinstance(flow.service, RateLatency):  # the maximum lies at m = 1 or at m = n
        rate = flow.service.rate
        return flow.service.latency + max(number / rate, flow.arrival.moment(number) + 1 / rate)
    moments = (flow.arrival.moment(m) + flow.service.time_for(number - m + 1) for m in range(1, number + 1))
    return max(moments)


class DemandSteps:
    """The demand of one flow without a closed form: its steps, made as far as they are asked for."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self._known: list[Fraction] = []

    def count(self, time: Fraction) -> int:
        while not self._known or self._known[-1] <= time:
            self._known.append(step(self.flow, len(self._known) + 1))
        return bisect_right(self._known, time)


class Demand:
    """The demand of all flows, exactly and as an upper bound in floating point."""

    def __init__(self, flows: Sequence[Flow], sections: Sequence[Fraction], capacity: Fraction) -> None:
        self.flows, self.capacity = list(flows), capacity
        self.work = [flow.cost / capacity for flow in flows]  # ms per task
        self.sections = [section / capacity for section in sections]
        self.others = [(n, DemandSteps(flow)) for n, flow in enumerate(flows) if not flow.simple]
        self._simple = [n for n, flow in enumerate(flows) if flow.simple]
        self._arrays()
        self._delays = np.array([flow.floats.delay for flow in flows])
        self._sections = np.array([float(section) for section in sections]) / float(capacity)

    def _arrays(self) -> None:
        chosen = [self.flows[n].floats for n in self._simple]
        self._rate = np.array([flow.rate for flow in chosen])
        self._latency = np.array([flow.latency for flow in chosen])
        self._work = np.array([flow.cost for flow in chosen]) / float(self.capacity)
        self._bursts = np.array([flow.bursts for flow in chosen]).reshape(-1, 2).T
        self._rates = np.array([flow.rates for flow in chosen]).reshape(-1, 2).T

    # --- counting -----------------------------------------------------------------------------------------------------

    def count(self, number: int, time: Fraction) -> int:
        """How many tasks of a flow fall due by a time."""
        flow = self.flows[number]
        if not isinstance(flow.service, RateLatency) or not flow.simple:
            return next(steps for n, steps in self.others if n == number).count(time)
        rate, since = flow.service.rate, time - flow.service.latency
        if since * rate < 1:
            return 0
        room = min(burst + speed * (since - 1 / rate) for burst, speed in flow.arrival.buckets)
        return int(min(since * rate, room))  # both are positive: towards zero is down

    def exact(self, time: Fraction) -> list[Fraction]:
        """The demand of every flow by a time, in ms of work."""
        return [self.work[n] * self.count(n, time) for n in range(len(self.flows))]

    def upper(self, time: float) -> float:
        """A number that is not below the demand of all flows by a time."""
        since = time - self._latency
        room = np.minimum.reduce(self._bursts + self._rates * (since - 1 / self._rate), initial=inf)
        tasks = np.minimum(room, since * self._rate)
        tasks = np.floor(tasks + MARGIN * (1 + np.abs(tasks)))
        tasks[since * self._rate < 1 - MARGIN] = 0.0
        total = float(np.dot(np.maximum(tasks, 0), self._work))
        if self.others:
            moment = Fraction(nextafter(time * (1 + MARGIN), inf))
            total += sum(float(self.work[n]) * steps.count(moment) for n, steps in self.others)
        return total * (1 + MARGIN)

    def last_step(self, time: Fraction, *, inclusive: bool) -> Fraction | None:
        """The last step at or before a time."""
        found: Fraction | None = None
        for number, flow in enumerate(self.flows):
            tasks = self.count(number, time)
            if tasks and not inclusive and step(flow, tasks) == time:
                tasks -= 1
            if tasks:
                here = step(flow, tasks)
                found = here if found is None else max(found, here)
        return found

    # --- blocking -----------------------------------------------------------------------------------------------------

    def blocker(self, time: Fraction) -> int | None:
        """Who can hold up everybody: the longest section among flows with deadlines after this time."""
        ones = [n for n, flow in enumerate(self.flows) if flow.delay > time]
        return max(ones, key=lambda n: self.sections[n], default=None)

    def levels(self) -> list[tuple[float, float]]:
        """Times up to which a section can block, longest time first, each with the longest such section."""
        found: list[tuple[float, float]] = []
        longest = 0.0
        for number in np.argsort(-self._delays, kind="stable"):
            if self._sections[number] > longest:
                longest = float(self._sections[number])
                found.append((float(self._delays[number]), longest))
        return found

    def violation(self, time: Fraction) -> DemandViolation | None:
        """What is wrong at a time, exactly; None where nothing is."""
        demands = self.exact(time)
        who = self.blocker(time)
        blocking = Fraction(0) if who is None else self.sections[who]
        if sum(demands, blocking) <= time:
            return None
        names = {flow.name: demand for flow, demand in zip(self.flows, demands, strict=True)}
        return DemandViolation(time, names, blocking, None if who is None else self.flows[who].name, self.capacity)

    # --- the search ---------------------------------------------------------------------------------------------------

    def load(self) -> Fraction:
        """The share of the capacity that all inputs need in the long run."""
        return sum((work * flow.line.rate for work, flow in zip(self.work, self.flows, strict=True)), Fraction(0))

    def horizon(self) -> float | None:
        """A time after which demand and blocking stay below the supply; None where there is none."""
        if np.any(np.isinf(self._delays)):
            return None
        lines = [flow.floats.line for flow in self.flows]
        work = np.array([flow.floats.cost for flow in self.flows]) / float(self.capacity)
        heights, rates, _ = np.array(lines).reshape(-1, 3).T
        load, longest = float(np.dot(work, rates)), float(self._delays.max(initial=0.0))
        if abs(load - 1) < MARGIN:
            return self._full(longest)
        if load > 1:
            return None
        base = float(np.dot(work, np.maximum(heights, 0)))  # a little more than needed, which is safe
        return max(longest, base / (1 - load)) * (1 + MARGIN)

    def _full(self, longest: float) -> float | None:
        """Where the load is as good as 1, fractions decide."""
        load = self.load()
        pairs = zip(self.work, self.flows, strict=True)
        base = sum((work * (flow.line.height - flow.line.rate * flow.line.start) for work, flow in pairs), Fraction(0))
        if load > 1 or (load == 1 and base > 0):
            return None
        return longest * (1 + MARGIN) if base <= 0 else max(longest, float(base / (1 - load))) * (1 + MARGIN)

    def search(self, *, anywhere: bool = False) -> DemandViolation | None:
        """Some step at which there is too much to do; None proves that there is none.

        ``anywhere`` says that nobody will look where it is: overload is then told without a step.
        """
        horizon = self.horizon()
        if horizon is None:
            return DemandViolation(ZERO, {}, ZERO, None, self.capacity) if anywhere else self._in_the_long_run()
        bounds = [(horizon, 0.0), *self.levels()]
        lows = [bound for bound, _ in bounds[1:]] + [0.0]
        checks = [0]
        for (high, blocking), low in zip(bounds, lows, strict=True):
            found = self._between(low, high, blocking, checks)
            if found is not None:
                return found
        return None

    def _between(self, low: float, high: float, blocking: float, checks: list[int]) -> DemandViolation | None:
        """From the right: at ``t`` the work W leaves everything in ``[W, t]`` in order; so go on at W."""
        time, block = high * (1 + MARGIN), blocking * (1 + MARGIN)
        while time >= low * (1 - MARGIN):
            work = self.upper(time) + block
            if work < time * (1 - MARGIN):
                time = work
                continue
            checks[0] += 1
            if checks[0] > MOST_CHECKS:
                raise PlanError(
                    f"admission is undecided after {MOST_CHECKS:,} exact checks: the load is too close to the capacity",
                    fix="raise the capacity a little", name="limit_exceeded",
                )  # fmt: skip
            here = self.last_step(Fraction(time), inclusive=True)
            if here is None:
                return None
            found = self.violation(here)
            if found is not None:
                return found
            before = self.last_step(here, inclusive=False)
            if before is None:
                return None
            time = min(nextafter(float(before), inf), nextafter(time, 0))
        return None

    def _in_the_long_run(self) -> DemandViolation:
        """More comes than can be done: double the time until that shows at a step."""
        time = max((step(flow, 1) for flow in self.flows), default=Fraction(1))
        for _ in range(200):
            here = self.last_step(time, inclusive=True)
            found = None if here is None else self.violation(here)
            if found is not None:
                return found
            time *= 2
        names = {f.name: w * f.line.rate * time for f, w in zip(self.flows, self.work, strict=True)}
        return DemandViolation(time, names, Fraction(0), None, self.capacity)  # a load of exactly 1: at no finite time

    def first(self, known: DemandViolation) -> DemandViolation:
        """The first step at which there is too much to do, given one; where there are too many steps, the given one."""
        counts = [self.count(n, known.at) for n in range(len(self.flows))]
        if sum(counts) > MOST_STEPS:
            return known
        times, owners = self._listed(counts)
        order = np.argsort(times, kind="stable")
        times, owners = times[order], owners[order]
        work = np.cumsum(np.array([float(w) for w in self.work])[owners])
        suspects = np.flatnonzero((work + self._blocking(times)) * (1 + MARGIN) > times * (1 - MARGIN))
        for index in suspects[:MOST_CHECKS]:
            here = self.last_step(Fraction(times[index]) * (1 + Fraction(MARGIN)), inclusive=True)
            found = None if here is None else self.violation(here)
            if found is not None:
                return found
        return known

    def _listed(self, counts: Sequence[int]) -> tuple[Floats, npt.NDArray[np.int64]]:
        parts, owners = [], []
        for number, (flow, count) in enumerate(zip(self.flows, counts, strict=True)):
            parts.append(_float_steps(flow, count))
            owners.append(np.full(count, number))
        return np.concatenate(parts), np.concatenate(owners)

    def _blocking(self, times: Floats) -> Floats:
        found = np.zeros(len(times))
        for delay, section in self.levels():
            found[times < delay * (1 + MARGIN)] = section
        return found


def _float_steps(flow: Flow, count: int) -> Floats:
    if not flow.simple or not isinstance(flow.service, RateLatency):
        return np.array([float(step(flow, n)) for n in range(1, count + 1)])
    numbers, rate = np.arange(1, count + 1, dtype=np.float64), float(flow.service.rate)
    comes = np.zeros(count)
    for burst, speed in flow.arrival.buckets:
        comes = np.maximum(comes, (numbers - float(burst)) / float(speed))
    return float(flow.service.latency) + np.maximum(numbers / rate, comes + 1 / rate)
