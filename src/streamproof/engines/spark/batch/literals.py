"""Constants, and values that are written once and read many times."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.relation import Env, Value
from streamproof.engines.spark.rows import sql_type
from streamproof.events.schema import FLOAT64, NULL, Type
from streamproof.plan.expr import LIFE_START

if TYPE_CHECKING:
    from pyspark.sql import Column

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)


def constant(value: object, kind: Type) -> Value:
    """A constant of a type. Times go in as numbers, past every time zone."""
    if value is None:
        return null_of(kind)
    if isinstance(value, datetime):
        since = value - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 10**6 + since.microseconds
        return Value(f.timestamp_micros(f.lit(micros).cast("long")), kind, atom=True, literal=value, constant=True)
    if isinstance(value, date):
        days = (value - _EPOCH_DAY).days
        return Value(f.date_from_unix_date(f.lit(days)), kind, atom=True, literal=value, constant=True)
    column = f.lit(value) if isinstance(value, float) else f.lit(value).cast(sql_type(kind))
    return Value(column, kind, atom=True, literal=value, constant=True)


def null_of(kind: Type) -> Value:
    return Value(f.lit(None).cast(sql_type(kind)), kind, atom=True, constant=True)


def convert(value: Value, to: Type) -> Value:
    """A value in a wider type: numbers that have a place there, or null."""
    if value.type == to:
        return value
    if value.type == NULL:
        return null_of(to)
    if to == FLOAT64 and value.type.kind == "decimal":
        return Value(decimal_to_float(value.column), to, atom=False)
    return Value(value.column.cast(sql_type(to)), to, atom=value.atom, constant=value.constant)


def decimal_to_float(column: Column) -> Column:
    """The nearest float: Spark's own cast rounds twice, reading the digits rounds once."""
    return column.cast("string").cast("double")


def opaque(value: Value, env: Env) -> Value:
    """A constant that Spark does not compute with before it has seen a row: there may be none to raise an error for."""
    start = env[next(column for column in env if column.name == LIFE_START)].column
    return replace(value, column=f.when(start == 2**63 - 1, None).otherwise(value.column), atom=False)


def let(value: Value, body: Callable[[Column], Column]) -> Column:
    """``body`` of a value that it reads more than once, and that is computed once."""
    return body(value.column) if value.atom else bound(value.column, body)


def bound(column: Column, body: Callable[[Column], Column]) -> Column:
    """The same for a column that is no atom.

    Spark has no name for a part of an expression, but a function over an array of one element has an argument.
    """
    return f.get(f.transform(f.array(column), body), f.lit(0))
