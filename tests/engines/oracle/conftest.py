"""Both databases of the oracle; the PostgreSQL server is the real one that all tests share."""

from __future__ import annotations

import pytest

from streamproof.engines.oracle import duckdb_engine, postgres_engine
from streamproof.engines.oracle.engine import Oracle


@pytest.fixture(scope="session")
def duckdb() -> Oracle:
    return duckdb_engine(threads=1)


@pytest.fixture(scope="session")
def postgres(postgres_dsn: str) -> Oracle:
    return postgres_engine(dsn=postgres_dsn)


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> Oracle:
    found: Oracle = request.getfixturevalue(request.param)
    return found
