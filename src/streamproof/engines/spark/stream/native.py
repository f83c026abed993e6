"""Which Parquet files Spark reads as our own readers do. All others are read by ours, into the spool.

Spark knows fewer types: it has no unsigned numbers of 64 bits, no nanoseconds and no times of day, and takes a length
of time for a number. And where a schema is declared it would cast what our readers reject.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.errors import InputError
from streamproof.events.files.mapping import ColumnMapping, layout_of
from streamproof.events.schema import Schema, type_of_arrow


def spark_reads(file: Path, mapping: ColumnMapping | None, declared: Schema | None) -> bool:
    """Whether Spark gives the rows of a file the times and values that our own reader gives them."""
    with pq.ParquetFile(file) as opened:
        fields, columns = opened.schema_arrow, opened.schema
        old = {column.path for column in map(columns.column, range(len(columns))) if column.physical_type == "INT96"}
    layout = mapping or layout_of(fields.names)
    zone = layout.assume_zone
    for name in _times(layout, fields.names):
        if not (_is_whole(fields.field(name).type) or _is_instant(fields.field(name), old, zone)):
            return False
    for role, name in layout.roles(fields.names).items():
        if role == "duration" and not _is_whole(fields.field(name).type):
            return False
    return all(
        _is_known(fields.field(column), old, zone) and _is_as_declared(fields.field(column).type, name, declared)
        for name, column in layout.payload_columns(fields.names).items()
        if declared is None or name in declared
    )


def _times(layout: ColumnMapping, names: list[str]) -> Iterator[str]:
    for role, name in layout.roles(names).items():
        if role in ("start", "end", "new_end", "cti"):
            yield name


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) and not pa.types.is_uint64(kind)


def _is_instant(field: pa.Field, old: set[str], zone: str | None) -> bool:
    kind = field.type
    if not pa.types.is_timestamp(kind):
        return False
    if field.name in old:  # Spark wrote them so for long, and knows that they are instants
        return zone is None
    return kind.unit in ("ms", "us") and (kind.tz is not None or zone is not None)


def _is_known(field: pa.Field, old: set[str], zone: str | None) -> bool:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    plain = (
        pa.types.is_boolean, pa.types.is_float32, pa.types.is_float64, pa.types.is_string, pa.types.is_large_string,
        pa.types.is_date32, pa.types.is_decimal128,
    )  # fmt: skip
    return _is_whole(kind) or _is_instant(field, old, zone) or any(is_one(kind) for is_one in plain)


def _is_as_declared(kind: pa.DataType, name: str, declared: Schema | None) -> bool:
    try:
        return declared is None or type_of_arrow(kind) == declared[name]
    except InputError:  # e.g. of local times
        return False
