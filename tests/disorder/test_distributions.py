"""Delays: within their bounds, and distributed as they were asked to be."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.disorder.distributions import Distribution, read_distribution
from streamproof.errors import InputError, PlanError

CHANCES = (np.arange(20_001) + 0.5) / 20_001
ALL = [
    {"name": "uniform"}, {"name": "constant", "value": 300}, {"name": "normal", "mean": 500, "deviation": 100},
    {"name": "exponential", "mean": 200}, {"name": "lognormal", "median": 100, "sigma": 1},
    {"name": "pareto", "scale": 20, "alpha": 1.5},
]  # fmt: skip


@pytest.mark.parametrize("document", ALL, ids=lambda document: document["name"])
@given(st.integers(0, 900), st.integers(0, 100))
def test_delays_stay_within_their_bounds(document: dict[str, object], low: int, width: int) -> None:
    made = read_distribution(document, "here", Path()).draw(CHANCES[::100], np.full(201, low), low + width, 1.0)
    assert made.min() >= low
    assert made.max() <= low + width


@pytest.mark.parametrize(
    ("document", "mean", "median"),
    [
        ({"name": "uniform"}, 500_000, 500_000),
        ({"name": "constant", "value": 300}, 300, 300),
        ({"name": "normal", "mean": 5000, "deviation": 100}, 5000, 5000),
        ({"name": "exponential", "mean": 2000}, 2000, 2000 * np.log(2)),
        ({"name": "lognormal", "median": 1000, "sigma": 0.5}, 1000 * np.exp(0.125), 1000),
        ({"name": "pareto", "scale": 1000, "alpha": 3}, 1500, 1000 * 2 ** (1 / 3)),
    ],
    ids=lambda value: value["name"] if isinstance(value, dict) else "",
)
def test_far_from_the_bounds_they_have_their_mean_and_median(document, mean: float, median: float) -> None:
    made = read_distribution(document, "here", Path()).draw(CHANCES, np.zeros(len(CHANCES), np.int64), 1_000_000, 1.0)
    assert made.mean() == pytest.approx(mean, rel=0.01)
    assert np.median(made) == pytest.approx(median, rel=0.01)


def test_a_histogram_is_drawn_from(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("from,to,count\n0,10,30\n10,100,0\n100,200,70\n")
    made = read_distribution({"name": "empirical", "file": "h.csv"}, "here", tmp_path)
    drawn = made.draw(CHANCES, np.zeros(len(CHANCES), np.int64), 1000, 1.0)
    assert (drawn <= 10).mean() == pytest.approx(0.3, abs=0.01)
    assert not ((drawn > 11) & (drawn < 99)).any()


def test_the_report_of_an_analysis_is_a_histogram(tmp_path: Path) -> None:
    report = {"unit": "s", "lateness": {"histogram": [[1, 2, 5]]}}
    (tmp_path / "a.json").write_text(json.dumps(report))
    made = read_distribution({"name": "empirical", "file": "a.json"}, "here", tmp_path)
    assert made.bins == ((1000.0, 2000.0, 5.0),)


@pytest.mark.parametrize("text", ["", "a,b\n", "5,1,3\n", "0,10,1\n5,20,1\n", "[[0, 1]]", "{}"])
def test_what_is_no_histogram(tmp_path: Path, text: str) -> None:
    (tmp_path / "h").write_text(text)
    with pytest.raises(InputError) as caught:
        read_distribution({"name": "empirical", "file": "h"}, "here", tmp_path)
    assert "from,to,count" in (caught.value.fix or "")


def test_a_function_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_delays.py").write_text("def twice(chances, lowest, highest):\n    return lowest * 2\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InputError, match="nobody named the module my_delays"):
        read_distribution("my_delays:twice", "here", tmp_path)
    assert "my_delays" not in sys.modules
    made = read_distribution("my_delays:twice", "here", tmp_path, modules=["my_delays"])
    assert made.draw(np.zeros(2), np.array([3, 9]), 10, 1.0).tolist() == [6, 10]
    with pytest.raises(PlanError, match="cannot load the distribution"):
        read_distribution("my_delays:thrice", "here", tmp_path, modules=["my_delays"])


def test_a_lower_bound_of_its_own_shifts_a_delay_up() -> None:
    made = Distribution().draw(np.array([0.0, 0.999]), np.array([7, 7]), 10, 1.0)
    assert made.tolist() == [7, 10]
