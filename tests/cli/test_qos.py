"""``streamproof qos``: admission, bounds, simulation and plots, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import pytest

from tests.cli.conftest import Done

Run = Callable[..., Done]
WORKED = Path(__file__).parents[2] / "examples/qos/worked.json"
DATA = json.loads(WORKED.read_text())


def test_the_worked_example_as_json(run: Run) -> None:
    done = run("qos", WORKED, "--json")
    assert done.code == 0, done
    found = json.loads(done.out)
    bounds = [(q["name"], q["admitted"], q["delay_bound_ms"], q["backlog_bound"]) for q in found["queries"]]
    assert bounds == [("Q1", True, 30.0, 30.0), ("Q2", True, 20.0, 10.0), ("Q3", True, 200.0, 1.2)]
    assert (found["load"], found["reserved"], found["slack_ms"]) == (0.56, 0.666667, 11.1)
    assert found["batches"] == {"factor": 1.5, "longest_ms": 4.8, "sizes": {"Q1": 24, "Q2": 5, "Q3": 1}}
    assert list(found["simulation"]) == ["fifo", "round-robin", "rate", "qed", "b-qed", "p-qed"]
    assert {"misses", "miss_percent", "max_delay_ms", "max_backlog"} <= set(found["simulation"]["fifo"]["Q1"])
    assert [found["simulation"]["p-qed"][name]["misses"] for name in ("Q1", "Q2", "Q3")] == [0, 0, 0]
    assert [round(found["simulation"]["fifo"][name]["miss_percent"], 1) for name in ("Q1", "Q2")] == [7.5, 14.6]


def test_a_rounded_rate_changes_nothing_that_shows(run: Run, lay: Callable[..., Path]) -> None:
    data = deepcopy(DATA)
    data["queries"][2]["service"]["rate_per_ms"] = 0.006666666667
    found = json.loads(run("qos", lay("c.json", data), "--json").out)
    assert found["queries"][2]["delay_bound_ms"] == 200.0
    assert found["simulation"]["p-qed"]["Q3"]["misses"] == 0


def test_a_refusal_ends_with_1_and_says_why(run: Run, lay: Callable[..., Path]) -> None:
    data = deepcopy(DATA)
    data["scheduler"] = {"policy": "qed"}
    config = lay("c.json", data)
    done = run("qos", config)
    assert done.code == 1
    assert "Q3 wants 200 ms: at 12 ms the demand of 0.4 ms plus 40 ms of blocking by `Q3` exceeds" in done.out
    last = json.loads(run("qos", config, "--json").out)["queries"][2]
    assert (last["admitted"], last["at_ms"], last["blocker"]) == (False, 12.0, "Q3")
    assert last["demand"] == {"Q1": 0.0, "Q2": 0.4, "Q3": 0.0}
    assert last["remedies"] == {"quantum_ms": 10.0, "ops_per_ms": 4000.0}


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_the_curves_are_drawn(run: Run, tmp_path: Path, ending: str) -> None:
    picture = tmp_path / f"curves.{ending}"
    assert run("qos", WORKED, "--plot", picture).code == 0
    assert picture.stat().st_size > 5000
    again = run("qos", WORKED, "--plot", picture)
    assert (again.code, "exists" in again.err) == (2, True)
    first = picture.read_bytes()
    assert run("qos", WORKED, "--plot", picture, "--overwrite").code == 0
    assert picture.read_bytes() == first
    assert "cannot draw into curves.gif" in run("qos", WORKED, "--plot", "curves.gif").err


def test_errors_name_the_key(run: Run, lay: Callable[..., Path]) -> None:
    data = deepcopy(DATA)
    data["queries"][0]["arrival"]["burst"] = 0
    done = run("qos", lay("c.json", data))
    assert done.code == 2
    assert "a burst must be at least 1 task, got 0" in done.err
    assert "at: queries[0].arrival.burst" in done.err
    (error,) = run("qos", lay("c.json", data), "--json").rows
    assert error["at"] == "queries[0].arrival.burst"
    assert run("qos", "nowhere.json").code == 2
