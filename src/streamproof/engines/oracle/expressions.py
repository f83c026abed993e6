"""Expressions of a plan as SQL, with their types.

Every function's meaning is written once per database, in `duckdb_functions` and `postgres_functions`; here is what
holds for both: which type each argument is brought to before the function sees it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streamproof.engines.oracle.dialect import Dialect, Sql, literal
from streamproof.events.schema import BOOL, FLOAT64, INT64, MAX_PRECISION, NULL, STRING, Type, decimal
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, columns_of, operands, walk
from streamproof.plan.functions import as_decimal, common_type, result_type

ALIKE = frozenset({"eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "coalesce", "least", "greatest", "nullif"})
FLOATING = frozenset({"div", "sqrt", "ln", "log10", "exp", "power"})
BOOLEAN = frozenset({"and", "or", "not"})
MAY_FAIL = frozenset({"add", "sub", "mul", "neg", "abs", "floordiv", "round", "instant"})


@dataclass(frozen=True, slots=True)
class Env:
    """What an expression can read: for each column its SQL."""

    columns: Mapping[Col, Sql] = field(default_factory=dict)

    def extended(self, more: Mapping[Col, Sql]) -> Env:
        return Env({**self.columns, **more})


def translate(expr: Expr, env: Env, dialect: Dialect) -> Sql:
    """The SQL of an expression without user-defined functions."""
    match expr:
        case Col():
            found = env.columns[expr]
            return _null(NULL, dialect) if found.type == NULL else found
        case Lit(value, kind):
            return Sql(literal(dialect, value, kind), kind, atom=True, constant=True, value=value)
        case Call(fn):
            return _call(fn, [translate(arg, env, dialect) for arg in operands(expr)], dialect)
        case Cast(arg, to, strict):
            return _cast(translate(arg, env, dialect), to, dialect, strict=strict)
        case Case(branches, default):
            return _case([(translate(c, env, dialect), translate(v, env, dialect)) for c, v in branches],
                         translate(default, env, dialect), dialect)  # fmt: skip
        case Apply(fn):
            raise AssertionError(f"{fn} must be computed before the SQL that reads it")


def _null(kind: Type, dialect: Dialect) -> Sql:
    return Sql(literal(dialect, None, kind), kind, atom=True, constant=True)


def _call(fn: str, args: list[Sql], dialect: Dialect) -> Sql:
    kinds = tuple(arg.type for arg in args)
    result = result_type(fn, kinds)
    if result == NULL:
        return _null(NULL, dialect)
    ready = tuple(convert(arg, to, dialect) for arg, to in zip(args, _wanted(fn, kinds, result), strict=True))
    constant = all(arg.constant for arg in ready)
    if constant:  # a planner would evaluate it at once, even in a branch that is never taken
        ready = tuple(replace(arg, text=dialect.opaque(arg)) for arg in ready)
    risky = fn in MAY_FAIL or any(arg.risky for arg in ready)
    return Sql(dialect.functions[fn](dialect, ready, result), result, risky=risky)


def _wanted(fn: str, kinds: tuple[Type, ...], result: Type) -> tuple[Type, ...]:
    """The type that each argument of a function is brought to."""
    if fn in ALIKE:
        joined = common_type(kinds)
        return (joined or NULL,) * len(kinds)
    if fn in FLOATING:
        return (FLOAT64,) * len(kinds)
    if fn in BOOLEAN:
        return (BOOL,) * len(kinds)
    if fn in ("add", "sub", "floordiv", "mod") or (fn == "mul" and result.kind != "decimal"):
        return (result,) * len(kinds)
    if fn == "mul":
        return tuple(decimal(MAX_PRECISION, as_decimal(kind).scale) if kind != NULL else result for kind in kinds)
    if fn == "round":
        return (kinds[0] if kinds[0] != NULL else result, *(INT64 for _ in kinds[1:]))
    return tuple(_some_type(fn, kind) for kind in kinds)


def _some_type(fn: str, kind: Type) -> Type:
    """A null argument still needs a type that the database accepts there."""
    if kind != NULL:
        return kind
    strings = ("concat", "lower", "upper", "trim", "ltrim", "rtrim", "length", "replace", "contains", "starts_with",
               "ends_with", "like")  # fmt: skip
    return STRING if fn in strings else INT64


def convert(arg: Sql, to: Type, dialect: Dialect) -> Sql:
    """A value in a wider type: what happens by itself between numbers, and to null."""
    if arg.type == to:
        return arg
    if arg.type == NULL:
        return _null(to, dialect)
    if to == FLOAT64 and arg.type.kind == "decimal":
        return Sql(dialect.decimal_to_float(arg.text), to, constant=arg.constant, risky=arg.risky)
    risky = arg.risky or to.kind == "decimal"
    return Sql(f"CAST({arg.text} AS {dialect.type_name(to)})", to, atom=arg.atom, constant=arg.constant, risky=risky)


def _cast(arg: Sql, to: Type, dialect: Dialect, *, strict: bool) -> Sql:
    if arg.type == to:
        return arg
    if arg.type == NULL:
        return _null(to, dialect)
    given = replace(arg, text=dialect.opaque(arg)) if arg.constant else arg
    text = dialect.casts[given.type.kind, to.kind](dialect, given, to, strict)
    return Sql(text, to, risky=strict or given.risky)


def _case(branches: list[tuple[Sql, Sql]], default: Sql, dialect: Dialect) -> Sql:
    result = common_type([value.type for _, value in branches] + [default.type]) or NULL
    whens = " ".join(
        f"WHEN {convert(condition, BOOL, dialect).text} THEN {convert(value, result, dialect).text}"
        for condition, value in branches
    )
    risky = default.risky or any(part.risky for branch in branches for part in branch)
    return Sql(f"CASE {whens} ELSE {convert(default, result, dialect).text} END", result, risky=risky)


def may_fail(expr: Expr, env: Env) -> bool:
    """Whether an expression can raise on some row: then it must not meet rows that the plan would not show it.

    >>> from streamproof.plan.parse import parse
    >>> may_fail(parse("v > 1"), Env({Col("v"): Sql("c0", INT64)})), may_fail(parse("v + 1 > 1"), Env())
    (False, True)
    """
    decimals = any(env.columns[column].type.kind == "decimal" for column in columns_of(expr) if column in env.columns)
    return any(_part_may_fail(part, decimals=decimals) for part in walk(expr))


def _part_may_fail(part: Expr, *, decimals: bool) -> bool:
    match part:
        case Call(fn):
            return fn in MAY_FAIL or (decimals and fn in ALIKE)  # decimals of two widths meet in a third
        case Cast(strict=strict):
            return strict
    return isinstance(part, Apply)
