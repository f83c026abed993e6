"""Results of windows in windows again: which are cut, what is said of it, and what is meant."""

from __future__ import annotations

import warnings
from itertools import product

import pytest

import streamproof as sp
from streamproof import count, desc, source
from streamproof.errors import PlanError, PlanWarning
from streamproof.plan.results import cut_by
from streamproof.plan.windows import Hopping

EVENTS = [{"le": n, "re": n + 1, "payload": {"k": "abc"[n * 7 % 3], "v": n}} for n in range(30)]
PER_KEY = source("S").group_by("k").hopping(10, hop=5).aggregate(n=count())


def test_what_is_cut_is_what_some_window_holds_in_part() -> None:
    def windows(window: Hopping) -> list[tuple[int, int]]:
        starts = range(-60, 60)
        return [(t, t + window.size) for t in starts if (t - window.offset) % window.hop == 0]  # type: ignore[operator]

    kinds = [Hopping(size, hop, offset) for size, hop, offset in product((1, 2, 4, 6), (2, 4, 6), (0, 1))]
    for inner, outer in product(kinds, kinds):
        parts = (
            a < d and c < b and not (c <= a and b <= d)
            for (a, b), (c, d) in product(windows(inner)[8:-8], windows(outer))
        )
        assert cut_by(inner, outer) == any(parts), (inner, outer)


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_results_that_are_cut_come_with_a_warning(engine: str) -> None:
    with pytest.warns(PlanWarning, match=r"topk\(tumbling\(size=5\).*hopping\(size=10, hop=5\).*same_window"):
        PER_KEY.tumbling(5).top(1, by=desc("n")).on(engine).run({"S": EVENTS})


def test_results_that_fit_come_without() -> None:
    with warnings.catch_warnings(action="error"):
        minutes = source("S").group_by("k").tumbling(5).aggregate(n=count())
        minutes.tumbling(10).top(1, by=desc("n")).on("local").run({"S": EVENTS})
        minutes.snapshot().top(1, by=desc("n")).on("local").run({"S": EVENTS})
        PER_KEY.same_window().top(1, by=desc("n")).on("local").run({"S": EVENTS})


@pytest.mark.parametrize("engine", ["local", "duckdb"])
def test_same_window_ranks_the_results_of_each_window(engine: str) -> None:
    rows = PER_KEY.on("local").run({"S": EVENTS}).history.to_rows()
    best = {span: max(r.payload["n"] for r in rows if (r.le, r.re) == span) for span in {(r.le, r.re) for r in rows}}  # type: ignore[type-var]
    found = PER_KEY.same_window().top(1, by=desc("n")).on(engine).run({"S": EVENTS}).history.to_rows()
    assert found == [row for row in rows if row.payload["n"] == best[row.le, row.re]]


def test_same_window_says_where_it_cannot_know() -> None:
    with pytest.raises(PlanError, match="same_window is for results of tumbling and hopping windows"):
        source("S").same_window()
    with pytest.raises(PlanError, match="not as output"):
        PER_KEY.same_window().aggregate(m=sp.max("n"), output="point_end")
    with pytest.raises(PlanError, match="modules do not see"):
        PER_KEY.same_window().uda("spread", "n")
