"""PostgreSQL's SQL. Every text has the collation "C", so strings compare by code point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from streamproof.engines.oracle.dialect import Dialect, Rule, Sql, order_keys, quote, whole
from streamproof.engines.oracle.functions import ESCAPE
from streamproof.engines.oracle.postgres_functions import CASTS, FUNCTIONS, C
from streamproof.errors import ErrorName, InputError
from streamproof.events.schema import Kind, Type
from streamproof.plan.aggregates import unsupported

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

    def ends_open(self, pattern: str) -> str:
        return f"((length({pattern}) - length(rtrim({pattern}, {quote(ESCAPE)}))) % 2 = 1)"

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
