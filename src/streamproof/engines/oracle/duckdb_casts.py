"""Casts in DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamproof.engines.oracle.dialect import Dialect, Sql, quote, whole
from streamproof.engines.oracle.functions import DAY, days_of, remainder_by
from streamproof.errors import ErrorName
from streamproof.events.schema import INT64, STRING, Kind, Type
from streamproof.events.time import END_SECOND, FIRST_SECOND

CastRule = Callable[[Dialect, Sql, Type, bool], str]


def _or_fail(dialect: Dialect, value: str, found: Sql, to: Type, name: ErrorName, *, strict: bool) -> str:
    """``found``, which is null where the value does not fit; an error there if strict."""
    if not strict:
        return found.text
    failed = dialect.fail(name, value, to)
    return dialect.let(found, lambda f: f"CASE WHEN {f} IS NULL AND {value} IS NOT NULL THEN {failed} ELSE {f} END")


def _fitting(name: ErrorName, convert: Callable[[Dialect, str, Type], str]) -> CastRule:
    """A cast by a conversion that gives null where it fails; then the error of that name if strict."""

    def rule(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
        return dialect.let(
            arg, lambda a: _or_fail(dialect, a, Sql(convert(dialect, a, to), to), to, name, strict=strict)
        )

    return rule


def _always(template: str) -> CastRule:
    def rule(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
        return template.format(arg.text)

    return rule


_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"


def _matching(pattern: str, value: str) -> Callable[[Dialect, str, Type], str]:
    """A conversion of text, trimmed, that matches a pattern; ``{t}`` is the text, ``{type}`` the type."""

    def convert(dialect: Dialect, text: str, to: Type) -> str:
        return dialect.let(
            Sql(f"trim({text}, ' ')", STRING),
            lambda t: (
                f"CASE WHEN regexp_full_match({t}, {quote(pattern)})"
                f" THEN {value.format(t=t, type=dialect.type_name(to))} END"
            ),
        )

    return convert


def _text_to_bool(dialect: Dialect, text: str, to: Type) -> str:
    return f"CASE lower(trim({text}, ' ')) WHEN 'true' THEN TRUE WHEN 'false' THEN FALSE END"


def _text_to_decimal(dialect: Dialect, text: str, to: Type) -> str:
    return dialect.let(
        Sql(f"trim({text}, ' ')", STRING),
        lambda t: f"CASE WHEN regexp_full_match({t}, {quote(_NUMBER)}) THEN {_quantized(dialect, t, to)} END",
    )


def _float_to_decimal(dialect: Dialect, value: str, to: Type) -> str:
    return f"CASE WHEN isfinite({value}) THEN {_quantized(dialect, f'CAST({value} AS VARCHAR)', to)} END"


def _decimal_to_decimal(dialect: Dialect, value: str, to: Type) -> str:
    return _quantized(dialect, f"CAST({value} AS VARCHAR)", to)


def _decimal_to_whole(dialect: Dialect, value: str, to: Type) -> str:
    return f"TRY_CAST({_quantized(dialect, f'CAST({value} AS VARCHAR)', Type('decimal', 38, 0))} AS BIGINT)"


_PARTS = "^([+-]?)([0-9]*)[.]?([0-9]*)(?:[eE]([+-]?[0-9]+))?$"


def _quantized(dialect: Dialect, number: str, to: Type) -> str:
    """The text of a number as a decimal of the type, halves away from zero; null where it has too many digits.

    Its digits and how many of them lie beyond the scale are found in the text, which no type could hold exactly.
    """
    parts = f"regexp_extract({number}, {quote(_PARTS)}, ['sign', 'int', 'frac', 'exp'])"
    return dialect.let(Sql(parts, STRING), lambda p: _from_parts(dialect, p, to))


def _from_parts(dialect: Dialect, p: str, to: Type) -> str:
    digits = Sql(f"ltrim({p}.int || {p}.frac, '0')", STRING)
    far = f"CASE WHEN {p}.exp LIKE '-%' THEN -9999 WHEN {p}.exp = '' THEN 0 ELSE 9999 END"  # no exponent, or a huge one
    exponent = f"coalesce(TRY_CAST(nullif({p}.exp, '') AS BIGINT), {far})"
    beyond = Sql(f"(length({p}.frac) - greatest(least({exponent}, 9999), -9999) - {to.scale})", INT64)

    def number(d: str, n: str) -> str:
        value = Sql(
            f"CASE WHEN {d} = '' THEN 0 WHEN length({d}) - {n} <= {to.precision} THEN {_rounded(dialect, d, n)} END",
            INT64,
        )
        return dialect.let(value, lambda v: _scaled(dialect, v, f"{p}.sign = '-'", to))

    return dialect.let(digits, lambda d: dialect.let(beyond, lambda n: number(d, n)))


def _rounded(dialect: Dialect, d: str, n: str) -> str:
    """Digits ``d`` without the last ``n``, or with −n zeros more, as a number; the rest decides the rounding."""
    longer, shorter = (
        f"rpad({d}, CAST(length({d}) - {n} AS INTEGER), '0')",
        f"left({d}, greatest(length({d}) - {n}, 0))",
    )
    kept = f"CAST(coalesce(nullif(CASE WHEN {n} <= 0 THEN {longer} ELSE {shorter} END, ''), '0') AS HUGEINT)"
    rest = f"CASE WHEN {n} <= 0 THEN '' WHEN {n} > length({d}) THEN '0' ELSE right({d}, {n}) END"
    return f"({kept} + CASE WHEN {rest} >= '5' THEN 1 ELSE 0 END)"


def _scaled(dialect: Dialect, v: str, negative: str, to: Type) -> str:
    """An unscaled number as a decimal of the type, if it has few enough digits."""
    unit = f" * CAST('0.{'1'.rjust(to.scale, '0')}' AS DECIMAL({to.scale},{to.scale}))" if to.scale else ""
    signed = f"CAST(CASE WHEN {negative} THEN -{v} ELSE {v} END AS DECIMAL(38,0)){unit}"
    return f"CASE WHEN {v} < CAST('{10**to.precision}' AS HUGEINT) THEN CAST({signed} AS {dialect.type_name(to)}) END"


_DATE_TEXT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME_TEXT = _DATE_TEXT + r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)"


def _days_of_text(t: str) -> str:
    return f"CASE WHEN left({t}, 4) > '0000' THEN TRY_CAST(left({t}, 10) AS DATE) - DATE '1970-01-01' END"


_TIME_PARTS = (
    "'^(..........).(..):(..):?([0-9]{0,2})[.]?([0-9]{0,6})(Z|[+-])([0-9]{0,2}):?([0-9]{0,2})$',"
    " ['day', 'h', 'mi', 's', 'f', 'z', 'zh', 'zm']"
)


def _text_to_time(dialect: Dialect, text: str, to: Type) -> str:
    def convert(t: str) -> str:
        parts = Sql(f"regexp_extract({t}, {_TIME_PARTS})", STRING)
        found = dialect.let(parts, lambda p: _micros(dialect, t, p))
        return f"CASE WHEN regexp_full_match({t}, {quote(_TIME_TEXT)}) THEN {found} END"

    return dialect.let(Sql(f"trim({text}, ' ')", STRING), convert)


def _micros(dialect: Dialect, t: str, p: str) -> str:
    """Microseconds since 1970 from the parts of a time, if each is in its range and all lies in the years 1 to 9999."""

    def n(name: str) -> str:
        return f"CAST('0' || {p}.{name} AS BIGINT)"

    shift = f"({n('zh')} * 60 + {n('zm')}) * CASE WHEN {p}.z = '-' THEN -1 ELSE 1 END"
    minutes = f"({n('h')} * 60 + {n('mi')} - {shift})"
    sane = f"{n('h')} < 24 AND {n('mi')} < 60 AND {n('s')} < 60 AND {n('zh')} < 24 AND {n('zm')} < 60"
    fraction = f"CAST(rpad('0' || {p}.f, 7, '0') AS BIGINT)"
    total = f"({_days_of_text(t)}) * {whole(DAY)} + {minutes} * 60000000 + {n('s')} * 1000000 + {fraction}"
    first, last = whole(FIRST_SECOND * 10**6), whole(END_SECOND * 10**6 - 1)
    inside = dialect.let(Sql(total, INT64), lambda u: f"CASE WHEN {u} BETWEEN {first} AND {last} THEN {u} END")
    return f"CASE WHEN {sane} THEN {inside} END"


def calendar_date(days: str) -> str:
    return f"(DATE '1970-01-01' + CAST({days} AS INTEGER))"


def _show_date(days: str) -> str:
    date = calendar_date(days)
    return f"(lpad(CAST(year({date}) AS VARCHAR), 4, '0') || strftime({date}, '-%m-%d'))"


def _time_to_text(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
    def show(t: str) -> str:
        of_day = remainder_by(dialect.floor_by(t, 10**6), 86_400)
        clock = " || ':' || ".join(
            f"lpad(CAST({of_day} // {unit} % {size} AS VARCHAR), 2, '0')"
            for unit, size in ((3600, 24), (60, 60), (1, 60))
        )
        micros = remainder_by(t, 10**6)
        fraction = f"CASE WHEN {micros} = 0 THEN '' ELSE '.' || lpad(CAST({micros} AS VARCHAR), 6, '0') END"
        return f"({_show_date(dialect.floor_by(t, DAY))} || 'T' || {clock} || {fraction} || 'Z')"

    return dialect.let(arg, show)


def _date_to_text(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
    return dialect.let(arg, _show_date)


def _try_cast(dialect: Dialect, value: str, to: Type) -> str:
    return f"TRY_CAST({value} AS {dialect.type_name(to)})"


def _float_to_whole(dialect: Dialect, value: str, to: Type) -> str:
    return f"TRY_CAST(round({value}) AS BIGINT)"  # halves away from zero; the cast alone takes them to even


def _time_to_date(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
    return days_of(dialect, arg)


def _decimal_to_float(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
    return dialect.decimal_to_float(arg.text)


CASTS: Final[dict[tuple[Kind, Kind], CastRule]] = {
    ("int64", "float64"): _always("CAST({0} AS DOUBLE)"),
    ("int64", "decimal"): _fitting("overflow", _try_cast),
    ("int64", "string"): _always("CAST({0} AS VARCHAR)"),
    ("int64", "bool"): _always("({0} <> 0)"),
    ("float64", "int64"): _fitting("overflow", _float_to_whole),
    ("float64", "decimal"): _fitting("overflow", _float_to_decimal),
    # −0.0 is 0.0, and NaN has no sign
    ("float64", "string"): _always("replace(CAST({0} + CAST(0 AS DOUBLE) AS VARCHAR), '-nan', 'nan')"),
    ("float64", "bool"): _always("({0} <> 0)"),
    ("decimal", "int64"): _fitting("overflow", _decimal_to_whole),
    ("decimal", "float64"): _decimal_to_float,
    ("decimal", "decimal"): _fitting("overflow", _decimal_to_decimal),
    ("decimal", "string"): _always("CAST({0} AS VARCHAR)"),
    ("string", "int64"): _fitting("bad_input", _matching(r"[+-]?[0-9]+", "TRY_CAST({t} AS BIGINT)")),
    ("string", "float64"): _fitting(
        "bad_input", _matching(_NUMBER + r"|[+-]?(?i:inf|infinity)|(?i:nan)", "TRY_CAST({t} AS DOUBLE)")
    ),
    ("string", "decimal"): _fitting("bad_input", _text_to_decimal),
    ("string", "bool"): _fitting("bad_input", _text_to_bool),
    ("string", "date"): _fitting("bad_input", _matching(_DATE_TEXT, "(" + _days_of_text("{t}") + ")")),
    ("string", "timestamp"): _fitting("bad_input", _text_to_time),
    ("bool", "int64"): _always("CAST({0} AS BIGINT)"),
    ("bool", "float64"): _always("CAST({0} AS DOUBLE)"),
    ("bool", "string"): _always("CAST({0} AS VARCHAR)"),
    ("date", "timestamp"): _always("({0} * " + whole(DAY) + ")"),
    ("date", "string"): _date_to_text,
    ("timestamp", "date"): _time_to_date,
    ("timestamp", "string"): _time_to_text,
}
