"""Modules in windows: what they are called with, how often, and what happens when they fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from streamproof.errors import RunError
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.modules import Event, Registry, WindowSpan, uda, udo
from streamproof.plan.windows import Snapshot, Tumbling, Window

SCHEMA = Schema.of({"v": "int64"})
CALLS: list[tuple[str, Any]] = []


@uda("sum_up", returns="int64", takes="int64", incremental=True)
class SumUp:
    """A sum that writes down what it is told."""

    def start(self) -> int:
        return 0

    def add(self, state: int, events: Sequence[int]) -> int:
        CALLS.append(("add", list(events)))
        return state + sum(events)

    def remove(self, state: int, events: Sequence[int]) -> int:
        CALLS.append(("remove", list(events)))
        return state - sum(events)

    def result(self, state: int) -> int:
        return state


@uda("lengths", returns="int64", incremental=True, time_sensitive=True)
class Lengths:
    """The sum of the lifetimes it sees."""

    def start(self) -> int:
        return 0

    def add(self, state: int, events: Sequence[Event]) -> int:
        CALLS.append(("add", [tuple(event) for event in events]))
        return state + sum(event.re - event.le for event in events)

    def remove(self, state: int, events: Sequence[Event]) -> int:
        CALLS.append(("remove", [tuple(event) for event in events]))
        return state - sum(event.re - event.le for event in events)

    def result(self, state: int, window: WindowSpan) -> int:
        return state


@uda("seen", returns="string", takes="int64")
def seen(values: Sequence[int]) -> str:
    CALLS.append(("compute", list(values)))
    return ",".join(map(str, values))


@uda("broken", returns="int64", takes="int64")
def broken(values: Sequence[int]) -> int:
    raise ValueError("no")


@uda("lying", returns="int64", takes="int64")
def lying(values: Sequence[int]) -> str:
    return "many"


@udo("early", returns={"v": "int64"}, time_sensitive=True)
def early(events: Sequence[Event], window: WindowSpan) -> list[Event]:
    return [Event(window.le - 1, window.re, {"v": 1})]


@udo("rewriting", returns={"v": "int64"}, time_sensitive=True)
def rewriting(events: Sequence[Event], window: WindowSpan) -> list[Event]:
    """Says that it is time-bound, and is not: its one row covers the window and counts the events."""
    return [Event(window.le, window.re, {"v": len(events)})]


@uda("vector", returns="float64", takes="int64", incremental=True)
class Vector:
    """A sum in an array: a state that cannot be compared with ``==``."""

    def start(self) -> Any:
        return np.zeros(2)

    def add(self, state: Any, events: Sequence[int]) -> Any:
        return np.add(state, [sum(events), len(events)])

    def remove(self, state: Any, events: Sequence[int]) -> Any:
        return np.subtract(state, [sum(events), len(events)])

    def result(self, state: Any) -> Any:
        return state[0]


REGISTRY = Registry([Vector, SumUp, Lengths, seen, broken, lying, early, rewriting])


def kernel(fn: str, window: Window, **settings: Any) -> WindowKernel:
    source = nodes.Source("S")
    if fn in ("early", "rewriting"):
        plan: nodes.Plan = nodes.Udo(source, window, fn, None, **settings)
    else:
        plan = nodes.Uda(source, window, fn, Col("v"), "m", **settings)
    CALLS.clear()
    return WindowKernel(check(plan, {"S": SCHEMA}, registry=REGISTRY), Context(REGISTRY))


def rows(*events: tuple[int, int, int, int], frontier: int = BEGINNING) -> Delta:
    le, re, w, v = (np.array([event[n] for event in events], np.int64) for n in range(4))
    return Delta(np.zeros(len(le), np.int64), le, re, w, (pa.array(v, pa.int64()),), frontier)


def output(delta: Delta) -> list[tuple[int, int, int, Any]]:
    return sorted(
        zip(delta.le.tolist(), delta.re.tolist(), delta.w.tolist(), delta.columns[0].to_pylist(), strict=True)
    )


def test_an_incremental_module_is_told_only_what_changed() -> None:
    subject = kernel("sum_up", Tumbling(10))
    assert output(subject.on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (20, 21, 1, 1)))) == [(0, 10, 1, 12)]
    assert output(subject.on_batch(0, rows((1, 2, -1, 5), (5, 6, 2, 4)))) == [(0, 10, -1, 12), (0, 10, 1, 15)]
    assert CALLS == [("add", [5, 7]), ("remove", [5]), ("add", [4, 4])]


def test_an_end_that_moves_beyond_the_window_is_no_news() -> None:
    subject = kernel("sum_up", Tumbling(10))
    subject.on_batch(0, rows((1, 12, 1, 5), (20, 21, 1, 1)))
    CALLS.clear()
    assert output(subject.on_batch(0, rows((1, 12, -1, 5), (1, 15, 1, 5)))) == []
    assert CALLS == []


def test_an_event_whose_clipped_lifetime_changes_goes_and_comes() -> None:
    subject = kernel("lengths", Tumbling(10), clip="full", restriction="window_based")
    assert output(subject.on_batch(0, rows((1, 8, 1, 5), (2, 15, 1, 5), (20, 21, 1, 1)))) == [
        (0, 10, 1, 15), (10, 20, 1, 5),
    ]  # fmt: skip
    CALLS.clear()
    changed = subject.on_batch(0, rows((1, 8, -1, 5), (1, 6, 1, 5), (2, 15, -1, 5), (2, 12, 1, 5)))
    assert output(changed) == [(0, 10, -1, 15), (0, 10, 1, 13), (10, 20, -1, 5), (10, 20, 1, 2)]
    assert CALLS == [
        ("remove", [(1, 8, 5)]), ("add", [(1, 6, 5)]),
        ("remove", [(10, 15, 5)]), ("add", [(10, 12, 5)]),
    ]  # fmt: skip


def test_a_module_is_called_once_per_window_that_changed_with_events_in_order() -> None:
    subject = kernel("seen", Snapshot())
    subject.on_batch(0, rows((1, 20, 1, 3), (5, 10, 1, 2), (5, 10, 1, 1), (30, 31, 1, 0)))
    assert CALLS == [("compute", [3]), ("compute", [3, 1, 2]), ("compute", [3])]
    CALLS.clear()
    made = subject.on_batch(0, rows((5, 10, -1, 1), (5, 7, 1, 1)))
    assert CALLS == [("compute", [3, 1, 2]), ("compute", [3, 2])]
    assert output(made) == [(5, 7, 1, "3,1,2"), (5, 10, -1, "3,1,2"), (7, 10, 1, "3,2")]


def test_a_state_may_be_anything() -> None:
    subject = kernel("vector", Tumbling(10))
    assert output(subject.on_batch(0, rows((1, 2, 1, 5), (11, 12, 1, 7), (30, 31, 1, 1)))) == [
        (0, 10, 1, 5.0), (10, 20, 1, 7.0),
    ]  # fmt: skip
    changed = subject.on_batch(0, rows((1, 2, -1, 5), (3, 4, 2, 4), (12, 13, 1, 1)))
    assert output(changed) == [(0, 10, -1, 5.0), (0, 10, 1, 8.0), (10, 20, -1, 7.0), (10, 20, 1, 8.0)]


def test_after_a_restore_a_state_is_made_anew() -> None:
    subject = kernel("sum_up", Tumbling(10))
    subject.on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (20, 21, 1, 1)))
    other = kernel("sum_up", Tumbling(10))
    other.restore(subject.save())
    assert output(other.on_batch(0, rows((5, 6, 1, 4)))) == [(0, 10, -1, 12), (0, 10, 1, 16)]
    assert CALLS == [("add", [5, 7, 4])]


def test_a_module_that_raises_is_named_with_its_window() -> None:
    with pytest.raises(RunError, match=r"uda broken@1 failed: ValueError: no\n  at: window \[0, 10\) with \[1, 2\) 5"):
        kernel("broken", Tumbling(10)).on_batch(0, rows((1, 2, 1, 5), frontier=10))


def test_a_value_of_the_wrong_type_is_refused() -> None:
    with pytest.raises(RunError, match=r"uda lying@1 gave 'many', which is not of type int64\n  at: window"):
        kernel("lying", Tumbling(10)).on_batch(0, rows((1, 2, 1, 5), frontier=10))


def test_output_before_the_window_is_an_error() -> None:
    with pytest.raises(RunError, match=r"udo early@1 gave a row from -1 on, before its window") as raised:
        kernel("early", Tumbling(10), stamp="unchanged").on_batch(0, rows((1, 2, 1, 5), frontier=10))
    assert raised.value.name == "output_in_past"


def test_a_broken_promise_of_time_bound_output_is_an_error() -> None:
    subject = kernel("rewriting", Tumbling(10), stamp="clip", restriction="time_bound")
    assert subject.on_batch(0, rows((1, 9, 1, 5), frontier=5)).frontier == 5
    with pytest.raises(RunError, match="changed its output from 0 on, which was sealed up to 5") as raised:
        subject.on_batch(0, rows((6, 7, 1, 5), frontier=FOREVER))
    assert raised.value.name == "output_in_past"
