"""Arbitrary expressions: every kind of node, any name, any constant. They need not type-check."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

from hypothesis import strategies as st

from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, STRING, TIMESTAMP, Type, decimal
from streamproof.plan.expr import Apply, Call, Case, Col, Expr, Lit, Side, cast_to, literal
from streamproof.plan.functions import FUNCTIONS

TYPES = (INT64, FLOAT64, STRING, BOOL, DATE, TIMESTAMP, decimal(10, 2), decimal(38, 0))
ODD_NAMES = (
    "select", "case", "end", "null", "true", "and", "date", "timestamp", "interval", "l", "r", "inf", "nan", "if",
    "lambda", "count", "two words", 'with "quotes"', "it's", "back`tick", "semi;colon", "--dash", "/*star*/", "ünï",
    "数", "1a", "a.b", "A", "Aa", "$1", "?", "@x", "{x}", "[0]", "new\nline", "tab\t", "\\", "%", "lower", "Lower",
    "sum",
)  # fmt: skip
USER_FUNCTIONS = ("is_prime", "IsPrime", "is_prime@2", "geo.distance", "two words", "f", "数", 'odd"name')

_text = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
names = st.one_of(
    st.sampled_from(("v", "k", "a", "b", "le")),
    st.sampled_from(ODD_NAMES),
    _text.filter(bool),
)


def _decimals(kind: Type) -> st.SearchStrategy[Expr]:
    whole = 10 ** (kind.precision - kind.scale) - 1
    places = Decimal(1).scaleb(-kind.scale)
    return st.decimals(-whole, whole, places=kind.scale).map(lambda value: Lit(value.quantize(places), kind))


constants: st.SearchStrategy[Expr] = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(literal),
    st.integers(-3, 3).map(literal),
    st.floats().map(literal),
    _text.map(literal),
    st.sampled_from(ODD_NAMES).map(literal),
    st.booleans().map(literal),
    st.none().map(literal),
    st.sampled_from(TYPES).map(lambda kind: Lit(None, kind)),
    st.dates(min_value=date(1, 1, 1)).map(literal),
    st.datetimes(min_value=datetime(1, 1, 2), timezones=st.just(UTC)).map(lambda time: literal(time.replace(fold=0))),
    _decimals(decimal(10, 2)),
)


def columns(sides: tuple[Side | None, ...]) -> st.SearchStrategy[Expr]:
    """Columns of one input, or of two."""
    return st.builds(Col, names, st.sampled_from(sides))


def _calls(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    def call(name: str) -> st.SearchStrategy[Expr]:
        function = FUNCTIONS[name]
        most = function.most or function.least + 2
        args = st.lists(parts, min_size=function.least, max_size=most)
        return args.map(lambda found: Call(name, tuple(found)))

    return st.sampled_from(sorted(FUNCTIONS)).flatmap(call)


def _larger(parts: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    branches = st.lists(st.tuples(parts, parts), min_size=1, max_size=3).map(tuple)
    return st.one_of(
        _calls(parts),
        _calls(parts),
        st.builds(cast_to_if_possible, parts, st.sampled_from(TYPES), st.booleans()),
        st.builds(Case, branches, parts),
        st.builds(Apply, st.sampled_from(USER_FUNCTIONS), st.lists(parts, max_size=3).map(tuple)),
    )


def cast_to_if_possible(arg: Expr, to: Type, strict: bool) -> Expr:
    """A cast as the parser makes it: a cast of constant text is the constant, if it is one."""
    try:
        return cast_to(arg, to, strict=strict)
    except Exception:
        return cast_to(arg, to, strict=False)


def expressions(sides: tuple[Side | None, ...] = (None,), *, max_leaves: int = 12) -> st.SearchStrategy[Expr]:
    """Expressions over the columns of one input, or of two."""
    return st.recursive(st.one_of(columns(sides), constants), _larger, max_leaves=max_leaves)
