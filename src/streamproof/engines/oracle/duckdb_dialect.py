"""DuckDB's SQL: the functions that differ from PostgreSQL's, and how each thing is said."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from streamproof.engines.oracle.dialect import MARK, Dialect, Rule, Sql, order_keys, quote
from streamproof.engines.oracle.duckdb_casts import CASTS, calendar_date
from streamproof.engines.oracle.expressions import convert
from streamproof.engines.oracle.functions import SHARED, call, days_of, exact
from streamproof.errors import ErrorName
from streamproof.events.schema import FLOAT64, INT64, MAX_PRECISION, STRING, Kind, Type, decimal
from streamproof.plan.aggregates import unsupported
from streamproof.plan.case_mapping import case_pairs
from streamproof.plan.limits import LONGEST_TEXT
from streamproof.thresholds import TEXTS_MEASURED


def _unless(bad: str, value: str) -> Rule:
    """Null where the first argument ``{0}`` is outside the domain, else the value."""

    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return dialect.let(args[0], lambda a: f"CASE WHEN {bad.format(a)} THEN NULL ELSE {value.format(a)} END")

    return rule


def _two(template: str) -> Rule:
    """A template that uses its arguments ``{0}`` and ``{1}`` more than once."""

    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return dialect.let(args[0], lambda a: dialect.let(args[1], lambda b: template.format(a, b)))

    return rule


_FLOAT_DIV = _two("CASE WHEN {1} = 0 THEN NULL ELSE {0} / {1} END")
_FLOAT_FLOORDIV = _two("CASE WHEN {1} = 0 THEN NULL ELSE floor({0} / {1}) END")
_WHOLE_FLOORDIV = _two("({0} // {1} - CASE WHEN {0} % {1} <> 0 AND ({0} < 0) <> ({1} < 0) THEN 1 ELSE 0 END)")
_FLOAT_MOD = _two("CASE WHEN {1} = 0 THEN NULL ELSE {0} % {1} END")
_WHOLE_MOD = _two("CASE WHEN {1} = -1 THEN {0} * 0 ELSE {0} % {1} END")  # the least int64 % -1 must not overflow
_POWER = _two(
    "CASE WHEN ({0} < 0 AND isfinite({1}) AND floor({1}) <> {1}) OR ({0} = 0 AND {1} < 0) THEN NULL"
    " ELSE power({0}, {1}) END"
)


def _by_kind(whole_rule: Rule, float_rule: Rule) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return (float_rule if result == FLOAT64 else whole_rule)(dialect, args, result)

    return rule


def _whole_number(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        if result == INT64:
            return args[0].text
        text = f"{name}({args[0].text})"
        return text if result == FLOAT64 else f"CAST({text} AS {dialect.type_name(result)})"

    return rule


def _round(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    if len(args) == 1:
        return _whole_number("round")(dialect, args, result)
    if result == INT64:
        return dialect.let(args[0], lambda a: dialect.let(args[1], lambda n: _round_whole(a, n)))
    return dialect.let(args[0], lambda a: dialect.let(args[1], lambda n: _round_float(a, n)))


def _round_whole(a: str, n: str) -> str:
    unit = f"CAST(rpad('1', CAST(1 - {n} AS INTEGER), '0') AS HUGEINT)"
    nearest = f"(abs(CAST({a} AS HUGEINT)) + {unit} // 2) // {unit} * {unit} * sign({a})"
    return f"CASE WHEN {n} >= 0 THEN {a} WHEN {n} < -19 THEN {a} * 0 ELSE CAST({nearest} AS BIGINT) END"


def _round_float(a: str, n: str) -> str:
    up, down = f"power(10.0::DOUBLE, {n})", f"power(10.0::DOUBLE, -{n})"
    fine = f"CASE WHEN isfinite({a} * {up}) THEN round({a} * {up}) / {up} ELSE {a} END"
    coarse = f"round({a} / {down}) * {down}"
    return (
        f"CASE WHEN {n} IS NULL THEN NULL WHEN NOT isfinite({a}) OR {n} > 308 THEN {a}"
        f" WHEN {n} < -308 THEN {a} * 0 WHEN {n} >= 0 THEN {fine} ELSE {coarse} END"
    )


def _product(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """Decimals as the widest ones of their scales: DuckDB raises where a product leaves the numbers that hold both."""
    if result.kind == "decimal":
        args = tuple(convert(arg, decimal(MAX_PRECISION, arg.type.scale), dialect) for arg in args)
    return exact("*")(dialect, args, result)


def _sign(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"CAST(sign({args[0].text}) AS BIGINT)"


def _substr(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """Characters at positions from start to before start + length; there are none before position 1."""
    if args[0].type != STRING:  # null, of no type in particular
        return "CAST(NULL AS VARCHAR)"

    def cut(s: str, n: str) -> str:
        length = f"least(greatest(CAST({s} AS HUGEINT) + {n} - greatest({s}, 1), 0), 2147483647)"
        part = f"substring({args[0].text}, greatest(least({s}, 2147483647), 1), CAST({length} AS BIGINT))"
        return f"CASE WHEN {s} IS NULL OR {n} IS NULL THEN NULL ELSE {part} END"

    if len(args) == 2:
        return dialect.let(
            args[1],
            lambda s: (
                f"CASE WHEN {s} IS NOT NULL THEN substring({args[0].text}, greatest(least({s}, 2147483647), 1)) END"
            ),
        )
    return dialect.let(args[1], lambda s: dialect.let(args[2], lambda n: cut(s, n)))


def _concat(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """Texts in a row, if they are no longer together than a text may be."""
    joined = _in_a_row([arg.text for arg in args])
    if len(args) <= TEXTS_MEASURED.now and all(arg.atom for arg in args):
        return _limited(dialect, " + ".join(f"strlen({arg.text})" for arg in args), joined)
    return dialect.let(Sql(joined, result), lambda text: _limited(dialect, f"strlen({text})", text))


def _in_a_row(texts: list[str]) -> str:
    """In pairs of pairs, because DuckDB reads expressions to a certain depth."""
    if len(texts) == 1:
        return texts[0]
    half = len(texts) // 2
    return f"({_in_a_row(texts[:half])} || {_in_a_row(texts[half:])})"


def _replace(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """What is taken out counts how often it is there."""

    def body(text: str, old: str, new: str) -> str:
        count = f"(strlen({text}) - strlen(replace({text}, {old}, ''))) // strlen({old})"
        size = f"strlen({text}) + {count} * (strlen({new}) - strlen({old}))"
        return _limited(dialect, size, f"replace({text}, {old}, {new})")

    text, old, new = args
    return dialect.let(text, lambda a: dialect.let(old, lambda b: dialect.let(new, lambda c: body(a, b, c))))


def _limited(dialect: Dialect, size: str, text: str) -> str:
    failed = dialect.fail("limit_exceeded", size, STRING)
    return f"CASE WHEN {size} > {LONGEST_TEXT} THEN {failed} ELSE {text} END"


def _letters(name: str) -> Rule:
    """ASCII by the database; the rest letter by letter, so that every engine agrees."""

    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        source, target = (quote(text) for text in case_pairs(lower=name == "lower"))
        return dialect.let(
            args[0],
            lambda a: (
                f"CASE WHEN strlen({a}) = length({a}) THEN {name}({a}) ELSE translate({a}, {source}, {target}) END"
            ),
        )

    return rule


def _blanks(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"{name}({args[0].text}, ' ')"

    return rule


def _calendar(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"CAST({name}({calendar_date(days_of(dialect, args[0]))}) AS BIGINT)"

    return rule


FUNCTIONS: Final[dict[str, Rule]] = SHARED | {
    "div": _FLOAT_DIV, "floordiv": _by_kind(_WHOLE_FLOORDIV, _FLOAT_FLOORDIV), "mod": _by_kind(_WHOLE_MOD, _FLOAT_MOD),
    "add": exact("+"), "mul": _product, "abs": call("abs"), "sign": _sign, "round": _round,
    "floor": _whole_number("floor"), "ceil": _whole_number("ceil"),
    "sqrt": _unless("{0} < 0", "sqrt({0})"), "ln": _unless("{0} <= 0", "ln({0})"),
    "log10": _unless("{0} <= 0", "log10({0})"), "exp": call("exp"), "power": _POWER,
    "lower": _letters("lower"), "upper": _letters("upper"), "trim": _blanks("trim"), "ltrim": _blanks("ltrim"),
    "rtrim": _blanks("rtrim"), "concat": _concat, "replace": _replace,
    "substr": _substr, "contains": call("contains"), "ends_with": call("ends_with"),
    "year": _calendar("year"), "month": _calendar("month"), "day": _calendar("day"),
    "day_of_year": _calendar("dayofyear"),
}  # fmt: skip


_TYPES: Final[dict[Kind, str]] = {
    "int64": "BIGINT", "float64": "DOUBLE", "string": "VARCHAR", "bool": "BOOLEAN", "date": "BIGINT",
    "timestamp": "BIGINT", "null": "BIGINT",
}  # fmt: skip


class DuckDbSql:
    """How each thing is said in DuckDB."""

    name = "duckdb"
    functions: dict[str, Rule] = FUNCTIONS
    casts: dict[tuple[Kind, Kind], Callable[[Dialect, Sql, Type, bool], str]] = CASTS

    def __init__(self) -> None:
        self._variables = count()  # names for values bound by `let`, each used once

    def type_name(self, kind: Type) -> str:
        return f"DECIMAL({kind.precision},{kind.scale})" if kind.kind == "decimal" else _TYPES[kind.kind]

    def text(self, value: str) -> str:
        parts = [quote(part) for part in value.split("\x00")]
        return parts[0] if len(parts) == 1 else "(" + " || chr(0) || ".join(parts) + ")"

    def ordered(self, text: str, kind: Type) -> str:
        return text  # strings compare by their UTF-8 bytes, which is by code point

    def decimal_to_float(self, text: str) -> str:
        return f"CAST(CAST({text} AS VARCHAR) AS DOUBLE)"  # the direct cast is off by a bit for many digits

    def opaque(self, value: Sql) -> str:
        return value.text  # a constant that raises is left to the row that reaches it

    def let(self, value: Sql, body: Callable[[str], str]) -> str:
        if value.atom:
            return body(value.text)
        name = f"x{next(self._variables)}"
        return f"list_transform([{value.text}], lambda {name}: {body(name)})[1]"

    def fail(self, name: ErrorName, value: str, to: Type) -> str:
        return f"CAST(error({quote(f'{MARK}|{name}|{to}|')} || CAST({value} AS VARCHAR)) AS {self.type_name(to)})"

    def series(self, count: str) -> str:
        return f"unnest(range({count}))"

    def whole_division(self, a: str, b: str) -> str:
        return f"({a} // {b})"

    def floor_by(self, text: str, by: int) -> str:
        lift = 2**63 // by + 1  # makes the dividend positive, where // rounds down
        return f"CAST((CAST({text} AS HUGEINT) + {lift * by}) // {by} - {lift} AS BIGINT)"

    def aggregate(self, fn: str, arg: Sql, order: list[tuple[str, Type]]) -> str:
        text = arg.text
        match fn:
            case "first" | "last":
                keys = order_keys(self, order, descending=fn == "last")
                return f"first({text} ORDER BY {keys}) FILTER (WHERE {text} IS NOT NULL)"
            case "count_distinct":
                return f"count(DISTINCT {text})"
            case "sum" if arg.type.kind == "int64":
                return f"CAST(sum({text}) AS BIGINT)"
            case "sum" if arg.type.kind == "decimal":
                return f"CAST(sum({text}) AS DECIMAL(38,{arg.type.scale}))"
            case "average":
                return f"CAST(CAST(sum({text}) AS VARCHAR) AS DOUBLE) / count({text})"
            case "min" | "max":
                return f"{fn}({text})"
        raise unsupported(fn, "duckdb")

    def values_of(self, arg: str) -> str:
        return f"list({arg}) FILTER (WHERE {arg} IS NOT NULL)"
