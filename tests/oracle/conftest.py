"""The engines that are held against the evaluator, each opened once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamproof.engines.base import Engine
from tests.reference.servers import open_engine


@pytest.fixture(scope="session")
def duckdb_under_test() -> Iterator[Engine]:
    with open_engine("duckdb") as engine:
        yield engine


@pytest.fixture(scope="session")
def postgres_under_test(postgres_dsn: str) -> Iterator[Engine]:
    with open_engine("postgres", postgres_dsn) as engine:
        yield engine
