"""Expressions from SQL-flavoured text: sqlglot parses, and then every node is admitted by name or refused.

>>> parse("v + 1")
Call(fn='add', args=(Col(name='v', side=None), Lit(value=1, type=Type('int64'))))
>>> parse("v in (select 1)")
Traceback (most recent call last):
...
streamproof.errors.PlanError: subqueries cannot stand in an expression
  at: v in (select 1)
  fix: join the other query instead: JOIN, or ANTI JOIN for what has none there

Law: every node says which of its arguments it reads (`RULES`), and one that has any other is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

from sqlglot import exp

from streamproof.errors import Gathering, PlanError
from streamproof.events.schema import KINDS, Type, decimal, parse_type
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.expr import NULL_LITERAL, Apply, Call, Case, Col, Expr, Side, cast_to, literal
from streamproof.plan.functions import FUNCTIONS, OTHER_NAMES
from streamproof.plan.grammar import Unread, check_kept, condition_of, consumed, place, tokens_of, too_deep

MAX_TEXT: Final = 20_000
MAX_DEPTH: Final = 200
LIBRARY: Final = "use columns, constants, operators and functions of the library"


@lru_cache(maxsize=4096)
def parse(text: str) -> Expr:
    """The expression that a text means, in DuckDB's dialect of SQL."""
    if len(text) > MAX_TEXT:
        raise PlanError(f"an expression of {len(text)} characters", fix=f"at most {MAX_TEXT}", name="limit_exceeded")
    try:
        tokens = tokens_of(text)
        tree = condition_of(tokens, text)
        found = admit(tree)
        check_kept(tokens, tree)
        return found
    except Unread as error:
        raise error.placed(lambda _: text) from None


Columns: TypeAlias = "Callable[[exp.Column], Col]"


def admit(tree: exp.Expr, column: Columns | None = None) -> Expr:
    """The expression that a tree means; ``column`` reads its columns, else ``l.v`` and ``r.v`` are sides."""
    return _admit(tree, 0, column or _sided)


def _admit(node: Any, depth: int, column: Columns) -> Expr:
    if depth > MAX_DEPTH:
        raise too_deep()

    steps = Gathering()

    def go(part: Any) -> Expr:  # what fails is null for now, so that the other parts are read too
        try:
            return _admit(part, depth + 1, column)
        except Unread as error:
            steps.errors.append(error)
            return NULL_LITERAL

    if isinstance(node, exp.Column):
        return column(node)
    rule = RULES.get(type(node))
    if rule is None:
        word = WORDS.get(type(node).__name__, type(node).__name__)
        raise Unread(f"{word} cannot stand in an expression", fix=_INSTEAD.get(word, LIBRARY), offset=place(node))
    with steps:
        steps.tried(lambda: consumed(node, *rule.reads, **rule.settled))
        try:
            return rule.build(node, go)
        except Unread as error:
            if error.offset is None:
                error.offset = place(node)
            raise
        except PlanError as error:
            raise Unread(error.what, fix=error.fix, offset=place(node), name=error.name) from None


WORDS: Final = {"Select": "subqueries", "Subquery": "subqueries", "Exists": "subqueries", "Union": "subqueries",
                 "Concat": "two constants side by side", "Distinct": "DISTINCT", "Order": "ORDER BY", "Star": "*",
                 "Filter": "FILTER", "IgnoreNulls": "IGNORE NULLS", "RespectNulls": "RESPECT NULLS",
                 "WithinGroup": "WITHIN GROUP", "Window": "OVER", "Collate": "COLLATE",
                 "AtTimeZone": "AT TIME ZONE", "Interval": "INTERVAL"}  # fmt: skip
_INSTEAD: Final = {
    "subqueries": "join the other query instead: JOIN, or ANTI JOIN for what has none there",
    "FILTER": "choose inside: sum(case when k = 'a' then v end)",
    "OVER": "group by a window, or use TOP n BY",
    "INTERVAL": "times are whole ticks here; windows take lengths such as TUMBLING(10 s)",
    "ILike": "write lower(k) like 'a%'",
}
Go: TypeAlias = Callable[[Any], Expr]


@dataclass(frozen=True, slots=True)
class Rule:
    """How a node is read: which of its arguments, and what others always are as the parser makes them."""

    reads: tuple[str, ...]
    build: Callable[[Any, Go], Expr]
    settled: dict[str, object]


def _rule(*reads: str, build: Callable[[Any, Go], Expr], **settled: object) -> Rule:
    return Rule(reads, build, settled)


def _operator(fn: str, **settled: object) -> Rule:
    return _rule("this", "expression", build=lambda node, go: _infix(fn, node, go), **settled)


def _infix(fn: str, node: Any, go: Go) -> Expr:
    return Call(fn, (go(node.this), go(node.expression)))


def name_of(node: Any) -> str:
    """The name that an identifier writes."""
    if not isinstance(node, exp.Identifier):
        raise Unread("a name is expected", fix='write names bare, or in double quotes: "two words"', offset=place(node))
    consumed(node, "this", "quoted")
    return str(node.this)


def word_of(node: Any) -> str:
    """A word that names something of SQL's or a module's, as sqlglot keeps it: bare, or as a name."""
    if not isinstance(node, exp.Var):
        return name_of(node)
    consumed(node, "this")
    return str(node.this)


def parts_of(node: exp.Column) -> tuple[str, str]:
    """The table that a column names, if it does, and its name."""
    parts = [node.args[name] for name in ("catalog", "db", "table", "this") if node.args.get(name) is not None]
    if len(parts) > 2 or not isinstance(node.this, exp.Identifier):
        shown = ".".join("*" if isinstance(part, exp.Star) else str(part.this) for part in parts)
        fix = "columns are v, or l.v and r.v over two inputs"
        raise Unread(f"{shown} is not a column", fix=fix, offset=place(node))
    consumed(node, "this", "table")
    table, name = ["", *map(name_of, parts)][-2:]
    return table, name


def _sided(node: exp.Column) -> Col:
    side, name = parts_of(node)
    if side and side not in ("l", "r"):
        raise Unread(f'unknown input "{side}"', fix="over two inputs write l.column or r.column")
    known: dict[str, Side | None] = {"l": "l", "r": "r", "": None}
    return Col(name, known[side])


def _literal(node: exp.Literal, go: Go) -> Expr:
    return literal(node.this if node.is_string else _number(node.this))


def _number(digits: str) -> int | float:
    try:
        number: int | float = int(digits) if digits.isdigit() else float(digits)
    except ValueError:
        raise Unread(f"{digits} is not a number", fix="write e.g. 12, 1.5 or 1e9") from None
    if number == math.inf:
        raise Unread(f"the number {digits} is too large", fix="write cast('inf' as double)", name="overflow")
    if number == 0 and re.match(r"[0.]*[1-9]", digits):
        raise Unread(f"the number {digits} is too small", fix="write 0", name="overflow")
    return number


def _negative(node: exp.Neg, go: Go) -> Expr:
    if isinstance(node.this, exp.Literal) and not node.this.is_string:  # so that -2^63 is a constant too
        consumed(node.this, "this", "is_string")
        return literal(-_number(node.this.this))
    return Call("neg", (go(node.this),))


def _like(node: exp.Like, go: Go) -> Expr:
    found = _infix("like", node, go)
    return Call("not", (found,)) if node.args.get("negate") else found


def _between(node: exp.Between, go: Go) -> Expr:
    value = go(node.this)
    return Call("and", (Call("gte", (value, go(node.args["low"]))), Call("lte", (value, go(node.args["high"])))))


def _in(node: exp.In, go: Go) -> Expr:
    if node.args.get("query") is not None:
        raise Unread("subqueries cannot stand in an expression", fix=_INSTEAD["subqueries"], offset=place(node))
    if not node.expressions:
        raise Unread("in needs at least one value", fix="write v in (1, 2)", offset=place(node))
    return Call("in", (go(node.this), *map(go, node.expressions)))


def _is(node: exp.Is, go: Go) -> Expr:
    if isinstance(node.expression, exp.Null):
        consumed(node.expression)
        found = Call("is_null", (go(node.this),))
    else:
        found = Call("same", (go(node.this), go(node.expression)))
    return Call("not", (found,)) if node.args.get("negate") else found


def _case(node: exp.Case, go: Go) -> Expr:
    subject = node.this
    branches: list[tuple[Expr, Expr]] = []
    for when in node.args["ifs"]:
        consumed(when, "this", "true")
        condition = go(when.this)
        branches.append(
            (condition if subject is None else Call("eq", (go(subject), condition)), go(when.args.get("true")))
        )
    default = node.args.get("default")
    return Case(tuple(branches), NULL_LITERAL if default is None else go(default))


def _cast(node: exp.Cast, go: Go) -> Expr:
    return cast_to(go(node.this), _type(node.to), strict=not isinstance(node, exp.TryCast))


def _type(node: Any) -> Type:
    if not isinstance(node, exp.DataType) or not isinstance(node.this, exp.DType):
        word = type(node.this if isinstance(node, exp.DataType) else node).__name__.lower()
        raise Unread(f"{word} is no type here", fix=f"use one of {', '.join(KINDS)}", offset=place(node))
    by_name = ("kind",) if node.this == exp.DType.USERDEFINED else ()
    consumed(node, "this", "expressions", "nested", *by_name)
    if node.this == exp.DType.DECIMAL:
        precision, scale = [*map(_digits, node.expressions), 0][:2] if node.expressions else (18, 3)
        if len(node.expressions) > 2:
            raise Unread("decimal takes a precision and a scale", fix="write decimal(10, 2)", offset=place(node))
        if precision < 1:
            raise Unread(
                f"decimal({precision},{scale}) does not exist", fix="give at least 1 digit", offset=place(node)
            )
        return decimal(precision, scale)
    word = node.this.value.lower()
    if node.expressions and not node.args.get("nested"):
        what, fix = f"the length of {word} would be forgotten", "leave the length out; substr(v, 1, 2) cuts text"
        raise Unread(what, fix=fix, offset=place(node))
    return parse_type({"timestampntz": "timestamp", "user-defined": str(node.args.get("kind"))}.get(word, word))


def _digits(param: exp.Expr) -> int:
    consumed(param, "this")
    if not isinstance(param.this, exp.Literal) or param.this.is_string or not param.this.this.isdigit():
        raise Unread("decimal takes whole numbers", fix="write decimal(10, 2)", offset=place(param))
    consumed(param.this, "this", "is_string")
    return int(param.this.this)


def _trim(node: exp.Trim, go: Go) -> Expr:
    if node.expression is not None:
        fix = "use replace to remove other characters"
        raise Unread("trim takes one string", fix=fix, offset=place(node))
    return Call(_TRIMS[node.args.get("position") or ""], (go(node.this),))


_TRIMS: Final = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}


def _substring(node: exp.Substring, go: Go) -> Expr:
    return call("substr", tuple(go(part) for name in ("this", "start", "length") if (part := node.args.get(name))))


def _extract(node: exp.Extract, go: Go) -> Expr:
    part = node.this
    if isinstance(part, exp.Literal):
        consumed(part, "this", is_string=True)
    word = part.this if isinstance(part, exp.Literal) else word_of(part)
    name = _PARTS.get(word.upper())
    if name is None:
        fix = f"use one of {', '.join(_PARTS).lower()}"
        raise Unread(f"unknown part of a time: {word.lower()}", fix=fix, offset=place(node))
    return call(name, (go(node.expression),))


_PARTS: Final = {
    "DOW": "dayofweek", "ISODOW": "day_of_week", "DAYOFWEEK": "dayofweek", "DOY": "day_of_year",
    "DAYOFYEAR": "day_of_year", "YEAR": "year", "MONTH": "month", "DAY": "day", "HOUR": "hour", "MINUTE": "minute",
    "SECOND": "second", "EPOCH": "epoch",
}  # fmt: skip


def _named(node: exp.Anonymous, go: Go) -> Expr:
    if not isinstance(node.this, str):
        return Apply(name_of(node.this), tuple(map(go, node.expressions)))
    if node.this.lower() in AGGREGATES:
        fix = "aggregate over a window first, and go on from its result"
        raise Unread(f"the aggregate {node.this.lower()} cannot stand in an expression", fix=fix, offset=place(node))
    return call(node.this, tuple(map(go, node.expressions)))


def call(name: str, args: tuple[Expr, ...]) -> Expr:
    """A function by a name that it has in text: one of the library's, or a user's."""
    word = name.lower()
    if word in ("if", "iif") and len(args) in (2, 3):
        return Case(((args[0], args[1]),), args[2] if len(args) == 3 else NULL_LITERAL)
    if word in ("dayofweek", "dow"):  # Sunday is 0, as in DuckDB and PostgreSQL; day_of_week and isodow say 7
        word, of_seven = "day_of_week", True
    else:
        word, of_seven = OTHER_NAMES.get(word, word), False
    if word not in FUNCTIONS:
        if word in _ELSEWHERE:
            raise Unread(_ELSEWHERE[word][0], fix=_ELSEWHERE[word][1])
        return Apply(name, args)
    FUNCTIONS[word].check_count(len(args))
    found = Call(word, args)
    return Call("mod", (found, literal(7))) if of_seven else found


def check_free(name: str) -> None:
    """Refuse a name of a user's function that text reads as something else.

    >>> check_free("split_part")
    >>> check_free("Lower")
    Traceback (most recent call last):
    ...
    streamproof.errors.PlanError: "Lower" is a word of SQL, so no user-defined function can be called that
      fix: register the function under another name; built-in functions are in streamproof.functions
    """
    if any(name.lower() in words for words in (FUNCTIONS, OTHER_NAMES, AGGREGATES, _ELSEWHERE, _FORMS)):
        raise PlanError(
            f'"{name}" is a word of SQL, so no user-defined function can be called that',
            fix="register the function under another name; built-in functions are in streamproof.functions",
        )


_FORMS: Final = ("cast", "try_cast", "extract", "trim", "substring", "dayofweek", "dow", "case", "any", "exists")
_ELSEWHERE: Final = {
    "log": ("log needs its base in the name", "use ln or log10"),
    "if": ("if takes a condition and one or two values", "write if(v > 1, 'high', 'low')"),
    "iif": ("iif takes a condition and one or two values", "write iif(v > 1, 'high', 'low')"),
}

RULES: Final[dict[type[exp.Expr], Rule]] = {
    exp.Add: _operator("add"),
    exp.Sub: _operator("sub"),
    exp.Mul: _operator("mul"),
    exp.Div: _operator("div", typed=False, safe=False),
    exp.IntDiv: _operator("floordiv"),
    exp.Mod: _operator("mod"),
    exp.Pow: _operator("power"),
    exp.EQ: _operator("eq"),
    exp.NEQ: _operator("ne"),
    exp.LT: _operator("lt"),
    exp.LTE: _operator("lte"),
    exp.GT: _operator("gt"),
    exp.GTE: _operator("gte"),
    exp.And: _operator("and"),
    exp.Or: _operator("or"),
    exp.DPipe: _operator("concat", safe=True),
    exp.NullSafeEQ: _operator("same"),
    exp.NullSafeNEQ: _rule("this", "expression", build=lambda node, go: Call("not", (_infix("same", node, go),))),
    exp.Like: _rule("this", "expression", "negate", build=_like),
    exp.Is: _rule("this", "expression", "negate", build=_is),
    exp.Between: _rule("this", "low", "high", build=_between),
    exp.In: _rule("this", "expressions", "query", build=_in),
    exp.Case: _rule("this", "ifs", "default", build=_case),
    exp.Not: _rule("this", build=lambda node, go: Call("not", (go(node.this),))),
    exp.Neg: _rule("this", build=_negative),
    exp.Paren: _rule("this", build=lambda node, go: go(node.this)),
    exp.Literal: _rule("this", "is_string", build=_literal),
    exp.Boolean: _rule("this", build=lambda node, go: literal(bool(node.this))),
    exp.Null: _rule(build=lambda node, go: NULL_LITERAL),
    exp.Cast: _rule("this", "to", build=_cast),
    exp.TryCast: _rule("this", "to", build=_cast, safe=True),
    exp.Trim: _rule("this", "expression", "position", build=_trim),
    exp.Substring: _rule("this", "start", "length", build=_substring),
    exp.Extract: _rule("this", "expression", build=_extract),
    exp.Anonymous: _rule("this", "expressions", build=_named),
}


def parse_or_literal(value: object) -> Expr:
    """An expression from a plan file: text is parsed, numbers and booleans are constants."""
    return parse(value) if isinstance(value, str) else literal(value)
