"""What tests in several folders share: a real PostgreSQL server, started once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from hypothesis import settings

from tests.reference.servers import CannotStart, postgres_server

# The same examples every time, so that a red run means a change; `HYPOTHESIS_PROFILE=explore` looks for new ones.
# No deadlines: the machines that run tests are shared, and a slow moment is not a bug.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# What tests assert is what programs read: no colours, no boxes and no widths of whoever is watching.
for variable in ("FORCE_COLOR", "CLICOLOR_FORCE", "PY_COLORS", "COLUMNS", "LINES"):
    os.environ.pop(variable, None)
os.environ["NO_COLOR"] = "1"
os.environ["TERM"] = "dumb"

# Tests of the command line name no engine and mean the quickest; the default, Spark, has tests of its own.
os.environ.setdefault("STREAMPROOF_ENGINE", "duckdb")


# A shell starts what runs in its background deaf to Ctrl-C, and so would be the programs that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    """The address of a PostgreSQL server from a wheel; it needs nothing installed, but a user that is not root."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(postgres_server())
        except CannotStart as error:
            pytest.skip(str(error))
        yield address
