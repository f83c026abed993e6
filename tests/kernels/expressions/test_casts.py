"""Casts between all pairs of types, strict and not."""

from __future__ import annotations

import math
import random
import struct
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.schema import Type, parse_type
from streamproof.kernels.expressions.casts import CONVERSIONS
from streamproof.plan.expr import Cast, Col
from streamproof.plan.parse import parse
from streamproof.plan.typing import CASTS
from tests.kernels.expressions.run import evaluate, failure

D = Decimal
BAD = object()  # null in try_cast, an error in cast
MAX, MIN = 2**63 - 1, -(2**63)
NOON = datetime(2024, 5, 1, 12, tzinfo=UTC)

CASES: tuple[tuple[str, str, list[tuple[Any, Any]]], ...] = (
    ("int64", "float64", [(2**53 + 1, 2.0**53), (MIN, -(2.0**63)), (None, None)]),
    ("int64", "decimal(5,2)", [(999, D("999.00")), (1000, BAD), (-999, D("-999.00"))]),
    ("int64", "string", [(MIN, "-9223372036854775808"), (7, "7")]),
    ("int64", "bool", [(0, False), (-3, True)]),
    ("float64", "int64", [
        (0.5, 1), (1.5, 2), (2.5, 3), (-2.5, -3), (2.0**63, BAD), (-(2.0**63), MIN), (math.nan, BAD),
    ]),
    ("float64", "decimal(5,2)", [
        (2.675, D("2.68")), (2.665, D("2.67")), (1.015, D("1.02")), (1000.0, BAD), (math.inf, BAD),
    ]),
    ("float64", "decimal(38,30)", [(0.1, D("0.1")), (1e8, BAD), (-1e-30, D("-1e-30"))]),
    ("float64", "decimal(38,0)", [(1e37, D(10) ** 37), (1e38, BAD), (2.5, D(3)), (12345678901.5, D(12345678902))]),
    ("float64", "string", [(1.0, "1.0"), (1e16, "1e+16"), (math.nan, "nan"), (-math.inf, "-inf"), (-0.0, "0.0")]),
    ("float64", "string", [
        (1e-5, "1e-05"), (0.0001, "0.0001"), (62135596800.0, "62135596800.0"), (1e15 + 0.5, "1000000000000000.5"),
    ]),
    ("float64", "bool", [(0.0, False), (-0.0, False), (math.nan, True), (0.1, True)]),
    ("decimal(3,1)", "int64", [(D("0.5"), 1), (D("1.5"), 2), (D("-2.5"), -3)]),
    ("decimal(38,0)", "int64", [(D(MAX), MAX), (D(MAX + 1), BAD), (D(MIN), MIN), (D(MIN - 1), BAD)]),
    ("decimal(38,10)", "float64", [
        (D("0.1000000000"), 0.1), (D("1234567890123456789.0123456789"), 1.2345678901234568e18),
    ]),
    ("decimal(5,3)", "decimal(3,1)", [
        (D("1.250"), D("1.3")), (D("1.251"), D("1.3")), (D("99.950"), BAD), (D("99.949"), D("99.9")),
    ]),
    ("decimal(3,1)", "decimal(38,38)", [(D("0.5"), D("0.5")), (D("1.0"), BAD)]),
    ("decimal(9,8)", "string", [(D("0.00000001"), "0.00000001"), (D("-1.5"), "-1.50000000"), (D(0), "0.00000000")]),
    ("string", "int64", [(" 7 ", 7), ("+7", 7), ("-007", -7), ("9223372036854775808", BAD), ("1.0", BAD), ("", BAD)]),
    ("string", "int64", [
        ("0x1F", BAD), ("1_000", BAD), ("7\n", BAD), ("٣", BAD), ("0" * 50 + "5", 5), (str(MIN), MIN),
    ]),
    ("string", "float64", [
        ("1e3", 1000.0), (".5", 0.5), ("5.", 5.0), ("1e999", math.inf), ("-Inf", -math.inf), ("-nan", BAD),
    ]),
    ("string", "float64", [("+.5e-1", 0.05), (".", BAD), ("1e", BAD), ("0.1 ", 0.1), ("0x1p3", BAD), ("1,5", BAD)]),
    ("string", "decimal(5,2)", [
        ("1.005", D("1.01")), ("1.0050001", D("1.01")), ("1.015", D("1.02")), ("999.995", BAD),
    ]),
    ("string", "decimal(5,2)", [
        ("12.5e1", D("125.00")), ("1e-99", D("0.00")), ("nan", BAD), ("1e9999999999", BAD), ("-.5", D("-0.50")),
    ]),
    ("string", "bool", [("true", True), (" FALSE ", False), ("t", BAD), ("1", BAD)]),
    ("string", "date", [
        ("2024-02-29", date(2024, 2, 29)), ("2023-02-29", BAD), ("1900-02-29", BAD), ("2000-02-29", date(2000, 2, 29)),
    ]),
    ("string", "date", [
        ("0000-01-01", BAD), ("9999-12-31", date.max), ("2024-5-1", BAD), ("20240501", BAD), ("2024-13-01", BAD),
    ]),
    ("string", "timestamp", [
        ("2024-05-01T12:00:00Z", NOON), ("2024-05-01 14:00:00+02:00", NOON), ("2024-05-01T06:30-0530", NOON),
    ]),
    ("string", "timestamp", [
        ("2024-05-01T12:00:00", BAD), ("2024-05-01T24:00:00Z", BAD), ("2024-05-01t12:00:00z", BAD), ("2024-05-01", BAD),
    ]),
    ("string", "timestamp", [
        ("2024-05-01T12:00:00.000001Z", NOON.replace(microsecond=1)),
        ("2024-05-01T13:00:00.5+01", NOON.replace(microsecond=500_000)),
    ]),
    ("string", "timestamp", [
        ("0001-01-01T00:00:00+01:00", BAD), ("9999-12-31T23:59:59-00:01", BAD), ("2024-05-01T12:00:60Z", BAD),
    ]),
    ("bool", "int64", [(True, 1), (False, 0)]),
    ("bool", "float64", [(True, 1.0), (None, None)]),
    ("bool", "string", [(True, "true"), (False, "false")]),
    ("date", "timestamp", [
        (date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC)), (date.min, datetime.min.replace(tzinfo=UTC)),
    ]),
    ("date", "string", [(date.min, "0001-01-01"), (date(2024, 5, 1), "2024-05-01")]),
    ("timestamp", "date", [(datetime(1969, 12, 31, 23, tzinfo=UTC), date(1969, 12, 31)), (NOON, date(2024, 5, 1))]),
    ("timestamp", "string", [
        (NOON, "2024-05-01T12:00:00Z"), (NOON.replace(microsecond=500_000), "2024-05-01T12:00:00.500000Z"),
    ]),
    ("timestamp", "string", [(datetime.min.replace(tzinfo=UTC), "0001-01-01T00:00:00Z")]),
    ("null", "timestamp", [(None, None)]),
)  # fmt: skip


@pytest.mark.parametrize(("source", "to", "rows"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_try_cast(source: str, to: str, rows: list[tuple[Any, Any]]) -> None:
    found = evaluate(Cast(Col("v"), parse_type(to), strict=False), v=(source, [value for value, _ in rows]))
    assert found == [None if wanted is BAD else wanted for _, wanted in rows]


@pytest.mark.parametrize(("source", "to", "rows"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_strict_cast(source: str, to: str, rows: list[tuple[Any, Any]]) -> None:
    cast = Cast(Col("v"), parse_type(to))
    good = [(value, wanted) for value, wanted in rows if wanted is not BAD]
    found = evaluate(cast, v=(source, [value for value, _ in good]))
    assert found == [wanted for _, wanted in good]
    for value, wanted in rows:
        if wanted is BAD:
            error = failure(cast, v=(source, [None, value]))
            assert error.name == ("bad_input" if source == "string" else "overflow")


TEXTS = [(text, to, wanted) for source, to, rows in CASES if source == "string" for text, wanted in rows]


@pytest.mark.parametrize(("text", "to", "wanted"), [row for row in TEXTS if "\n" not in row[0]])
def test_constant_text_is_read_as_text_in_columns_is(text: str, to: str, wanted: object) -> None:
    """A cast of a constant is made when the plan is read; that must not change what it means."""
    constant = parse(f"try_cast('{text}' as {to})")
    assert evaluate(constant, v=("int64", [1])) == [None if wanted is BAD else wanted]


def test_every_pair_has_a_conversion_and_a_case() -> None:
    pairs = {(source, to) for source, targets in CASTS.items() for to in targets}
    assert set(CONVERSIONS) == pairs
    assert {(parse_type(a).kind, parse_type(b).kind) for a, b, _ in CASES} - {("null", "timestamp")} == pairs


def test_the_error_of_text() -> None:
    error = failure("cast(s as bigint)", s=("string", ["1", None, "x", "y"]))
    assert str(error) == "'x' is not a int64\n  at: cast(s as bigint)\n  fix: use try_cast, which gives null instead"
    assert error.name == "bad_input"


def test_the_error_of_a_number() -> None:
    error = failure("cast(f as bigint)", f=("float64", [1.0, math.nan]))
    assert error.name == "overflow"
    assert error.what == "nan does not fit into int64"
    assert "try_cast" in str(error.fix)


def test_floats_are_written_as_python_writes_them() -> None:
    random.seed(1)
    bits = [struct.unpack("<d", random.randbytes(8))[0] for _ in range(5000)]
    near = [random.gauss(0, 1) * 10.0 ** random.randint(-12, 20) for _ in range(5000)]
    whole = [float(random.randint(-(10**17), 10**17) // 10 ** random.randint(0, 17)) for _ in range(5000)]
    values = [*bits, *near, *whole]
    assert evaluate(Cast(Col("f"), Type("string")), f=("float64", values)) == [repr(value + 0.0) for value in values]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=50), st.integers(0, 38))
def test_floats_become_the_decimals_of_their_digits(values: list[float], scale: int) -> None:
    to = Type("decimal", 38, scale)
    found = evaluate(Cast(Col("f"), to, strict=False), f=("float64", values))
    for value, mine in zip(values, found, strict=True):
        assert mine == _nearest(value, to)


@given(st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=50), st.integers(0, 4))
def test_halves_of_short_floats_go_away_from_zero(thousandths: list[int], scale: int) -> None:
    """1.015 has a half in its digits, though not in its bits."""
    to = Type("decimal", 20, scale)
    values = [whole / 1000 for whole in thousandths]
    found = evaluate(Cast(Col("f"), to), f=("float64", values))
    assert found == [_nearest(value, to) for value in values]


def _nearest(value: float, to: Type) -> Decimal | None:
    from decimal import ROUND_HALF_UP, Context

    exact = Decimal(repr(value))
    rounded = exact.quantize(Decimal(1).scaleb(-to.scale), ROUND_HALF_UP, Context(prec=2000))
    return rounded if abs(rounded) < Decimal(10) ** (to.precision - to.scale) else None


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12, min_value=-(10**25), max_value=10**25))
def test_decimals_become_the_nearest_floats(value: Decimal) -> None:
    assert evaluate(Cast(Col("x"), Type("float64")), x=("decimal(38,12)", [value])) == [float(value)]
