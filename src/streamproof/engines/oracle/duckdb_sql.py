"""DuckDB's SQL."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Final

from streamproof.engines.oracle.dialect import MARK, Dialect, Rule, Sql, order_keys, quote
from streamproof.engines.oracle.duckdb_casts import CASTS
from streamproof.engines.oracle.duckdb_functions import FUNCTIONS
from streamproof.engines.oracle.functions import ESCAPE
from streamproof.errors import ErrorName
from streamproof.events.schema import Kind, Type
from streamproof.plan.aggregates import unsupported

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

    def ends_open(self, pattern: str) -> str:
        return f"((length({pattern}) - length(rtrim({pattern}, {quote(ESCAPE)}))) % 2 = 1)"

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
