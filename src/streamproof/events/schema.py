"""What a stream carries: named, typed payload columns and the length of a tick.

>>> schema = Schema.of({"k": "string", "v": "int64"}, unit="ms")
>>> schema.names, schema["v"], schema.unit
(('k', 'v'), Type('int64'), 'ms')
>>> parse_type("decimal(10, 2)")
Type('decimal(10,2)')
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, get_args

import pyarrow as pa

from streamproof.arguments import door, often
from streamproof.errors import InputError, PlanError, StreamproofError, did_you_mean
from streamproof.events.time import UNITS, Unit

Kind: TypeAlias = Literal["int64", "float64", "string", "bool", "decimal", "date", "timestamp", "null"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
SIGNED: Final = ("le", "re", "w")
"""Our own columns of signed rows; where payload has one of their names, they are called as `beside` says."""
LE, RE, W = range(3)  # their places, whatever they are called
OWN_PREFIX: Final = "streamproof_"  # what the names of our own columns begin with where payload has one of them
ESCAPE: Final = "payload."  # what the name of a payload column begins with in a table, if ours could be called so
MARKED: Final = tuple(OWN_PREFIX + name for name in ("kind", "id", "le", "re", "re_new", "w"))
MAX_PRECISION: Final = 38


@dataclass(frozen=True, slots=True, repr=False)
class Type:
    """The type of a payload column. Null is a value of every type; the type ``null`` has no other."""

    kind: Kind
    precision: int = 0  # decimals only: digits in all
    scale: int = 0  # decimals only: digits after the point

    def __post_init__(self) -> None:
        if (self.kind == "decimal" and not 0 <= self.scale <= self.precision <= MAX_PRECISION) or self.precision < 0:
            raise PlanError(
                f"decimal({self.precision},{self.scale}) does not exist",
                fix=f"precision is 1 to {MAX_PRECISION}, scale 0 to precision",
                name="type_mismatch",
            )

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind == "decimal" else self.kind

    def __repr__(self) -> str:
        return f"Type({str(self)!r})"

    @property
    def is_numeric(self) -> bool:
        return self.kind in ("int64", "float64", "decimal")

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        if self.kind == "decimal":
            return pa.decimal128(self.precision, self.scale)
        return _ARROW[self.kind]


INT64: Final = Type("int64")
FLOAT64: Final = Type("float64")
STRING: Final = Type("string")
BOOL: Final = Type("bool")
DATE: Final = Type("date")
TIMESTAMP: Final = Type("timestamp")  # an instant in microseconds, UTC
NULL: Final = Type("null")


def decimal(precision: int, scale: int) -> Type:
    return Type("decimal", precision, scale)


_ARROW: Final[dict[Kind, pa.DataType]] = {
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "null": pa.null(),
}
_ALIASES: Final[dict[str, Type]] = {
    **dict.fromkeys(("int64", "int", "integer", "bigint", "long", "int32", "int16", "int8", "smallint"), INT64),
    **dict.fromkeys(("float64", "float", "double", "real", "float32", "number"), FLOAT64),
    **dict.fromkeys(("string", "str", "text", "varchar"), STRING),
    **dict.fromkeys(("bool", "boolean"), BOOL),
    **dict.fromkeys(("timestamp", "timestamptz", "datetime"), TIMESTAMP),
    "date": DATE,
    "null": NULL,
    "decimal": decimal(18, 3),
}


def parse_type(text: str) -> Type:
    """The type that a word names, in our spelling or in SQL's."""
    word = text.strip().lower()
    match = re.fullmatch(r"(?:decimal|numeric)\s*\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)", word)
    if match:
        return decimal(int(match.group(1)), int(match.group(2) or 0))
    if word not in _ALIASES:
        raise PlanError(f"unknown type {text!r}", fix=did_you_mean(word, KINDS), name="type_mismatch")
    return _ALIASES[word]


def type_of_arrow(arrow: pa.DataType) -> Type:
    """Our type for an Arrow column; narrower numbers widen, anything else is refused by name."""
    simple: tuple[tuple[bool, Type], ...] = (
        (pa.types.is_boolean(arrow), BOOL),
        (pa.types.is_integer(arrow), INT64),
        (pa.types.is_floating(arrow), FLOAT64),
        (pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow), STRING),
        (pa.types.is_date(arrow), DATE),
        (pa.types.is_timestamp(arrow) and arrow.tz is not None, TIMESTAMP),
        (pa.types.is_null(arrow), NULL),
    )
    for matches, kind in simple:
        if matches:
            return kind
    if pa.types.is_decimal(arrow) and 0 <= arrow.scale <= arrow.precision <= MAX_PRECISION:
        return decimal(arrow.precision, arrow.scale)
    if pa.types.is_dictionary(arrow):
        return type_of_arrow(arrow.value_type)
    if pa.types.is_timestamp(arrow):
        raise InputError("a timestamp column without a zone", fix="give it one (UTC) before reading it")
    raise InputError(f"columns of type {arrow} are not supported", fix=f"cast it to one of {', '.join(KINDS)}")


@often
@dataclass(frozen=True, slots=True)
class Schema:
    """The payload columns of a stream, in order, and the unit of its ticks."""

    columns: tuple[tuple[str, Type], ...] = ()
    unit: Unit | None = None
    _rows: pa.Schema | None = field(default=None, init=False, repr=False, compare=False)  # every batch asks for it
    _kinds: Mapping[str, Type] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.unit is not None and self.unit not in UNITS:
            raise PlanError(f"unknown time unit {self.unit!r}", fix=f"use one of {', '.join(UNITS)}, or none")
        check_names(self.names)
        object.__setattr__(self, "_kinds", dict(self.columns))

    @staticmethod
    @door
    def of(
        columns: Mapping[str, str | Type] | Iterable[tuple[str, str | Type]] = (), *, unit: Unit | None = None
    ) -> Schema:
        """A schema from a mapping or from pairs of names and types; a type may be its name."""
        pairs = columns.items() if isinstance(columns, Mapping) else columns
        return Schema(tuple((n, t if isinstance(t, Type) else parse_type(t)) for n, t in pairs), unit)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.columns)

    def __iter__(self) -> Iterator[tuple[str, Type]]:
        return iter(self.columns)

    def __contains__(self, name: object) -> bool:
        return name in self._kinds

    def __getitem__(self, name: str) -> Type:
        if name in self._kinds:
            return self._kinds[name]
        fix = did_you_mean(name, self.names) if self.names else "an empty input has no columns: declare its schema"
        raise PlanError(f'unknown column "{name}"', fix=fix, name="unknown_column")

    @property
    def arrow(self) -> pa.Schema:
        """The Arrow schema of the payload columns."""
        return pa.schema([(name, kind.arrow) for name, kind in self.columns])

    @property
    def arrow_rows(self) -> pa.Schema:
        """The Arrow schema of signed rows: le, re, w, then the payload."""
        if self._rows is None:
            times = [(name, pa.int64()) for name in beside(SIGNED, self.names)]
            rows = pa.schema([*times, *((column_name(name), kind.arrow) for name, kind in self.columns)])
            object.__setattr__(self, "_rows", rows)
        return self._rows


def beside(own: Sequence[str], payload: Iterable[str]) -> tuple[str, ...]:
    """What columns of ours are called in a table: as they are, unless a payload column has one of their names.

    Case does not matter, for there are readers that know none. Nor may a history look like events.

    >>> beside(SIGNED, ["v"]), beside(SIGNED, ["v", "W"])
    (('le', 're', 'w'), ('streamproof_le', 'streamproof_re', 'streamproof_w'))
    """
    names = set(payload)
    clash = any(name.casefold() in own for name in names) or names >= {"kind", "id", "re_new"}
    return tuple(OWN_PREFIX + name for name in own) if clash else tuple(own)


def column_name(name: str) -> str:
    """What a payload column is called in a table: by its own name, but for those that ours may have.

    >>> column_name("id"), column_name("streamproof_id")
    ('id', 'payload.streamproof_id')
    """
    return ESCAPE + name if name.casefold() in MARKED or name.startswith(ESCAPE) else name


def payload_name(column: str) -> str:
    """The inverse of `column_name`."""
    return column.removeprefix(ESCAPE)


def own_columns(columns: Iterable[str], own: Sequence[str]) -> dict[str, str]:
    """Where our own columns are in a table: what each is called there. The others are payload.

    >>> own_columns(["streamproof_le", "streamproof_re", "le", "v"], SIGNED)
    {'le': 'streamproof_le', 're': 'streamproof_re'}
    >>> own_columns(["le", "re", "w", "v"], SIGNED)
    {'le': 'le', 're': 're', 'w': 'w'}
    """
    known = set(columns)
    marks = OWN_PREFIX if any(OWN_PREFIX + name in known for name in own) else ""
    return {name: marks + name for name in own if marks + name in known}


def check_names(names: Iterable[str], error: type[StreamproofError] = PlanError) -> None:
    """Refuse payload columns that are repeated or empty, and the one character that no name may have."""
    seen: set[str] = set()
    for name in names:
        if "\0" in name:
            raise error(
                f"the column name {name!r} has a NUL character, which is reserved for names of our own",
                fix=f"rename the column to {name.replace(chr(0), '')!r} on reading or in select",
                name="reserved_column",
            )
        if name in seen:
            raise error(f'two columns are called "{name}"', fix="rename one of them", name="duplicate_column")
        if not name:
            raise error("a column has an empty name", fix="give it one")
        if not name.isascii() and any("\ud800" <= letter <= "\udfff" for letter in name):
            raise error(f"the column name {name!r} has half a character", fix="rename the column", name="bad_input")
        seen.add(name)
