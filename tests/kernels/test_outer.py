"""left_outer and full_outer: the join and the anti joins in one, with nulls where a side is missing."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.kernels.join import OuterJoinKernel
from streamproof.plan import nodes
from streamproof.plan.nodes import FullOuter, LeftOuter, Source
from streamproof.plan.parse import parse
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.changes import Case, check_flat, check_laws, check_splits, columns
from tests.reference.drawn import DrawnChoices

TEXTS = {"k": "coalesce(l.k, r.k)", "a": "l.v", "b": "r.v", "t": "l.le", "alone": "r.le is null", "s": "r.s"}
SELECT = nodes.named({name: parse(text) for name, text in TEXTS.items()})
OUTER = [LeftOuter, FullOuter]


def case(node: type[nodes.Join], on: str) -> Case:
    plan = node(Source("L"), Source("R"), parse(on), SELECT)
    return Case.of(plan, OuterJoinKernel, L=columns("k", "v"), R=columns("k", "v", "s"))


@pytest.mark.parametrize("node", OUTER)
@pytest.mark.parametrize("on", ["1 = 1", "l.k = r.k", "l.v <> r.v", "l.k = r.k and l.v > 0 and r.v < 2"])
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_agrees_with_the_meaning_at_every_step(node: type[nodes.Join], on: str, data: st.DataObject) -> None:
    check_laws(case(node, on), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", OUTER)
@settings(max_examples=12, deadline=None)
@given(st.data())
def test_batches_do_not_matter(node: type[nodes.Join], data: st.DataObject) -> None:
    check_splits(case(node, "l.k = r.k"), DrawnChoices(data.draw))


@pytest.mark.parametrize("node", OUTER)
def test_state_stays_flat(node: type[nodes.Join]) -> None:
    check_flat(case(node, "l.k = r.k"), RandomChoices(1), most=90)
