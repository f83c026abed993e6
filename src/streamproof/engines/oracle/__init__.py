"""The oracle: every plan as SQL, on DuckDB (embedded) and on PostgreSQL. It shares no code with what it judges.

>>> duckdb_engine().name
'duckdb'
"""

from __future__ import annotations

from streamproof.engines.oracle.database import Database
from streamproof.engines.oracle.dialect import Dialect
from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import InfrastructureError, InputError


def duckdb_engine(*, threads: int | None = None, memory: str | None = None) -> Oracle:
    """The oracle on an embedded DuckDB, in memory, without access to files, network or settings.

    ``memory`` is the most that it may use, e.g. ``"8GB"``; 4GB unless it is given.
    """
    from streamproof.engines.oracle.duckdb import DuckDbServer  # noqa: PLC0415  # loaded by those who use it
    from streamproof.engines.oracle.duckdb_dialect import DuckDbSql  # noqa: PLC0415

    return Oracle("duckdb", DuckDbSql, DuckDbServer(threads=threads, memory=memory).connect)


def postgres_engine(*, dsn: str | None = None) -> Oracle:
    """The oracle on a PostgreSQL server, in one transaction that is rolled back at the end.

    Without a ``dsn`` it can show its SQL and what it supports, but not run.
    """
    options = frozenset(("dsn",))
    return Oracle("postgres", _postgres_dialect, lambda: _postgres_database(dsn), options=options)


def _postgres_dialect() -> Dialect:
    from streamproof.engines.oracle.postgres_dialect import PostgresSql  # noqa: PLC0415  # loaded by those who use it

    return PostgresSql()


def _postgres_database(dsn: str | None) -> Database:
    try:
        from streamproof.engines.oracle.postgres import Postgres  # noqa: PLC0415  # psycopg is an extra
    except ImportError as error:
        raise InfrastructureError(
            f"the engine postgres needs psycopg: {error}", fix="pip install 'streamproof[postgres]'"
        ) from None
    if dsn is None:
        fix = "give --dsn postgresql://user@host/name"
        raise InputError("the engine postgres needs a server to run on", fix=fix)
    return Postgres(dsn)
