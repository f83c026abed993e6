"""session: incrementally the same as over complete histories; sessions that are over are forgotten."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from streamproof.kernels.session import SessionKernel
from streamproof.plan.nodes import Session, Source
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.changes import Case, Run, Step, check_flat, check_laws, check_splits, columns
from tests.reference.drawn import DrawnChoices

SESSIONS = (
    Session(Source("L"), 3),
    Session(Source("L"), 2, 5),
    Session(Source("L"), 4, 3, ("k",)),
    Session(Source("L"), 3, None, ("s",)),
)


def case(node: Session) -> Case:
    return Case.of(node, SessionKernel, L=columns("k", "s"))


@pytest.mark.parametrize("node", SESSIONS)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(node: Session, data: st.DataObject) -> None:
    check_laws(case(node), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", SESSIONS)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_batches_do_not_matter(node: Session, data: st.DataObject) -> None:
    check_splits(case(node), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", SESSIONS)
def test_state_stays_flat(node: Session) -> None:
    check_flat(case(node), RandomChoices(1), most=30)


def test_a_start_exactly_after_the_timeout_begins_a_new_session() -> None:
    run = Run.of(case(Session(Source("L"), 3)))
    run.push(Step(0, ((0, 1, 9, 1, (1, "a")),), 3))
    assert run.kernel.live_rows() == 1  # a start at 3 could still join
    run.push(Step(0, (), 4))
    assert run.kernel.live_rows() == 0
    change = run.push(Step(0, ((0, 4, 9, 1, (1, "a")),), 4))
    assert change == Counter({(0, 4, 7, (1, "a")): 1})
    run.agrees()


def test_the_end_of_an_event_does_not_matter() -> None:
    run = Run.of(case(Session(Source("L"), 3)))
    run.push(Step(0, ((0, 1, 9, 1, (1, "a")),), 1))
    assert not run.push(Step(0, ((0, 1, 9, -1, (1, "a")), (0, 1, 20, 1, (1, "a"))), 1))


def test_a_session_that_ends_after_all_time_is_an_error() -> None:
    run = Run.of(case(Session(Source("L"), 100)))
    with pytest.raises(RunError, match=r"a session ends after 2\^62 ticks") as caught:
        run.push(Step(0, ((0, FOREVER - 10, FOREVER, 1, (1, "a")),), 1))
    assert caught.value.name == "overflow"
    assert "use a shorter timeout or a coarser time unit" in str(caught.value)
