"""What is final, and what only looks so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import CountStart, Snapshot, Tumbling, Window

SCHEMA = Schema.of({"v": "int64"})


def kernel(window: Window, fn: str, *, emission: Emission = "speculative", output: Any = "window") -> WindowKernel:
    node = nodes.Aggregation(nodes.Source("S"), window, (("x", Aggregate(fn, Col("v"))),), output)
    return WindowKernel(check(node, {"S": SCHEMA}), Context(installed(), emission=emission))


def rows(*events: tuple[int, int, int, int], frontier: int = BEGINNING) -> Delta:
    le, re, w, v = (np.array([event[n] for event in events], np.int64) for n in range(4))
    return Delta(np.zeros(len(le), np.int64), le, re, w, (pa.array(v, pa.int64()),), frontier)


def output(delta: Delta) -> list[tuple[int, int, int, Any]]:
    columns = (delta.le.tolist(), delta.re.tolist(), delta.w.tolist(), delta.columns[0].to_pylist())
    return sorted(zip(*columns, strict=True))


@pytest.mark.parametrize("fn", ["sum", "max"])
def test_a_snapshot_that_ends_at_the_frontier_may_still_get_longer(fn: str) -> None:
    subject = kernel(Snapshot(), fn, emission="final")
    first = subject.on_batch(0, rows((1, 8, 1, 5), frontier=8))
    assert (output(first), first.frontier) == ([], 1)
    longer = subject.on_batch(0, rows((1, 8, -1, 5), (1, 12, 1, 5), frontier=13))
    assert (output(longer), longer.frontier) == ([(1, 12, 1, 5)], 13)


@pytest.mark.parametrize("fn", ["sum", "max"])
def test_the_row_of_such_a_snapshot_is_still_known(fn: str) -> None:
    subject = kernel(Snapshot(), fn)
    assert output(subject.on_batch(0, rows((1, 8, 1, 5), frontier=8))) == [(1, 8, 1, 5)]
    longer = subject.on_batch(0, rows((1, 8, -1, 5), (1, 12, 1, 5), frontier=13))
    assert output(longer) == [(1, 8, -1, 5), (1, 12, 1, 5)]


def test_ties_for_first_hold_a_window_until_their_ends_are_sealed() -> None:
    """Of events that start together the one that ends first comes first, and ends may move after the window closed."""
    subject = kernel(Tumbling(5), "first")
    sealed = subject.on_batch(0, rows((3, 10, 1, 1), (3, 8, 1, 2), frontier=6))
    assert (output(sealed), sealed.frontier) == ([(0, 5, 1, 2)], 0)
    changed = subject.on_batch(0, rows((3, 10, -1, 1), (3, 7, 1, 1), frontier=9))
    assert (output(changed), changed.frontier) == ([(0, 5, -1, 2), (0, 5, 1, 1)], 5)


def test_ties_hold_an_open_snapshot_from_its_start() -> None:
    """A snapshot is continued where an event begins or ends, but which of two is the last may change for all of it."""
    subject = kernel(Snapshot(), "last")
    sealed = subject.on_batch(0, rows((1, 8, 1, 1), (1, 8, 1, 2), frontier=8))
    assert (output(sealed), sealed.frontier) == ([(1, 8, 1, 2)], 1)
    changed = subject.on_batch(0, rows((1, 8, -1, 1), (1, 9, 1, 1), frontier=10))
    assert (output(changed), changed.frontier) == ([(1, 8, -1, 2), (1, 8, 1, 1), (8, 9, 1, 1)], 10)


def test_a_single_first_event_holds_nothing() -> None:
    subject = kernel(Tumbling(5), "first")
    assert subject.on_batch(0, rows((3, 10, 1, 1), (4, 8, 1, 2), frontier=6)).frontier == 5


@pytest.mark.parametrize("fn", ["sum", "max"])
def test_points_at_the_end_are_sealed_up_to_the_frontier(fn: str) -> None:
    subject = kernel(Tumbling(10), fn, output="point_end")
    made = subject.on_batch(0, rows((3, 4, 1, 7), frontier=25))
    assert (output(made), made.frontier) == ([(10, 11, 1, 7)], 25)


def test_the_end_of_time_is_no_point() -> None:
    for fn in ("sum", "max"):
        subject = kernel(Snapshot(), fn, output="point_end")
        made = [subject.on_batch(0, delta) for delta in (rows((3, FOREVER, 1, 7)), rows(frontier=FOREVER))]
        assert [row for delta in made for row in output(delta)] == []


def test_a_count_window_that_can_still_be_filled_holds_the_output() -> None:
    """With windows of three starts, the last two sealed ones may be joined by a later one."""
    subject = kernel(CountStart(3), "sum")
    batch = rows(*((t, t + 1, 1, t) for t in (1, 2, 3, 4)), frontier=10)
    made = subject.on_batch(0, batch)
    assert (output(made), made.frontier) == ([(1, 4, 1, 6), (2, 5, 1, 9)], 3)


def test_eager_shows_windows_that_are_still_open() -> None:
    for fn in ("sum", "max"):
        subject = kernel(Tumbling(10), fn, emission="eager")
        assert output(subject.on_batch(0, rows((3, 50, 1, 7)))) == [(0, 10, 1, 7)]
        assert output(subject.on_batch(0, rows((12, 13, 1, 9)))) == [(10, 20, 1, 16 if fn == "sum" else 9)]


def test_where_only_the_end_moves_the_value_is_not_taken_back() -> None:
    """What lies before the frontier stays: a snapshot is shortened and continued."""
    for fn in ("sum", "max"):
        subject = kernel(Snapshot(), fn)
        subject.on_batch(0, rows((1, 20, 1, 5), frontier=5))
        made = subject.on_batch(0, rows((8, 10, 1, 6), frontier=9))
        second = 11 if fn == "sum" else 6
        assert output(made) == [(1, 8, 1, 5), (1, 20, -1, 5), (8, 10, 1, second)]
        assert made.frontier == 9
