"""A rewritten plan gives what the plan gives, on random plans and streams."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.reference.engine import ReferenceEngine
from tests.reference.judge import judge
from tests.reference.random_cases import Case, cases

ENGINE = ReferenceEngine()


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(cases())
def test_rewritten_plans_mean_the_same(case: Case) -> None:
    verdict = judge(case, ENGINE, mode="rewritten")
    assert verdict.agrees is not False, verdict.text
