"""stitch, coalesce and distinct: incrementally the same as over complete histories, with bounded state."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.events.time import FOREVER
from streamproof.kernels.equal_payloads import CoalesceKernel, DistinctKernel, StitchKernel
from streamproof.plan.nodes import Coalesce, Distinct, Source, Stitch
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.changes import Case, Run, Shape, Step, check_flat, check_laws, check_splits, columns
from tests.reference.drawn import DrawnChoices

KERNELS = {
    "stitch": (Stitch, StitchKernel),
    "coalesce": (Coalesce, CoalesceKernel),
    "distinct": (Distinct, DistinctKernel),
}


def case(name: str, *names: str) -> Case:
    node, kernel = KERNELS[name]
    return Case.of(node(Source("L")), kernel, L=columns(*names))


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("names", [("v",), ("k", "s", "f"), ()])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(name: str, names: tuple[str, ...], data: st.DataObject) -> None:
    check_laws(case(name, *names), DrawnChoices(data.draw))


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_many_events_of_one_payload(name: str, data: st.DataObject) -> None:
    check_laws(case(name), DrawnChoices(data.draw), Shape(groups=1, longest=3, changes=6))


@pytest.mark.parametrize("name", KERNELS)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_batches_do_not_matter(name: str, data: st.DataObject) -> None:
    check_splits(case(name, "v"), DrawnChoices(data.draw))


@pytest.mark.parametrize("name", KERNELS)
def test_state_stays_flat(name: str) -> None:
    check_flat(case(name, "v"), RandomChoices(1), most=30)


@pytest.mark.parametrize("name", ["stitch", "coalesce"])
def test_a_chain_without_end_keeps_its_beginning(name: str) -> None:
    run = Run.of(case(name, "v"))
    for t in range(0, 500, 5):
        change = run.push(Step(0, ((0, t, t + 5, 1, (1,)),), t + 5))
        assert run.kernel.live_rows() <= 2  # the last event and where it all began
    assert change == Counter({(0, 0, 495, (1,)): -1, (0, 0, 500, (1,)): 1})


def test_distinct_remembers_the_last_boundary() -> None:
    run = Run.of(case("distinct", "v"))
    run.push(Step(0, ((0, 1, FOREVER, 1, (1,)), (0, 2, 5, 1, (1,))), 8))
    assert run.kernel.live_rows() == 2
    change = run.push(Step(0, ((0, 9, 12, 1, (1,)),), 8))
    assert change == Counter(
        {(0, 5, FOREVER, (1,)): -1, (0, 5, 9, (1,)): 1, (0, 9, 12, (1,)): 1, (0, 12, FOREVER, (1,)): 1}
    )


def test_distinct_remembers_it_for_an_event_that_ends_at_the_frontier() -> None:
    run = Run.of(case("distinct", "v"))
    run.push(Step(0, ((0, 1, 5, 1, (1,)), (0, 2, 10, 1, (1,))), 10))
    assert run.kernel.live_rows() == 2
    change = run.push(Step(0, ((0, 2, 10, -1, (1,)), (0, 2, 15, 1, (1,))), 10))
    assert change == Counter({(0, 5, 10, (1,)): -1, (0, 5, 15, (1,)): 1})


def test_chains_pair_up_anew_when_ends_change() -> None:
    run = Run.of(case("stitch", "v"))
    begun = ((0, 0, 3, 1, (1,)), (0, 1, 3, 1, (1,)), (0, 3, 7, 1, (1,)), (0, 3, 9, 1, (1,)))
    run.push(Step(0, begun, 5))
    assert run.output == Counter({(0, 0, 7, (1,)): 1, (0, 1, 9, (1,)): 1})
    run.kernel.live_rows()
    run.push(Step(0, ((0, 3, 7, -1, (1,)), (0, 3, 20, 1, (1,))), 5))
    assert run.output == Counter({(0, 0, 9, (1,)): 1, (0, 1, 20, (1,)): 1})
    run.agrees()
