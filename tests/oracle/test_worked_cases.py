"""The worked cases of the algebra on both databases."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Engine
from tests.reference.cases import WorkedCase, loosely, worked_cases
from tests.reference.compare import difference
from tests.reference.judge import judge
from tests.reference.random_cases import Case
from tests.reference.streams import Stream

LEGAL = [case for case in worked_cases() if case.error in (None, "output_in_past", "unbounded_windows")]


@pytest.mark.parametrize("worked", LEGAL, ids=lambda worked: worked.name)
@pytest.mark.parametrize("engine_name", ["duckdb", "postgres"])
def test_worked_case(worked: WorkedCase, engine_name: str, request: pytest.FixtureRequest) -> None:
    engine: Engine = request.getfixturevalue(f"{engine_name}_under_test")
    streams = {name: Stream(worked.schemas[name], tuple(events)) for name, events in worked.streams.items()}
    verdict = judge(Case(worked.plan, streams, worked.horizon), engine)
    assert verdict.agrees, verdict.text
    if worked.compare == "exact" and worked.rows is not None:
        assert not isinstance(verdict.actual, str)
        assert difference(loosely(worked.rows), loosely(verdict.actual)) is None
