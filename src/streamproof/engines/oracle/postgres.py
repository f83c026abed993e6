"""The PostgreSQL driver: temporary tables in one transaction that is rolled back, so that nothing is left behind."""

from __future__ import annotations

import psycopg
import pyarrow as pa
import pyarrow.compute as pc
from psycopg.conninfo import conninfo_to_dict

from streamproof.engines.oracle.database import Columns, marked_error, out_of_memory, overflow, storage_type
from streamproof.engines.oracle.postgres_dialect import PostgresSql, no_nul
from streamproof.engines.oracle.postgres_library import needed, source_of
from streamproof.errors import InfrastructureError, StreamproofError
from streamproof.thresholds import ANALYZED

_SETTINGS = (
    "SET LOCAL standard_conforming_strings = on",
    "SET LOCAL extra_float_digits = 1",  # floats as text with the fewest digits that read back the same
    "SET LOCAL jit = off",  # compiling takes longer than most of these statements
    "SET LOCAL work_mem = '64MB'",
    "SET LOCAL client_min_messages = error",
    "SET LOCAL synchronous_commit = off",
)
_ESCAPES = (("\\", "\\\\"), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


class Postgres:
    """One connection and one transaction, for one run."""

    def __init__(self, dsn: str) -> None:
        self._made: set[str] = set()  # helper functions that exist by now
        self._connection = _connect(dsn)
        try:
            encoding = self._connection.info.parameter_status("server_encoding")
            if encoding != "UTF8":
                raise InfrastructureError(f"the database stores {encoding}", fix="use a database with encoding UTF8")
            for setting in _SETTINGS:
                self.execute(setting)
        except StreamproofError:
            self._connection.close()
            raise

    def execute(self, statement: str) -> None:
        self._run(statement)

    def create(self, table: str, query: str) -> int:
        rows = self._run(f"CREATE TEMP TABLE {table} ON COMMIT DROP AS {query}").rowcount
        if rows >= ANALYZED.now:
            self._run(f"ANALYZE {table}")
        return rows

    def fetch(self, query: str, columns: Columns) -> pa.Table:
        rows = self._rows(query)
        arrays = [pa.array([row[n] for row in rows], storage_type(kind)) for n, (_, kind) in enumerate(columns)]
        return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])

    def fetch_lists(self, query: str, keys: int) -> tuple[pa.Table, list[pa.Array]]:
        cursor = self._run(query, binary=True)
        width, rows = len(cursor.description or ()), cursor.fetchall()
        found = pa.table({f"k{n}": pa.array([row[n] for row in rows], pa.int64()) for n in range(keys)})
        return found, [pa.array([row[n] for row in rows], pa.list_(pa.float64())) for n in range(keys, width)]

    def load(self, table: str, columns: Columns, rows: pa.Table) -> None:
        sql = PostgresSql()
        kinds = ", ".join(
            f"{name} {sql.type_name(kind)}" + (' COLLATE "C"' if kind.kind == "string" else "")
            for name, kind in columns
        )
        self.execute(f"CREATE TEMP TABLE {table} ({kinds}) ON COMMIT DROP")
        try:
            with self._connection.cursor() as cursor, cursor.copy(f"COPY {table} FROM STDIN") as copy:
                for batch in rows.to_batches(max_chunksize=50_000):
                    copy.write(_copy_text(batch))
        except psycopg.Error as error:
            raise _ours(error) from None
        if rows.num_rows >= ANALYZED.now:
            self.execute(f"ANALYZE {table}")

    def _rows(self, query: str) -> list[tuple[object, ...]]:
        try:
            return self._run(query, binary=True).fetchall()
        except psycopg.Error as error:
            raise _ours(error) from None

    def _run(self, statement: str, *, binary: bool = False) -> psycopg.Cursor[tuple[object, ...]]:
        try:
            for name in needed(statement):
                if name not in self._made:
                    self._connection.execute(source_of(name))
                    self._made.add(name)
            return self._connection.execute(statement, binary=binary)
        except psycopg.Error as error:
            raise _ours(error) from None

    def close(self) -> None:
        try:
            self._connection.rollback()
        except psycopg.Error:
            pass  # the connection is lost, and with it the transaction
        finally:
            self._connection.close()


def _connect(dsn: str) -> psycopg.Connection[tuple[object, ...]]:
    """A connection; an error names the server but never the password."""
    try:
        known = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise InfrastructureError(
            "the dsn is not a PostgreSQL connection string", fix="write e.g. postgresql://user@host:5432/database"
        ) from None
    try:
        return psycopg.connect(dsn, connect_timeout=10)
    except psycopg.Error as error:
        where = f"host {known.get('host', 'localhost')}, database {known.get('dbname', 'by default')}"
        why = str(error).strip().rpartition("\n")[2]
        password = str(known.get("password") or "")
        raise InfrastructureError(
            f"cannot connect to PostgreSQL ({where}): {why.replace(password, '…') if password else why}",
            fix="check that the server runs and that the dsn names it",
        ) from None


def _copy_text(batch: pa.RecordBatch) -> bytes:
    r"""Rows in the text format of COPY.

    >>> _copy_text(pa.record_batch({"a": [1, None], "b": ["x\ty", ""]}))
    b'1\tx\\ty\n\\N\t\n'
    """
    columns = [_copy_column(column) for column in batch.columns]
    lines = pc.binary_join_element_wise(*columns, "\t")
    return ("\n".join(lines.to_pylist()) + "\n").encode() if len(lines) else b""


def _copy_column(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        for plain, escaped in _ESCAPES:
            column = pc.replace_substring(column, plain, escaped)
    return pc.fill_null(column.cast(pa.string()), "\\N")


def _ours(error: psycopg.Error) -> StreamproofError:
    """A database error as one of ours, by its SQLSTATE; never a raw stack trace."""
    message = error.diag.message_primary or str(error)
    state = error.sqlstate or ""
    if state == "P0001" and (found := marked_error(message)) is not None:
        return found
    if state == "22003":
        return overflow()
    if state in ("22021", "22P05"):
        return no_nul()
    if state[:2] in ("53", "54"):  # insufficient resources, or a limit of the program
        return out_of_memory(f"PostgreSQL ({message.partition(chr(10))[0]})", "give the server more")
    first = message.partition("\n")[0]
    return InfrastructureError(
        f"PostgreSQL failed ({state or 'no code'}): {first}",
        fix="check the server; if it refuses the SQL, report it with the output of --show-sql",
    )
