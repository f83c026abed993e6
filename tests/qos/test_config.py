"""Configurations: read exactly, and refused with the path of the key that is wrong."""

from __future__ import annotations

import json
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from streamproof.errors import PlanError, StreamproofError
from streamproof.qos.config import read_config
from streamproof.qos.serve_config import load_serve_config
from streamproof.qos.service import RateLatency
from streamproof.qos.simulate import POLICIES

WORKED = json.loads((Path(__file__).parents[2] / "examples/qos/worked.json").read_text())


def changed(path: str, value: object) -> str:
    """The worked example with one value replaced; ``queries.0.arrival.burst`` is such a path."""
    data: Any = deepcopy(WORKED)
    *way, last = path.split(".")
    place = data
    for step in way:
        place = place[int(step)] if step.isdigit() else place[step]
    place[int(last) if last.isdigit() else last] = value
    return json.dumps(data)


@pytest.mark.parametrize(
    ("path", "value", "what", "at"),
    [
        ("capacity.ops_per_ms", 0, "the capacity must be positive, got 0", "capacity.ops_per_ms"),
        ("capacity.ops_per_s", 1, 'unknown key "ops_per_s"', "capacity.ops_per_s"),
        ("scheduler.policy", "lifo", 'unknown policy "lifo"', "scheduler.policy"),
        ("scheduler.policy", "fifo", '"fifo" guarantees nothing', "scheduler.policy"),
        ("scheduler.test", "hope", 'unknown test "hope"', "scheduler.test"),
        ("scheduler.quantum_ms", -1, "the quantum must be positive, got -1", "scheduler.quantum_ms"),
        ("queries", [], "queries must be a list with at least one query", "queries"),
        ("queries.0.cost_ops", -5, "a cost must be positive, got -5", "queries[0].cost_ops"),
        ("queries.0.cost_ops", True, "True is not a number", "queries[0].cost_ops"),
        ("queries.0.cost_ops", {"mean": 5, "stdev": 1}, "needs a quantile", "queries[0].cost_ops"),
        ("queries.0.arrival.burst", 0.5, "a burst must be at least 1 task, got 0.5", "queries[0].arrival.burst"),
        ("queries.1.arrival.rate_per_ms", -1, "a rate must be positive, got -1", "queries[1].arrival.rate_per_ms"),
        ("queries.1.arrival.rate_per_ms", "fast", "'fast' is not a number", "queries[1].arrival.rate_per_ms"),
        ("queries.1.arrival.sigma", 1, 'unknown key "sigma"', "queries[1].arrival.sigma"),
        ("queries.0.service.latency_ms", -1, "a latency must not be negative, got -1", "queries[0].service.latency_ms"),
        ("queries.0.service.rate_per_ms", 0, "a rate must be positive, got 0", "queries[0].service.rate_per_ms"),
        ("queries.0.qos", {"max_latency_ms": 5}, 'the query "Q1" needs either service or qos', "queries[0]"),
        ("queries.2.task", "big", "unknown task 'big'", "queries[2].task"),
        ("queries.1.name", "Q1", 'two queries are called "Q1"', "queries[1].name"),
        ("queries.0", 3, "queries[0] must be an object, got int", "queries[0]"),
        ("simulate.duration_ms", 0, "a duration must be positive, got 0", "simulate.duration_ms"),
        ("simulate.arrivals", "calm", 'unknown arrivals "calm"', "simulate.arrivals"),
        ("simulate.policies", ["fifo", "lifo"], 'unknown policy "lifo"', "simulate.policies[1]"),
        ("simulate.seed", -1, "a seed is a whole number of at least 0", "simulate.seed"),
        ("simulate.flood", {"Q9": 1}, 'unknown key "Q9"', "simulate.flood.Q9"),
        ("queries.0.cost_ops", 1e300, "1E+300 is out of reach", "queries[0].cost_ops"),
        ("extra", 1, 'unknown key "extra"', "extra"),
        ("queries.0.arrival", {"trace": 3}, "a trace is a list of times", "queries[0].arrival.trace"),
        ("queries.0.arrival", {"trace": []}, "", "queries[0].arrival.trace"),
        ("queries.0.arrival", {"trace": [1, "x"]}, "", "queries[0].arrival.trace[1]"),
        ("queries.0.arrival", {"trace": [5, 1]}, "", "queries[0].arrival.trace"),
        ("queries.0.arrival", {"points": [[0]], "rate_per_ms": 1}, "points is a list", "queries[0].arrival.points"),
        ("queries.0.arrival", {"points": [[5, 1], [0, 0]], "rate_per_ms": 1}, "", "queries[0].arrival.points"),
        ("queries.0.arrival", {"points": [[0, 0]]}, "", "queries[0].arrival.rate_per_ms"),
        ("queries.0.arrival", {"every_ms": 0}, "a period must be positive", "queries[0].arrival.every_ms"),
        ("queries.0.arrival", {"every_ms": 5, "step": 0}, "a step must be", "queries[0].arrival.step"),
        ("queries.0.arrival", {"every_ms": 5, "jitter_ms": -1}, "a jitter must", "queries[0].arrival.jitter_ms"),
        ("queries.0.service", {"points": [[5, 1], [0, 0]], "rate_per_ms": 1}, "", "queries[0].service.points"),
    ],
)
def test_nonsense_is_refused_with_its_place(path: str, value: object, what: str, at: str) -> None:
    with pytest.raises(PlanError) as error:
        read_config(changed(path, value))
    assert what in error.value.what
    assert error.value.at == at


@pytest.mark.parametrize("value", [None, "", 3, True, [], {}, ["basic"]], ids=repr)
@pytest.mark.parametrize("path", [
    "queries.0.name", "queries.2.task", "scheduler.policy", "scheduler.test", "simulate.arrivals",
    "simulate.policies.0",
])  # fmt: skip
def test_words_are_words(path: str, value: object) -> None:
    with pytest.raises(StreamproofError) as error:
        read_config(changed(path, value))
    place = path.split(".")
    assert place[0] in (error.value.at or "")


@pytest.mark.parametrize(("latency", "what"), [(0, "must be positive, got 0"), (-3, "must be positive, got -3")])
def test_a_latency_of_nothing_is_refused(latency: int, what: str) -> None:
    data = deepcopy(WORKED)
    del data["queries"][0]["service"]
    data["queries"][0]["qos"] = {"max_latency_ms": latency}
    with pytest.raises(PlanError, match=what) as error:
        read_config(json.dumps(data))
    assert error.value.at == "queries[0].qos.max_latency_ms"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "this is not JSON"),
        ('{"capacity": {"ops_per_ms": NaN}}', "NaN is not a number"),
        ('{"capacity": {"ops_per_ms": 1}}', 'the key "queries" is missing'),
        ('{"queries": [], "queries": []}', 'the key "queries" appears twice'),
        ("[" * 100_000, "the document is nested more than 64 deep"),
        ("[]", "the configuration must be an object, got list"),
    ],
)
def test_what_is_no_configuration_is_refused(text: str, what: str) -> None:
    with pytest.raises(StreamproofError, match=what):
        read_config(text)


def test_numbers_are_taken_as_they_are_written() -> None:
    found = read_config(changed("queries.0.service", {"rate_per_ms": 0.1, "latency_ms": "1/3"}))
    assert found.queries[0].service == RateLatency(Fraction(1, 10), Fraction(1, 3))


def test_arrivals_can_be_traces_points_and_periods() -> None:
    trace = read_config(changed("queries.0.arrival", {"trace": [0, 0, 1, 2.5, 10]})).queries[0].inputs[0].arrival
    assert trace.buckets == ((Fraction(11, 4), Fraction(1, 2)),)
    period = read_config(changed("queries.0.arrival", {"every_ms": 5, "step": 2})).queries[0].inputs[0].arrival
    assert [period.moment(n) for n in (1, 2, 3)] == [0, 0, 5]
    points = {"points": [[0, 0], [0, 2], [10, 4]], "rate_per_ms": 1}
    bent = read_config(changed("queries.0.arrival", points)).queries[0].inputs[0].arrival
    assert [bent.moment(n) for n in (2, 3)] == [0, 5]


def test_what_is_left_out_is_what_the_docs_say() -> None:
    query = {"name": "Q", "cost_ops": 200, "arrival": {"burst": 10, "rate_per_ms": 1}, "qos": {"max_latency_ms": 90}}
    machine = {"capacity": {"ops_per_ms": 1000}, "queries": [query]}
    spoken = {**machine, "scheduler": {"policy": "p-qed", "test": "reserved"}, "queries": [{**query, "task": "basic"}]}
    assert read_config(json.dumps(machine)) == read_config(json.dumps(spoken))
    simulated = {**machine, "simulate": {"duration_ms": 50}}
    whole = {"duration_ms": 50, "arrivals": "adversarial", "policies": list(POLICIES), "seed": 0}
    assert read_config(json.dumps(simulated)) == read_config(json.dumps({**machine, "simulate": whole}))


def test_what_a_server_is_not_told_is_what_the_docs_say(tmp_path: Path) -> None:
    query = {"name": "q", "plan": "p.json", "inputs": {"S": {"file": "s.csv"}}}
    machine = {"policy": "p-qed", "quantum_ms": 10, "test": "reserved"}
    spoken = {
        "share": 0.6,
        "scheduler": machine,
        "speed": 1,
        "duration_s": 10,
        "queries": [{**query, "cost": {"quantile": 0.99}}],
    }
    found = []
    for document in ({"queries": [query]}, spoken):
        (tmp_path / "serve.json").write_text(json.dumps(document))
        read = load_serve_config(tmp_path / "serve.json")
        found.append((read.server.share, read.server.machine, read.speed, read.seconds, read.queries))
    assert found[0] == found[1]
