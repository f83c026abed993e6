"""Numbers at the ends of what 64 bits hold, wherever a plan or a run takes a number: the engines agree, or refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import streamproof as sp
from streamproof.engines.job import on
from streamproof.errors import StreamproofError
from streamproof.plan.limits import Limits

S = sp.source("S", {"k": "string", "v": "int64"})
ROWS = [
    {"kind": "insert", "id": f"{n}", "le": le, "re": re, "payload": {"k": "ab"[n % 2], "v": n}}
    for n, (le, re) in enumerate([(-7, "inf"), (0, 5), (2, 9), (3, 4)])
]
VALUES = (2**62 - 1, 2**62, 2**63 - 1, 2**63, 10**30, -(2**62), -(2**63), -(2**63) - 1, -(10**30))
COUNTED = S.tumbling(5).aggregate(n=sp.median("v"))
PLACES: dict[str, Callable[[int], tuple[sp.Stream, dict[str, Any]]]] = {
    "top": lambda x: (S.snapshot().top(x, by=sp.desc("v")), {}),
    "count_start": lambda x: (S.count_start(x).aggregate(n=sp.count()), {}),
    "count_end": lambda x: (S.count_end(x).aggregate(n=sp.count()), {}),
    "tumbling": lambda x: (S.tumbling(x).aggregate(n=sp.count()), {"horizon": 20}),
    "offset": lambda x: (S.tumbling(5, offset=x).aggregate(n=sp.count()), {"horizon": 20}),
    "hopping": lambda x: (S.hopping(x, 5).aggregate(n=sp.count()), {"horizon": 20}),
    "hop": lambda x: (S.hopping(5, x).aggregate(n=sp.count()), {"horizon": 20}),
    "shift": lambda x: (S.shift(x), {}),
    "extend": lambda x: (S.extend(x), {}),
    "alter_duration": lambda x: (S.alter_duration(x), {}),
    "chop": lambda x: (S.chop(x), {"horizon": 20}),
    "session": lambda x: (S.session(x, key="k"), {}),
    "delay": lambda x: (S.advance_time(every=1, delay=x), {}),
    "every": lambda x: (S.advance_time(every=x, delay=0), {}),
    "every_duration": lambda x: (S.advance_time(every_duration=x, delay=0), {}),
    "horizon": lambda x: (COUNTED, {"horizon": x}),
    "windows_per_event": lambda x: (COUNTED, {"horizon": 20, "limits": Limits(windows_per_event=x)}),
    "events_listed": lambda x: (COUNTED, {"horizon": 20, "limits": Limits(events_listed=x)}),
}


def _gives(engine: str, place: str, value: int) -> object:
    """The history, or the name of the error; anything that is not ours is raised."""
    try:
        plan, settings = PLACES[place](value)
        return on(plan.plan, engine, **settings).run({"S": ROWS}).history.to_json_lines()
    except StreamproofError as error:
        return {error.name}


@pytest.mark.parametrize("place", PLACES)
def test_no_number_is_too_large_to_be_told(place: str) -> None:
    for value in VALUES:
        local, duckdb = _gives("local", place, value), _gives("duckdb", place, value)
        refused = isinstance(local, set)  # the local engine asks for a little more room
        assert local == duckdb or (refused and local <= {"overflow", "limit_exceeded"}), value


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf")])
def test_a_latency_is_a_time(latency: float) -> None:
    with pytest.raises(StreamproofError, match="a latency of"):
        on(S.plan, "local", latency=latency)
