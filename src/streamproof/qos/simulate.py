"""Simulation: tasks of several queries on one machine under a policy, event by event, in whole ticks.

Whatever the verifier admits never misses here; tests hold it to that over thousands of random sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from streamproof.errors import PlanError, did_you_mean
from streamproof.qos.arrivals import Arrival, TokenBucket
from streamproof.qos.batching import BatchPlan, plan_batches
from streamproof.qos.exact import Exact, exact, rounded
from streamproof.qos.observed import Fault
from streamproof.qos.service import RateLatency, Service
from streamproof.qos.simulation_loop import (
    EDF,
    FIFO,
    RATE,
    ROUND_ROBIN,
    curve_deadlines,
    line_deadlines,
    run_machine,
    shape,
)
from streamproof.qos.tasks import Cost, Flow
from streamproof.qos.verifier import Machine, Policy

Pattern = Literal["adversarial", "random"]
Ints = npt.NDArray[np.int64]

ROOM: Final = 2**60  # products of times and denominators stay below this
COARSE: Final = 1000  # ticks per millisecond at least: "a tick earlier" shall mean nearly at once
FINE: Final = 10**6  # ticks per millisecond where no common grid exists
MOST_TASKS: Final = 5_000_000
TABLE: Final = 5000  # tasks that a curve without a closed form looks back


@dataclass(frozen=True)
class TimeGrid:
    """Ticks per millisecond, and whether every time is a whole number of them."""

    scale: int
    exact: bool

    def ticks(self, time: Fraction) -> int:
        """A length of time, rounded up."""
        return -int(-time * self.scale // 1)


def grid_for(flows: Sequence[Flow], capacity: Fraction, quantum: Fraction | None, duration: Fraction) -> TimeGrid:
    """The coarsest grid on which costs, gaps and deadlines are whole; a fine one where that would not fit."""
    times = [flow.cost / capacity for flow in flows]
    if quantum is not None:
        times.append(quantum / capacity)
    for flow in flows:
        if isinstance(flow.service, RateLatency):
            times += [flow.service.latency, 1 / flow.service.rate]
        for burst, rate in flow.arrival.buckets:
            times += [1 / rate, (burst - 1) / rate]
    scale = lcm(*(time.denominator for time in times)) if times else 1
    scale *= -(-COARSE // scale)
    longest = (duration + 10_000) * 4
    return TimeGrid(scale, True) if scale * longest < ROOM else TimeGrid(FINE, False)


def arrivals_of(
    flow: Flow,
    grid: TimeGrid,
    duration: Fraction,
    pattern: Pattern,
    draw: np.random.Generator,
    *,
    offset: int = 0,
    flood: Fraction | None = None,
) -> Ints:
    """The arrival times of one flow, in ticks. ``flood`` is a rate with which it ignores its bucket."""
    end = int(duration * grid.scale)
    if flood is not None:
        count = min(MOST_TASKS, -int(-duration * flood // 1))
        numbers = np.arange(count, dtype=object) * (grid.scale * flood.denominator) // flood.numerator
        return np.asarray(numbers, dtype=np.int64) + offset
    if not isinstance(flow.arrival, TokenBucket):
        return _along_curve(flow, grid, duration, pattern, draw) + offset
    burst, rate = flow.arrival.buckets[-1]
    count = min(MOST_TASKS, int(burst + rate * duration) + 1)
    wishes = np.full(count, offset, dtype=np.int64)
    if pattern == "random":
        mean = float(grid.scale / rate) * draw.uniform(0.3, 1.2)
        gaps = draw.exponential(mean, count) * (draw.random(count) < draw.uniform(0.3, 1.0))
        wishes = offset + np.cumsum(gaps).astype(np.int64)
    found = _shaped(flow.arrival, wishes, grid)
    return found[found < end + offset]


def _along_curve(flow: Flow, grid: TimeGrid, duration: Fraction, pattern: Pattern, draw: np.random.Generator) -> Ints:
    """As early as a curve allows; at random, gaps only grow, which every curve allows."""
    moments: list[int] = []
    while (time := flow.arrival.moment(len(moments) + 1)) < duration and len(moments) < MOST_TASKS:
        moments.append(grid.ticks(time))
    found = np.array(moments, dtype=np.int64)
    if pattern == "random":
        mean = float(grid.scale / flow.arrival.buckets[-1][1])
        shifts = draw.exponential(mean, len(found)) * (draw.random(len(found)) < 0.3)
        found += np.cumsum(shifts).astype(np.int64)
    return found[found < int(duration * grid.scale)]


def _shaped(arrival: Arrival, wishes: Ints, grid: TimeGrid) -> Ints:
    rows = []
    for burst, rate in arrival.buckets:
        increment, credit = grid.scale / rate, (burst - 1) / rate * grid.scale
        scale = lcm(increment.denominator, credit.denominator)
        if scale * (grid.scale + 1) > ROOM // 10**7:
            increment, scale = Fraction(-int(-increment // 1)), 1
        most = ROOM // (len(wishes) + 1)  # later than any end, and no sum of them overflows
        rows.append((min(int(increment * scale), most), min(int(credit * scale), ROOM), scale))
    columns = np.array(rows, dtype=np.int64).T
    return shape(wishes, *np.ascontiguousarray(columns))


def deadlines_of(arrivals: Ints, service: Service, grid: TimeGrid) -> Ints:
    """The deadlines of tasks under a service curve, in ticks; where the grid is not exact, rounded up."""
    if isinstance(service, RateLatency):
        increment, latency = grid.scale / service.rate, service.latency * grid.scale
        scale = lcm(increment.denominator, latency.denominator)
        if scale * max(int(arrivals.max(initial=1)), 1) > ROOM:
            most = ROOM // (len(arrivals) + 1)
            return line_deadlines(arrivals, min(-int(-increment // 1), most), min(-int(-latency // 1), ROOM), 1, 0)
        most = ROOM // (len(arrivals) + 1)
        gap, wait = min(int(increment * scale), most), min(int(latency * scale), ROOM)
        return line_deadlines(arrivals, gap, wait, scale, 0 if grid.exact else 1)
    table = np.array([grid.ticks(service.time_for(n)) for n in range(1, min(len(arrivals), TABLE) + 1)], dtype=np.int64)
    return curve_deadlines(arrivals, table)


def offsets_of(flows: Sequence[Flow], blocker: int | None) -> list[int]:
    """When each input starts: all others one tick after the one that shall hold them up, by default the costliest."""
    first = max(range(len(flows)), key=lambda n: flows[n].cost) if blocker is None else blocker
    return [0 if n == first else 1 for n in range(len(flows))]


def rates_of(flood: Mapping[str, Fraction] | None, flow: Flow) -> Fraction | None:
    """The rate with which a flow floods, if it does."""
    return None if flood is None else flood.get(flow.query)


AnyPolicy: TypeAlias = Literal["fifo", "round-robin", "rate", "qed", "b-qed", "p-qed"]
POLICIES: Final[tuple[AnyPolicy, ...]] = get_args(AnyPolicy)
MOST_PIECES: Final = 20_000_000
_CODES: Final = {"fifo": FIFO, "round-robin": ROUND_ROBIN, "rate": RATE}


@dataclass(frozen=True)
class Outcome:
    """What one flow got under one policy. Times are milliseconds."""

    tasks: int
    misses: int
    max_delay: float
    max_backlog: int
    fault: Fault | None = None  # whose fault the misses are: its own input, costs above the declared ones, the policy

    @property
    def miss_percent(self) -> float:
        return 100 * self.misses / self.tasks if self.tasks else 0.0

    def as_dict(self) -> dict[str, float | int | str | None]:
        return {
            "tasks": self.tasks,
            "misses": self.misses,
            "miss_percent": rounded(self.miss_percent, 3),
            "max_delay_ms": rounded(self.max_delay, 3),
            "max_backlog": self.max_backlog,
            "fault": self.fault,
        }


@dataclass(frozen=True)
class Scenario:
    """The tasks of all flows: one set of arrivals and costs, on which every policy is tried."""

    flows: tuple[Flow, ...]
    grid: TimeGrid
    starts: Ints
    arrivals: Ints
    deadlines: Ints
    costs: Ints
    floods: frozenset[str]  # queries that ignore their arrival curves
    costly: bool  # whether some task costs more than declared

    def part(self, number: int) -> slice:
        return slice(int(self.starts[number]), int(self.starts[number + 1]))


def make_scenario(
    flows: Sequence[Flow],
    machine: Machine,
    *,
    duration: Exact,
    arrivals: Pattern = "adversarial",
    seed: int = 0,
    flood: Mapping[str, Fraction] | None = None,
    costs: Mapping[str, Cost] | None = None,
    blocker: int | None = None,
) -> Scenario:
    """Arrivals, deadlines and costs. ``flood`` gives queries a rate with which they ignore their curves, ``costs``
    distributions from which costs are drawn, ``blocker`` a flow that starts a tick before all others.
    """
    if arrivals not in get_args(Pattern):
        raise PlanError(
            f'unknown arrivals "{arrivals}"', at="simulate.arrivals", fix=did_you_mean(arrivals, get_args(Pattern))
        )
    time = exact(duration)
    grid = grid_for(flows, machine.capacity, machine.quantum, time)
    draw = np.random.default_rng(seed)
    offsets = offsets_of(flows, blocker)
    parts = [
        arrivals_of(flow, grid, time, arrivals, draw, offset=offset, flood=rates_of(flood, flow))
        for flow, offset in zip(flows, offsets, strict=True)
    ]
    _refuse_endless(flows, [len(part) for part in parts], machine, grid)
    work = [
        _costs(len(part), grid.scale / machine.capacity, draw, flow.cost, (costs or {}).get(flow.name))
        for flow, part in zip(flows, parts, strict=True)
    ]
    due = [deadlines_of(part, flow.service, grid) for flow, part in zip(flows, parts, strict=True)]
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
    costly = any(np.any(spent > grid.ticks(f.cost / machine.capacity)) for f, spent in zip(flows, work, strict=True))
    return Scenario(
        tuple(flows), grid, starts, np.concatenate(parts), np.concatenate(due), np.concatenate(work),
        frozenset(flood or ()), costly,
    )  # fmt: skip


def _refuse_endless(flows: Sequence[Flow], counts: Sequence[int], machine: Machine, grid: TimeGrid) -> None:
    """Work that would not be done before the end of all ticks, or in too many pieces."""
    work = sum((flow.cost * count for flow, count in zip(flows, counts, strict=True)), Fraction(0))
    cut = sum((flow.cost * count for flow, count in zip(flows, counts, strict=True) if flow.window), Fraction(0))
    if work * grid.scale / machine.capacity > ROOM:
        raise PlanError(
            "the simulated work would take too long", at="simulate", fix="lower costs, rates or the duration",
            name="limit_exceeded",
        )  # fmt: skip
    if machine.quantum is not None and cut / machine.quantum > MOST_PIECES:
        raise PlanError(
            f"window tasks would be cut into more than {MOST_PIECES:,} pieces", at="scheduler.quantum_ms",
            fix="give a larger quantum", name="limit_exceeded",
        )  # fmt: skip


def _costs(count: int, ticks: Fraction, draw: np.random.Generator, declared: Fraction, spread: Cost | None) -> Ints:
    """So many costs, in ticks; ``ticks`` is how long an operation takes."""
    if spread is None or not spread.deviation:
        return np.full(count, -int(-declared * ticks // 1), dtype=np.int64)
    drawn = draw.normal(float(spread.mean), float(spread.deviation), count)
    return np.maximum(1, np.rint(drawn * float(ticks))).astype(np.int64)


def run_policy(scenario: Scenario, machine: Machine, policy: AnyPolicy) -> dict[str, Outcome]:
    """What every flow got under a policy. QED and its kin take their batches and quanta from the machine."""
    if policy not in POLICIES:
        raise PlanError(f'unknown policy "{policy}"', at="simulate.policies", fix=did_you_mean(policy, POLICIES))
    flows, grid = scenario.flows, scenario.grid
    plan, cut = plan_for(flows, machine, policy), machine.quantum if policy == "p-qed" else None
    improved = scenario.deadlines if plan is None else _improved(scenario, plan, machine)
    sizes = np.array(plan.sizes if plan else [1] * len(flows), dtype=np.int64)
    pieces = [grid.ticks(cut / machine.capacity) if cut and flow.window else 0 for flow in flows]
    ranks = np.array([grid.ticks(flow.cost / machine.capacity) for flow in flows], dtype=np.int64)
    finishes, backlogs = np.zeros_like(scenario.arrivals), np.zeros(len(flows), dtype=np.int64)
    run_machine(
        scenario.starts, scenario.arrivals, scenario.deadlines, improved, scenario.costs, ranks, sizes,
        np.array(pieces, dtype=np.int64), _CODES.get(policy, EDF), finishes, backlogs,
    )  # fmt: skip
    return {flow.name: _outcome(scenario, n, finishes, int(backlogs[n])) for n, flow in enumerate(flows)}


def plan_for(flows: Sequence[Flow], machine: Machine, policy: AnyPolicy) -> BatchPlan | None:
    """The batches of a policy, where it has some."""
    if policy not in ("b-qed", "p-qed"):
        return None
    chosen: Policy = policy
    return plan_batches(flows, Machine(machine.capacity, chosen, machine.quantum, machine.test))


def _improved(scenario: Scenario, plan: BatchPlan, machine: Machine) -> Ints:
    parts = [
        deadlines_of(scenario.arrivals[scenario.part(n)], plan.improved(flow, machine.capacity), scenario.grid)
        for n, flow in enumerate(scenario.flows)
    ]
    return np.concatenate(parts)


def _outcome(scenario: Scenario, number: int, finishes: Ints, backlog: int) -> Outcome:
    part = scenario.part(number)
    done, came = finishes[part], scenario.arrivals[part]
    misses = int(np.count_nonzero(done > scenario.deadlines[part]))
    delay = float((done - came).max(initial=0)) / scenario.grid.scale
    own = scenario.flows[number].query in scenario.floods
    fault: Fault | None = None
    if misses:
        fault = "input" if own else "cost" if scenario.costly else "scheduler"
    return Outcome(len(done), misses, delay, backlog, fault)


def simulate(
    flows: Sequence[Flow],
    machine: Machine,
    *,
    duration: Exact,
    arrivals: Pattern = "adversarial",
    policies: Sequence[AnyPolicy] = POLICIES,
    seed: int = 0,
    flood: Mapping[str, Fraction] | None = None,
    costs: Mapping[str, Cost] | None = None,
) -> dict[str, dict[str, Outcome]]:
    """Every policy on the same arrivals: by policy and flow."""
    scenario = make_scenario(flows, machine, duration=duration, arrivals=arrivals, seed=seed, flood=flood, costs=costs)
    return {policy: run_policy(scenario, machine, policy) for policy in policies}
