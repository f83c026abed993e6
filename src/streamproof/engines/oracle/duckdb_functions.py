"""Built-in functions in DuckDB's SQL, where it differs from PostgreSQL's."""

from __future__ import annotations

from typing import Final

from streamproof.engines.oracle.dialect import Dialect, Rule, Sql, quote
from streamproof.engines.oracle.expressions import convert
from streamproof.engines.oracle.functions import SHARED, call, days_of, exact
from streamproof.engines.oracle.letters import case_pairs
from streamproof.events.schema import FLOAT64, INT64, MAX_PRECISION, STRING, Type, decimal
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


def calendar_date(days: str) -> str:
    return f"(DATE '1970-01-01' + CAST({days} AS INTEGER))"


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
