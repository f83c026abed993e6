"""What quality of service costs: admission of many queries, simulation, and the scheduler beside the work it schedules.

python benchmarks/bench_qos.py [--queries 1000] [--seconds 5]

Admission is compared with the response-time analysis of the package response-time-analysis (PROSA's, in Python) on sets
of sporadic tasks that both understand; simulation with the scheduler's own parts, one task at a time in Python.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from response_time_analysis import edf
from response_time_analysis.model import WCET, Deadline, FullyNonPreemptive, IdealProcessor, Sporadic, Task, taskset

import streamproof as sp
from streamproof.events.schema import Schema
from streamproof.generate import Facets
from streamproof.qos.admission import admit
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.costs import declared
from streamproof.qos.demand import Demand
from streamproof.qos.scheduler import QedScheduler
from streamproof.qos.server import QueryServer
from streamproof.qos.service import QoS, RateLatency
from streamproof.qos.serving import EventReplay, serve
from streamproof.qos.simulate import Scenario, make_scenario, plan_for, run_policy
from streamproof.qos.tasks import Cost, Flow, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, SchedulabilityVerifier


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def many_queries(count: int) -> tuple[list[QosQuery], Fraction]:
    """Queries with wishes, and the operations per ms that they need."""
    draw = random.Random(5)
    queries = [
        QosQuery(
            f"q{n}",
            (
                QueryInput(
                    Cost(draw.randint(10, 1000)), TokenBucket(draw.randint(1, 20), f"{draw.randint(1, 1000)}/100000")
                ),
            ),
            qos=QoS(Fraction(draw.randint(500, 60_000))),
        )
        for n in range(count)
    ]
    needed = sum((q.inputs[0].cost.declared * q.inputs[0].arrival.buckets[-1][1] for q in queries), Fraction(0))
    return queries, needed


def admission(count: int) -> dict[str, float]:
    """CPU seconds to admit so many queries, by test and load."""
    queries, needed = many_queries(count)
    found = {}
    for test in ("reserved", "policed"):
        for load in ("0.5", "0.9", "0.99", "1.01"):
            machine = Machine.of(needed / Fraction(load), policy="b-qed", test=test)  # type: ignore[arg-type]
            found[f"{test}, load {load}"] = round(seconds(lambda m=machine: admit(queries, m)), 3)  # type: ignore[misc]
    return found


def against_rta(count: int) -> dict[str, float]:
    """The policed test and the response-time analysis on the same sporadic tasks."""
    draw = random.Random(7)
    tasks = [(draw.randint(1, 4), gap := draw.randint(40 * count, 80 * count), 2 * gap) for _ in range(count)]
    flows = [
        Flow(f"t{n}", f"t{n}", Fraction(c), TokenBucket(1, Fraction(1, p)), RateLatency(Fraction(1, p), d - p))
        for n, (c, p, d) in enumerate(tasks)
    ]
    known = [Task(Sporadic(p), FullyNonPreemptive(WCET(c)), Deadline(d)) for c, p, d in tasks]
    ours = seconds(lambda: Demand(flows, [flow.cost for flow in flows], Fraction(1)).search())
    theirs = seconds(lambda: [edf.rta(taskset(*known), task, IdealProcessor(), horizon=10**7) for task in known])
    return {"ours": round(ours, 4), "response-time-analysis": round(theirs, 4), "ratio": round(theirs / ours, 1)}


def by_parts(scenario: Scenario, machine: Machine) -> None:
    """The scenario through the scheduler's parts, in virtual time."""
    flows, scale = scenario.flows, scenario.grid.scale
    parts = QedScheduler(flows, plan_for(flows, machine, "b-qed"), machine.capacity)
    coming = sorted(
        (int(scenario.arrivals[n]), f, n) for f in range(len(flows)) for n in range(*scenario.part(f).indices(1 << 60))
    )
    now, position = 0, 0
    while position < len(coming) or len(parts):
        while position < len(coming) and coming[position][0] <= now:
            came, flow, number = coming[position]
            parts.arrive(flow, came / scale, number)
            position += 1
        work = parts.next()
        if work is None:
            now = coming[position][0]
            continue
        now += sum(int(scenario.costs[task.content]) for task in work.tasks)  # type: ignore[call-overload]


def simulation() -> dict[str, float]:
    """Tasks per CPU second, compiled and by parts."""
    machine = Machine.of(1000, policy="b-qed")
    queries = [
        QosQuery(f"q{n}", (QueryInput(Cost(100), TokenBucket(5, "1/2")),), service=RateLatency("1/2", 20))
        for n in range(15)
    ]
    flows = SchedulabilityVerifier(machine).check(queries).flows
    scenario = make_scenario(flows, machine, duration=20_000)
    run_policy(scenario, machine, "b-qed")  # compiles
    compiled, parts = (
        seconds(lambda: run_policy(scenario, machine, "b-qed")),
        seconds(lambda: by_parts(scenario, machine)),
    )
    count = len(scenario.arrivals)
    return {"compiled": round(count / compiled), "parts": round(count / parts), "ratio": round(parts / compiled, 1)}


def overhead(queries: int, duration: float) -> dict[str, float]:
    """The share of a processor that scheduling takes beside so many running queries."""
    schema = Schema.of({"k": "string", "v": "int64"}, unit="ms")
    server, inputs = QueryServer(share="1"), {}
    stream = sp.generated(schema, 4000, 1, Facets(shape="point"))
    span = EventReplay.of(stream).times[-1]
    replay = EventReplay.of(stream, speed=Fraction(span / (1000 * duration)).limit_denominator(1000))
    plan = sp.source("S").where("v > 0")
    for number in range(queries):
        name = f"q{number}"
        found = server.register(
            plan, QoS("4 s"), name=name, arrival=replay.arrival(), cost=declared(3, 0.001), schemas={"S": schema}
        )
        assert found.admitted, found.text
        inputs[name] = {"S": replay}
    run = serve(server, inputs).run(duration)
    pushes = sum(seen.pushes for seen in run.observed.values())
    return {
        "queries": queries, "pushes": pushes, "busy share": round(run.busy_share, 3),
        "scheduling share": round(run.scheduling_share, 4),
        "scheduling per push, µs": round(1e6 * run.scheduling_share * run.elapsed / max(1, pushes), 1),
    }  # fmt: skip


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--queries", type=int, default=1000)
    options.add_argument("--seconds", type=float, default=5.0)
    asked = options.parse_args()
    found = {
        f"admission of {asked.queries} queries, CPU seconds": admission(asked.queries),
        "40 sporadic tasks, CPU seconds": against_rta(40),
        "simulated tasks per CPU second": simulation(),
        "scheduling": overhead(100, asked.seconds),
    }
    print(json.dumps(found, indent=2, ensure_ascii=False))
    place = Path(__file__).parent / "results" / f"qos-{datetime.now(UTC):%Y-%m-%d}.json"
    place.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
