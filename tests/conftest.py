"""What tests in several folders share: a real PostgreSQL server, started once."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.reference.servers import postgres_server

# The same examples every time, so that a red run means a change; `HYPOTHESIS_PROFILE=explore` looks for new ones.
# No deadlines: the machines that run tests are shared, and a slow moment is not a bug.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Tests of the command line name no engine and mean the quickest; the default, Spark, has tests of its own.
os.environ.setdefault("STREAMPROOF_ENGINE", "duckdb")


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a PostgreSQL server from a wheel; it needs nothing installed."""
    with postgres_server() as address:
        yield address
