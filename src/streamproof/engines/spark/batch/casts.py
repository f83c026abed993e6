"""Casts as Spark columns. One that fails is an error if strict, else null.

Three conversions are written or read in ways that Java does not know (floats as text, and text and floats as decimals
with halves to even); they go to Python in whole Arrow columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import failure
from streamproof.engines.spark.batch.relation import Value, bound, decimal_to_float, let, long
from streamproof.engines.spark.rows import sql_type
from streamproof.errors import ErrorName
from streamproof.events.schema import STRING, Kind, Type
from streamproof.events.time import END_SECOND, FIRST_SECOND

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column

CastRule: TypeAlias = "Callable[[Value, Type, bool], Column]"
_NUMBER: Final = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_DAY: Final = 86_400 * 10**6
_FIX: Final = "use try_cast, which gives null there"


def _fitting(name: ErrorName, convert: Callable[[Column, Type], Column]) -> CastRule:
    """A cast by a conversion that gives null where it fails; then the error of that name if strict."""

    def rule(value: Value, to: Type, strict: bool) -> Column:
        if not strict:
            return let(value, lambda given: convert(given, to))
        return let(value, lambda given: or_fail(given, convert(given, to), to, name))

    return rule


def or_fail(given: Column, found: Column, to: Type, name: ErrorName) -> Column:
    """``found``, or the error of that name where it is null for a value."""
    shown = f.coalesce(given.cast("string"), f.lit(""))
    what = (
        f.concat(shown, f.lit(f" does not fit into {to}"))
        if name == "overflow"
        else f.concat(f.lit("'"), shown, f.lit(f"' is not a {to}"))
    )
    wrong = failure(what, name=name, fix=_FIX, kind=to)
    return bound(found, lambda x: f.when(x.isNull() & given.isNotNull(), wrong).otherwise(x))


def _always(convert: Callable[[Column], Column]) -> CastRule:
    return lambda value, to, strict: let(value, convert)


def _to(kind: str) -> CastRule:
    return lambda value, to, strict: value.column.cast(kind)


def _try_cast(given: Column, to: Type) -> Column:
    return given.try_cast(sql_type(to))


def _float_to_whole(given: Column, to: Type) -> Column:
    """Halves away from zero: what a cast cuts off decides. The cast of a number out of range is not looked at."""
    inside = (given >= -(2.0**63)) & (given < 2.0**63)
    whole = f.when(inside, given).cast("long")
    part = f.abs(given - whole.cast("double"))
    return f.when(part >= 0.5, whole + f.signum(given).cast("long")).otherwise(whole)


def _decimal_to_decimal(given: Column, to: Type) -> Column:
    return f.round(given, to.scale).try_cast(sql_type(to))


def _decimal_to_whole(given: Column, to: Type) -> Column:
    return f.round(given, 0).try_cast("long")


def _matching(pattern: str, convert: Callable[[Column], Column]) -> Callable[[Column, Type], Column]:
    """A conversion of text that matches a pattern, without the blanks around it."""

    def rule(given: Column, to: Type) -> Column:
        return bound(f.trim(given), lambda t: f.when(f.rlike(t, f.lit(rf"\A(?:{pattern})\z")), convert(t)))

    return rule


def _text_to_bool(given: Column, to: Type) -> Column:
    return bound(f.lower(f.trim(given)), lambda t: f.when(t == "true", True).when(t == "false", False))


def _text_to_date(text: Column) -> Column:
    return f.when(f.substring(text, 1, 4) != "0000", text.try_cast("date"))


_DATE: Final = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = _DATE + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"
_PARTS: Final = "^..........(?:.)([0-9]{2}):([0-9]{2}):?([0-9]{0,2})[.]?([0-9]{0,6})(Z|[+-])([0-9]{0,2}):?([0-9]{0,2})$"


def _text_to_time(text: Column) -> Column:
    """From its parts: Spark's own reading knows fewer zones and more spellings."""

    def part(number: int) -> Column:
        return f.concat(f.lit("0"), f.regexp_extract(text, _PARTS, number)).cast("long")

    hour, minute, second, zone_hour, zone_minute = (part(n) for n in (1, 2, 3, 6, 7))
    sane = (hour < 24) & (minute < 60) & (second < 60) & (zone_hour < 24) & (zone_minute < 60)
    side = f.when(f.regexp_extract(text, _PARTS, 5) == "-", long(-1)).otherwise(long(1))
    minutes = hour * 60 + minute - (zone_hour * 60 + zone_minute) * side
    fraction = f.rpad(f.concat(f.lit("0"), f.regexp_extract(text, _PARTS, 4)), 7, "0").cast("long")
    days = f.unix_date(_text_to_date(f.substring(text, 1, 10))).cast("long")
    micros = days * long(_DAY) + minutes * long(60 * 10**6) + second * long(10**6) + fraction
    first, end = long(FIRST_SECOND * 10**6), long(END_SECOND * 10**6)
    return f.when(sane, bound(micros, lambda u: f.when((u >= first) & (u < end), f.timestamp_micros(u))))


def _time_to_text(given: Column) -> Column:
    micros = f.pmod(f.unix_micros(given), long(10**6))
    fraction = f.when(micros == 0, "").otherwise(f.concat(f.lit("."), f.lpad(micros.cast("string"), 6, "0")))
    return f.concat(f.date_format(given, "yyyy-MM-dd'T'HH:mm:ss"), fraction, f.lit("Z"))


# --- in Python --------------------------------------------------------------------------------------------------------


def _write_float(values: pa.Array, to: Type) -> pa.Array:
    from streamproof.kernels.expressions.text import write_float  # noqa: PLC0415  # on a worker

    return write_float(values, to)


def _read_decimal(values: pa.Array, to: Type) -> pa.Array:
    from streamproof.kernels.expressions.text import read_decimal  # noqa: PLC0415

    return read_decimal(values, to)


def _float_to_decimal(values: pa.Array, to: Type) -> pa.Array:
    """The digits that a float is written with, as a decimal."""
    return _read_decimal(_write_float(values, STRING), to)


IN_PYTHON: Final[dict[tuple[Kind, Kind], tuple[Callable[[Any, Type], Any], ErrorName | None]]] = {
    ("float64", "string"): (_write_float, None),
    ("float64", "decimal"): (_float_to_decimal, "overflow"),
    ("string", "decimal"): (_read_decimal, "bad_input"),
}
"""Conversions of whole Arrow columns, which give null where they fail, and the name of the error there."""

CASTS: Final[dict[tuple[Kind, Kind], CastRule]] = {
    ("int64", "float64"): _to("double"),
    ("int64", "decimal"): _fitting("overflow", _try_cast),
    ("int64", "string"): _to("string"),
    ("int64", "bool"): _always(lambda x: x != 0),
    ("float64", "int64"): _fitting("overflow", _float_to_whole),
    ("float64", "bool"): _always(lambda x: x != 0.0),
    ("decimal", "int64"): _fitting("overflow", _decimal_to_whole),
    ("decimal", "float64"): lambda value, to, strict: decimal_to_float(value.column),
    ("decimal", "decimal"): _fitting("overflow", _decimal_to_decimal),
    ("decimal", "string"): _to("string"),
    ("string", "int64"): _fitting("bad_input", _matching("[+-]?[0-9]+", lambda t: t.try_cast("long"))),
    ("string", "float64"): _fitting(
        "bad_input", _matching(_NUMBER + "|[+-]?(?i:inf|infinity)|(?i:nan)", lambda t: t.try_cast("double"))
    ),
    ("string", "bool"): _fitting("bad_input", _text_to_bool),
    ("string", "date"): _fitting("bad_input", _matching(_DATE, _text_to_date)),
    ("string", "timestamp"): _fitting("bad_input", _matching(_TIME, _text_to_time)),
    ("bool", "int64"): _to("long"),
    ("bool", "float64"): _to("double"),
    ("bool", "string"): _to("string"),
    ("date", "timestamp"): _to("timestamp"),
    ("date", "string"): _to("string"),
    ("timestamp", "date"): _to("date"),
    ("timestamp", "string"): _always(_time_to_text),
}
