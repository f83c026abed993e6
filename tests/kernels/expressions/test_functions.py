"""Every function of the library on explicit values."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamproof.events.schema import decimal, parse_type
from streamproof.kernels.expressions.compile import IMPLEMENTATIONS
from streamproof.plan.expr import Call, Col, Lit
from streamproof.plan.functions import FUNCTIONS
from tests.kernels.expressions.run import evaluate

NAN, INF, MAX, MIN = math.nan, math.inf, 2**63 - 1, -(2**63)
D = Decimal
NOON = datetime(2024, 2, 29, 12, 30, 15, 250_000, tzinfo=UTC)
BEFORE = datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)
LEAP = date(2024, 2, 29)

CASES: tuple[tuple[str, str, list[tuple[Any, ...]]], ...] = (
    # a function, the types of its arguments, and rows of arguments with the result last
    ("add", "int64 int64", [(1, 2, 3), (None, 1, None), (MAX, MIN, -1)]),
    ("add", "float64 int64", [(0.5, 1, 1.5), (1.7976931348623157e308, MAX, 1.7976931348623157e308), (INF, 1, INF)]),
    ("add", "decimal(3,1) decimal(3,2)", [(D("99.9"), D("9.99"), D("109.89")), (None, D("1.00"), None)]),
    ("sub", "int64 int64", [(1, 2, -1), (MIN, -1, MIN + 1)]),
    ("sub", "decimal(38,0) int64", [(D(10) ** 37, 1, D("9" * 37))]),
    ("mul", "int64 int64", [(3, -4, -12), (MIN, 1, MIN), (None, MAX, None)]),
    ("mul", "decimal(38,0) decimal(38,0)", [(D(10) ** 19, D(10) ** 18, D(10) ** 37)]),
    ("mul", "float64 float64", [(1e308, 10.0, INF), (0.0, INF, NAN)]),
    ("div", "int64 int64", [(7, 2, 3.5), (1, 0, None), (0, 0, None), (2**53 + 1, 1, 2.0**53)]),
    ("div", "decimal(3,2) float64", [(D("1.50"), 0.5, 3.0), (D("1.50"), -0.0, None)]),
    ("floordiv", "int64 int64", [(7, 2, 3), (-7, 2, -4), (7, -2, -4), (-7, -2, 3), (1, 0, None), (MIN, 1, MIN)]),
    ("floordiv", "float64 float64", [(-7.0, 2.0, -4.0), (1.0, 0.0, None), (INF, 2.0, INF), (NAN, 1.0, NAN)]),
    ("mod", "int64 int64", [(7, 3, 1), (-7, 3, -1), (7, -3, 1), (-7, -3, -1), (MIN, -1, 0), (5, 0, None)]),
    ("mod", "float64 float64", [(-7.5, 2.0, -1.5), (1.0, INF, 1.0), (INF, 2.0, NAN), (1.0, 0.0, None)]),
    ("neg", "int64", [(MAX, -MAX), (None, None)]),
    ("neg", "decimal(3,1)", [(D("1.5"), D("-1.5"))]),
    ("eq", "float64 float64", [(NAN, NAN, True), (-0.0, 0.0, True), (1.0, None, None), (NAN, 1.0, False)]),
    ("eq", "int64 float64", [(2**53 + 1, 2.0**53, True), (1, NAN, False)]),
    ("eq", "decimal(3,1) int64", [(D("2.0"), 2, True), (D("2.1"), 2, False)]),
    ("ne", "float64 float64", [(NAN, NAN, False), (NAN, 1.0, True), (0.0, -0.0, False)]),
    ("lt", "float64 float64", [(1.0, NAN, True), (NAN, NAN, False), (NAN, INF, False), (-0.0, 0.0, False)]),
    ("lt", "string string", [("a", "b", True), ("Z", "a", True), ("\uffff", "🎉", True), ("a", "a\0", True)]),
    ("lte", "float64 float64", [(1.0, NAN, True), (NAN, NAN, True), (NAN, INF, False), (None, NAN, None)]),
    ("gt", "float64 float64", [(NAN, INF, True), (NAN, NAN, False), (INF, NAN, False)]),
    ("gt", "bool bool", [(True, False, True), (False, False, False)]),
    ("gte", "float64 float64", [(NAN, NAN, True), (NAN, 1.0, True), (1.0, NAN, False)]),
    ("gte", "date date", [(LEAP, LEAP, True), (date.min, LEAP, False)]),
    ("same", "float64 float64", [(None, None, True), (NAN, NAN, True), (None, 1.0, False), (0.0, -0.0, True)]),
    ("in", "int64 int64 int64", [(1, 2, 1, True), (3, 2, 1, False), (3, None, 1, None), (1, None, 1, True)]),
    ("in", "float64 float64 float64", [(NAN, 1.0, NAN, True), (None, 1.0, NAN, None)]),
    ("is_null", "string", [("", False), (None, True)]),
    ("is_null", "null", [(None, True)]),
    ("and", "bool bool", [(True, None, None), (False, None, False), (None, None, None), (True, True, True)]),
    ("or", "bool bool", [(True, None, True), (False, None, None), (None, True, True), (False, False, False)]),
    ("not", "bool", [(True, False), (None, None)]),
    ("coalesce", "int64 float64", [(None, 1.5, 1.5), (2, 1.5, 2.0), (None, None, None)]),
    ("nullif", "int64 float64", [(1, 1.0, None), (1, 2.0, 1), (1, None, 1), (None, 1.0, None)]),
    ("nullif", "float64 float64", [(NAN, NAN, None), (-0.0, 0.0, None)]),
    ("least", "float64 float64", [(NAN, 1.0, 1.0), (None, NAN, NAN), (None, None, None), (2.0, INF, 2.0)]),
    ("least", "string string", [("b", "a", "a"), (None, "z", "z")]),
    ("greatest", "float64 float64", [(NAN, INF, NAN), (None, 1.0, 1.0)]),
    ("greatest", "int64 decimal(3,1)", [(2, D("1.5"), D("2.0"))]),
    ("abs", "int64", [(-5, 5), (MIN + 1, MAX)]),
    ("abs", "float64", [(-INF, INF), (-0.0, 0.0)]),
    ("sign", "float64", [(-0.5, -1), (NAN, 0), (-0.0, 0), (INF, 1)]),
    ("sign", "decimal(3,1)", [(D("-0.1"), -1), (D("0.0"), 0)]),
    ("round", "float64", [(0.5, 1.0), (-0.5, -1.0), (1.5, 2.0), (2.5, 3.0), (0.49999999999999994, 0.0), (NAN, NAN)]),
    ("round", "float64 int64", [(2.5, 0, 3.0), (1.25, 1, 1.3), (15.0, -1, 20.0), (1e300, 300, 1e300), (1.5, 400, 1.5)]),
    ("round", "float64 int64", [(1e300, -400, 0.0), (2.0**52 + 1, 0, 2.0**52 + 1), (INF, 2, INF), (1.5, None, None)]),
    ("round", "int64 int64", [
        (15, -1, 20), (-15, -1, -20), (14, -1, 10), (5, 3, 5), (MIN, -20, 0), (MIN, -18, -9 * 10**18),
    ]),
    ("round", "decimal(3,1)", [(D("2.5"), D(3)), (D("-2.5"), D(-3)), (D("99.9"), D(100))]),
    ("floor", "float64", [(-0.5, -1.0), (1.5, 1.0), (-INF, -INF)]),
    ("floor", "decimal(3,1)", [(D("-99.9"), D(-100)), (D("1.9"), D(1))]),
    ("ceil", "float64", [(-0.5, 0.0), (1.5, 2.0)]),
    ("ceil", "decimal(3,1)", [(D("99.9"), D(100)), (D("-1.9"), D(-1))]),
    ("sqrt", "float64", [(4.0, 2.0), (-1.0, None), (-0.0, 0.0), (NAN, NAN), (INF, INF)]),
    ("ln", "float64", [(math.e, 1.0), (0.0, None), (-1.0, None), (INF, INF)]),
    ("log10", "int64", [(1000, 3.0), (0, None)]),
    ("exp", "float64", [(0.0, 1.0), (1000.0, INF), (-INF, 0.0)]),
    ("power", "float64 float64", [(2.0, 0.5, 2.0**0.5), (-8.0, 1 / 3, None), (0.0, -1.0, None), (-2.0, 3.0, -8.0)]),
    ("power", "float64 float64", [(NAN, 0.0, 1.0), (-2.0, 1e300, INF), (0.0, -INF, None), (-1.0, INF, 1.0)]),
    ("concat", "string string", [("a", "b", "ab"), ("a", None, None), ("", "", "")]),
    ("lower", "string", [("ÀB", "àb"), ("İ", "İ"), ("Σ", "σ"), (None, None)]),
    ("upper", "string", [("straße", "STRAßE"), ("é日", "É日"), ("ŉ", "ŉ")]),
    ("trim", "string", [("  a b ", "a b"), ("\ta ", "\ta")]),
    ("ltrim", "string", [("  a ", "a ")]),
    ("rtrim", "string", [("  a ", "  a")]),
    ("substr", "string int64", [
        ("héllo", 2, "éllo"), ("a", 0, "a"), ("ab", -5, "ab"), ("ab", 9, ""), ("ab", None, None),
    ]),
    ("substr", "string int64 int64", [
        ("héllo", 2, 2, "él"), ("abc", 0, 2, "a"), ("abc", -1, 3, "a"), ("abc", 2, -1, ""),
    ]),
    ("substr", "string int64 int64", [
        ("abc", 1, MAX, "abc"), ("abc", MIN, MAX, ""), ("abc", MAX, MAX, ""), (None, 1, 1, None),
    ]),
    ("length", "string", [("", 0), ("é日🎉", 3), ("a\0b", 3)]),
    ("replace", "string string string", [
        ("aaa", "a", "bb", "bbbbbb"), ("abc", "", "x", "abc"), ("a\0", "\0", "é", "aé"),
    ]),
    ("contains", "string string", [("abc", "b", True), ("abc", "", True), ("a", "A", False), ("é\0", "\0", True)]),
    ("starts_with", "string string", [("abc", "ab", True), ("abc", "b", False)]),
    ("ends_with", "string string", [("abc", "bc", True), ("abc", "b", False)]),
    ("like", "string string", [("abc", "a%", True), ("a\nb", "a_b", True), ("50%", "50\\%", True), ("5", "\\5", True)]),
    ("like", "string string", [("a.c", "a.c", True), ("abc", "a.c", False), ("a\\", "a\\", True), ("日", "_", True)]),
    ("instant", "int64", [(0, datetime(1970, 1, 1, tzinfo=UTC)), (-1, BEFORE), (2**62, None), (-(2**62), None)]),
    ("instant", "int64", [
        (253_402_300_799_000_000, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (-62_135_596_800_000_000, datetime.min.replace(tzinfo=UTC)),
    ]),
    ("instant", "int64 int64", [
        (-1, 10**9, BEFORE), (1_500, 1_000, datetime(1970, 1, 1, 0, 0, 1, 500_000, UTC)), (1, 0, None),
    ]),
    ("year", "timestamp", [(NOON, 2024), (BEFORE, 1969)]),
    ("year", "date", [(date.min, 1), (date.max, 9999)]),
    ("year", "int64", [(-1, 1969), (2**62, None)]),
    ("month", "timestamp", [(NOON, 2), (BEFORE, 12)]),
    ("day", "timestamp", [(NOON, 29), (BEFORE, 31)]),
    ("hour", "timestamp", [(NOON, 12), (BEFORE, 23)]),
    ("hour", "date", [(LEAP, 0)]),
    ("minute", "timestamp", [(NOON, 30), (BEFORE, 59)]),
    ("second", "timestamp", [(NOON, 15), (BEFORE, 59)]),
    ("day_of_week", "timestamp", [(NOON, 4), (BEFORE, 3)]),
    ("day_of_week", "date", [(date(2024, 5, 5), 7), (date(2024, 5, 6), 1)]),
    ("day_of_year", "timestamp", [(NOON, 60), (BEFORE, 365)]),
    ("epoch", "timestamp", [(NOON, 1_709_209_815), (BEFORE, -1), (None, None)]),
    ("epoch", "date", [(date(1970, 1, 2), 86_400), (date(1969, 12, 31), -86_400)]),
)  # fmt: skip


@pytest.mark.parametrize(("fn", "kinds", "rows"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_case(fn: str, kinds: str, rows: list[tuple[Any, ...]]) -> None:
    columns = {f"a{n}": (kind, [row[n] for row in rows]) for n, kind in enumerate(kinds.split())}
    found = evaluate(Call(fn, tuple(Col(name) for name in columns)), **columns)
    assert list(map(_shown, found)) == [_shown(row[-1]) for row in rows]


@pytest.mark.parametrize(("fn", "kinds", "rows"), CASES, ids=lambda x: x if isinstance(x, str) else "")
def test_case_with_constants(fn: str, kinds: str, rows: list[tuple[Any, ...]]) -> None:
    """All but the first argument constant, row by row: Arrow's kernels for scalars, and patterns read once."""
    names = [f"a{n}" for n, _ in enumerate(kinds.split())]
    types = [parse_type(kind) for kind in kinds.split()]
    for row in rows:
        constants = tuple(Lit(value, kind) for value, kind in zip(row[1:-1], types[1:], strict=True))
        found = evaluate(Call(fn, (Col(names[0]), *constants)), a0=(types[0], [row[0], row[0]]))
        assert list(map(_shown, found)) == [_shown(row[-1])] * 2


def _shown(value: Any) -> Any:
    """A value to compare by: NaN as a word, zero without a sign."""
    return (
        "NaN" if isinstance(value, float) and math.isnan(value) else value + 0.0 if isinstance(value, float) else value
    )


def test_every_function_is_implemented_and_has_a_case() -> None:
    assert set(IMPLEMENTATIONS) == set(FUNCTIONS)
    assert {fn for fn, _, _ in CASES} == set(FUNCTIONS)


def test_many_constants_in_a_set() -> None:
    values = ("int64", [1, 4, None])
    assert evaluate("v in (1, 2, 3)", v=values) == [True, False, None]
    assert evaluate("v in (1, 2, null)", v=values) == [True, None, None]
    assert evaluate("v in (1.0, cast('nan' as double), 4.0)", v=("float64", [math.nan, -0.0, 4.0])) == [
        True,
        False,
        True,
    ]
    assert evaluate("v in ('a', 'b', 'c')", v=("string", ["a", "é", None])) == [True, False, None]


def test_decimal_constants_of_other_scales() -> None:
    assert evaluate(Call("eq", (Col("v"), Lit(D("1.50"), decimal(3, 2)))), v=("decimal(2,1)", [D("1.5")])) == [True]


def test_nullif_compares_only_what_is_known() -> None:
    """123.45 does not fit into the common type of these decimals, but there is nothing to compare it with."""
    a, b = ("decimal(10,2)", [D("123.45"), D("0.50")]), ("decimal(38,38)", [None, D("0.5")])
    assert evaluate("nullif(a, b)", a=a, b=b) == [D("123.45"), None]


def test_substr_far_outside() -> None:
    text = {"s": ("string", ["abc"]), "i": ("int64", [-(2**62)]), "n": ("int64", [MAX])}
    assert evaluate("substr(s, i, n)", **text) == ["abc"]
