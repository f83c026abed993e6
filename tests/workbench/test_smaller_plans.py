"""Smaller plans: every step of every drawn plan can be made, and is a plan."""

from __future__ import annotations

from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.windows import CountEnd, CountStart, Snapshot
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.smaller_plans import shallower_plans, smaller_plans


def test_windows_of_one_start_get_no_smaller() -> None:
    for window in (CountStart(1), CountEnd(1)):
        plan = nodes.Aggregation(nodes.Source("S"), window, (("n", Aggregate("count")),))
        assert list(smaller_plans(plan)) == [nodes.Source("S")]
    counted = nodes.Aggregation(nodes.Source("S"), CountStart(3), (("n", Aggregate("count")),))
    windows = [plan.window for plan in smaller_plans(counted) if isinstance(plan, nodes.Aggregation)]
    assert windows == [CountStart(1), CountStart(2)]
    assert Snapshot() not in windows


def test_all_steps_of_drawn_plans_can_be_made() -> None:
    for seed in range(200):
        plan = seeded_case(seed).plan
        steps = [*smaller_plans(plan), *shallower_plans(plan)]
        assert steps or not plan.inputs, f"case {seed}"
        assert all(isinstance(step, nodes.Node) for step in steps)
