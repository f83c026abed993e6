"""User-defined functions: called once per different row, with Python values, and checked."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamproof.plan.modules import Properties, Registry, udf
from tests.kernels.expressions.run import evaluate, failure


def registry(implementation: Any, returns: str = "int64", **details: Any) -> Registry:
    return Registry([udf("f", returns=returns, **details)(implementation)])


def test_each_different_row_is_called_once() -> None:
    seen: list[Any] = []

    def pair(a: int, s: str) -> str:
        seen.append((a, s))
        return f"{a}{s}"

    columns = {"a": ("int64", [1, 2, 1, None, 1]), "s": ("string", ["x", "x", "x", "x", "y"])}
    assert evaluate("f(a, s)", registry=registry(pair, "string"), **columns) == ["1x", "2x", "1x", None, "1y"]
    assert seen == [(1, "x"), (2, "x"), (1, "y")]


def test_zeros_of_both_signs_are_different_to_a_function() -> None:
    found = evaluate("f(x)", registry=registry(str, "string"), x=("float64", [0.0, -0.0, 0.0]))
    assert found == ["0.0", "-0.0", "0.0"]


def test_one_that_is_not_deterministic_is_called_for_every_row() -> None:
    calls = iter(range(10))
    careless = registry(lambda x: next(calls), properties=Properties(deterministic=False))
    assert evaluate("f(x)", registry=careless, x=("int64", [7, 7, 7])) == [0, 1, 2]


def test_nulls_reach_it_only_if_it_asks() -> None:
    assert evaluate("f(x)", registry=registry(lambda x: 1), x=("int64", [None, 2])) == [None, 1]
    asked = registry(lambda x: x is None, "bool", passes_null=True)
    assert evaluate("f(x)", registry=asked, x=("int64", [None, 2])) == [True, False]


def test_without_arguments_and_with_constants() -> None:
    assert evaluate("f()", registry=registry(lambda: 3), x=("int64", [1, 2])) == [3, 3]
    assert evaluate("f(1, x)", registry=registry(lambda a, x: a + x), x=("int64", [1, 2])) == [2, 3]


def test_arguments_widen_to_what_it_takes() -> None:
    taking = registry(lambda x: type(x).__name__, "string", takes=["float64"])
    assert evaluate("f(x)", registry=taking, x=("int64", [1])) == ["float"]


def test_times_and_decimals_arrive_as_python_values() -> None:
    noon = datetime(2024, 5, 1, 12, tzinfo=UTC)
    found = evaluate("f(t)", registry=registry(lambda t: t == noon, "bool"), t=("timestamp", [noon]))
    assert found == [True]
    doubled = registry(lambda x: x * 2, "decimal(5,2)")
    assert evaluate("f(x)", registry=doubled, x=("decimal(3,2)", [Decimal("1.50")])) == [Decimal("3.00")]


def test_an_exception_names_the_arguments() -> None:
    def refuse(a: int, s: str) -> int:
        raise ValueError("no")

    error = failure("f(a, s) + 1", registry=registry(refuse), a=("int64", [1]), s=("string", ["x"]))
    line = refuse.__code__.co_firstlineno + 1
    assert (error.name, error.what) == ("module_failed", "udf f@1 failed: ValueError: no")
    assert error.at == f"f(1, 'x'), raised at test_udf.py:{line}"
    assert error.fix == "call the function by hand on these values; it must not raise"


@pytest.mark.parametrize(
    ("returns", "answer"),
    [
        ("int64", 1.5), ("int64", True), ("int64", 2**63), ("float64", "1"), ("float64", True), ("string", 1),
        ("bool", 1), ("decimal(3,1)", Decimal("1.25")), ("decimal(3,1)", 1.5), ("date", datetime(2024, 5, 1)),
        ("timestamp", datetime(2024, 5, 1)),
    ],
)  # fmt: skip
def test_an_answer_of_another_type_is_refused(returns: str, answer: Any) -> None:
    error = failure("f(x)", registry=registry(lambda x: answer, returns), x=("int64", [7]))
    assert error.name == "module_failed"
    assert error.what == f"udf f@1 gave {answer!r}, which is not of type {returns}"
    assert (error.at, error.fix) == ("f(7)", f"return a value of type {returns} or None")


def test_whole_numbers_are_floats_and_decimals_too() -> None:
    assert evaluate("f(x)", registry=registry(lambda x: 2**53 + 1, "float64"), x=("int64", [1])) == [2.0**53]
    assert evaluate("f(x)", registry=registry(lambda x: 2, "decimal(3,1)"), x=("int64", [1])) == [Decimal("2.0")]


def test_empty_batches_call_nothing() -> None:
    assert evaluate("f(x)", registry=registry(lambda x: 1 / 0), x=("int64", [])) == []
