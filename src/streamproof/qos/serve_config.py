"""The configuration of ``streamproof serve``: queries with wishes over files that are replayed by event time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from streamproof import documents
from streamproof.errors import PlanError
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.config import checked_object, needed, read_arrival, read_wish
from streamproof.qos.costs import QUANTILE, PushCost
from streamproof.qos.exact import exact, positive
from streamproof.qos.server import QueryServer
from streamproof.qos.service import QoS

_QUERY: Final = ("name", "plan", "inputs", "qos", "window_ms", "cost")


@dataclass(frozen=True)
class ServeInput:
    """One replayed file. Without an arrival curve, the smallest one that its replay keeps is taken."""

    file: Path
    mapping: str | None
    arrival: TokenBucket | None


@dataclass(frozen=True)
class ServeQuery:
    """One query: a plan, its files, its wish (None: the plan has it), its window, its cost or the quantile of it."""

    name: str
    plan: str
    inputs: Mapping[str, ServeInput]
    qos: QoS | None
    window: Fraction | None
    cost: PushCost | float


@dataclass(frozen=True)
class ServeConfig:
    """Everything that a run needs. Paths are those of the configuration's folder."""

    server: QueryServer
    speed: Fraction
    seconds: float
    queries: Sequence[ServeQuery]


def load_serve_config(path: Path) -> ServeConfig:
    """The configuration in a file."""
    known = ("share", "scheduler", "speed", "duration_s", "queries")
    top = checked_object(documents.load(path, exact=True), "the configuration", known)
    listed = needed(top, "queries", "")
    if not isinstance(listed, list) or not listed:
        raise PlanError("queries must be a list with at least one query", at="queries")
    queries = [_query(item, f"queries[{n}]", path.parent) for n, item in enumerate(listed)]
    names = [query.name for query in queries]
    if len(set(names)) < len(names):
        raise PlanError("two queries have the same name", at="queries", fix="choose another name")
    speed = positive(top.get("speed", 1), "the speed", at="speed")
    seconds = float(positive(top.get("duration_s", 10), "the duration", at="duration_s"))
    return ServeConfig(_server(top), speed, seconds, queries)


def _server(top: Mapping[str, Any]) -> QueryServer:
    found = checked_object(top.get("scheduler", {}), "scheduler", ("policy", "quantum_ms", "test"))
    quantum = exact(found.get("quantum_ms", 10), at="scheduler.quantum_ms")
    policy, test = found.get("policy", "p-qed"), found.get("test", "reserved")
    return QueryServer(share=top.get("share", "0.6"), policy=policy, quantum=quantum, test=test)


def _query(data: Any, at: str, folder: Path) -> ServeQuery:
    found = checked_object(data, at, _QUERY)
    inputs = checked_dict(needed(found, "inputs", f"{at}."), f"{at}.inputs")
    window = None if "window_ms" not in found else positive(found["window_ms"], "a window", at=f"{at}.window_ms")
    plan = str(needed(found, "plan", f"{at}."))
    return ServeQuery(
        str(needed(found, "name", f"{at}.")),
        str(folder / plan) if ":" not in plan else plan,
        {name: _input(item, f"{at}.inputs.{name}", folder) for name, item in inputs.items()},
        read_wish(found["qos"], f"{at}.qos") if "qos" in found else None,
        window,
        _cost(found.get("cost", {}), f"{at}.cost"),
    )


def checked_dict(data: Any, at: str) -> Mapping[str, Any]:
    """An object whose keys are names."""
    if not isinstance(data, dict) or not data:
        raise PlanError("this must be an object with a name for each part", at=at)
    return data


def _input(data: Any, at: str, folder: Path) -> ServeInput:
    found = checked_object(data, at, ("file", "map", "arrival"))
    file = folder / str(needed(found, "file", f"{at}."))
    if "arrival" not in found:
        return ServeInput(file, found.get("map"), None)
    arrival = read_arrival(found["arrival"], f"{at}.arrival")
    if not isinstance(arrival, TokenBucket):
        raise PlanError("a replayed stream is declared by burst and rate_per_ms", at=f"{at}.arrival")
    return ServeInput(file, found.get("map"), arrival)


def _cost(data: Any, at: str) -> PushCost | float:
    found = checked_object(data, at, ("push_ms", "row_ms", "quantile"))
    if "push_ms" in found:
        row = exact(found.get("row_ms", 0), at=f"{at}.row_ms")
        return PushCost(float(positive(found["push_ms"], "a cost", at=f"{at}.push_ms")), float(row))
    share = float(exact(found.get("quantile", str(QUANTILE)), at=f"{at}.quantile"))
    if not 0 < share < 1:
        raise PlanError(f"a quantile lies between 0 and 1, got {share:g}", at=f"{at}.quantile", fix="try 0.99")
    return share
