"""Expressions in Python are the expressions that their text parses to."""

from __future__ import annotations

import copy
import inspect
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest

from streamproof.errors import PlanError
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.expr import Apply, Col, literal
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.parse import parse
from streamproof.plan.text import to_text
from streamproof.query import aggregates, functions
from streamproof.query.column import Column, Expression, asc, call, col, desc, left, lit, right, sql, to_expr, when

a, b, k = col("a"), col("b"), col("k")

SPELLINGS: list[tuple[Column, str]] = [
    (a * 2 > 5, "a * 2 > 5"),
    (2 * a + 1 - b, "2 * a + 1 - b"),
    (1 - (a - b), "1 - (a - b)"),
    (1 / a, "1 / a"),
    (a // 2 + 7 // a, "a // 2 + 7 // a"),
    (a % 3 + 3 % a, "a % 3 + 3 % a"),
    (a**2, "power(a, 2)"),
    (2**a, "power(2, a)"),
    (-a, "-(a)"),
    (abs(a), "abs(a)"),
    ((a == 1) & (b != "x"), "a = 1 and b <> 'x'"),
    ((a < 1) | ~(a >= 2), "a < 1 or not a >= 2"),
    (True & (a <= 1), "true and a <= 1"),
    (a == None, "a = null"),  # noqa: E711  # an expression, not a comparison
    (a.is_null() & b.is_not_null(), "a is null and not b is null"),
    (a.same_as(b), "a is not distinct from b"),
    (a.between(1, 2), "a between 1 and 2"),
    (k.isin("x", "y"), "k in ('x', 'y')"),
    (k.like("a%"), "k like 'a%'"),
    (k.contains("x"), "contains(k, 'x')"),
    (k.starts_with("x") | k.ends_with("y"), "starts_with(k, 'x') or ends_with(k, 'y')"),
    (a.cast("float64"), "cast(a as double)"),
    (a.try_cast("decimal(10,2)"), "try_cast(a as decimal(10, 2))"),
    (lit("2024-05-01").cast("date"), "date '2024-05-01'"),
    (
        when("a > 1", "high").when(a > 0, "low").otherwise(k),
        "case when a > 1 then 'high' when a > 0 then 'low' else k end",
    ),
    (when(a > 1, 5), "case when a > 1 then 5 end"),
    (left.k == right("two words"), 'l.k = r."two words"'),
    (col("two words") > 1, '"two words" > 1'),
    (col("le") > 5, "le > 5"),
    (sql("a + b") * 2, "(a + b) * 2"),
    (lit("a") == k, "'a' = k"),
    (call("f", "a + 1", lit("x")), "f(a + 1, 'x')"),
    (functions.lower("k"), "lower(k)"),
    (functions.coalesce("a", 0), "coalesce(a, 0)"),
    (functions.replace("k", lit("x"), lit("y")), "replace(k, 'x', 'y')"),
    (functions.hour("le"), "hour(le)"),
    (functions.round(a / 3, 2), "round(a / 3, 2)"),
]


@pytest.mark.parametrize(("column", "text"), SPELLINGS, ids=[text for _, text in SPELLINGS])
def test_python_and_text_give_the_same_tree(column: Column, text: str) -> None:
    assert column.expr == parse(text)


def test_values_are_constants_of_their_type() -> None:
    values: list[Expression] = [1, 2.5, True, None, Decimal("1.50"), date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC)]
    for value in values:
        assert (a == value).expr == (a == lit(value)).expr
        assert to_expr(value) == literal(value)


def test_text_is_an_expression_where_one_is_expected_and_a_constant_beside_an_operator() -> None:
    assert to_expr("k") == Col("k")
    assert (a == "k").expr == parse("a = 'k'")


def test_a_column_has_no_truth_value() -> None:
    with pytest.raises(PlanError, match="a column is neither true nor false") as caught:
        a > 1 and b > 1  # noqa: B018  # the truth value is what fails
    assert "combine conditions with &, | and ~" in (caught.value.fix or "")
    with pytest.raises(PlanError, match="neither true nor false"):
        1 < a < 5  # noqa: B015  # the comparison is what fails
    with pytest.raises(PlanError, match="neither true nor false"):
        assert a in [b]


def test_a_column_is_no_key() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        {a}  # noqa: B018  # hashing is what fails


def test_trees_keep_ordinary_equality() -> None:
    assert (a + 1).expr == (a + 1).expr
    assert hash((a + 1).expr) == hash((a + 1).expr)


def test_isin_needs_values() -> None:
    with pytest.raises(PlanError, match="isin needs at least one value"):
        a.isin()


def test_orderings() -> None:
    assert desc("a + 1") == (a + 1).desc()
    assert asc("a").direction == "asc"


def test_inputs_can_be_copied_and_inspected() -> None:
    assert copy.copy(left) == left
    assert not hasattr(left, "__wrapped__")


@pytest.mark.parametrize("name", ["count", "if", "lower", "Lower", "cast", "in"])
def test_user_functions_cannot_have_the_names_of_sql(name: str) -> None:
    with pytest.raises(PlanError, match=f'"{name}" is a word of SQL') as caught:
        call(name, "a")
    assert caught.value.at == f'call("{name}", …)'


@pytest.mark.parametrize("name", ["f", "IsPrime", "is_prime@2", "geo.distance", "two words"])
def test_user_functions_can_have_any_other_name(name: str) -> None:
    assert call(name, "a").expr == Apply(name, (Col("a"),))
    assert parse(to_text(call(name, "a").expr)) == Apply(name, (Col("a"),))


OPERATORS = {
    "add", "sub", "mul", "div", "floordiv", "mod", "neg", "eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "is_null",
    "and", "or", "not", "like",
}  # fmt: skip


def public(module: object) -> set[str]:
    return {name for name, value in vars(module).items() if inspect.isfunction(value) and not name.startswith("_")}


def test_every_function_of_the_library_has_its_name_in_python() -> None:
    assert public(functions) - {"to_expr"} == set(FUNCTIONS) - OPERATORS
    for name in set(FUNCTIONS) - OPERATORS:
        built = getattr(functions, name)
        assert built.__name__ == name
        assert FUNCTIONS[name].summary in built.__doc__
        args = ["a", "b", "k"][: max(FUNCTIONS[name].least, 1)]
        assert built(*args).expr == parse(f"{name}({', '.join(args)})")


def test_every_aggregate_has_its_name_in_python() -> None:
    assert public(aggregates) - {"to_expr"} == set(AGGREGATES)
    for name in set(AGGREGATES) - {"count", "percentile"}:
        built = getattr(aggregates, name)("a")
        assert (built.fn, built.arg) == (name, Col("a"))
        assert AGGREGATES[name].summary in getattr(aggregates, name).__doc__
    assert aggregates.count().arg is None
    assert aggregates.count("a").arg == Col("a")
    assert aggregates.percentile("a", 0.5).params == (0.5,)


def test_an_aggregate_parameter_out_of_range_is_refused() -> None:
    with pytest.raises(PlanError, match="percentile needs p between 0 and 1, got 90"):
        aggregates.percentile("a", 90)
