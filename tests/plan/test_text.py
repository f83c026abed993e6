"""Laws of expression text."""

from __future__ import annotations

from hypothesis import given, settings

from streamproof.plan.expr import Col, Expr
from streamproof.plan.parse import parse
from streamproof.plan.text import quote, to_text
from tests.plan.expressions import expressions, names


@given(expressions((None, "l", "r")))
@settings(max_examples=400, deadline=None)
def test_text_reads_back_as_the_same_expression(expr: Expr) -> None:
    # by repr, because NaN is not equal to itself
    assert repr(parse.__wrapped__(to_text(expr))) == repr(expr)


@given(names)
@settings(deadline=None)
def test_every_name_is_a_column(name: str) -> None:
    assert parse(quote(name)) == Col(name)
