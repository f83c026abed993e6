"""Sums per pane over many groups: late events, retractions, a gap in time, more groups than change at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.engines.local import LocalEngine
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.cells import Layout, Strings
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import Hopping, Tumbling
from tests.kernels.windows.running import EMISSIONS, bag

SCHEMA = Schema.of({"v": "float64", "n": "int64"})
AGGS = (("c", Aggregate("count")), ("s", Aggregate("sum", Col("v"))), ("a", Aggregate("avg", Col("n"))))
WINDOWS = (Tumbling(10), Hopping(40, 10), Hopping(7, 20, 3), Hopping(6, 4))


def kernel(window: Tumbling | Hopping, emission: Emission = "speculative", *, fast: bool = True) -> WindowKernel:
    typed = check(nodes.Aggregation(nodes.Source("S"), window, AGGS), {"S": SCHEMA})
    return WindowKernel(typed, Context(installed(), emission=emission), fast=fast)


def events(rng: np.random.Generator, now: int, *, rows: int, groups: int, longest: int, digits: int) -> Delta:
    """Events that start up to 20 before now."""
    le = now - rng.integers(0, 21, rows)
    values = rng.integers(-40, 40, rows) / 8 * 10.0 ** rng.integers(0, digits, rows)
    payload = pa.array(values), pa.array(rng.integers(0, 9, rows))
    re = le + rng.integers(1, longest + 1, rows)
    return Delta(rng.integers(0, groups, rows), le, re, np.ones(rows, np.int64), payload)


def batches(seed: int, *, groups: int, longest: int, rows: int = 150) -> list[Delta]:
    """Each has new events, takes back some of the last ones, and a frontier 60 behind. Once, time jumps."""
    rng, now = np.random.default_rng(seed), 100
    made = [events(rng, now, rows=rows, groups=groups, longest=longest, digits=1)]
    found = [made[0].at(now - 60)]
    for number in range(10):
        now += 10**9 if number == 6 else 12
        made.append(events(rng, now, rows=rows, groups=groups, longest=longest, digits=9 if number > 2 else 1))
        gone = made[-2].take(rng.random(rows) < 0.1)
        back = Delta(gone.group, gone.le, gone.re, -gone.w, gone.columns)
        found.append(concat([made[-1], back], frontier=now - 60))
    return [*found, Delta.empty(SCHEMA, frontier=FOREVER)]


@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize(("groups", "longest"), [(3, 1), (60, 1), (60, 30), (5000, 90)])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_many_groups(window: Tumbling | Hopping, groups: int, longest: int, emission: Emission) -> None:
    """Batch for batch what the members of every window give."""
    fast, general = kernel(window, emission), kernel(window, emission, fast=False)
    for batch in batches(groups + longest, groups=groups, longest=longest):
        found, wanted = fast.on_batch(0, batch), general.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier
    assert fast.live_rows() == 0


@pytest.mark.parametrize("emission", EMISSIONS)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_groups_go_together_and_one_by_one_in_turn(window: Tumbling | Hopping, emission: Emission) -> None:
    """Many events of a batch are summed place by place, few group by group; either goes on from what the other left."""
    rng = np.random.default_rng(3)
    fast, general = kernel(window, emission), kernel(window, emission, fast=False)
    for number, now in enumerate(range(100, 400, 9)):
        made = events(rng, now, rows=300 if number % 2 else 4, groups=12, longest=1, digits=1)
        batch = made.at(now - 20 + 9)  # so early that the next events may start there
        found, wanted = fast.on_batch(0, batch), general.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_output_is_net(window: Tumbling | Hopping) -> None:
    """No two rows are equal, and none cancels another."""
    running = kernel(window)
    for batch in batches(7, groups=20, longest=15):
        found = running.on_batch(0, batch)
        assert found.is_net
        forgetful = Delta(found.group, found.le, found.re, found.w, found.columns)
        layout = Layout.of(check(nodes.Aggregation(nodes.Source("S"), window, AGGS), {"S": SCHEMA}).schema)
        assert len(consolidate(forgetful, layout, Strings())) == len(found)


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_the_split_into_batches_does_not_matter(window: Tumbling | Hopping) -> None:
    whole = batches(11, groups=40, longest=20)
    parts = [d.take(np.arange(n, min(n + 7, len(d)))) for d in whole for n in range(0, len(d), 7)]
    first, second = kernel(window), kernel(window)
    once = [first.on_batch(0, batch) for batch in whole]
    often = [second.on_batch(0, part.at(-60)) for part in parts]
    often.append(second.on_batch(0, Delta.empty(SCHEMA, frontier=FOREVER)))
    assert bag(once) == bag(often)


def test_one_group_may_correct_more_windows_than_there_is_room_for() -> None:
    """The rows of a group are written whole or not at all, so room must grow even where none was written yet."""
    schema = Schema.of({"v": "float64"})
    stream = sp.source("S").to_point().hopping(20, 10).aggregate(a=sp.avg("v"))
    typed = prepare(stream.plan, {"S": schema}, Settings())
    rows = [[(t, t + 1, 1, {"v": 0.5}) for t in times] for times in ((0, 100_000), range(10, 3_000, 7))]
    late, whole = (
        History.from_batches(typed.schema, LocalEngine().run(typed, {"S": iter(batches)}, Settings()))
        for batches in (
            [Batch.from_rows(schema, part) for part in rows],
            [Batch.from_rows(schema, [*rows[0], *rows[1]])],
        )
    )
    assert len(late) == 303
    assert late == whole


def test_changes_that_cancel_in_one_window_change_others() -> None:
    """An event moves on: windows with its old and its new place stay as they are, those with one of them do not."""
    typed = check(nodes.Aggregation(nodes.Source("S"), Hopping(4, 1), AGGS), {"S": SCHEMA})
    found = {}
    for fast in (True, False):
        running = WindowKernel(typed, Context(installed()), fast=fast)
        rows = [(0, 1, 1), (20, 21, 1)], [(0, 1, -1), (2, 3, 1)]
        pushes = [Batch.from_rows(SCHEMA, [(*row, {"v": 1.5, "n": 3}) for row in part]) for part in rows]
        made = [running.on_batch(0, Delta.from_batch(push)) for push in pushes]
        found[fast] = bag(made)
    assert found[True] == found[False]
