"""A condition on time means the lifetime where it is written: no pass may move it to where lifetimes are others."""

from __future__ import annotations

import pytest

from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.rewrites import rewrite
from streamproof.plan.rewrites.push_filter import RULES
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.evaluator.values import Row
from tests.engines.test_weights import PLANS, SCHEMA, rows
from tests.plan.rewriting import MODULES
from tests.reference.compare import difference

SCHEMAS = {"S": SCHEMA, "T": SCHEMA}
CONDITIONS = [parse(f"le {op} {t}") for t in (1, 3, 4, 5, 18, 20, 21, 31) for op in ("<", ">=", "=")]


def given(name: str) -> list[Row]:
    return [(le, re, payload) for le, re, times, payload in rows(name, 1) for _ in range(times)]


def result(plan: Plan) -> list[Row]:
    return evaluate(check(plan, SCHEMAS, registry=MODULES), {name: given(name) for name in "ST"}, registry=MODULES)


@pytest.mark.parametrize("name", PLANS)
def test_a_condition_on_time_stays_with_its_lifetimes(name: str) -> None:
    for condition in CONDITIONS:
        written = nodes.Where(PLANS[name], condition)
        assert difference(result(written), result(rewritten(written))) is None, condition


def rewritten(plan: Plan) -> Plan:
    return rewrite(plan, SCHEMAS, registry=MODULES)


def test_every_operator_that_lets_conditions_through_is_here() -> None:
    tried = {type(plan) for plan in PLANS.values()}
    assert set(RULES) <= tried
