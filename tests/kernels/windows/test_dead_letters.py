"""Modules that fail while the run goes on: the window has no rows, a letter says why, and it is tried again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.engines.local.graph import Graph
from streamproof.errors import RunError
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Kernel
from streamproof.kernels.delta import Delta
from streamproof.kernels.linear import AlterDurationKernel, SelectKernel, WhereKernel
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed, check
from streamproof.plan.expr import Col
from streamproof.plan.modules import Event, Payload, Registry, WindowSpan, uda, udf, udo
from streamproof.plan.parse import parse
from streamproof.plan.windows import CountStart, Hopping, Snapshot, Tumbling, Window

SCHEMA = Schema.of({"v": "int64"})


@uda("picky", returns="int64", takes="int64")
def picky(values: Sequence[int]) -> int:
    if 7 in values:
        raise ValueError("7 is not welcome")
    return len(values)


@uda("picky_steps", returns="int64", takes="int64", incremental=True)
class PickySteps:
    """The same, by steps; it spoils its state before it fails."""

    def start(self) -> list[int]:
        return []

    def add(self, state: list[int], events: Sequence[int]) -> list[int]:
        state.extend(events)
        if 7 in events:
            state.clear()
            raise ValueError("7 is not welcome")
        return state

    def remove(self, state: list[int], events: Sequence[int]) -> list[int]:
        for value in events:
            state.remove(value)
        return state

    def result(self, state: list[int]) -> int:
        return len(state)


@uda("picky_words", returns="int64", takes="int64")
def picky_words(values: Sequence[int]) -> int | str:
    return "7 is here" if 7 in values else len(values)


@udo("picky_rows", returns={"m": "int64"})
def picky_rows(rows: Sequence[Payload]) -> Iterator[Payload]:
    yield {"m": len(rows)}
    if any(row["v"] == 7 for row in rows):
        yield {"n": 0}  # a column that it does not declare


@udo("picky_times", returns={"m": "int64"}, time_sensitive=True)
def picky_times(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    early = any(event.value["v"] == 7 for event in events)
    yield Event(window.le - early, window.re, {"m": len(events)})


@udo("calm", returns={"m": "int64"})
def calm(rows: Sequence[Payload]) -> Iterator[Payload]:
    """What should come of the others: nothing where a 7 is, else the number of events."""
    if not any(row["v"] == 7 for row in rows):
        yield {"m": len(rows)}


@udo("marks", returns={"m": "int64"}, time_sensitive=True)
def marks(events: Sequence[Event], window: WindowSpan) -> Iterator[Event]:
    """One row per event, as long as it; fails on 7."""
    for event in events:
        if event.value["v"] == 7:
            raise ValueError("7")
        yield Event(event.le, event.re, {"m": event.value["v"]})


@udf("sevenless", returns="int64", takes=["int64"])
def sevenless(value: int) -> int:
    if value == 7:
        raise ValueError("7 is not welcome")
    return value


@udf("wordy", returns="int64", takes=["int64"])
def wordy(value: int) -> int | str:
    return "seven" if value == 7 else value


REGISTRY = Registry([picky, PickySteps, picky_words, picky_rows, picky_times, calm, marks, sevenless, wordy])


def typed(fn: str, window: Window, **settings: Any) -> Typed:
    source = nodes.Source("S")
    if REGISTRY.find(fn, "udo") if fn in ("picky_rows", "picky_times", "calm", "marks") else False:
        plan: nodes.Plan = nodes.Udo(source, window, fn, None, **settings)
    else:
        plan = nodes.Uda(source, window, fn, Col("v"), "m", **settings)
    return check(plan, {"S": SCHEMA}, registry=REGISTRY)


def tolerant() -> Context:
    return Context(REGISTRY, on_module_error="dead_letter")


def rows(*events: tuple[int, int, int, int], frontier: int = BEGINNING) -> Delta:
    le, re, w, v = (np.array([event[n] for event in events], np.int64) for n in range(4))
    return Delta(np.zeros(len(le), np.int64), le, re, w, (pa.array(v, pa.int64()),), frontier)


def output(delta: Delta) -> list[tuple[int, int, int, Any]]:
    return sorted(
        zip(delta.le.tolist(), delta.re.tolist(), delta.w.tolist(), delta.columns[0].to_pylist(), strict=True)
    )


# --- windows ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", ["picky", "picky_steps", "picky_words"])
def test_a_window_that_fails_is_left_out_and_tried_again(fn: str) -> None:
    context = tolerant()
    subject = WindowKernel(typed(fn, Tumbling(10)), context)
    first = subject.on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (11, 12, 1, 1), (30, 31, 1, 1)))
    assert output(first) == [(10, 20, 1, 1)]
    (letter,) = context.dead_letters
    assert (letter.module, letter.window, letter.count) == (f"uda {fn}@1", (0, 10), 2)
    assert letter.events == (Event(1, 2, 5), Event(3, 4, 7))
    assert output(subject.on_batch(0, rows((3, 4, -1, 7)))) == [(0, 10, 1, 1)]
    assert output(subject.on_batch(0, rows((5, 6, 1, 7)))) == [(0, 10, -1, 1)]  # the old output is taken back
    assert output(subject.on_batch(0, rows((5, 6, -1, 7), (6, 7, 1, 2)))) == [(0, 10, 1, 2)]
    assert len(context.dead_letters) == 2


@settings(max_examples=40, deadline=None)
@given(data=st.data())
@pytest.mark.parametrize(
    ("fn", "options"),
    [("picky", {}), ("picky_steps", {}), ("picky_words", {}), ("picky_rows", {}),
     ("picky_times", {"stamp": "unchanged", "restriction": "window_based", "clip": "full"})],
)  # fmt: skip
def test_what_is_left_out_are_the_windows_that_fail(data: st.DataObject, fn: str, options: dict[str, Any]) -> None:
    windows: list[Window] = [Tumbling(4), Hopping(6, 3), Snapshot(), CountStart(2)]
    window = data.draw(st.sampled_from(windows))
    batches = data.draw(changes())
    expected, found = (
        total(WindowKernel(typed(name, window, **how), tolerant()), batches)
        for name, how in (("calm", {}), (fn, options))
    )
    assert found == expected


@st.composite
def changes(draw: st.DrawFn) -> list[Delta]:
    """Inserts, some taken back later, in batches; then the end of time."""
    batches: list[Delta] = []
    live: list[tuple[int, int, int]] = []
    for _ in range(draw(st.integers(1, 4))):
        signed = []
        for _ in range(draw(st.integers(0, 4))):
            if live and draw(st.booleans()):
                signed.append((*live.pop(draw(st.integers(0, len(live) - 1))), -1))
            else:
                le = draw(st.integers(0, 12))
                live.append((le, le + draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 7]))))
                signed.append((*live[-1], 1))
        batches.append(rows(*((le, re, w, v) for le, re, v, w in signed)))
    return [*batches, rows(frontier=FOREVER)]


def total(kernel: Kernel, batches: list[Delta]) -> Counter[tuple[int, int, Any]]:
    """What the output sums up to; no row is there less than never."""
    sums: Counter[tuple[int, int, Any]] = Counter()
    for batch in batches:
        for le, re, w, v in output(kernel.on_batch(0, batch)):
            sums[le, re, v] += w
    assert all(w >= 0 for w in sums.values())
    return Counter({row: w for row, w in sums.items() if w})


def test_what_is_sealed_stays() -> None:
    """A time-bound module has its rows sealed while its window is open; what is sealed cannot be taken back."""
    context = tolerant()
    subject = WindowKernel(typed("marks", Tumbling(10), stamp="unchanged", restriction="time_bound"), context)
    first = subject.on_batch(0, rows((1, 2, 1, 3), (2, 6, 1, 4), frontier=4))
    assert output(first) == [(1, 2, 1, 3), (2, 6, 1, 4)]
    assert first.frontier == 4
    second = subject.on_batch(0, rows((5, 6, 1, 7)))
    assert output(second) == [(2, 4, 1, 4), (2, 6, -1, 4)]
    assert len(context.dead_letters) == 1
    third = subject.on_batch(0, rows((5, 6, -1, 7), frontier=FOREVER))
    assert output(third) == [(2, 4, -1, 4), (2, 6, 1, 4)]


def test_by_default_a_failure_ends_the_run_and_names_everything() -> None:
    subject = WindowKernel(typed("picky", Tumbling(10)), Context(REGISTRY))
    with pytest.raises(RunError) as raised:
        subject.on_batch(0, rows((1, 2, 1, 5), (3, 4, 2, 1), (4, 5, 1, 7), frontier=10))
    line = picky.implementation.__code__.co_firstlineno + 3
    assert str(raised.value) == (
        "uda picky@1 failed: ValueError: 7 is not welcome\n"
        f"  at: window [0, 10) with [1, 2) 5, [3, 4) 1, [3, 4) 1 and 1 more, raised at test_dead_letters.py:{line}\n"
        "  fix: call the module by hand on these events; it must not raise"
    )
    assert isinstance(raised.value.__cause__, ValueError)


def test_the_group_is_named_by_its_key() -> None:
    schema = Schema.of({"k": "string", "j": "int64", "v": "int64"})
    inner = nodes.GroupApply(
        nodes.GroupInput(), ("j",), nodes.Uda(nodes.GroupInput(), Tumbling(10), "picky", Col("v"), "m")
    )
    plan = check(nodes.GroupApply(nodes.Source("S"), ("k",), inner), {"S": schema}, registry=REGISTRY)
    context = tolerant()
    columns = (pa.array(["a", "b", "b"]), pa.array([1, 2, 3]), pa.array([1, 1, 7]))
    le, once = np.array([1, 2, 3]), np.ones(3, np.int64)
    delta = Delta(np.zeros(3, np.int64), le, le + 1, once, columns, 20)
    made = Graph(plan, context).push("S", delta)
    assert [column.to_pylist() for column in made.columns] == [["a", "b"], [1, 2], [1, 1]]
    (letter,) = context.dead_letters
    assert letter.group == {"k": "b", "j": 3}
    assert "window [0, 10) of k='b', j=3 with [3, 4) 7" in str(letter.error)
    written = json.loads(json.dumps(letter.as_dict()))
    assert (written["error"], written["group"], written["window"]) == (
        "module_failed", {"k": "b", "j": 3}, [0, 10],
    )  # fmt: skip


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fn", ["sevenless", "wordy"])
@pytest.mark.parametrize("text", ["{fn}(v) > 0", "coalesce({fn}(v) > 0, true)", "v = 3 or {fn}(v) > 0 or true"])
def test_a_row_whose_condition_fails_is_left_out(fn: str, text: str) -> None:
    context = tolerant()
    subject = WhereKernel(parsed(nodes.Where(nodes.Source("S"), parse(text.format(fn=fn)))), context)
    made = subject.on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (4, 5, 2, 7), (5, 6, 1, 3)))
    assert output(made) == [(1, 2, 1, 5), (5, 6, 1, 3)]
    (letter,) = context.dead_letters
    assert (letter.module, letter.args, letter.count, letter.window) == (f"udf {fn}@1", (7,), 2, None)
    assert output(subject.on_batch(0, rows((3, 4, -1, 7)))) == []


def test_a_function_fails_only_on_rows_that_it_is_called_for() -> None:
    context = tolerant()
    node = nodes.Where(nodes.Source("S"), parse("case when v = 7 then true else sevenless(v) = 5 end"))
    made = WhereKernel(parsed(node), context).on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (4, 5, 1, 6)))
    assert output(made) == [(1, 2, 1, 5), (3, 4, 1, 7)]
    assert not context.dead_letters
    inverse = nodes.Where(nodes.Source("S"), parse("case when v < 7 then true else sevenless(v) > 0 end"))
    made = WhereKernel(parsed(inverse), context).on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), (4, 5, 1, 8)))
    assert output(made) == [(1, 2, 1, 5), (4, 5, 1, 8)]
    assert len(context.dead_letters) == 1


def test_a_row_whose_projection_or_duration_fails_is_left_out() -> None:
    given_rows = rows((1, 2, 1, 5), (3, 4, 1, 7))
    select = nodes.Select(nodes.Source("S"), (("a", parse("sevenless(v)")), ("b", parse("v"))))
    assert output(SelectKernel(parsed(select), tolerant()).on_batch(0, given_rows)) == [(1, 2, 1, 5)]
    longer = nodes.AlterDuration(nodes.Source("S"), parse("coalesce(sevenless(v), 1)"))
    assert output(AlterDurationKernel(parsed(longer), tolerant()).on_batch(0, given_rows)) == [(1, 6, 1, 5)]


@pytest.mark.parametrize("fast", [True, False])
def test_an_event_whose_argument_fails_is_no_member(fast: bool) -> None:
    context = tolerant()
    aggs = (("n", Aggregate("count")), ("s", Aggregate("sum", parse("sevenless(v)"))))
    plan = parsed(nodes.Aggregation(nodes.Source("S"), Tumbling(10), aggs))
    made = WindowKernel(plan, context, fast=fast).on_batch(0, rows((1, 2, 1, 5), (3, 4, 1, 7), frontier=10))
    assert output(made) == [(0, 10, 1, 1)]
    assert len(context.dead_letters) == 1


@pytest.mark.parametrize(
    ("on", "select"),
    [("coalesce(sevenless(l.v + r.u), 0) < 100", "l.v"), ("sevenless(l.v + r.u) < 100", "l.v"),
     ("l.v < 100", "sevenless(l.v + r.u) - r.u")],
)  # fmt: skip
def test_pairs_on_which_a_function_fails_are_left_out(on: str, select: str) -> None:
    context = tolerant()
    join = nodes.Join(nodes.Source("S"), nodes.Source("R"), parse(on), (("a", parse(select)),))
    plan = check(join, {"S": SCHEMA, "R": Schema.of({"u": "int64"})}, registry=REGISTRY)
    graph = Graph(plan, context)
    graph.push("S", rows((1, 5, 1, 5), (1, 5, 1, 6)))
    assert output(graph.push("R", rows((2, 6, 1, 1)))) == [(2, 5, 1, 5)]
    assert [letter.args for letter in context.dead_letters] == [(7,)]
    assert output(graph.push("R", rows((2, 6, -1, 1)))) == [(2, 5, -1, 5)]


def test_a_side_on_which_a_function_fails_matches_nothing() -> None:
    context = tolerant()
    join = nodes.LeftOuter(
        nodes.Source("S"), nodes.Source("R"), parse("sevenless(l.v) = r.u"), (("a", parse("l.v")), ("b", parse("r.u")))
    )
    graph = Graph(check(join, {"S": SCHEMA, "R": Schema.of({"u": "int64"})}, registry=REGISTRY), context)
    made = [
        graph.push("R", rows((0, 9, 1, 7), (0, 9, 1, 5))),
        graph.push("S", rows((1, 5, 1, 7), (1, 5, 1, 5))),
        *(graph.push(name, rows(frontier=FOREVER)) for name in ("S", "R")),
    ]
    sums: Counter[tuple[Any, ...]] = Counter()
    for delta in made:
        for le, re, w, *values in zip(
            delta.le, delta.re, delta.w, *map(pa.Array.to_pylist, delta.columns), strict=True
        ):
            sums[int(le), int(re), *values] += int(w)
    assert {row for row, w in sums.items() if w} == {(1, 5, 7, None), (1, 5, 5, 5)}
    assert {letter.args for letter in context.dead_letters} == {(7,)}


def parsed(node: nodes.Plan) -> Typed:
    return check(node, {"S": SCHEMA}, registry=REGISTRY)
