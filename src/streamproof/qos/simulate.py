"""Simulation: tasks of several queries on one machine under a policy, event by event, in whole ticks.

Whatever the verifier admits never misses here; tests hold it to that over thousands of random sets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from streamproof.errors import PlanError, did_you_mean
from streamproof.qos.batching import BatchPlan, plan_batches
from streamproof.qos.exact import Exact, exact, rounded
from streamproof.qos.observed import Fault
from streamproof.qos.simulation_loop import EDF, FIFO, RATE, ROUND_ROBIN, run_machine
from streamproof.qos.tasks import Cost, Flow
from streamproof.qos.verifier import Machine, Policy
from streamproof.qos.workload import ROOM, Grid, Pattern, arrivals_of, deadlines_of, grid_for, offsets_of, rates_of

AnyPolicy: TypeAlias = Literal["fifo", "round-robin", "rate", "qed", "b-qed", "p-qed"]
POLICIES: Final[tuple[AnyPolicy, ...]] = get_args(AnyPolicy)
MOST_PIECES: Final = 20_000_000
_CODES: Final = {"fifo": FIFO, "round-robin": ROUND_ROBIN, "rate": RATE}
Ints = npt.NDArray[np.int64]


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
    grid: Grid
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


def _refuse_endless(flows: Sequence[Flow], counts: Sequence[int], machine: Machine, grid: Grid) -> None:
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
