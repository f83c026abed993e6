"""The databases that are held against the evaluator, each opened once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamproof.workbench.judge import Judge
from tests.reference.judging import evaluator_judges


@pytest.fixture(scope="session")
def duckdb_judge() -> Iterator[Judge]:
    with evaluator_judges("duckdb") as judge:
        yield judge


@pytest.fixture(scope="session")
def postgres_judge(postgres_dsn: str) -> Iterator[Judge]:
    with evaluator_judges("postgres", postgres_dsn) as judge:
        yield judge
