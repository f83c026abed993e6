"""What the oracle asks of a database: run SQL, load a table, fetch rows; and values on their way in and out."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Protocol, TypeAlias

import pyarrow as pa

from streamproof.engines.oracle.dialect import EPOCH, EPOCH_DAY, MARK
from streamproof.errors import RunError, StreamproofError
from streamproof.events.schema import INT64, Schema, Type
from streamproof.plan.limits import too_long_text

Columns: TypeAlias = "tuple[tuple[str, Type], ...]"


class Database(Protocol):
    """A connection that lives for one run and leaves nothing behind."""

    def execute(self, statement: str) -> None:
        """Run a statement that gives no rows."""
        ...

    def create(self, table: str, query: str) -> int:
        """Keep the rows of a query as a temporary table; how many they are."""
        ...

    def fetch(self, query: str, columns: Columns) -> pa.Table:
        """The rows of a query, in storage types."""
        ...

    def fetch_lists(self, query: str, keys: int) -> tuple[pa.Table, list[pa.Array]]:
        """Rows whose first ``keys`` columns are integers and the others lists of floats (null for an empty one)."""
        ...

    def load(self, table: str, columns: Columns, rows: pa.Table) -> None:
        """A new temporary table with these rows, given in storage types."""
        ...

    def close(self) -> None: ...


def storage_type(kind: Type) -> pa.DataType:
    """The Arrow type in which a column goes into and comes out of a database."""
    return pa.int64() if kind.kind in ("date", "timestamp", "null") else kind.arrow


def to_storage(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    """A column as the database keeps it.

    >>> to_storage(pa.chunked_array([pa.array([1], pa.int32()).cast(pa.date32())]), Type("date")).to_pylist()
    [1]
    """
    if kind.kind == "null":
        return pa.chunked_array([pa.nulls(len(column), pa.int64())])
    if kind.kind == "date":
        return column.cast(pa.int32()).cast(pa.int64())
    return column.cast(storage_type(kind))


def from_storage(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    """The inverse of `to_storage`: exactly the type of the schema."""
    if kind.kind == "null":
        return pa.chunked_array([pa.nulls(len(column))])
    if kind.kind == "date":
        return column.cast(pa.int64()).cast(pa.int32()).cast(pa.date32())
    if kind.kind == "timestamp":
        return column.cast(pa.int64()).cast(kind.arrow)
    return column.cast(kind.arrow)


def rows_of(schema: Schema) -> Columns:
    """The columns le, re and payload of a relation, as `fetch` wants them."""
    return (("le", INT64), ("re", INT64), *((f"c{n}", kind) for n, (_, kind) in enumerate(schema)))


# --- between storage and Python: what user modules get, and what they give back ---------------------------------------


def python_value(stored: object, kind: Type) -> object:
    """A stored value as a module sees it: days become dates, microseconds become UTC datetimes.

    >>> python_value(1, Type("date")), python_value(1_000_000, Type("timestamp")).isoformat()
    (datetime.date(1970, 1, 2), '1970-01-01T00:00:01+00:00')
    """
    if stored is None or kind.kind not in ("date", "timestamp"):
        return stored
    assert isinstance(stored, int)
    try:
        if kind.kind == "date":
            return EPOCH_DAY + timedelta(days=stored)
        return EPOCH + timedelta(microseconds=stored)
    except OverflowError:
        raise RunError(
            f"{stored} {'days' if kind.kind == 'date' else 'us'} since 1970 lie outside the years 1 to 9999",
            fix="a module cannot see such a time; filter it out",
            name="overflow",
        ) from None


def python_columns(table: pa.Table, columns: Columns) -> list[list[object]]:
    """The columns of a table as Python values."""
    return [_python_column(table.column(n), kind) for n, (_, kind) in enumerate(columns)]


def _python_column(column: pa.ChunkedArray, kind: Type) -> list[object]:
    values: list[object] = column.to_pylist()
    if kind.kind in ("date", "timestamp"):
        return [python_value(value, kind) for value in values]
    return values


def stored_table(columns: Columns, values: list[list[object]]) -> pa.Table:
    """Python values as a table to load."""
    arrays = [
        pa.array([_stored(value) for value in column], storage_type(kind))
        for column, (_, kind) in zip(values, columns, strict=True)
    ]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


def _stored(value: object) -> object:
    """A Python value as the database stores it: dates as days, times as microseconds."""
    if isinstance(value, datetime):
        since = value.astimezone(UTC) - EPOCH
        return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    return (value - EPOCH_DAY).days if isinstance(value, date) else value


# --- errors -----------------------------------------------------------------------------------------------------------


def marked_error(message: str) -> StreamproofError | None:
    """The error that our own SQL raised, if the message is one."""
    _, found, rest = message.partition(f"{MARK}|")
    if not found:
        return None
    name, to, value = (*rest.split("|", 2), "")[:3]
    shown = value.partition("\n")[0]
    if name == "limit_exceeded":
        return too_long_text(shown)
    if name == "overflow":
        return RunError(f"{shown} does not fit into {to}", fix="use try_cast, which gives null there", name="overflow")
    return RunError(f"{shown!r} is not a {to}", fix="use try_cast, which gives null there", name="bad_input")


def overflow() -> StreamproofError:
    """A number left its type."""
    return RunError("a number is too large for its type", fix="cast to float64 first", name="overflow")


def out_of_memory(database: str, fix: str) -> StreamproofError:
    """A database needs more memory than it may have."""
    what = f"{database} needs more memory for this step than it may have"
    return RunError(
        what, fix=f"read less at once, join on more columns, shorten windows, or {fix}", name="limit_exceeded"
    )
