"""What rules work on: relations of events, and values, which are columns of Spark with their types.

A relation is a DataFrame of events with the columns le, re, the group's g0, g1, … and the payload c0, c1, … One row is
one event. Groups of an enclosing group_apply are columns, so that everything inside is per group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark import SparkContext
from pyspark.sql import functions as f
from pyspark.sql.pandas.functions import arrow_udf

from streamproof.engines.base import Settings
from streamproof.engines.spark.rows import sql_type
from streamproof.events.schema import FLOAT64, INT64, NULL, Schema, Type
from streamproof.plan.expr import LIFE_END, LIFE_START, Col, Side

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class Value:
    """A column of Spark with its type. An atom may be written twice: it is a column or a constant."""

    column: Column
    type: Type
    atom: bool = False
    literal: object = None
    constant: bool = False  # it reads no column


Env: TypeAlias = "Mapping[Col, Value]"
"""What an expression can read."""


@dataclass(frozen=True, slots=True)
class Relation:
    """Events as a DataFrame."""

    frame: DataFrame
    schema: Schema
    groups: tuple[str, ...] = ()
    points: bool = False  # every lifetime is known to be one tick
    cheap: bool = False  # made of inputs row by row, so that it can be read once more
    origin: DataFrame | None = None  # the user's, whose payload this is, as it is, of some or all of its rows

    @property
    def payload(self) -> list[str]:
        return [f"c{n}" for n in range(len(self.schema.columns))]

    @property
    def columns(self) -> list[str]:
        """All columns, in their order."""
        return ["le", "re", *self.groups, *self.payload]

    def column(self, col: Col) -> tuple[str, Type]:
        """What a column of the input, or a time, is called here, and its type."""
        if col.name in (LIFE_START, LIFE_END):
            return col.name[1:], INT64
        return f"c{self.schema.names.index(col.name)}", self.schema[col.name]

    def env(self) -> Env:
        """What an expression over one input reads."""
        return side_env(self.schema)

    def on(self, frame: DataFrame) -> Relation:
        """The same columns in another DataFrame."""
        return replace(self, frame=frame.selectExpr(*self.columns), cheap=False, origin=None)

    def timed(self, frame: DataFrame, le: str, re: str, *, points: bool = False) -> Relation:
        """The same payload with other lifetimes, as SQL: one text is one call of Java, a tree of columns is many."""
        moved = frame.selectExpr(f"{le} AS le", f"{re} AS re", *self.groups, *self.payload)
        return Relation(moved, self.schema, self.groups, points)


def side_env(schema: Schema, *, prefix: str = "", side: Side | None = None) -> Env:
    """The columns of one input, with a prefix where there are two."""
    found = {Col(name, side): (f"{prefix}c{n}", kind) for n, (name, kind) in enumerate(schema)}
    times = {Col(time, side): (f"{prefix}{time[1:]}", INT64) for time in (LIFE_START, LIFE_END)}
    return _Columns({**found, **times})


class _Columns(Mapping[Col, Value]):
    """Columns that are made when they are asked for: each is several calls of Java."""

    def __init__(self, known: Mapping[Col, tuple[str, Type]]) -> None:
        self._known, self._made = known, dict[Col, Value]()

    def __getitem__(self, column: Col) -> Value:
        if column not in self._made:
            name, kind = self._known[column]
            self._made[column] = Value(named(name), kind, atom=True)
        return self._made[column]

    def __contains__(self, column: object) -> bool:
        return column in self._known

    def __iter__(self) -> Iterator[Col]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


@dataclass(slots=True)
class BatchContext:
    """What the rules share in one run: the session, the settings, the inputs, and the relations made so far."""

    spark: SparkSession
    settings: Settings
    sources: Mapping[str, DataFrame]
    given: Mapping[str, DataFrame] = field(default_factory=dict)  # the user's, one row for each event
    done: dict[int, Relation] = field(default_factory=dict)  # by the identity of typed nodes
    note: str = ""  # the node that is being built

    @property
    def parts(self) -> int:
        """How many parts Spark shuffles into."""
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)


def named(name: str) -> Column:
    """A column by its name, whatever it is of. Making one is three calls of Java, so they are kept."""
    return _named(SparkContext._active_spark_context, name)  # a new session may be one with another Java


@lru_cache(maxsize=1000)
def _named(context: SparkContext | None, name: str) -> Column:
    return f.col(name)


def long(value: int) -> Column:
    """A whole number as a bigint constant."""
    return f.lit(value).cast("long")


def cols(names: Iterable[str], prefix: str = "") -> list[Column]:
    return [named(f"{prefix}{name}") for name in names]


def renamed(names: Sequence[str], prefix: str) -> list[Column]:
    """Columns under new names that begin with a prefix."""
    return [f.col(name).alias(f"{prefix}{name}") for name in names]


# --- values -----------------------------------------------------------------------------------------------------------


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


def in_arrow(function: Callable[..., Any], result: DataType | str, *args: Column, deterministic: bool = True) -> Column:
    """The function of Arrow arrays over columns, run by Python workers batch by batch."""
    maker: Any = arrow_udf  # it sees by the hints of the function that it takes and gives arrays
    udf = maker(function, result)
    column: Column = (udf if deterministic else udf.asNondeterministic())(*args)
    return column
