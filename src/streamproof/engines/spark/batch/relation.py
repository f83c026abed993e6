"""A relation: a DataFrame of events with the columns le, re, the group's g0, g1, … and the payload c0, c1, …

One row is one event. Groups of an enclosing group_apply are columns, so that everything inside is per group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from pyspark import SparkContext
from pyspark.sql import functions as f

from streamproof.engines.base import Settings
from streamproof.events.schema import INT64, Schema, Type
from streamproof.plan.expr import LIFE_END, LIFE_START, Col, Side

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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
class Context:
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
