"""Where windows leave gaps, an event that falls into one is neither read nor kept."""

from __future__ import annotations

import pytest

import streamproof as sp

LEAST = -(2**63)  # whose size does not fit
EVENTS = [
    {"kind": "insert", "id": "between", "le": 0, "re": 2, "payload": {"v": LEAST}},
    {"kind": "insert", "id": "inside", "le": 0, "re": 3, "payload": {"v": -5}},
    {"kind": "cti", "t": 9},
]
WINDOWS = sp.source("S", {"v": "int64"}).hopping(3, hop=7, offset=2)  # [2, 5), [9, 12), …
STREAMS = {
    "sum": WINDOWS.aggregate(v=sp.sum("abs(v)")),
    "max": WINDOWS.aggregate(v=sp.max("abs(v)")),
    "top": WINDOWS.top(1, by=sp.desc("abs(v)")),
}


@pytest.mark.parametrize("name", STREAMS)
def test_only_what_is_in_a_window_is_read(name: str) -> None:
    found = STREAMS[name].on("local").run({"S": EVENTS}).history.rows
    assert [(row["le"], row["re"], abs(row["v"])) for row in found.to_pylist()] == [(2, 5, 5)]


@pytest.mark.parametrize("name", STREAMS)
def test_an_event_in_a_window_is_read(name: str) -> None:
    inside = [EVENTS[0] | {"re": 3}, EVENTS[2]]
    with pytest.raises(sp.RunError, match="does not fit into int64"):
        STREAMS[name].on("local").run({"S": inside})


@pytest.mark.parametrize("name", STREAMS)
def test_what_has_no_start_is_refused_however_short_it_is(name: str) -> None:
    early = [EVENTS[0] | {"le": "-inf", "re": -(2**62) + 1, "payload": {"v": 1}}, EVENTS[2]]
    with pytest.raises(sp.RunError, match="infinitely many windows"):
        STREAMS[name].on("local").run({"S": early})
