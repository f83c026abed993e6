"""Cron patterns as plans tick when cron does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from cronsim import CronSim

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.events.time import to_tick
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.eql.clocks import longest_gap, ticks
from streamproof.plan.eql.query import Cron
from streamproof.plan.explain import explain
from streamproof.workbench.evaluator.evaluate import evaluate

START = datetime(2026, 1, 30, 22, 17, tzinfo=UTC)
PATTERNS = (
    "0 * * * *", "*/20 * * * *", "30 6 * * *", "0 0 1 * *", "15 3 * * 1-5", "0 12 31 1,3 *", "0 0 13 * 5",
    "5,55 23 * * 0",
)  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_plan_ticks_when_cron_does(pattern: str) -> None:
    schema = Schema.of({"v": "int64"}, unit="s")
    days = 45
    low, high = to_tick(START, "s"), to_tick(START + timedelta(days=days), "s")
    plan = ticks(Cron(pattern), nodes.Source("S"), (), "s")
    found = evaluate(check(plan, {"S": schema}), {"S": [(low, high, {"v": 1})]})
    expected = []
    for moment in CronSim(pattern, START - timedelta(seconds=1)):
        if to_tick(moment, "s") >= high:
            break
        expected.append(to_tick(moment, "s"))
    assert sorted(le for le, _, _ in found) == expected


@pytest.mark.parametrize(
    ("pattern", "parts"),
    [
        ("* * * * *", []), ("*/20 6 * * *", []), ("0 0 1-30 * *", ["day"]), ("0 0 1-31 1-12 0-6", []),
        ("0 0 * 1-11 *", ["month"]), ("0 0 * * 1-6", ["day_of_week"]), ("0 0 1 1 *", ["month", "day"]),
    ],
)  # fmt: skip
def test_a_plan_asks_for_what_the_pattern_restricts(pattern: str, parts: list[str]) -> None:
    text = explain(ticks(Cron(pattern), nodes.Source("S"), (), "s"))
    assert [part for part in ("month", "day", "day_of_week") if f"{part}(" in text] == parts


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_longest_gap_is_an_upper_bound(pattern: str) -> None:
    clock = CronSim(pattern, START)
    moments = [next(clock) for _ in range(60)]
    gaps = [(b - a).total_seconds() for a, b in pairwise(moments)]
    assert max(gaps) <= longest_gap(Cron(pattern), "s")


@pytest.mark.parametrize("pattern", ["hourly", "61 * * * *", "0 0 L * *", "0 0 * * 5#2"])
def test_other_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(PlanError):
        longest_gap(Cron(pattern), "s")
