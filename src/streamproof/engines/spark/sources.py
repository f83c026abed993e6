"""Streaming tables as sources: which columns are lifetime, kind, id and payload, in native Spark expressions.

A table in one of our own layouts (``le``, ``re``, perhaps ``w``; or ``kind``, ``id``, ``le``, ``re``, ``re_new``) needs
nothing. Any other takes a `ColumnMapping`: an append-only table is a stream of points, or of intervals if it has an end
or a duration. A `ChangeFeed` is a table of rows that were inserted and deleted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from streamproof.engines.claims import Claim, plain
from streamproof.engines.spark.origins import origin
from streamproof.engines.spark.rows import quoted
from streamproof.engines.spark.stream.ports import BUCKET, WITH_KINDS, Form
from streamproof.engines.spark.zones import dated, instants, within_years
from streamproof.errors import InputError
from streamproof.events.files.mapping import ColumnMapping, OwnLayout, layout_of, require
from streamproof.events.schema import (
    BOOL,
    DATE,
    FLOAT64,
    INT64,
    MAX_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    Schema,
    Type,
    decimal,
)
from streamproof.events.stream import KIND_WORDS
from streamproof.events.time import FOREVER, Unit, duration

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """A table of changes: a column says whether a row was inserted or deleted. The words default to Delta's."""

    mapping: ColumnMapping
    change: str = "_change_type"
    inserted: Sequence[str] = ("insert", "update_postimage")
    deleted: Sequence[str] = ("delete", "update_preimage")
    ignored: Sequence[str] = ("_commit_version", "_commit_timestamp")  # columns that are no payload


Layout: TypeAlias = "str | ColumnMapping | ChangeFeed"
"""How a table is to be read; a bare word is the column with the time of points."""
_SIMPLE: Final[dict[str, Type]] = {
    "tinyint": INT64, "smallint": INT64, "int": INT64, "bigint": INT64, "float": FLOAT64, "double": FLOAT64,
    "string": STRING, "boolean": BOOL, "date": DATE, "timestamp": TIMESTAMP, "void": NULL,
}  # fmt: skip
WHOLE: Final = ("tinyint", "smallint", "int", "bigint")
LOCAL: Final = ("timestamp_ntz", "date")  # times that say no zone
_SPARK: Final = {
    "int64": "bigint", "float64": "double", "string": "string", "bool": "boolean", "date": "date",
    "timestamp": "timestamp", "null": "string",
}  # fmt: skip


def spark_type(kind: Type) -> str:
    """Spark's name for a type; a column of nothing but nulls is one of strings."""
    return str(kind) if kind.kind == "decimal" else _SPARK[kind.kind]


def type_of_spark(kind: DataType, name: str) -> Type:
    """Our type for a column of Spark's; narrower numbers widen, anything else is refused by name."""
    word = kind.simpleString()
    if word in _SIMPLE:
        return _SIMPLE[word]
    if word.startswith("decimal("):
        precision, scale = (int(part) for part in word[8:-1].split(","))
        if precision <= MAX_PRECISION and scale >= 0:
            return decimal(precision, scale)
    fix = "leave it out (payload=[…]), or cast it to a number, string, boolean, date or timestamp"
    if word == "timestamp_ntz":
        fix = 'give it a zone: ColumnMapping(…, assume_zone="UTC"), or cast it to timestamp'
    raise InputError(f"columns of type {word} are not supported", at=f'column "{name}"', fix=fix, name="type_mismatch")


class SparkSource:
    """A streaming table, read as events."""

    def __init__(self, name: str, frame: DataFrame, layout: Layout | None) -> None:
        self.name, self._frame = name, frame
        names = frame.columns
        refuse_alike(names, f"source {name}")
        self._feed = layout if isinstance(layout, ChangeFeed) else None
        self._mapping = _mapping(layout, names)
        self._roles = self._mapping.roles(names)
        self._columns = self._payload(names)
        self._weight = self._mapping.weight if isinstance(self._mapping, OwnLayout) else None
        self.unit = self._unit()
        kinds = {field.name: field.dataType for field in frame.schema}
        self.schema = Schema(tuple((p, self._type(kinds[c], c)) for p, c in self._columns.items()), self.unit)

    @property
    def _own(self) -> bool:
        return isinstance(self._mapping, OwnLayout)

    def _payload(self, names: Sequence[str]) -> dict[str, str]:
        if self._feed is None:
            return self._mapping.payload_columns(names)
        require(self._feed.change, names, f"ChangeFeed(change={self._feed.change!r})")
        rest = [name for name in names if name not in (self._feed.change, *self._feed.ignored)]
        return self._mapping.payload_columns(rest)

    @property
    def form(self) -> Form:
        if "kind" in self._roles:
            return "physical" if {"id", "new_end"} & set(self._roles) else "marked"
        return "signed" if self._feed is not None or self._weight is not None else "inserts"

    @property
    def claim(self) -> Claim:
        """How its rows become events, as a checkpoint claims it."""
        feed = {} if self._feed is None else {"feed": plain(self._feed)}
        own = "own" if self._own else "mapped"
        return {"form": self.form, "layout": own, "mapping": plain(self._mapping), **feed, **origin(self._frame)}

    @property
    def can_be_followed(self) -> bool:
        """Whether it is known of every change which event it changes."""
        return "id" in self._roles if self.form == "physical" else self.form != "signed"

    def _type(self, kind: DataType, column: str) -> Type:
        if kind.simpleString() == "timestamp_ntz" and self._mapping.assume_zone:
            return TIMESTAMP
        return type_of_spark(kind, column)

    def _unit(self) -> Unit | None:
        kind = self._frame.schema[self._roles["start"]].dataType.simpleString()
        return self._mapping.unit or (None if kind in WHOLE else "us")

    def normal(self, schema: Schema, *, split: Sequence[str], buckets: int) -> DataFrame:
        """The table in normal form: the columns of the form, then the payload, cast to its types.

        With several buckets and columns to split by, the bucket of each row stands before them.
        """
        from pyspark.sql import functions as F  # noqa: N812, PLC0415  # what everybody calls it

        for name in schema.names:
            if name not in self._columns:
                fix = f"its payload columns: {', '.join(self._columns)}"
                raise InputError(
                    f'the table has no column "{name}"', at=f"source {self.name}", fix=fix, name="unknown_column"
                )
        payload = {name: self._cast(name, kind).alias(f"p{n}") for n, (name, kind) in enumerate(schema)}
        hashed = [self._cast(name, schema[name]) for name in split]
        bucket = (
            [F.pmod(F.xxhash64(*hashed), F.lit(buckets)).cast("int").alias(BUCKET)] if hashed and buckets > 1 else []
        )
        control = [column.alias(name) for name, column in self._control().items()]
        return self._frame.select(*bucket, *control, *payload.values())

    def _cast(self, name: str, kind: Type) -> Column:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        column = self._columns[name]
        if kind == NULL:
            return F.lit(None).cast("string")
        word = self._frame.schema[column].dataType.simpleString()
        if word == "timestamp_ntz":
            return self._zoned(column)
        if word in ("date", "timestamp"):
            return within_years(F.col(quoted(column)), word, column).cast(spark_type(kind))
        return F.col(quoted(column)).cast(spark_type(kind))

    def _zoned(self, name: str) -> Column:
        """A column of local times, or of days, as instants in the zone that the mapping gives."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        local = F.col(quoted(name)).cast("timestamp_ntz")
        return instants(local, self._mapping.assume_zone or "UTC", self._mapping.ambiguous, name)

    def _whole(self, role: str, name: str) -> Column:
        """A column of whole numbers; others would be cut."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        word = self._frame.schema[name].dataType.simpleString()
        if word not in WHOLE:
            raise InputError(
                f"a {role} of type {word} cannot be read",
                at=f'source {self.name}, column "{name}"',
                fix="cast it to a whole number of ticks" if role == "duration" else "cast it to bigint",
            )
        return F.col(quoted(name)).cast("bigint")

    def _control(self) -> dict[str, Column]:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        start = self._ticks("start")
        if self.form not in WITH_KINDS:
            columns = {"le": start, "re": self._end(start)}
            return columns if self.form == "inserts" else {**columns, "w": self._signs()}
        kind = self._kinds()
        le = start if "cti" not in self._roles else F.when(kind == 2, self._ticks("cti")).otherwise(start)
        if self.form == "marked":
            return {"kind": kind, "le": le, "re": self._end(start)}
        id_ = F.col(quoted(self._roles["id"])).cast("string") if "id" in self._roles else F.lit(None).cast("string")
        new = self._ticks("new_end") if "new_end" in self._roles else F.lit(None).cast("bigint")
        return {"kind": kind, "id": id_, "le": le, "re": self._end(start), "re_new": new}

    def _kinds(self) -> Column:
        """The codes of the words; what is none has the code -1, which the port refuses."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        column = F.col(quoted(self._roles["kind"]))
        if self._frame.schema[self._roles["kind"]].dataType.simpleString() != "string":
            return F.when(column.between(0, len(KIND_WORDS) - 1), column).otherwise(-1).cast("tinyint")
        codes = F.lit(-1)
        for code, word in enumerate(KIND_WORDS):
            codes = F.when(F.lower(column) == word, code).otherwise(codes)
        return codes.cast("tinyint")

    def _signs(self) -> Column:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if self._feed is None:
            return self._whole("weight", self._weight or "w")
        change = F.col(quoted(self._feed.change))
        taken = F.when(change.isin(list(self._feed.deleted)), F.lit(-1))
        return taken.when(change.isin(list(self._feed.inserted)), F.lit(1)).cast("bigint")  # else the port refuses it

    def _ticks(self, role: str) -> Column:
        """A time in ticks."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        name = self._roles[role]
        column, word = F.col(quoted(name)), self._frame.schema[name].dataType.simpleString()
        if word in WHOLE:
            ticks, unit = column.cast("bigint"), None if self._own else self._mapping.unit
            return ticks if unit is None else dated(ticks, unit, name)
        if word in LOCAL and self._mapping.assume_zone:
            column = self._zoned(name)
        elif word != "timestamp":
            fix = "cast it to a timestamp, or to a number of ticks" + (
                ', or say which zone is meant: assume_zone="UTC"' if word in LOCAL else ""
            )
            raise InputError(f"times of type {word} cannot be read", at=f'source {self.name}, column "{name}"', fix=fix)
        match self.unit:
            case "s":
                return F.unix_seconds(column)
            case "ms":
                return F.unix_millis(column)
            case "ns":
                return F.unix_micros(column) * F.lit(1000).cast("bigint")
        return F.unix_micros(column)

    def _end(self, start: Column) -> Column:
        from pyspark.sql import functions as F  # noqa: N812, PLC0415

        if "end" in self._roles:
            end = self._ticks("end")
            return end if self._own else F.coalesce(end, F.lit(FOREVER).cast("bigint"))
        if "duration" in self._roles:
            return start + self._whole("duration", self._roles["duration"])
        span = 1 if self._mapping.duration is None else duration(self._mapping.duration, self.unit)
        return start + F.lit(span).cast("bigint")


def refuse_alike(names: Sequence[str], at: str) -> None:
    """Refuse columns that differ in case alone: a streaming table of Spark cannot tell them apart."""
    seen: dict[str, str] = {}
    for name in names:
        other = seen.setdefault(name.casefold(), name)
        if other != name:
            raise InputError(
                f'the columns "{other}" and "{name}" differ in case alone, which Spark cannot read as a stream',
                at=at,
                fix=f'rename one, e.g. ColumnMapping(…, rename={{"{name}": "{name}_"}}), or use another engine',
                name="duplicate_column",
            )


def _mapping(layout: Layout | None, names: Sequence[str]) -> ColumnMapping:
    match layout:
        case None:
            return layout_of(names)
        case str():
            return ColumnMapping(start=layout)
        case ChangeFeed():
            return layout.mapping
    return layout


def layouts_of(time: Layout | Mapping[str, Layout] | None, sources: Sequence[str]) -> dict[str, Layout | None]:
    """The layout of each source, from one for all or one for each."""
    if isinstance(time, Mapping):
        for name in time:
            require(name, sources, "time={…}")
        return {name: time.get(name) for name in sources}
    return dict.fromkeys(sources, time)
