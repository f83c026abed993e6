"""Least and greatest values over snapshots: the swept path gives what the general path gives, batch for batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.kernels.windows.snapshot_extremes.strategy import SnapshotExtremes
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import Snapshot
from streamproof.workbench.draw.choices import Choices
from streamproof.workbench.draw.dense import TYPES, random_stream
from tests.kernels.windows.running import EMISSIONS, Case, bag, deltas
from tests.reference.drawn import DrawnChoices

laws = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@st.composite
def cases(draw: Callable[[Any], int]) -> tuple[Case, Choices]:
    """A random stream with counts and extremes of its numbers over snapshots."""
    choices = DrawnChoices(draw)
    names = ["k", "v", *(name for name in ("u", "f", "g") if choices.chance(50))]
    stream = random_stream(choices, Schema.of({name: TYPES[name] for name in names}), most=20)
    aggs = [("n", Aggregate("count"))] if choices.chance(40) else []
    aggs += [(f"a{n}", Aggregate(choices.pick(("max", "min")), Col(name))) for n, name in enumerate(names[1:])]
    node = nodes.Aggregation(nodes.Source("S"), Snapshot(), tuple(aggs), choices.pick(("window", "point_end")))
    return Case(check(node, {"S": stream.schema}), stream, choices.chance(60)), choices


@laws
@given(cases())
def test_swept_is_general_and_survives_a_restart(made: tuple[Case, Choices]) -> None:
    case, choices = made
    emission = choices.pick(EMISSIONS)
    fast, general = case.kernel(emission), case.kernel(emission, fast=False)
    for batch in deltas(case, iter(lambda: choices.integer(1, 6), 0)):
        found, wanted = fast.on_batch(0, batch), general.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier
        assert set(fast.live_groups().tolist()) <= set(general.live_groups().tolist())
        state, fast = fast.save(), case.kernel(emission)
        fast.restore(state)


def kernel_of(*aggs: tuple[str, Aggregate]) -> WindowKernel:
    schema = Schema.of({"v": "int64", "s": "string"})
    typed = check(nodes.Aggregation(nodes.Source("S"), Snapshot(), aggs), {"S": schema})
    return WindowKernel(typed, Context(installed()))


def test_what_is_swept() -> None:
    """Numbers are; strings, whose order is not that of their cells, and sums are not."""
    greatest, least = ("a", Aggregate("max", Col("v"))), ("b", Aggregate("min", Col("v")))
    assert isinstance(kernel_of(greatest, least, ("n", Aggregate("count"))).strategy, SnapshotExtremes)
    assert not isinstance(kernel_of(("a", Aggregate("max", Col("s")))).strategy, SnapshotExtremes)
    assert not isinstance(kernel_of(greatest, ("s", Aggregate("sum", Col("v")))).strategy, SnapshotExtremes)


def test_a_retracted_greatest_value_gives_way_to_the_next() -> None:
    kernel = kernel_of(("m", Aggregate("max", Col("v"))))

    def rows(*events: tuple[int, int, int, int]) -> Delta:
        le, re, w, v = (np.array(column, np.int64) for column in zip(*events, strict=True))
        return Delta(np.zeros(len(le), np.int64), le, re, w, (pa.array(v), pa.nulls(len(le), pa.string())))

    kernel.on_batch(0, rows((0, 10, 1, 7), (0, 10, 1, 9), (20, 30, 1, 1)))
    change = kernel.on_batch(0, rows((0, 10, -1, 9)))
    listed = zip(change.le.tolist(), change.re.tolist(), change.w.tolist(), change.columns[0].to_pylist(), strict=True)
    assert sorted(listed) == [(0, 10, -1, 9), (0, 10, 1, 7)]
