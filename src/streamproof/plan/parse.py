"""Expressions from SQL-flavoured text: sqlglot parses, and then every node is admitted by name or refused.

>>> parse("v + 1")
Call(fn='add', args=(Col(name='v', side=None), Lit(value=1, type=Type('int64'))))
>>> parse("v in (select 1)")
Traceback (most recent call last):
...
streamproof.errors.PlanError: subqueries cannot stand in an expression
  at: v in (select 1)
  fix: use columns, constants, operators and functions of the library
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import sqlglot
from sqlglot import Token, TokenType, exp

from streamproof.errors import PlanError, StreamproofError
from streamproof.events.schema import Type, decimal, parse_type
from streamproof.plan.expr import NULL_LITERAL, Apply, Call, Case, Col, Expr, Side, literal
from streamproof.plan.fold import cast_to
from streamproof.plan.functions import FUNCTIONS

MAX_TEXT: Final = 20_000
MAX_DEPTH: Final = 200

_BINARY: Final[dict[type[exp.Expression], str]] = {
    exp.Add: "add", exp.Sub: "sub", exp.Mul: "mul", exp.Div: "div", exp.IntDiv: "floordiv", exp.Mod: "mod",
    exp.EQ: "eq", exp.NEQ: "ne", exp.LT: "lt", exp.LTE: "lte", exp.GT: "gt", exp.GTE: "gte",
    exp.And: "and", exp.Or: "or", exp.NullSafeEQ: "same", exp.Like: "like", exp.Pow: "power", exp.DPipe: "concat",
    exp.Nullif: "nullif", exp.Contains: "contains", exp.StartsWith: "starts_with", exp.EndsWith: "ends_with",
}  # fmt: skip
_UNARY: Final[dict[type[exp.Expression], str]] = {
    exp.Abs: "abs", exp.Sign: "sign", exp.Floor: "floor", exp.Ceil: "ceil", exp.Sqrt: "sqrt", exp.Ln: "ln",
    exp.Exp: "exp", exp.Lower: "lower", exp.Upper: "upper", exp.Length: "length", exp.Year: "year",
    exp.Month: "month", exp.Day: "day", exp.DayOfMonth: "day", exp.Hour: "hour", exp.Minute: "minute",
    exp.Second: "second", exp.DayOfYear: "day_of_year", exp.DayOfWeekIso: "day_of_week", exp.TimeToUnix: "epoch",
    exp.DayOfWeek: "day_of_week",
}  # fmt: skip
_VARIADIC: Final[dict[type[exp.Expression], str]] = {
    exp.Coalesce: "coalesce", exp.Least: "least", exp.Greatest: "greatest", exp.Concat: "concat",
}  # fmt: skip
_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_PARTS: Final = {
    "DOW": "day_of_week", "ISODOW": "day_of_week", "DAYOFWEEK": "day_of_week", "DOY": "day_of_year",
    "DAYOFYEAR": "day_of_year", "YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute",
    "SECOND": "second", "EPOCH": "epoch",
}  # fmt: skip


@lru_cache(maxsize=4096)
def parse(text: str) -> Expr:
    """The expression that a text means, in DuckDB's dialect of SQL."""
    if len(text) > MAX_TEXT:
        raise PlanError(f"an expression of {len(text)} characters", fix=f"at most {MAX_TEXT}", name="limit_exceeded")
    try:
        return _admit(_sql(text), 0)
    except StreamproofError as error:
        raise error.located(text) from None


_DUCKDB: Final = sqlglot.Dialect.get_or_raise("duckdb")


def _sql(text: str) -> exp.Expr:
    fix = "write e.g. \"v > 1 and k = 'a'\""
    try:
        tokens = _DUCKDB.tokenize(text)
        _refuse_statements(tokens)
        found = _DUCKDB.parser().parse_into(exp.Condition, tokens, text)
    except sqlglot.errors.SqlglotError as error:
        details = getattr(error, "errors", None) or [{}]
        near = details[0].get("highlight")
        what = f"cannot read the expression near {near!r}" if near else "cannot read the expression"
        raise PlanError(what, at=text, fix=fix) from None
    except RecursionError:
        raise PlanError("the expression is nested too deeply", fix="split it", name="limit_exceeded") from None
    if len(found) != 1 or found[0] is None:
        raise PlanError("an expression must be one expression", at=text, fix=fix)
    return found[0]


def _refuse_statements(tokens: list[Token]) -> None:
    kinds = [token.token_type for token in tokens[:-1]]
    if TokenType.SEMICOLON in kinds:
        raise PlanError("an expression must be one expression", fix="remove what follows the semicolon")
    begins = [token.text.lower() for token in tokens[:2] if token.token_type != TokenType.IDENTIFIER]
    if begins[:1] == ["if"] and begins != ["if", "("]:  # sqlglot would take it for a command, and say so aloud
        raise PlanError("cannot read the expression near 'if'", fix="write if(condition, value, other)")


def _admit(node: Any, depth: int) -> Expr:
    if depth > MAX_DEPTH:
        raise PlanError("the expression is nested too deeply", fix=f"at most {MAX_DEPTH} levels", name="limit_exceeded")

    def go(part: Any) -> Expr:
        return _admit(part, depth + 1)

    kind = type(node)
    if kind in _BINARY:
        found: Expr = Call(_BINARY[kind], (go(node.this), go(node.expression)))
    elif kind in _UNARY:
        found = Call(_UNARY[kind], (go(node.this),))
    elif kind in _VARIADIC:
        parts = [node.this, *node.expressions] if node.this is not None else node.expressions
        found = Call(_VARIADIC[kind], tuple(map(go, parts)))
    elif kind in _SPECIAL:
        found = _SPECIAL[kind](node, go)
    else:
        words = {"Select": "subqueries", "Subquery": "subqueries"}
        raise PlanError(
            f"{words.get(kind.__name__, kind.__name__)} cannot stand in an expression",
            fix="use columns, constants, operators and functions of the library",
        )
    return Call("not", (found,)) if node.args.get("negate") else found


Go = Callable[[Any], Expr]


def _column(node: exp.Column, go: Go) -> Expr:
    if node.args.get("db") or not isinstance(node.this, exp.Identifier):
        raise PlanError(f"{node.sql()} is not a column", fix="columns are v, or l.v and r.v over two inputs")
    side = node.table
    if side and side not in ("l", "r"):
        raise PlanError(f'unknown input "{side}"', fix="over two inputs write l.column or r.column")
    known: dict[str, Side | None] = {"l": "l", "r": "r", "": None}
    return Col(node.name, known[side])


def _literal(node: exp.Literal, go: Go) -> Expr:
    return literal(node.this if node.is_string else _number(node.this))


def _number(digits: str) -> int | float:
    try:
        number: int | float = int(digits) if digits.isdigit() else float(digits)
    except ValueError:
        raise PlanError(f"{digits} is not a number", fix="write e.g. 12, 1.5 or 1e9") from None
    if number == math.inf:
        raise PlanError(f"the number {digits} is too large", fix="write cast('inf' as double)", name="overflow")
    return number


def _negative(node: exp.Neg, go: Go) -> Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:  # so that -2^63 is a constant too
        return literal(-_number(node.this.this))
    return Call("neg", (go(node.this),))


def _between(node: exp.Between, go: Go) -> Expr:
    value = go(node.this)
    return Call("and", (Call("gte", (value, go(node.args["low"]))), Call("lte", (value, go(node.args["high"])))))


def _in(node: exp.In, go: Go) -> Expr:
    if node.args.get("query") is not None:
        raise PlanError(
            "subqueries cannot stand in an expression",
            fix="use columns, constants, operators and functions of the library",
        )
    if not node.expressions:
        raise PlanError("in needs at least one value", fix="write v in (1, 2)")
    return Call("in", (go(node.this), *map(go, node.expressions)))


def _is(node: exp.Is, go: Go) -> Expr:
    if isinstance(node.expression, exp.Null):
        return Call("is_null", (go(node.this),))
    return Call("same", (go(node.this), go(node.expression)))


def _case(node: exp.Case, go: Go) -> Expr:
    subject = node.this

    def condition(when: exp.If) -> Expr:
        return go(when.this) if subject is None else Call("eq", (go(subject), go(when.this)))

    branches = tuple((condition(when), go(when.args["true"])) for when in node.args["ifs"])
    default = node.args.get("default")
    return Case(branches, NULL_LITERAL if default is None else go(default))


def _if(node: exp.If, go: Go) -> Expr:
    other = node.args.get("false")
    return Case(((go(node.this), go(node.args["true"])),), NULL_LITERAL if other is None else go(other))


def _cast(node: exp.Cast, go: Go) -> Expr:
    return cast_to(go(node.this), _type(node.to), strict=not isinstance(node, exp.TryCast))


def _type(node: exp.DataType) -> Type:
    if node.this == exp.DType.DECIMAL and node.expressions:
        precision, *scale = (int(param.this.this) for param in node.expressions)
        return decimal(precision, scale[0] if scale else 0)
    word = node.this.value.lower()
    return parse_type({"timestampntz": "timestamp", "userdefined": str(node.args.get("kind"))}.get(word, word))


def _trim(node: exp.Trim, go: Go) -> Expr:
    if node.expression is not None:
        raise PlanError("trim takes one string", fix="use replace to remove other characters")
    return Call(_TRIMS[node.args.get("position") or ""], (go(node.this),))


def _present(fn: str, *names: str) -> Callable[[Any, Go], Expr]:
    """A rule for functions whose arguments sqlglot keeps under names."""

    def rule(node: Any, go: Go) -> Expr:
        return Call(fn, tuple(go(node.args[name]) for name in names if node.args.get(name) is not None))

    return rule


def _log(node: exp.Log, go: Go) -> Expr:
    if isinstance(node.this, exp.Literal) and node.this.this == "10" and node.expression is not None:
        return Call("log10", (go(node.expression),))
    raise PlanError("log needs its base in the name", fix="use ln or log10")


def _extract(node: exp.Extract, go: Go) -> Expr:
    part = node.name.upper()
    if part not in _PARTS:
        raise PlanError(f"unknown part of a time: {part.lower()}", fix=f"use one of {', '.join(_PARTS).lower()}")
    return Call(_PARTS[part], (go(node.expression),))


def _named(node: exp.Anonymous, go: Go) -> Expr:
    name = node.this if isinstance(node.this, str) else node.this.name
    args = tuple(map(go, node.expressions))
    if name.lower() in FUNCTIONS and not isinstance(node.this, exp.Identifier):
        return Call(name.lower(), args)
    return Apply(name, args)


_SPECIAL: Final[dict[type[exp.Expression], Callable[[Any, Go], Expr]]] = {
    exp.Column: _column,
    exp.Literal: _literal,
    exp.Boolean: lambda node, go: literal(bool(node.this)),
    exp.Null: lambda node, go: NULL_LITERAL,
    exp.Paren: lambda node, go: go(node.this),
    exp.Neg: _negative,
    exp.Not: lambda node, go: Call("not", (go(node.this),)),
    exp.NullSafeNEQ: lambda node, go: Call("not", (Call("same", (go(node.this), go(node.expression))),)),
    exp.Between: _between,
    exp.In: _in,
    exp.Is: _is,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Trim: _trim,
    exp.Round: _present("round", "this", "decimals"),
    exp.Substring: _present("substr", "this", "start", "length"),
    exp.Replace: _present("replace", "this", "expression", "replacement"),
    exp.Log: _log,
    exp.Extract: _extract,
    exp.Anonymous: _named,
}


def parse_or_literal(value: object) -> Expr:
    """An expression from a plan file: text is parsed, numbers and booleans are constants."""
    return parse(value) if isinstance(value, str) else literal(value)
