"""Min-plus algebra against its definitions, on curves with jumps and flat parts, and its laws."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.qos.curves import Curve, Piece, piecewise, rate_latency, simplified, staircase, token_bucket
from streamproof.qos.minplus import closure, convolve, deconvolve, horizontal, maximum, minimum, vertical

TIMES = [Fraction(n, 2) for n in range(17)]


@st.composite
def curves(draw: st.DrawFn, *, from_zero: bool = False, final: int | None = None) -> Curve:
    """Curves with whole breakpoints, values and slopes, so that half steps find every extreme."""
    pieces, start = [], Fraction(0)
    value = Fraction(0) if from_zero else Fraction(draw(st.integers(0, 2)))
    for number in range(draw(st.integers(1, 3))):
        right = value if from_zero and number == 0 else value + draw(st.sampled_from([0, 0, 1, 2]))
        slope = Fraction(draw(st.integers(0, 3)))
        pieces.append(Piece(start, value, Fraction(right), slope))
        length = draw(st.integers(1, 4))
        value, start = right + slope * length + draw(st.sampled_from([0, 0, 1])), start + length
    if final is not None:
        last = pieces[-1]
        pieces[-1] = Piece(last.start, last.value, last.right, Fraction(final))
    return simplified(pieces)


def around(curve: Curve, time: Fraction) -> Iterator[Fraction]:
    yield from (curve(time), curve.after(time))
    if time > 0:
        yield curve.before(time)


def lowest(f: Curve, g: Curve, time: Fraction) -> Fraction:
    """The convolution by its definition, with one-sided limits."""
    found = []
    for quarter in range(int(time * 4) + 1):
        s = Fraction(quarter, 4)
        found.append(f(s) + g(time - s))
        if s < time:
            found.append(f.after(s) + g.before(time - s))
        if s > 0:
            found.append(f.before(s) + g.after(time - s))
    return min(found)


@settings(max_examples=40)
@given(curves(), curves())
def test_convolution_is_the_lowest_sum(f: Curve, g: Curve) -> None:
    found = convolve(f, g)
    assert [found(t) for t in TIMES] == [lowest(f, g, t) for t in TIMES]


@settings(max_examples=20)
@given(curves(), curves(final=3))
def test_deconvolution_is_the_highest_difference(f: Curve, g: Curve) -> None:
    found = deconvolve(f, g)
    for time in TIMES[:9]:
        sides = []
        for quarter in range(60):
            u = Fraction(quarter, 4)
            sides += [f(time + u) - g(u), f.after(time + u) - g.after(u)]
            sides += [f.before(time + u) - g.before(u)] if u > 0 else []
        assert found(time) == max(sides)


@settings(max_examples=30)
@given(curves(), curves(), curves())
def test_convolution_commutes_and_associates(f: Curve, g: Curve, h: Curve) -> None:
    assert convolve(f, g) == convolve(g, f)
    assert convolve(convolve(f, g), h) == convolve(f, convolve(g, h))


@settings(max_examples=60)
@given(curves(), curves())
def test_minimum_and_maximum_hold_everywhere(f: Curve, g: Curve) -> None:
    low, high = minimum(f, g), maximum(f, g)
    for time in TIMES:
        assert low(time) == min(f(time), g(time))
        assert high(time) == max(f(time), g(time))
        assert low.after(time) == min(f.after(time), g.after(time))


@settings(max_examples=25)
@given(curves(), curves(from_zero=True, final=3))
def test_deviations_are_how_far_curves_are_apart(f: Curve, g: Curve) -> None:
    times = [Fraction(n, 6) for n in range(60)]  # slopes of 1 to 3 cross whole levels there
    assert vertical(f, g) == max(0, *(a - b for t in times for a, b in zip(around(f, t), around(g, t), strict=True)))
    delay = horizontal(f, g)
    assert all(f(t) <= g.after(t + Fraction(delay)) for t in times)  # what has come by t is served by t + h
    less = Fraction(delay) - Fraction(1, 1000)  # and not sooner
    soon = Fraction(1, 10**4)  # where it is a limit, right after that time
    assert delay == 0 or any(f.after(t) > g(t + less) or f(t + soon) > g(t + soon + less) for t in times)


@settings(max_examples=25)
@given(curves())
def test_a_closure_is_sub_additive_and_not_above(f: Curve) -> None:
    found = closure(f, 8)
    for s in TIMES[:9]:
        for t in TIMES[:9]:
            if 0 < s + t <= 8:
                assert found(s + t) <= found(s) + found(t)
        assert found(s) <= f(s)


def test_the_bounds_of_a_token_bucket_under_a_rate_latency_curve() -> None:
    alpha, beta = token_bucket(10, 1), rate_latency(2, 20)
    assert (horizontal(alpha, beta), vertical(alpha, beta)) == (25, 30)
    assert deconvolve(alpha, beta).after(0) == 30  # the burst of the output: σ + ρT
    assert horizontal(alpha, rate_latency("1/2", 1)) == float("inf")
    with pytest.raises(PlanError, match="the deconvolution is infinite: more comes in the long run than is served"):
        deconvolve(token_bucket(1, 3), beta)


def test_staircases_lie_below_their_token_buckets() -> None:
    stairs = staircase(2, 5, jitter=3, steps=10)
    bucket = token_bucket(2 * Fraction(8, 5), Fraction(2, 5))
    assert all(stairs.after(Fraction(t, 2)) <= bucket.after(Fraction(t, 2)) for t in range(200))
    assert [int(stairs(t)) for t in (0, 1, 2, 3, 7, 8)] == [0, 2, 2, 4, 4, 6]


def test_curves_that_fall_are_refused() -> None:
    with pytest.raises(PlanError, match="a curve never falls"):
        piecewise([(0, 5), (1, 2)], rate=1)
    with pytest.raises(PlanError, match="the first point of a curve is at time 0"):
        piecewise([(1, 5)], rate=1)
