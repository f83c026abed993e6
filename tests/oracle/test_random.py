"""The SQL oracle against the evaluator: random plans over random streams give the same history."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from streamproof.engines.base import Engine
from tests.reference.judge import judge
from tests.reference.random_cases import Case, cases

SCALE = int(os.environ.get("STREAMPROOF_EXAMPLES", "1"))  # more examples by that factor
COMMON = settings(deadline=None, suppress_health_check=list(HealthCheck))


def _agrees(case: Case, engine: Engine) -> None:
    verdict = judge(case, engine)
    assert verdict.agrees is not False, verdict.text


@settings(COMMON, max_examples=250 * SCALE)
@given(case=cases())
def test_duckdb_agrees(duckdb_under_test: Engine, case: Case) -> None:
    _agrees(case, duckdb_under_test)


@settings(COMMON, max_examples=50 * SCALE)
@given(case=cases())
def test_postgres_agrees(postgres_under_test: Engine, case: Case) -> None:
    _agrees(case, postgres_under_test)
