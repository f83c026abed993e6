"""The SQL oracle against the evaluator: random plans over random streams give the same history."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from streamproof.workbench.case import Case
from streamproof.workbench.judge import Judge
from tests.reference.drawn import cases

SCALE = int(os.environ.get("STREAMPROOF_EXAMPLES", "1"))  # more examples by that factor
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _agrees(case: Case, judge: Judge) -> None:
    verdict = judge.verdict(case)
    assert not verdict.is_found, verdict.text


@settings(COMMON, max_examples=250 * SCALE)
@given(case=cases())
def test_duckdb_agrees(duckdb_judge: Judge, case: Case) -> None:
    _agrees(case, duckdb_judge)


@settings(COMMON, max_examples=50 * SCALE)
@given(case=cases())
def test_postgres_agrees(postgres_judge: Judge, case: Case) -> None:
    _agrees(case, postgres_judge)
