"""The scheduler's parts, and their agreement with the compiled simulation, task by task."""

from __future__ import annotations

import random

import numpy as np
import pytest

from streamproof.qos.curves import piecewise
from streamproof.qos.scheduler import CurveDeadlines, PriorityOrderList, QedScheduler, deadlines_for
from streamproof.qos.service import RateLatency, ServiceCurve
from streamproof.qos.simulate import Scenario, make_scenario, plan_for, run_policy
from streamproof.qos.simulation_loop import curve_deadlines
from streamproof.qos.verifier import Machine, SchedulabilityVerifier
from tests.qos.sets import random_set


def run_parts(scenario: Scenario, machine: Machine) -> dict[str, float]:
    """The same scenario through receiver, organizer, list and trigger, with a clock made of ticks."""
    flows, scale = scenario.flows, scenario.grid.scale
    cut = machine.cut
    pieces = [int(-(-flow.cost // cut)) if cut is not None and flow.window else 1 for flow in flows]
    parts = QedScheduler(flows, plan_for(flows, machine, machine.policy), machine.capacity, pieces=pieces)
    coming = sorted(
        (int(scenario.arrivals[n]), f, n) for f in range(len(flows)) for n in range(*scenario.part(f).indices(10**9))
    )
    now, position, longest = 0, 0, dict.fromkeys((flow.name for flow in flows), 0.0)
    while True:
        while position < len(coming) and coming[position][0] <= now:
            time, flow, number = coming[position]
            parts.arrive(flow, time / scale, number)
            position += 1
        work = parts.next()
        if work is None:
            if position == len(coming):
                return longest
            now = coming[position][0]
            continue
        costs = [int(scenario.costs[task.content]) for task in work.tasks]  # type: ignore[index, call-overload]
        if pieces[work.flow] > 1 and len(work.tasks) == 1:
            quantum = scenario.grid.ticks(cut / machine.capacity)  # type: ignore[operator]
            costs = [min(quantum, costs[0] - work.piece * quantum)]
        now += sum(costs)
        if work.last:
            name = flows[work.flow].name
            longest[name] = max(longest[name], *(now / scale - task.came for task in work.tasks))


def test_the_parts_do_what_the_simulation_does() -> None:
    compared = 0
    for seed in range(80):
        queries, machine = random_set(seed)
        flows = SchedulabilityVerifier(machine).check(queries, first=False).flows
        if any(flow.delay == float("inf") for flow in flows):
            continue
        scenario = make_scenario(flows, machine, duration=600, arrivals="random", seed=seed)
        wanted = {name: got.max_delay for name, got in run_policy(scenario, machine, machine.policy).items()}
        found = run_parts(scenario, machine)
        if len({*scenario.deadlines}) == len(scenario.deadlines):  # else ties may be broken differently
            assert found == pytest.approx(wanted), seed
            compared += 1
        assert sum(found.values()) == pytest.approx(sum(wanted.values()), rel=0.5)
    assert compared > 3


def test_the_priority_list_is_a_heap_with_moving_places() -> None:
    draw, order, known = random.Random(3), PriorityOrderList(), {}
    for _ in range(2000):
        flow = draw.randrange(20)
        if draw.random() < 0.2:
            order.drop(flow)
            known.pop(flow, None)
        else:
            known[flow] = draw.random()
            order.put(flow, known[flow])
        assert order.first() == min(known, key=known.__getitem__, default=None)
        assert len(order) == len(known)


def test_deadlines_of_a_line_are_those_of_its_curve() -> None:
    draw = random.Random(4)
    times = np.cumsum([draw.choice([0, 0, 1, 3, 20]) for _ in range(300)])
    line, curve = deadlines_for(RateLatency("1/4", 7)), CurveDeadlines(RateLatency("1/4", 7))
    assert [line.add(float(t)) for t in times] == [curve.add(float(t)) for t in times]


def test_deadlines_of_a_curve_follow_the_definition() -> None:
    draw = random.Random(5)
    service = ServiceCurve(piecewise([(0, 0), (5, 0), (9, 2), (10, 2)], rate=1))
    times = np.cumsum([draw.choice([0, 0, 1, 3, 20]) for _ in range(200)]).astype(np.int64) * 12
    table = np.array([int(service.time_for(n) * 12) for n in range(1, 201)], dtype=np.int64)
    clock = deadlines_for(service)
    assert [clock.add(t / 12) for t in times] == pytest.approx((curve_deadlines(times, table) / 12).tolist())
