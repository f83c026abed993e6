"""PostgreSQL's SQL: functions and casts, whose helpers ``sp_…`` are in `postgres_library`, and how each thing is said.

Every text has the collation "C", so strings compare by code point.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from streamproof.engines.oracle.dialect import Dialect, Rule, Sql, order_keys, quote, whole
from streamproof.engines.oracle.functions import DAY, SHARED, call, days_of, exact, infix
from streamproof.errors import ErrorName, InputError
from streamproof.events.schema import FLOAT64, INT64, STRING, Kind, Type
from streamproof.plan.aggregates import unsupported

CastRule = Callable[[Dialect, Sql, Type, bool], str]
C: Final = 'COLLATE "C"'


def _arithmetic(word: str, name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return (call(f"pg_temp.{name}") if result == FLOAT64 else exact(word))(dialect, args, result)

    return rule


def _by_kind(of_wholes: str, of_floats: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        a, b = (arg.text for arg in args)
        return (of_floats if result == FLOAT64 else of_wholes).format(a, b)

    return rule


def _helper(name: str) -> Rule:
    return call(f"pg_temp.{name}")


def _sign(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    if args[0].type == FLOAT64:
        return f"pg_temp.sp_sign({args[0].text})"
    return f"CAST(sign({args[0].text}) AS BIGINT)"


def _whole_number(name: str, of_float: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        if result == INT64:
            return args[0].text
        if result == FLOAT64:
            return f"{of_float}({args[0].text})"
        return f"CAST({name}({args[0].text}) AS {dialect.type_name(result)})"

    return rule


def _round(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    if len(args) == 1:
        return _whole_number("round", "pg_temp.sp_round")(dialect, args, result)
    return call("pg_temp.sp_round_float" if result == FLOAT64 else "pg_temp.sp_round_whole")(dialect, args, result)


def _substr(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    if args[0].type != STRING:  # null, of no type in particular
        return "CAST(NULL AS text)"
    return call("pg_temp.sp_substr" if len(args) == 3 else "pg_temp.sp_substr_from")(dialect, args, result)


def _concat(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return reduce(lambda a, b: f"pg_temp.sp_concat({a}, {b})", (arg.text for arg in args))


def _calendar(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"pg_temp.{name}({days_of(dialect, args[0])})"

    return rule


def _template(text: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return text.format(*(arg.text for arg in args))

    return rule


def _eager(word: str, helper: str) -> Rule:
    """Where an operand may fail, both are evaluated, as on DuckDB; PostgreSQL's own AND and OR stop early."""

    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        risky = any(arg.risky for arg in args)
        return (call(f"pg_temp.{helper}") if risky else infix(word))(dialect, args, result)

    return rule


FUNCTIONS: Final[dict[str, Rule]] = SHARED | {
    "and": _eager("AND", "sp_and"), "or": _eager("OR", "sp_or"),
    "add": _arithmetic("+", "sp_add"), "sub": _arithmetic("-", "sp_sub"), "mul": _arithmetic("*", "sp_mul"),
    "div": _helper("sp_div"), "floordiv": _by_kind("pg_temp.sp_floordiv({0}, {1})", "floor(pg_temp.sp_div({0}, {1}))"),
    "mod": _by_kind("pg_temp.sp_mod({0}, {1})", "pg_temp.sp_fmod({0}, {1})"),
    "abs": call("abs"), "sign": _sign, "round": _round,
    "floor": _whole_number("floor", "floor"), "ceil": _whole_number("ceil", "ceil"),
    "sqrt": _helper("sp_sqrt"), "ln": _helper("sp_ln"), "log10": _helper("sp_log10"), "exp": _helper("sp_exp"),
    "power": _helper("sp_power"), "lower": _helper("sp_lower"), "upper": _helper("sp_upper"),
    "trim": _template("btrim({0}, ' ')"), "ltrim": _template("ltrim({0}, ' ')"), "rtrim": _template("rtrim({0}, ' ')"),
    "concat": _concat, "replace": _helper("sp_replace"),
    "substr": _substr, "contains": _template("(strpos({0}, {1}) > 0)"), "ends_with": _helper("sp_ends_with"),
    "length": _template("CAST(length({0}) AS BIGINT)"),
    "year": _calendar("sp_year"), "month": _calendar("sp_month"), "day": _calendar("sp_day"),
    "day_of_year": _calendar("sp_day_of_year"),
}  # fmt: skip


# --- casts ------------------------------------------------------------------------------------------------------------


def _always(template: str) -> CastRule:
    def rule(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
        return template.format(arg.text)

    return rule


def _fitting(name: str, template: str, shown: str = "CAST({0} AS TEXT)") -> CastRule:
    """A cast by a helper that gives null where it fails; then the error of that name if strict."""

    def rule(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
        found = template.format(arg.text, p=to.precision, s=to.scale)
        if not strict:
            return found
        return f"pg_temp.sp_check({found}, {shown.format(arg.text)}, {quote(name)}, {quote(str(to))})"

    return rule


def _time_to_date(dialect: Dialect, arg: Sql, to: Type, strict: bool) -> str:
    return days_of(dialect, arg)


_QUANTIZE = "CAST(pg_temp.sp_quantize({0}, {{p}}, {{s}}) AS numeric({{p}},{{s}}))"
_TEXT = f"(CAST({{0}} AS TEXT) {C})"
_FLOAT_TEXT = "pg_temp.sp_float_text({0})"

CASTS: Final[dict[tuple[Kind, Kind], CastRule]] = {
    ("int64", "float64"): _always("CAST({0} AS float8)"),
    ("int64", "decimal"): _fitting("overflow", _QUANTIZE.format("CAST({0} AS numeric)")),
    ("int64", "string"): _always(_TEXT),
    ("int64", "bool"): _always("({0} <> 0)"),
    ("float64", "int64"): _fitting("overflow", "pg_temp.sp_float_whole({0})", _FLOAT_TEXT),
    ("float64", "decimal"): _fitting("overflow", _QUANTIZE.format("pg_temp.sp_float_numeric({0})"), _FLOAT_TEXT),
    ("float64", "string"): _always(f"({_FLOAT_TEXT} {C})"),
    ("float64", "bool"): _always("({0} <> 0)"),
    ("decimal", "int64"): _fitting("overflow", "pg_temp.sp_numeric_whole(pg_temp.sp_quantize({0}, 39, 0))"),
    ("decimal", "float64"): _always("CAST({0} AS float8)"),
    ("decimal", "decimal"): _fitting("overflow", _QUANTIZE.format("{0}")),
    ("decimal", "string"): _always(_TEXT),
    ("string", "int64"): _fitting("bad_input", "pg_temp.sp_text_whole({0})", "{0}"),
    ("string", "float64"): _fitting("bad_input", "pg_temp.sp_text_float({0})", "{0}"),
    ("string", "decimal"): _fitting("bad_input", _QUANTIZE.format("pg_temp.sp_text_numeric({0})"), "{0}"),
    ("string", "bool"): _fitting("bad_input", "pg_temp.sp_text_bool({0})", "{0}"),
    ("string", "date"): _fitting("bad_input", "pg_temp.sp_text_date({0})", "{0}"),
    ("string", "timestamp"): _fitting("bad_input", "pg_temp.sp_text_time({0})", "{0}"),
    ("bool", "int64"): _always("CAST(CAST({0} AS integer) AS BIGINT)"),
    ("bool", "float64"): _always("CAST(CAST({0} AS integer) AS float8)"),
    ("bool", "string"): _always(_TEXT),
    ("date", "timestamp"): _always("({0} * " + whole(DAY) + ")"),
    ("date", "string"): _always(f"(pg_temp.sp_date_text({{0}}) {C})"),
    ("timestamp", "date"): _time_to_date,
    ("timestamp", "string"): _always(f"(pg_temp.sp_time_text({{0}}) {C})"),
}


_TYPES: Final[dict[Kind, str]] = {
    "int64": "BIGINT", "float64": "float8", "string": "TEXT", "bool": "BOOLEAN", "date": "BIGINT",
    "timestamp": "BIGINT", "null": "BIGINT",
}  # fmt: skip


class PostgresSql:
    """How each thing is said in PostgreSQL."""

    name = "postgres"
    functions: dict[str, Rule] = FUNCTIONS
    casts: dict[tuple[Kind, Kind], Callable[[Dialect, Sql, Type, bool], str]] = CASTS

    def type_name(self, kind: Type) -> str:
        return f"numeric({kind.precision},{kind.scale})" if kind.kind == "decimal" else _TYPES[kind.kind]

    def text(self, value: str) -> str:
        if "\x00" in value:
            raise no_nul()
        return f"(CAST({quote(value)} AS TEXT) {C})"

    def ordered(self, text: str, kind: Type) -> str:
        return f"({text} {C})" if kind.kind == "string" else text

    def decimal_to_float(self, text: str) -> str:
        return f"CAST({text} AS float8)"

    def opaque(self, value: Sql) -> str:
        return f"pg_temp.sp_opaque({value.text})"

    def let(self, value: Sql, body: Callable[[str], str]) -> str:
        return body(value.text)  # helpers in the library take each argument once

    def fail(self, name: ErrorName, value: str, to: Type) -> str:
        nothing = f"CAST(NULL AS {self.type_name(to)})"
        return f"pg_temp.sp_check({nothing}, CAST({value} AS TEXT), {quote(name)}, {quote(str(to))})"

    def series(self, count: str) -> str:
        return f"generate_series({whole(0)}, {count} - 1)"

    def whole_division(self, a: str, b: str) -> str:
        return f"({a} / {b})"

    def floor_by(self, text: str, by: int) -> str:
        return f"pg_temp.sp_floordiv({text}, {whole(by)})"

    def aggregate(self, fn: str, arg: Sql, order: list[tuple[str, Type]]) -> str:
        text = arg.text
        match fn:
            case "first" | "last":
                keys = order_keys(self, order, descending=fn == "last")
                return f"(array_agg({text} ORDER BY {keys}) FILTER (WHERE {text} IS NOT NULL))[1]"
            case "count_distinct":
                return f"count(DISTINCT {text})"
            case "sum" if arg.type.kind == "int64":
                return f"CAST(sum({text}) AS BIGINT)"
            case "sum" if arg.type.kind == "decimal":
                return f"CAST(sum({text}) AS numeric(38,{arg.type.scale}))"
            case "average":
                return f"CAST(sum({text}) AS float8) / count({text})"
            case "min" | "max" if arg.type.kind == "bool":
                return f"{'bool_and' if fn == 'min' else 'bool_or'}({text})"
            case "min" | "max":
                return f"{fn}({text})"
        raise unsupported(fn, "postgres")

    def values_of(self, arg: str) -> str:
        return f"array_agg({arg}) FILTER (WHERE {arg} IS NOT NULL)"


def no_nul() -> InputError:
    return InputError(
        "PostgreSQL cannot hold the character U+0000 in a string",
        fix="use the engine duckdb, or replace the character",
        name="bad_input",
    )
