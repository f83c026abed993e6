"""Values between databases and Python: what user modules get, and what they give back."""

from __future__ import annotations

import numbers
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal, InvalidOperation
from typing import Final

import numpy as np
import pyarrow as pa

from streamproof.engines.oracle.database import Columns, from_storage, storage_type
from streamproof.engines.oracle.dialect import EPOCH, EPOCH_DAY
from streamproof.errors import RunError
from streamproof.events.schema import Type
from streamproof.plan.expr import INT64_MAX, INT64_MIN

_WIDE: Final = Context(prec=80)


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


def returned(value: object, kind: Type) -> object:
    """What a module gave, as the database stores it; TypeError where it is not of the declared type.

    >>> returned(3, Type("float64")), returned(date(1970, 1, 2), Type("date"))
    (3.0, 1)
    """
    if value is None:
        return None
    match kind.kind:
        case "int64" if isinstance(value, numbers.Integral) and not isinstance(value, bool):
            if INT64_MIN <= int(value) <= INT64_MAX:
                return int(value)
        case "float64" if isinstance(value, numbers.Real) and not isinstance(value, bool):
            return float(value)
        case "string" if isinstance(value, str):
            return str(value)
        case "bool" if isinstance(value, bool | np.bool_):
            return bool(value)
        case "decimal" if isinstance(value, Decimal | int) and not isinstance(value, bool):
            return _exact(Decimal(value), kind)
        case "date" if isinstance(value, date) and not isinstance(value, datetime):
            return (value - EPOCH_DAY).days
        case "timestamp" if isinstance(value, datetime) and value.tzinfo is not None:
            since = value.astimezone(UTC) - EPOCH
            return (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    raise TypeError


def _exact(value: Decimal, kind: Type) -> Decimal:
    try:
        found = value.quantize(Decimal(1).scaleb(-kind.scale), context=_WIDE)
    except InvalidOperation:
        raise TypeError from None
    if found != value or abs(found) >= Decimal(10) ** (kind.precision - kind.scale):
        raise TypeError
    return found


def stored_table(columns: Columns, values: list[list[object]]) -> pa.Table:
    """Stored values as a table to load."""
    arrays = [pa.array(column, storage_type(kind)) for column, (_, kind) in zip(values, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[name for name, _ in columns])


__all__ = ["from_storage", "python_columns", "python_value", "returned", "stored_table"]
