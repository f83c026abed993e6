"""Overflow names the operation and the values of the first row that fails; what lies under nulls does not matter."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.kernels.expressions.columns import Columns
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.plan.expr import Col
from streamproof.plan.parse import parse
from streamproof.plan.typing import Scope
from tests.kernels.expressions.run import evaluate, failure

MAX, MIN = 2**63 - 1, -(2**63)


@pytest.mark.parametrize(
    ("text", "a", "b", "what"),
    [
        ("a + b", MAX, 1, f"{MAX} + 1 does not fit into int64"),
        ("a - b", MIN, 1, f"{MIN} - 1 does not fit into int64"),
        ("a * b", 2**62, 3, f"{2**62} * 3 does not fit into int64"),
        ("a // b", MIN, -1, f"{MIN} // -1 does not fit into int64"),
        ("-a", MIN, 0, f"-({MIN}) does not fit into int64"),
        ("abs(a)", MIN, 0, f"abs({MIN}) does not fit into int64"),
        ("round(a, b)", MAX, -1, f"round({MAX}, -1) does not fit into int64"),
        ("round(a, b)", MIN, -19, f"round({MIN}, -19) does not fit into int64"),
        ("a + 1", MAX, 0, f"{MAX} + 1 does not fit into int64"),
    ],
)
def test_int64_overflow(text: str, a: int, b: int, what: str) -> None:
    error = failure(text, a=("int64", [1, None, a, MAX]), b=("int64", [1, b, b, None]))
    assert (error.name, error.what) == ("overflow", what)
    assert error.at is not None
    assert error.fix == "cast to float or decimal first, or keep the values smaller"


def test_decimal_overflow() -> None:
    wide = ("decimal(38,0)", [Decimal(1), Decimal("9" * 38)])
    assert failure("a + b", a=wide, b=wide).what == f"{'9' * 38} + {'9' * 38} does not fit into decimal(38,0)"
    assert failure("a * b", a=wide, b=wide).name == "overflow"
    top = ("decimal(38,1)", [Decimal("9" * 37 + ".5")])
    assert evaluate("round(a)", a=top) == [Decimal(10) ** 37]


def test_decimals_that_do_not_meet_in_a_common_type() -> None:
    a, b = ("decimal(38,0)", [Decimal(5)]), ("decimal(38,38)", [Decimal(0)])
    assert failure("a = b", a=a, b=b).what == "5 does not fit into decimal(38,38)"


@pytest.mark.parametrize(
    "text", ["a + 1", "a - -1", "a * 2", "-(a - 1) * 2", "a // -1", "abs(a) * 2", "round(a, -1)", "a % -1"]
)
@pytest.mark.parametrize("hidden", [MAX, MIN])
def test_hidden_values_do_not_overflow(text: str, hidden: int) -> None:
    data = pa.py_buffer(np.array([hidden, 4]))
    array = pa.Array.from_buffers(pa.int64(), 2, [pa.py_buffer(b"\x02"), data])
    evaluation = compile_expression(parse(text), Scope.one(Schema.of({"a": "int64"})))
    assert evaluation(Columns({Col("a"): array}, 2)).to_pylist()[0] is None


def test_a_wrong_expression_is_refused_before_any_data() -> None:
    with pytest.raises(PlanError, match="add takes numbers"):
        evaluate("a + 'x'", a=("int64", [1]))


def test_a_constant_that_fails_does_so_only_where_there_are_rows() -> None:
    assert evaluate("9223372036854775807 + 1", a=("int64", [])) == []
    assert failure("9223372036854775807 + 1", a=("int64", [1])).name == "overflow"
