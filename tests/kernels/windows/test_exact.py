"""Exact sums are the true sums, rounded once, whatever the order and whatever was added and taken away again."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamproof.kernels.cells import float_bits
from streamproof.kernels.windows.shared import exact, sums_loops
from streamproof.kernels.windows.shared.exact import FloatSums

calm = settings(deadline=None)  # the first call compiles
floats = st.floats(allow_nan=False, allow_infinity=False)
weights = st.integers(-3, 1000)
terms = st.lists(st.tuples(floats, weights), min_size=1, max_size=30)
wholes = st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), weights), min_size=1, max_size=8)
digits = st.lists(st.tuples(st.integers(-(10**38) + 1, 10**38 - 1), weights), min_size=1, max_size=8)


def rounded(number: Fraction) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def sums_of(pairs: list[tuple[float, int]]) -> FloatSums:
    bits = float_bits(np.array([value for value, _ in pairs]))
    sums = FloatSums.of(bits, rows=1)
    sums.add(np.zeros(len(pairs), np.int64), bits, np.array([w for _, w in pairs], np.int64))
    return sums


@calm
@given(terms)
@example([(5e-324, 1), (1.7976931348623157e308, 3)])
@example([(1e16, 1), (1.0, 1), (-1e16, 1)])
def test_a_sum_of_floats_is_rounded_once(pairs: list[tuple[float, int]]) -> None:
    truth = sum((Fraction(value) * w for value, w in pairs), Fraction(0))
    assert sums_of(pairs).totals()[0] == rounded(truth)


near = st.floats(1e-3, 1e9) | st.floats(-1e9, -1e-3) | st.integers(-(10**6), 10**6).map(lambda n: n / 8)


@calm
@given(st.lists(st.tuples(near, weights), min_size=1, max_size=30))
@example([(2.0**53, 1), (1.0, 1)])  # a half, to even
@example([(2.0**53, 1), (3.0, 1)])
@example([(-(2.0**64), 1), (-(2.0**-12), 1)])  # the last bit decides a half
@example([(2.0**64, 1), (2.0**11, 1), (2.0**-12, 1)])
@example([(2.0**33, 1), (-(2.0**33), 1)])
def test_a_sum_of_floats_of_like_size_is_rounded_once(pairs: list[tuple[float, int]]) -> None:
    """These need few limbs, for which there are short ways."""
    truth = sum((Fraction(value) * w for value, w in pairs), Fraction(0))
    assert sums_of(pairs).totals()[0] == rounded(truth)


@calm
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-1100, 1100))
@example(5e-324, 1)
@example(1.5, -1074)
@example(0.1, 1024)
def test_scaling_rounds_once(value: float, exponent: int) -> None:
    exponent = max(exponent, -1074)
    assert exact.scaled(np.array([value]), np.array([exponent]))[0] == rounded(
        Fraction(value) * Fraction(2) ** exponent
    )


@calm
@given(terms, st.integers(1, 10**6))
def test_a_mean_is_finite_where_it_exists(pairs: list[tuple[float, int]], count: int) -> None:
    truth = sum((Fraction(value) * w for value, w in pairs), Fraction(0)) / count
    found = float(sums_of(pairs).means(np.array([count]))[0])
    assert found == rounded(truth) or math.isclose(found, rounded(truth), rel_tol=1e-15, abs_tol=1e-323)


@calm
@given(wholes)
def test_integers_sum_exactly_or_say_that_they_do_not_fit(pairs: list[tuple[int, int]]) -> None:
    limbs = np.zeros((1, exact.INT_LIMBS), np.int64)
    row, event = np.zeros(len(pairs), np.int64), np.arange(len(pairs))
    values, w = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    sums_loops.add_ints(limbs, 0, values, row, event, w)
    found, lost = sums_loops.whole(limbs)
    truth = sum(value * times for value, times in pairs)
    assert bool(lost[0]) == (not -(2**63) <= truth < 2**63)
    assert lost[0] or found[0] == truth
    mantissa, exponent = sums_loops.rounded(limbs, 0)
    assert math.ldexp(float(mantissa[0]), int(exponent[0])) == float(truth)


@calm
@given(digits)
def test_decimals_sum_exactly_or_say_that_they_do_not_fit(pairs: list[tuple[int, int]]) -> None:
    limbs = np.zeros((1, sums_loops.DECIMAL_LIMBS), np.int64)
    low = np.array([value & (2**64 - 1) for value, _ in pairs], np.uint64).view(np.int64)
    high = np.array([value >> 64 for value, _ in pairs], np.int64)
    w = np.array([times for _, times in pairs], np.int64)
    sums_loops.add_decimals(limbs, 0, low, high, np.zeros(len(w), np.int64), np.arange(len(w)), w)
    halves, lost = sums_loops.decimals(limbs)
    truth = sum(value * times for value, times in pairs)
    assert bool(lost[0]) == (abs(truth) >= 10**38)
    assert lost[0] or (int(halves[0, 1]) << 64) + (int(halves[0, 0]) & (2**64 - 1)) == truth


def test_what_is_no_number_is_counted_beside() -> None:
    inf, nan = math.inf, math.nan
    for values, total in (((inf, 1.0), inf), ((-inf, 2.0), -inf), ((inf, -inf), nan), ((nan, 1.0), nan)):
        found = sums_of([(value, 1) for value in values]).totals()[0]
        assert found == total or (math.isnan(found) and math.isnan(total))
    taken_back = sums_of([(inf, 1), (1.5, 1), (inf, -1)]).totals()[0]
    assert taken_back == 1.5
