"""The configuration of ``streamproof qos``: read exactly, and refused with the path of the key that is wrong.

>>> text = '{"capacity": {"ops_per_ms": 10}, "queries": [{"name": "Q", "cost_ops": 0, "qos": {"max_latency_ms": 5}}]}'
>>> read_config(text)
Traceback (most recent call last):
streamproof.errors.PlanError: a cost must be positive, got 0
  at: queries[0].cost_ops
  fix: give a number above 0
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, get_args

from streamproof import documents
from streamproof.errors import PlanError, did_you_mean
from streamproof.qos.arrivals import Arrival, ArrivalCurve, TokenBucket, from_trace
from streamproof.qos.curves import Curve, piecewise, staircase
from streamproof.qos.exact import exact, positive, shown
from streamproof.qos.minplus import closure
from streamproof.qos.service import QoS, RateLatency, ServiceCurve
from streamproof.qos.simulate import POLICIES, AnyPolicy, Pattern
from streamproof.qos.tasks import Cost, Kind, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, Policy

CLOSED_FOR: Final = 4  # how many times the last breakpoint a closure is made for
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Simulate:
    """What to simulate."""

    duration: Fraction
    arrivals: Pattern = "adversarial"
    policies: tuple[AnyPolicy, ...] = POLICIES
    seed: int = 0
    flood: Mapping[str, Fraction] | None = None


@dataclass(frozen=True)
class Config:
    """A machine, the queries that want to run on it, and what to simulate."""

    machine: Machine
    queries: tuple[QosQuery, ...]
    simulate: Simulate | None = None


def load_config(path: Path) -> Config:
    """The configuration in a file."""
    return config_of(documents.load(path, exact=True))


def read_config(text: str) -> Config:
    """A configuration from its JSON text."""
    return config_of(documents.parse(text, exact=True))


def config_of(data: Any) -> Config:
    """A configuration from plain data."""
    top = checked_object(data, "the configuration", ("capacity", "scheduler", "queries", "simulate"))
    capacity = checked_object(needed(top, "capacity", ""), "capacity", ("ops_per_ms",))
    machine = read_machine(needed(capacity, "ops_per_ms", "capacity."), top.get("scheduler", {}))
    listed = needed(top, "queries", "")
    if not isinstance(listed, list) or not listed:
        raise PlanError("queries must be a list with at least one query", at="queries")
    queries = tuple(_query(item, f"queries[{n}]") for n, item in enumerate(listed))
    _refuse_twice([query.name for query in queries])
    return Config(machine, queries, _simulate(top["simulate"], queries) if "simulate" in top else None)


def checked_object(data: Any, at: str, known: Sequence[str]) -> Object:
    if not isinstance(data, dict):
        raise PlanError(f"{at} must be an object, got {_kind(data)}", at=at, fix="write {…}, with its keys")
    for key in data:
        if key not in known:
            where = key if at == "the configuration" else f"{at}.{key}"
            raise PlanError(f'unknown key "{key}"', at=where, fix=did_you_mean(key, known))
    return data


def _kind(data: object) -> str:
    return "null" if data is None else type(data).__name__


def needed(data: Object, key: str, before: str) -> Any:
    if key not in data:
        raise PlanError(f'the key "{key}" is missing', at=f"{before}{key}")
    return data[key]


def _refuse_twice(names: Sequence[str]) -> None:
    seen = set[str]()
    for n, name in enumerate(names):
        if name in seen:
            raise PlanError(f'two queries are called "{name}"', at=f"queries[{n}].name", fix="choose another name")
        seen.add(name)


def read_machine(ops: Any, scheduler: Any) -> Machine:
    found = checked_object(scheduler, "scheduler", ("policy", "quantum_ms", "test"))
    policy, test = found.get("policy", "p-qed"), found.get("test", "reserved")
    if policy in POLICIES and policy not in get_args(Policy):
        raise PlanError(
            f'"{policy}" guarantees nothing', at="scheduler.policy",
            fix="use qed, b-qed or p-qed here; simulate.policies compares them with it",
        )  # fmt: skip
    if not isinstance(policy, str) or not isinstance(test, str):
        raise PlanError("policy and test are words", at="scheduler")
    return Machine.of(ops, policy=policy, quantum_ms=found.get("quantum_ms"), test=test)  # type: ignore[arg-type]  # it checks the words


# --- queries ----------------------------------------------------------------------------------------------------------

_ARRIVAL: Final = ("burst", "rate_per_ms", "peak_per_ms", "trace", "points", "every_ms", "step", "jitter_ms")
_QUERY: Final = ("name", "task", "cost_ops", "arrival", "inputs", "service", "qos")


def _query(data: Any, at: str) -> QosQuery:
    found = checked_object(data, at, _QUERY)
    name = needed(found, "name", f"{at}.")
    if not isinstance(name, str) or not name:
        raise PlanError("a name is text", at=f"{at}.name")
    task = found.get("task", "basic")
    if task not in get_args(Kind):
        raise PlanError(f"unknown task {task!r}", at=f"{at}.task", fix='use "basic" or "window"')
    if ("service" in found) == ("qos" in found):
        raise PlanError(f'the query "{name}" needs either service or qos', at=at, fix="give one of them")
    return QosQuery(
        name,
        _inputs(found, at),
        task,
        service=_service(found["service"], f"{at}.service") if "service" in found else None,
        qos=read_wish(found["qos"], f"{at}.qos") if "qos" in found else None,
    )


def _inputs(found: Object, at: str) -> tuple[QueryInput, ...]:
    if "inputs" not in found:
        cost = _cost(needed(found, "cost_ops", f"{at}."), f"{at}.cost_ops")
        return (QueryInput(cost, read_arrival(needed(found, "arrival", f"{at}."), f"{at}.arrival")),)
    if "cost_ops" in found or "arrival" in found:
        raise PlanError("a query with inputs has cost_ops and arrival in each of them", at=at)
    listed = found["inputs"]
    if not isinstance(listed, list) or not listed:
        raise PlanError("inputs must be a list with at least one input", at=f"{at}.inputs")
    return tuple(_input(item, f"{at}.inputs[{n}]") for n, item in enumerate(listed))


def _input(data: Any, at: str) -> QueryInput:
    found = checked_object(data, at, ("name", "cost_ops", "arrival"))
    cost = _cost(needed(found, "cost_ops", f"{at}."), f"{at}.cost_ops")
    return QueryInput(
        cost, read_arrival(needed(found, "arrival", f"{at}."), f"{at}.arrival"), str(found.get("name", ""))
    )


def _cost(data: Any, at: str) -> Cost:
    if not isinstance(data, dict):
        return Cost(data, at=at)
    found = checked_object(data, at, ("mean", "stdev", "quantile"))
    return Cost(needed(found, "mean", f"{at}."), deviation=found.get("stdev", 0), quantile=found.get("quantile"), at=at)


def read_arrival(data: Any, at: str) -> Arrival:
    found = checked_object(data, at, _ARRIVAL)
    if "trace" in found:
        return _from_trace(found, at)
    if "points" in found:
        curve = _points(found, at)
        return ArrivalCurve(closure(curve, max(Fraction(1), *curve.breakpoints) * CLOSED_FOR))
    if "every_ms" in found:
        every = positive(found["every_ms"], "a period", at=f"{at}.every_ms")
        jitter = exact(found.get("jitter_ms", 0), at=f"{at}.jitter_ms")
        if jitter < 0:
            raise PlanError(f"a jitter must not be negative, got {shown(jitter)}", at=f"{at}.jitter_ms")
        return ArrivalCurve(staircase(positive(found.get("step", 1), "a step", at=f"{at}.step"), every, jitter=jitter))
    burst, rate = needed(found, "burst", f"{at}."), needed(found, "rate_per_ms", f"{at}.")
    return TokenBucket(burst, rate, peak=found.get("peak_per_ms"), at=at)


def _from_trace(found: Object, at: str) -> TokenBucket:
    times = found["trace"]
    if not isinstance(times, list):
        raise PlanError("a trace is a list of times in milliseconds", at=f"{at}.trace")
    numbers = [float(exact(time, at=f"{at}.trace[{n}]")) for n, time in enumerate(times)]
    try:
        return from_trace(numbers, rate=found.get("rate_per_ms"))
    except PlanError as error:
        raise error.located(f"{at}.trace") from None


def _points(found: Object, at: str) -> Curve:
    points = found["points"]
    if not isinstance(points, list) or not all(isinstance(point, list) and len(point) == 2 for point in points):
        raise PlanError("points is a list of [time, tasks]", at=f"{at}.points")
    try:
        return piecewise([(x, y) for x, y in points], rate=needed(found, "rate_per_ms", f"{at}."))
    except PlanError as error:
        raise error.located(f"{at}.points") from None


def _service(data: Any, at: str) -> RateLatency | ServiceCurve:
    found = checked_object(data, at, ("rate_per_ms", "latency_ms", "points"))
    if "points" in found:
        try:
            return ServiceCurve(_points(found, at))
        except PlanError as error:
            raise error.located(f"{at}.points") from None
    return RateLatency(needed(found, "rate_per_ms", f"{at}."), needed(found, "latency_ms", f"{at}."), at=at)


def read_wish(data: Any, at: str) -> QoS:
    found = checked_object(data, at, ("max_latency_ms", "max_backlog"))
    latency = positive(needed(found, "max_latency_ms", f"{at}."), "max_latency_ms", at=f"{at}.max_latency_ms")
    backlog = found.get("max_backlog")
    if backlog is not None and exact(backlog, at=f"{at}.max_backlog") < 1:
        raise PlanError(f"max_backlog must be at least 1, got {shown(exact(backlog))}", at=f"{at}.max_backlog")
    return QoS(latency, None if backlog is None else exact(backlog))


# --- simulation -------------------------------------------------------------------------------------------------------


def _simulate(data: Any, queries: Sequence[QosQuery]) -> Simulate:
    found = checked_object(data, "simulate", ("duration_ms", "arrivals", "policies", "seed", "flood"))
    duration = positive(needed(found, "duration_ms", "simulate."), "a duration", at="simulate.duration_ms")
    arrivals, policies = found.get("arrivals", "adversarial"), found.get("policies", list(POLICIES))
    if arrivals not in get_args(Pattern):
        fix = did_you_mean(str(arrivals), get_args(Pattern))
        raise PlanError(f'unknown arrivals "{arrivals}"', at="simulate.arrivals", fix=fix)
    if not isinstance(policies, list) or not policies:
        raise PlanError("policies is a list of policies", at="simulate.policies", fix=f"use {', '.join(POLICIES)}")
    for n, policy in enumerate(policies):
        if policy not in POLICIES:
            fix = did_you_mean(str(policy), POLICIES)
            raise PlanError(f'unknown policy "{policy}"', at=f"simulate.policies[{n}]", fix=fix)
    seed = found.get("seed", 0)
    if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
        raise PlanError(f"a seed is a whole number of at least 0, got {seed!r}", at="simulate.seed")
    return Simulate(duration, arrivals, tuple(policies), seed, _flood(found.get("flood"), queries))


def _flood(data: Any, queries: Sequence[QosQuery]) -> dict[str, Fraction] | None:
    if data is None:
        return None
    names = [query.name for query in queries]
    found = checked_object(data, "simulate.flood", names)
    return {name: positive(rate, "a rate", at=f"simulate.flood.{name}") for name, rate in found.items()}
