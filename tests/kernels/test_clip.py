"""clip: incrementally the same as over complete histories; what is clipped for good is forgotten."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.time import FOREVER
from streamproof.kernels.clip import ClipKernel
from streamproof.plan.nodes import Clip, Source
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
)


def case(on: str) -> Case:
    plan = Clip(Source("L"), Source("R"), parse(on))
    return Case.of(plan, ClipKernel, L=columns("k", "v"), R=columns("k", "v"))


@pytest.mark.parametrize("on", CONDITIONS)
@settings(max_examples=30, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(on: str, data: st.DataObject) -> None:
    check_laws(case(on), DrawnChoices(data.draw))


@pytest.mark.parametrize("on", ["l.k = r.k", "l.v <> r.v"])
@settings(max_examples=20, deadline=None)
@given(st.data())
def test_batches_do_not_matter(on: str, data: st.DataObject) -> None:
    check_splits(case(on), DrawnChoices(data.draw))


@pytest.mark.parametrize("on", ["l.k = r.k", "l.v <> r.v"])
def test_state_stays_flat(on: str) -> None:
    check_flat(case(on), RandomChoices(1), most=40)


def test_a_stream_of_readings_clips_itself() -> None:
    """Each reading lasts until the next one: of an endless stream, only the last is live."""
    run = Run.of(case("l.k = r.k"))
    for t in range(100):
        row = (0, t, FOREVER, 1, (1, t))
        run.push(Step(0, (row,), t))
        run.push(Step(1, (row,), t))
        assert run.kernel.live_rows() <= 3  # the last two readings and a start at the frontier
    run.agrees()


def test_what_is_clipped_for_good_ignores_its_own_end() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, ((0, 1, 20, 1, (1, 1)),), 10))
    run.push(Step(1, ((0, 5, 6, 1, (1, 1)),), 10))
    assert run.kernel.live_rows() == 0
    assert not run.push(Step(0, ((0, 1, 20, -1, (1, 1)), (0, 1, 30, 1, (1, 1))), 10))
    run.agrees()


def test_a_start_that_vanishes_unclips() -> None:
    run = Run.of(case("1 = 1"))
    run.push(Step(0, ((0, 1, 20, 1, (1, 1)),), 1))
    run.push(Step(1, ((0, 5, 6, 1, (1, 1)), (0, 5, 9, 1, (1, 1)), (0, 8, 9, 1, (1, 1))), 1))
    assert not run.push(Step(1, ((0, 5, 6, -1, (1, 1)),), 1))  # another one starts there
    change = run.push(Step(1, ((0, 5, 9, -1, (1, 1)),), 1))
    assert change == Counter({(0, 1, 5, (1, 1)): -1, (0, 1, 8, (1, 1)): 1})
