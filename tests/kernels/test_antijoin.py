"""The anti join: incrementally the same as over complete histories, with one number per event that lives on."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.time import FOREVER
from streamproof.kernels.antijoin import AntiJoinKernel
from streamproof.plan.nodes import AntiJoin, Source
from streamproof.plan.parse import parse
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.changes import Case, Run, Step, check_flat, check_laws, check_splits, columns
from tests.reference.drawn import DrawnChoices

CONDITIONS = (
    "1 = 1",
    "1 = 0",
    "l.k = r.k",
    "l.v <> r.v",
    "l.k = r.k and l.v < r.v",
    "l.k = r.k and l.v > 0 and r.v < 2",
    "l.k is not distinct from r.k and l.le <= r.le",
)
LEFT = (0, 1, FOREVER, 1, (1, 1))


def case(on: str) -> Case:
    plan = AntiJoin(Source("L"), Source("R"), parse(on))
    return Case.of(plan, AntiJoinKernel, L=columns("k", "v"), R=columns("k", "v"))


@pytest.mark.parametrize("on", CONDITIONS)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(on: str, data: st.DataObject) -> None:
    check_laws(case(on), DrawnChoices(data.draw))


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_strings_and_floats(data: st.DataObject) -> None:
    plan = AntiJoin(Source("L"), Source("R"), parse("l.s = r.s and l.f <> r.f"))
    made = Case.of(plan, AntiJoinKernel, L=columns("s", "f"), R=columns("f", "s"))
    check_laws(made, DrawnChoices(data.draw))


@pytest.mark.parametrize("on", ["l.k = r.k", "l.v <> r.v"])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_batches_do_not_matter(on: str, data: st.DataObject) -> None:
    check_splits(case(on), DrawnChoices(data.draw))


@pytest.mark.parametrize("on", ["l.k = r.k", "l.v <> r.v"])
def test_state_stays_flat(on: str) -> None:
    check_flat(case(on), RandomChoices(1), most=40)


@pytest.mark.parametrize("on", ["1 = 1", "l.v <= r.v"])
def test_an_event_that_lives_forever_keeps_no_rights(on: str) -> None:
    run = Run.of(case(on))
    run.push(Step(0, (LEFT,), 1))
    for t in range(10, 500, 10):
        run.push(Step(1, ((0, t, t + 5, 1, (1, 1)),), t + 6))
        run.push(Step(0, (), t + 6))
        assert run.kernel.live_rows() == 1
    run.agrees()


def test_a_fragment_heals_to_one_row() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, (LEFT,), 1))
    run.push(Step(1, ((0, 3, 4, 1, (1, 1)), (0, 20, 30, 1, (1, 1))), 10))
    run.push(Step(0, (), 10))
    assert run.kernel.live_rows() == 2  # the first right is settled: only that the fragment began at 4 is known
    change = run.push(Step(1, ((0, 20, 30, -1, (1, 1)),), 10))
    assert change == Counter({(0, 4, 20, (1, 1)): -1, (0, 30, FOREVER, (1, 1)): -1, (0, 4, FOREVER, (1, 1)): 1})
    run.agrees()


def test_an_event_that_ends_at_the_frontier_goes_on_in_its_fragment() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, ((0, 1, 10, 1, (1, 1)),), 10))
    run.push(Step(1, ((0, 3, 4, 1, (1, 1)),), 10))
    assert run.kernel.live_rows() == 1
    change = run.push(Step(0, ((0, 1, 10, -1, (1, 1)), (0, 1, 15, 1, (1, 1))), 10))
    assert change == Counter({(0, 4, 10, (1, 1)): -1, (0, 4, 15, (1, 1)): 1})


def test_a_right_event_that_ends_at_the_frontier_covers_on() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, (LEFT,), 10))
    run.push(Step(1, ((0, 3, 10, 1, (1, 1)),), 10))
    assert run.kernel.live_rows() == 1  # what the right one covered is settled
    change = run.push(Step(1, ((0, 3, 10, -1, (1, 1)), (0, 3, 15, 1, (1, 1))), 10))
    assert change == Counter({(0, 10, FOREVER, (1, 1)): -1, (0, 15, FOREVER, (1, 1)): 1})
    run.agrees()


def test_a_right_event_that_ends_after_the_frontier_stays() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(1, ((0, 3, 11, 1, (1, 1)),), 10))
    run.push(Step(0, (), 10))
    assert run.kernel.live_rows() == 1
    assert run.push(Step(0, ((0, 10, 20, 1, (1, 1)),), 10)) == Counter({(0, 11, 20, (1, 1)): 1})


def test_an_event_that_starts_where_one_change_ends_and_meets_the_next() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, ((0, 4, 10, 1, (1, 1)),), 1))
    run.push(Step(1, ((0, 2, 4, 1, (1, 1)), (0, 8, 9, 1, (1, 1))), 1))
    assert run.output == Counter({(0, 4, 8, (1, 1)): 1, (0, 9, 10, (1, 1)): 1})


@pytest.mark.parametrize("on", ["1 = 1", "l.v <= r.v"])
def test_rights_that_came_in_any_order(on: str) -> None:
    run = Run.of(case(on))
    run.push(Step(1, tuple((0, t, t + 2, 1, (1, 1)) for t in (10, 20, 30)), 1))
    run.push(Step(1, ((0, 2, 4, 1, (1, 1)),), 1))
    run.push(Step(0, ((0, 1, 40, 1, (1, 1)),), 1))
    assert sorted(event[1:3] for event in run.output) == [(1, 2), (4, 10), (12, 20), (22, 30), (32, 40)]


def test_equal_events_keep_their_number() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, ((0, 1, 9, 1, (1, 1)), (0, 1, 9, 1, (1, 1))), 0))
    run.push(Step(1, ((0, 5, 7, 1, (1, 1)), (0, 5, 7, 1, (1, 1))), 0))
    assert run.output == Counter({(0, 1, 5, (1, 1)): 2, (0, 7, 9, (1, 1)): 2})
    run.push(Step(1, ((0, 5, 7, -1, (1, 1)),), 0))
    assert run.output == Counter({(0, 1, 5, (1, 1)): 2, (0, 7, 9, (1, 1)): 2})  # one of two covers is enough


def test_rows_without_a_key_pass_without_state() -> None:
    run = Run.of(case("l.k = r.k"))
    run.push(Step(0, ((0, 1, 9, 1, (None, 1)),), 0))
    assert run.output == Counter({(0, 1, 9, (None, 1)): 1})
    assert run.kernel.live_rows() == 0
