"""join and followed_by: incrementally the same as over complete histories, with bounded state."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import RunError
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.join import JoinKernel
from streamproof.kernels.pairs import split
from streamproof.plan import nodes
from streamproof.plan.expr import Col
from streamproof.plan.nodes import FollowedBy, Join, Source
from streamproof.plan.parse import parse
from streamproof.plan.typing import Scope
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.changes import Case, Run, Step, check_flat, check_laws, check_splits, columns
from tests.reference.drawn import DrawnChoices

L, R = Source("L"), Source("R")
SELECT = nodes.named({name: parse(text) for name, text in (("k", "l.k"), ("v", "l.v + r.v"), ("t", "l.le + r.le"))})
CONDITIONS = (
    "l.k = r.k",
    "1 = 1",
    "1 = 0",
    "l.k = null",
    "l.v <> r.v",  # only pairs can tell
    "l.k = r.k and l.v < r.v",
    "l.k = r.k and l.v > 0 and r.v < 2",  # each side alone
    "r.v + 1 = l.v and l.k is not distinct from r.k",
    "l.le < r.le and l.k = r.v",
)


def case(node: type[Join], on: str, select: nodes.Named | None = SELECT) -> Case:
    return Case.of(node(L, R, parse(on), select), JoinKernel, L=columns("k", "v"), R=columns("k", "v"))


def values(on: str) -> Case:
    """A join over strings, floats and decimals, without any column in the result but one."""
    select = nodes.named({"s": Col("s", "r")})
    left = Schema.of({"s": "string", "f": "float64", "v": "int64"})
    right = Schema.of({"s": "string", "f": "float64", "d": "decimal(6,2)"})
    return Case.of(Join(L, R, parse(on), select), JoinKernel, L=left, R=right)


@pytest.mark.parametrize("node", [Join, FollowedBy])
@pytest.mark.parametrize("on", CONDITIONS)
@settings(max_examples=15, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(node: type[Join], on: str, data: st.DataObject) -> None:
    check_laws(case(node, on), DrawnChoices(data.draw))


@pytest.mark.parametrize("on", ["l.s = r.s", "l.f = r.f", "l.v = r.f", "l.v = r.d", "l.s = r.s and l.f = r.d"])
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_keys_of_all_types(on: str, data: st.DataObject) -> None:
    check_laws(values(on), DrawnChoices(data.draw))


@settings(max_examples=12, deadline=None)
@given(st.data())
def test_a_result_without_columns_counts(data: st.DataObject) -> None:
    check_laws(case(Join, "l.k = r.k", ()), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", [Join, FollowedBy])
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_batches_do_not_matter(node: type[Join], data: st.DataObject) -> None:
    check_splits(case(node, "l.k = r.k"), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", [Join, FollowedBy])
def test_state_stays_flat(node: type[Join]) -> None:
    check_flat(case(node, "l.k = r.k"), RandomChoices(1), most=30)


def test_an_event_that_ends_at_the_frontier_is_extended() -> None:
    run = Run.of(case(Join, "1 = 1"))
    run.push(Step(0, ((0, 1, 5, 1, (1, 1)),), 5))
    run.push(Step(1, ((0, 2, 9, 1, (1, 1)),), 5))
    assert run.kernel.live_rows() == 1  # the left event is settled as far as the right input has come
    change = run.push(Step(0, ((0, 1, 5, -1, (1, 1)), (0, 1, 8, 1, (1, 1))), 5))
    assert change == {(0, 2, 5, (1, 2, 3)): -1, (0, 2, 8, (1, 2, 3)): 1}
    run.agrees()


def test_rows_go_by_the_frontier_of_the_other_side() -> None:
    run = Run.of(case(Join, "1 = 1"))
    run.push(Step(0, ((0, 1, 5, 1, (1, 1)),), FOREVER))
    assert run.kernel.live_rows() == 1  # rights may still come
    run.push(Step(1, (), 4))
    assert run.kernel.live_rows() == 1  # even one that starts at 4
    run.push(Step(1, (), 5))
    assert run.kernel.live_rows() == 0


def test_keys_that_nobody_holds_are_forgotten() -> None:
    schema = columns("k", "v")
    made = Case.of(Join(L, R, parse("l.k = r.k"), SELECT), JoinKernel, L=schema, R=schema)
    run = Run.of(made)
    for n in range(20):
        rows = tuple((0, 10 * n, 10 * n + 5, 1, (1000 * n + k, 1)) for k in range(1000))
        run.push(Step(0, rows, 10 * n))
        run.push(Step(1, (), 10 * n))
    assert len(run.kernel.keys.known) <= 9000  # type: ignore[attr-defined]
    run.kernel.live_groups()
    assert len(run.kernel.keys.known) == 1000  # type: ignore[attr-defined]


def test_a_row_without_a_partner_raises_nothing() -> None:
    run = Run.of(case(Join, "l.k = r.k and l.v + 9223372036854775807 > 0"))
    run.push(Step(0, ((0, 1, 5, 1, (1, 1)),), 1))
    with pytest.raises(RunError, match=r"1 \+ 9223372036854775807 does not fit into int64"):
        run.push(Step(1, ((0, 1, 5, 1, (1, 1)),), 1))


def test_the_condition_is_taken_apart() -> None:
    scope = Scope.two(columns("k", "v"), columns("k", "v"))
    parts = split(parse("r.k = l.k and l.v > 1 and 1 = 1 and r.v > 2 and l.v < r.v and l.v = r.v + l.k"), scope)
    assert [(pair.left, pair.right) for pair in parts.equalities] == [(Col("k", "l"), Col("k", "r"))]
    assert parts.left == (parse("l.v > 1"), parse("1 = 1"))
    assert parts.right == (parse("r.v > 2"),)
    assert parts.residual == parse("l.v < r.v and l.v = r.v + l.k")
