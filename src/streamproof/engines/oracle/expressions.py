"""Expressions of a plan as SQL, with their types.

Every function's meaning is written once per database, in `duckdb_dialect` and `postgres_dialect`; here is what
holds for both. Expressions are bound: their arguments have the types that the functions are computed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streamproof.engines.oracle.dialect import Dialect, Sql, literal
from streamproof.events.schema import FLOAT64, NULL, Type
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Expr, Lit, operands
from streamproof.plan.functions import FUNCTIONS, result_type
from streamproof.plan.rules import entry


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
        case Cast(arg, to, implied=True):
            return convert(translate(arg, env, dialect), to, dialect)
        case Cast(arg, to, strict):
            return _cast(translate(arg, env, dialect), to, dialect, strict=strict)
        case Case(branches, default):
            return _case([(translate(c, env, dialect), translate(v, env, dialect)) for c, v in branches],
                         translate(default, env, dialect))  # fmt: skip
        case Apply(fn):
            raise AssertionError(f"{fn} must be computed before the SQL that reads it")


def _null(kind: Type, dialect: Dialect) -> Sql:
    return Sql(literal(dialect, None, kind), kind, atom=True, constant=True)


def _call(fn: str, args: list[Sql], dialect: Dialect) -> Sql:
    kinds = tuple(arg.type for arg in args)
    result = result_type(fn, kinds)
    if result == NULL:
        return _null(NULL, dialect)
    ready, constant = tuple(args), all(arg.constant for arg in args)
    if constant:  # a planner would evaluate it at once, even in a branch that is never taken
        ready = tuple(replace(arg, text=dialect.opaque(arg)) for arg in ready)
    risky = FUNCTIONS[fn].overflows or any(arg.risky for arg in ready)
    return Sql(entry(dialect.functions, fn, dialect.name)(dialect, ready, result), result, risky=risky)


def convert(arg: Sql, to: Type, dialect: Dialect) -> Sql:
    """A value in a wider type: numbers that have a place there, or null."""
    if arg.type == to:
        return arg
    if arg.type == NULL:
        return _null(to, dialect)
    if to == FLOAT64 and arg.type.kind == "decimal":
        return Sql(dialect.decimal_to_float(arg.text), to, constant=arg.constant, risky=arg.risky)
    risky = arg.risky or to.kind == "decimal"  # in doubt: the database raises where it does not fit
    return Sql(f"CAST({arg.text} AS {dialect.type_name(to)})", to, atom=arg.atom, constant=arg.constant, risky=risky)


def _cast(arg: Sql, to: Type, dialect: Dialect, *, strict: bool) -> Sql:
    if arg.type == to:
        return arg
    if arg.type == NULL:
        return _null(to, dialect)
    given = replace(arg, text=dialect.opaque(arg)) if arg.constant else arg
    cast = entry(dialect.casts, (given.type.kind, to.kind), dialect.name)
    return Sql(cast(dialect, given, to, strict), to, risky=strict or given.risky)


def _case(branches: list[tuple[Sql, Sql]], default: Sql) -> Sql:
    whens = " ".join(f"WHEN {condition.text} THEN {value.text}" for condition, value in branches)
    risky = default.risky or any(part.risky for branch in branches for part in branch)
    return Sql(f"CASE {whens} ELSE {default.text} END", default.type, risky=risky)
