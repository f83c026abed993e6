"""The DuckDB driver: in process and in memory, without access to files, network or settings."""

from __future__ import annotations

from typing import Final

import duckdb
import pyarrow as pa

from streamproof.engines.oracle.database import Columns, marked_error, out_of_memory, overflow, storage_type
from streamproof.errors import InfrastructureError, InputError, StreamproofError

_CONFIG: Final[dict[str, str | bool | int | float | list[str]]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "error_on_division_by_zero": "false",  # null instead
    "preserve_insertion_order": "false",
    "temp_directory": "",  # nothing goes to disk, where it would fill the folder of whoever runs this
}
MEMORY: Final = "4GB"  # how much all runs of an engine may use at once, unless it was told otherwise


class DuckDbServer:
    """One in-memory database for all runs of an engine. It is opened when first used."""

    def __init__(self, *, threads: int | None = None, memory: str | None = None) -> None:
        self._memory = memory or MEMORY
        self._config = {**_CONFIG, "memory_limit": self._memory}
        if threads is not None:
            self._config["threads"] = threads
        self._opened: duckdb.DuckDBPyConnection | None = None

    def connect(self) -> DuckDb:
        """A connection of its own: temporary tables of other runs do not exist for it."""
        if self._opened is None:
            opened = _open(self._config)
            opened.execute("SET lock_configuration = true")
            self._opened = opened
        connection = self._opened.cursor()
        connection.execute("BEGIN TRANSACTION")
        return DuckDb(connection, self._memory)


def _open(config: dict[str, str | bool | int | float | list[str]]) -> duckdb.DuckDBPyConnection:
    try:
        return duckdb.connect(":memory:", config=config)
    except duckdb.Error as error:
        what = f"DuckDB cannot be opened: {str(error).partition(chr(10))[0]}"
        raise InputError(what, fix='give a number of threads, and memory such as "4GB"') from None


class DuckDb:
    """One connection and one transaction, for one run."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, memory: str) -> None:
        self._connection, self._memory = connection, memory

    def execute(self, statement: str) -> None:
        try:
            self._connection.execute(statement)
        except duckdb.Error as error:
            raise self._ours(error) from None

    def create(self, table: str, query: str) -> int:
        self.execute(f"CREATE TEMP TABLE {table} AS {query}")
        return sum(rows for (rows,) in self._connection.fetchall())

    def fetch(self, query: str, columns: Columns) -> pa.Table:
        table = self._arrow(query)
        arrays = [table.column(n).cast(storage_type(kind)) for n, (_, kind) in enumerate(columns)]
        return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])

    def fetch_lists(self, query: str, keys: int) -> tuple[pa.Table, list[pa.Array]]:
        table = self._arrow(query).combine_chunks()
        lists = [column.chunk(0) if column.num_chunks else pa.array([], column.type) for column in table.columns[keys:]]
        return table.select(range(keys)), lists

    def _arrow(self, query: str) -> pa.Table:
        try:
            return self._connection.sql(query).to_arrow_table()
        except duckdb.Error as error:
            raise self._ours(error) from None

    def load(self, table: str, columns: Columns, rows: pa.Table) -> None:
        view = f"arrow_{table}"
        self._connection.register(view, rows.rename_columns([name for name, _ in columns]))
        self.create(table, f"SELECT * FROM {view}")
        self._connection.unregister(view)

    def close(self) -> None:
        try:
            self._connection.execute("ROLLBACK")
        except duckdb.Error:
            pass  # a transaction that ran out of memory is rolled back already
        finally:
            self._connection.close()

    def _ours(self, error: duckdb.Error) -> StreamproofError:
        if isinstance(error, duckdb.OutOfMemoryException):
            return out_of_memory("DuckDB", f'give it more than {self._memory}: on(plan, "duckdb", memory="8GB")')
        return _ours(error)


def _ours(error: duckdb.Error) -> StreamproofError:
    """A database error as one of ours, by its class; never a raw stack trace."""
    found = marked_error(str(error))
    if found is not None:
        return found
    if isinstance(error, duckdb.OutOfRangeException | duckdb.ConversionException):
        return overflow()
    first = str(error).partition("\n")[0]
    return InfrastructureError(f"DuckDB failed: {first}", fix="report it with the output of --show-sql")
