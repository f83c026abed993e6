"""Rows between Arrow and Spark: our types as Spark's, batches as DataFrames, and DataFrames as one table.

Inside, payload columns are called c0, c1, …, so that no name of a stream ever meets Spark's rules for names; a column
of nothing but nulls is a bigint there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from streamproof.errors import InputError, did_you_mean
from streamproof.events.schema import (
    INT64,
    NULL,
    SIGNED,
    Schema,
    Type,
    W,
    beside,
    check_names,
    column_name,
    own_columns,
    payload_name,
    type_of_arrow,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType, StructType

TIMES: Final = ("le", "re")


def spark_type(kind: Type) -> DataType:
    """The type of a column inside Spark."""
    from pyspark.sql import types  # noqa: PLC0415  # Spark is loaded by those who use it

    if kind.kind == "decimal":
        return types.DecimalType(kind.precision, kind.scale)
    simple: dict[str, DataType] = {
        "int64": types.LongType(), "float64": types.DoubleType(), "string": types.StringType(),
        "bool": types.BooleanType(), "date": types.DateType(), "timestamp": types.TimestampType(),
        "null": types.LongType(),
    }  # fmt: skip
    return simple[kind.kind]


def sql_type(kind: Type) -> str:
    """The same as SQL, which Java need not read from JSON.

    >>> sql_type(INT64), sql_type(NULL)
    ('bigint', 'bigint')
    """
    return spark_type(kind).simpleString()


def schema_of(frame: DataFrame) -> Schema:
    """The payload of a DataFrame; le, re and w are its lifetimes and weights."""
    from pyspark.sql.pandas.types import to_arrow_type  # noqa: PLC0415

    own = own_columns(frame.columns, SIGNED).values()
    fields = {payload_name(field.name): field.dataType for field in frame.schema.fields if field.name not in own}
    check_names([payload_name(name) for name in frame.columns if name not in own], InputError)
    return Schema(tuple((name, type_of_arrow(to_arrow_type(kind))) for name, kind in fields.items()))


def inner_frame(frame: DataFrame, schema: Schema) -> tuple[DataFrame, dict[str, str]]:
    """A user's DataFrame with le, re, perhaps w, and the payload; and what le, re, c0, c1, … of the rules are in it,
    as SQL.

    Rows with a weight above 1 become that many rows; rows that cancel vanish.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415

    names = frame.columns
    payload = [column_name(name) if column_name(name) in names else name for name in schema.names]
    own = own_columns((name for name in names if name not in payload), SIGNED)
    times = [own.get(name, name) for name in TIMES]
    for name in (*times, *payload):
        if name not in names:
            fix = did_you_mean(name, names)
            raise InputError(f'the DataFrame has no column "{name}"', fix=fix, name="unknown_column")
    _refuse_other_times(frame, own.values())
    apart = len({name.lower() for name in names}) == len(names)  # else Spark cannot tell them by their names
    placed = frame if apart else frame.toDF(*(f"n{n}" for n in range(len(names))))
    wanted = [*((name, INT64) for name in times), *zip(payload, _kinds(schema), strict=True)]
    inner = [*TIMES, *(f"c{n}" for n in range(len(schema.columns)))]
    found = dict(zip(reversed(names), reversed(frame.schema.fields), strict=True))

    def column(name: str, kind: Type) -> str:
        read = quoted(name) if apart else f"n{names.index(name)}"
        return read if found[name].dataType == spark_type(kind) else f"cast({read} AS {sql_type(kind)})"

    read = {new: column(name, kind) for (name, kind), new in zip(wanted, inner, strict=True)}
    if "w" not in own:
        return placed, read
    weighed = placed.selectExpr(*(f"{text} AS {new}" for new, text in read.items()), f"{column(own['w'], INT64)} AS w")
    counted = weighed.groupBy(*inner).agg(f.sum("w").alias("w")).filter(f.col("w") > 0)
    copies = f.explode(f.sequence(f.lit(1).cast("long"), f.col("w"))).alias("copy")
    return counted.select(*inner, copies).drop("copy"), {name: name for name in inner}


def quoted(name: str) -> str:
    """A column's name for Spark, whatever is in it.

    >>> quoted("a`b.c")
    '`a``b.c`'
    """
    return "`" + name.replace("`", "``") + "`"


def _refuse_other_times(frame: DataFrame, own: Collection[str]) -> None:
    whole = ("tinyint", "smallint", "int", "bigint")
    for field in frame.schema.fields:
        if field.name in own and field.dataType.simpleString() not in whole:
            raise InputError(
                f'the column "{field.name}" is {field.dataType.simpleString()}, not ticks',
                fix=f'make whole numbers of it, e.g. functions.unix_micros("{field.name}")',
                name="type_mismatch",
            )


def frame_of(spark: SparkSession, schema: Schema, events: pa.Table) -> DataFrame:
    """Events (le, re and the payload, one row each) as an inner DataFrame."""
    arrays = [
        _stored(column, kind) for column, kind in zip(events.columns, [INT64, INT64, *_kinds(schema)], strict=True)
    ]
    struct = inner_struct(schema)
    table = without_empty_chunks(pa.Table.from_arrays(arrays, names=struct.names))
    return spark.createDataFrame(table, schema=struct)


def without_empty_chunks(table: pa.Table) -> pa.Table:
    """The same rows; Spark loses what comes after an empty chunk of a table.

    >>> rows = pa.table({"a": [1, 2]})
    >>> [batch.num_rows for batch in without_empty_chunks(pa.concat_tables([rows, rows[:0], rows])).to_batches()]
    [2, 2]
    """
    return pa.Table.from_batches([batch for batch in table.to_batches() if batch.num_rows], table.schema)


def table_of(frame: DataFrame, schema: Schema) -> pa.Table:
    """The rows of an inner DataFrame: le, re and the payload, in the types of the schema."""
    return pa.Table.from_arrays(in_types(frame.toArrow(), schema), schema=schema.arrow_rows.remove(W))


def in_types(rows: pa.Table, schema: Schema) -> list[pa.ChunkedArray]:
    """The columns of inner rows, in the types of the schema."""
    return [_typed(rows.column(n), field.type) for n, field in enumerate(schema.arrow_rows.remove(W))]


def outer_frame(frame: DataFrame, schema: Schema) -> DataFrame:
    """An inner DataFrame under the names of the schema."""
    columns = [
        f"{'NULL' if kind == NULL else f'c{n}'} AS {quoted(column_name(name))}" for n, (name, kind) in enumerate(schema)
    ]
    times = (f"{time} AS {name}" for time, name in zip(TIMES, beside(SIGNED, schema.names), strict=False))
    return frame.selectExpr(*times, *columns)


def _kinds(schema: Schema) -> list[Type]:
    return [kind for _, kind in schema]


def inner_struct(schema: Schema) -> StructType:
    """What Spark calls the columns of an inner DataFrame."""
    return _struct([*TIMES, *(f"c{n}" for n in range(len(schema.columns)))], schema)


def _struct(names: list[str], schema: Schema) -> StructType:
    from pyspark.sql import types  # noqa: PLC0415

    kinds = [INT64, INT64, *_kinds(schema)]
    return types.StructType(
        [types.StructField(name, spark_type(kind)) for name, kind in zip(names, kinds, strict=True)]
    )


def _stored(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    return pa.chunked_array([pa.nulls(len(column), pa.int64())]) if kind == NULL else column


def _typed(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    if pa.types.is_null(kind):
        return pa.chunked_array([pa.nulls(len(column))])
    return column if column.type == kind else column.cast(kind)
