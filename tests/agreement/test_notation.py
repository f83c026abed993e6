"""Random plans survive their notation: what is written reads back as a plan with the same meaning."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from streamproof.language.json import dumps, loads
from streamproof.plan.check import check
from streamproof.workbench.case import Case
from streamproof.workbench.modules import all_modules
from tests.reference.drawn import cases


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(cases())
def test_written_plans_read_back(case: Case) -> None:
    again = loads(dumps(case.plan))
    assert dumps(again) == dumps(case.plan)
    first, second = (check(plan, case.schemas, registry=all_modules()) for plan in (case.plan, again))
    assert first.schema == second.schema
