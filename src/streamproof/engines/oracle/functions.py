"""Built-in functions that read the same on both databases."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from streamproof.engines.oracle.dialect import Dialect, Rule, Sql, quote, whole
from streamproof.engines.oracle.expressions import convert
from streamproof.events.schema import Type
from streamproof.events.time import BEGINNING, END_SECOND, FIRST_SECOND, FOREVER
from streamproof.plan.expr import INT64_MAX, INT64_MIN
from streamproof.plan.functions import common_type

DAY: Final = 86_400 * 10**6  # microseconds
ESCAPE: Final = chr(92)


def infix(word: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"({args[0].text} {word} {args[1].text})"

    return rule


def exact(word: str) -> Rule:
    """Arithmetic that is checked: the database raises on overflow, of int64 by itself, of decimals in the cast."""

    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        text = f"({args[0].text} {word} {args[1].text})"
        return f"CAST({text} AS {dialect.type_name(result)})" if result.kind == "decimal" else text

    return rule


def compared(word: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        left, right = (dialect.ordered(arg.text, arg.type) for arg in args)
        return f"({left} {word} {right})"

    return rule


def call(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"{name}({', '.join(arg.text for arg in args)})"

    return rule


def extreme(name: str) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        return f"{name}({', '.join(dialect.ordered(arg.text, arg.type) for arg in args)})"

    return rule


def one_of(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"({args[0].text} IN ({', '.join(arg.text for arg in args[1:])}))"


def is_null(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"({args[0].text} IS NULL)"


def negation(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"(NOT {args[0].text})"


def minus(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"CAST(- {args[0].text} AS {dialect.type_name(result)})"


def null_if(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """Compared in the common type; the value keeps its own."""
    first, second = args
    kind = common_type([first.type, second.type])
    assert kind is not None
    other = convert(second, kind, dialect).text

    def body(a: str) -> str:
        return f"CASE WHEN {convert(replace(first, text=a), kind, dialect).text} = {other} THEN NULL ELSE {a} END"

    return dialect.let(first, body)


def like(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"({args[0].text} LIKE {_pattern(dialect, args[1])} ESCAPE {quote(ESCAPE)})"


def _ends_open(pattern: str) -> str:
    """SQL for whether a pattern ends in an escape that escapes nothing: an odd number of them."""
    return f"((length({pattern}) - length(rtrim({pattern}, {quote(ESCAPE)}))) % 2 = 1)"


def _pattern(dialect: Dialect, pattern: Sql) -> str:
    r"""The pattern, in which a single \ at the end stands for itself."""
    return dialect.let(pattern, lambda p: f"CASE WHEN {_ends_open(p)} THEN {p} || {quote(ESCAPE)} ELSE {p} END")


def instant(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    """Ticks as microseconds, rounded down; the infinities are no instants, and there are none beyond year 9999."""
    ticks, per_second = args
    rate = per_second.value
    assert isinstance(rate, int)
    first, end = (max(INT64_MIN, min(INT64_MAX, second * rate)) for second in (FIRST_SECOND, END_SECOND))

    def micros(text: str) -> str:
        return f"({text} * {whole(10**6 // rate)})" if rate <= 10**6 else dialect.floor_by(text, rate // 10**6)

    def body(t: str) -> str:
        return (
            f"CASE WHEN {t} = {whole(FOREVER)} OR {t} = {whole(BEGINNING)} THEN NULL"
            f" WHEN {t} < {whole(first)} OR {t} >= {whole(end)} THEN {dialect.fail('overflow', t, result)}"
            f" ELSE {micros(t)} END"
        )

    return dialect.let(ticks, body)


def remainder_by(text: str, by: int) -> str:
    """The remainder of that division, never negative."""
    return f"((({text} % {whole(by)}) + {whole(by)}) % {whole(by)})"


def days_of(dialect: Dialect, arg: Sql) -> str:
    """Days since 1970 of a date or a timestamp."""
    return arg.text if arg.type.kind != "timestamp" else dialect.floor_by(arg.text, DAY)


def part_of_day(unit: int, count: int) -> Rule:
    def rule(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
        micros = f"({args[0].text} * 0)" if args[0].type.kind == "date" else args[0].text
        return remainder_by(dialect.floor_by(micros, unit), count)

    return rule


def day_of_week(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    return f"({remainder_by(f'({days_of(dialect, args[0])} + 3)', 7)} + 1)"  # 1970-01-01 was a Thursday


def epoch(dialect: Dialect, args: tuple[Sql, ...], result: Type) -> str:
    if args[0].type.kind == "date":
        return f"({args[0].text} * {whole(86_400)})"
    return dialect.floor_by(args[0].text, 10**6)


SHARED: Final[dict[str, Rule]] = {
    "add": exact("+"), "sub": exact("-"), "mul": exact("*"), "neg": minus,
    "eq": infix("="), "ne": infix("<>"), "same": infix("IS NOT DISTINCT FROM"),
    "lt": compared("<"), "lte": compared("<="), "gt": compared(">"), "gte": compared(">="),
    "in": one_of, "is_null": is_null, "and": infix("AND"), "or": infix("OR"), "not": negation,
    "coalesce": call("coalesce"), "nullif": null_if, "least": extreme("least"), "greatest": extreme("greatest"),
    "length": call("length"), "starts_with": call("starts_with"),
    "like": like, "instant": instant,
    "hour": part_of_day(3600 * 10**6, 24), "minute": part_of_day(60 * 10**6, 60), "second": part_of_day(10**6, 60),
    "day_of_week": day_of_week, "epoch": epoch,
}  # fmt: skip
