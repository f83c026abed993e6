"""A rewritten plan gives what the plan gives, on random plans and streams."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from streamproof.workbench.case import Case
from streamproof.workbench.judge import Judge
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import EvaluatorOracle
from streamproof.workbench.subjects import OracleSubject
from tests.reference.drawn import cases
from tests.reference.judging import rewritten

EVALUATOR = EvaluatorOracle(all_modules())
JUDGE = Judge(OracleSubject(EVALUATOR), EVALUATOR)


@settings(deadline=None, max_examples=300, suppress_health_check=list(HealthCheck))
@given(cases())
def test_rewritten_plans_mean_the_same(case: Case) -> None:
    verdict = JUDGE.verdict(rewritten(case))
    assert not verdict.is_found, verdict.text
