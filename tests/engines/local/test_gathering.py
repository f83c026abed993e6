"""Small batches that are put together: the same sum, within the budget, whatever the clock says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.engines.local import LocalEngine
from streamproof.engines.local.gathering import gathered
from streamproof.errors import InputError, PlanError, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.thresholds import GATHERED
from streamproof.workbench.modules import all_modules
from tests.engines.local.test_local import typed_case

SCHEMA = Schema.of({"v": "int64"})


def point(t: int, name: str = "S") -> tuple[str, Batch]:
    return name, Batch.from_rows(SCHEMA, [(t, t + 1, 1, {"v": t})], frontier=t)


def ticking(step: float) -> Iterator[float]:
    return (step * n for n in count())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from("RS"), max_size=20), st.floats(0.001, 10))
def test_nothing_is_lost_and_frontiers_go_on(names: list[str], step: float) -> None:
    given_batches = [point(t, name) for t, name in enumerate(names)]
    clock = ticking(step)
    made = list(gathered(given_batches, latency=5.0, clock=lambda: next(clock)))
    for name in "RS":
        before = [batch for each, batch in given_batches if each == name]
        after = [batch for each, batch in made if each == name]
        assert History.from_batches(SCHEMA, after) == History.from_batches(SCHEMA, before)
        assert [batch.frontier for batch in after] == sorted(batch.frontier for batch in after)
        assert [batch.frontier for batch in after][-1:] == [batch.frontier for batch in before][-1:]


def test_none_waits_longer_than_it_may() -> None:
    clock = ticking(1.0)  # it is looked at once for the first batch of several, and once for each
    made = list(gathered([point(t) for t in range(7)], latency=3.0, clock=lambda: next(clock)))
    assert [batch.rows.num_rows for _, batch in made] == [3, 3, 1]


def test_enough_rows_do_not_wait() -> None:
    large = Batch.from_rows(SCHEMA, [(0, 1, 1, {"v": 0})] * GATHERED.usual)
    made = list(gathered([point(0), ("S", large), point(1)], latency=60))
    assert [batch.rows.num_rows for _, batch in made] == [GATHERED.usual + 1, 1]


def test_a_query_gives_the_same_history_in_fewer_pushes() -> None:
    plan = sp.source("S", SCHEMA).tumbling(10).aggregate(n=sp.count(), s=sp.sum("v")).plan
    typed = prepare(plan, {"S": SCHEMA}, Settings())
    inputs = [batch for _, batch in map(point, range(50))]
    apart, together = (list(LocalEngine(latency=wait).run(typed, {"S": inputs}, Settings())) for wait in (0, 60))
    assert len(apart) == 51
    assert len(together) == 2
    assert History.from_batches(typed.schema, apart) == History.from_batches(typed.schema, together)


def test_random_plans_give_the_same_history_together() -> None:
    compared = 0
    for number in range(60):
        try:
            typed, inputs, case = typed_case(number)
            options = Settings(horizon=case.horizon, limits=case.limits, registry=all_modules())
            apart, together = (
                History.from_batches(typed.schema, LocalEngine(latency=wait).run(typed, inputs, options))
                for wait in (0, 60)
            )
        except StreamproofError:
            continue
        assert apart == together, f"case {number}"
        compared += 1
    assert compared > 40


def test_pushes_wait_for_others_and_run_together() -> None:
    counting = sp.source("S", SCHEMA).tumbling(10).aggregate(n=sp.count())
    query = counting.on("local", latency=60).start({"S": {"v": "int64"}})
    for t in range(5):
        query.push("S", [{"le": t, "re": t + 1, "payload": {"v": t}}])
    assert query.pull() == []
    with pytest.raises(InputError, match="no change before"):  # what is pushed is checked at once
        query.push("S", [{"kind": "cti", "t": 10}, {"le": 1, "re": 2, "payload": {"v": 1}}])
    query.push("S", sp.Cti(10))
    assert [row.payload for row in query.history.to_rows()] == [{"n": 5}]  # who asks for all of it does not wait
    assert [batch.rows.num_rows for batch in query.pull()] == [1]  # no corrections on the way
    query.push("S", [{"le": 12, "re": 13, "payload": {"v": 1}}])
    again = counting.on("local").start({"S": {"v": "int64"}})
    again.restore(query.savepoint())  # nothing that waits is lost
    query.finish()
    again.finish()
    assert query.history == again.history


def test_what_has_waited_long_enough_runs_when_somebody_looks() -> None:
    query = sp.source("S", SCHEMA).on("local", latency=0.001).start({"S": {"v": "int64"}})
    query.push("S", [{"le": 1, "re": 2, "payload": {"v": 1}}])
    time.sleep(0.002)
    assert sum(batch.rows.num_rows for batch in query.pull()) == 1


def test_a_negative_latency_is_refused() -> None:
    with pytest.raises(PlanError, match="a latency of -1 seconds"):
        LocalEngine(latency=-1)
