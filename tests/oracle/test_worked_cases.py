"""The worked cases of the algebra on both databases."""

from __future__ import annotations

import pytest

from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.judge import Judge
from tests.reference.cases import WorkedCase, loosely, worked_cases
from tests.reference.compare import difference
from tests.reference.judging import rows_in

LEGAL = [case for case in worked_cases() if case.error in (None, "output_in_past", "unbounded_windows")]


@pytest.mark.parametrize("worked", LEGAL, ids=lambda worked: worked.name)
@pytest.mark.parametrize("name", ["duckdb", "postgres"])
def test_worked_case(worked: WorkedCase, name: str, request: pytest.FixtureRequest) -> None:
    judge: Judge = request.getfixturevalue(f"{name}_judge")
    streams = {name: CaseStream(worked.schemas[name], tuple(events)) for name, events in worked.streams.items()}
    verdict = judge.verdict(Case(worked.plan, streams, worked.horizon))
    assert verdict.word == "holds", verdict.text
    if worked.compare == "exact" and worked.rows is not None:
        assert difference(loosely(worked.rows), loosely(rows_in(verdict.actual))) is None
