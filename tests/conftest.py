"""What tests in several folders share: a real PostgreSQL server, started once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.reference.servers import postgres_server


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a PostgreSQL server from a wheel; it needs nothing installed."""
    with postgres_server() as address:
        yield address
