"""Arrival curves: fitted as small as possible, and policed."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.qos.arrivals import Policer, TokenBucket, from_trace, peak_rate, smallest_burst

traces = st.lists(st.integers(0, 300), min_size=2, max_size=30).map(sorted)
rates = st.fractions(min_value=Fraction(1, 20), max_value=5, max_denominator=20)


def keeps(times: list[int], burst: Fraction, rate: Fraction) -> bool:
    """The definition: no interval holds more than ``σ + ρ·length``."""
    return all(
        n - m + 1 <= burst + rate * (times[n] - times[m]) for n in range(len(times)) for m in range(n + 1)
    )  # fmt: skip


@given(traces, rates)
def test_the_smallest_burst_is_kept_and_none_smaller_is(times: list[int], rate: Fraction) -> None:
    burst = smallest_burst(times, rate)
    assert keeps(times, burst, rate)
    assert not keeps(times, burst - Fraction(1, 10**6), rate)


@given(traces, rates)
def test_a_policer_lets_everything_pass_that_keeps_its_bucket(times: list[int], rate: Fraction) -> None:
    burst = smallest_burst(times, rate)
    police = Policer(TokenBucket(burst, rate))
    assert all(police.conforms(float(time)) for time in times)
    strict = Policer(TokenBucket(1, rate))
    assert all(strict.conforms(float(time)) for time in times) == (burst <= 1 + Fraction(1, 10**8))


def test_a_trace_gives_its_mean_rate_and_its_peak() -> None:
    found = from_trace([0, 1, 10, 20])
    assert (found.rate, found.peak, peak_rate([0, 1, 10])) == (Fraction(1, 5), 1, 1)
    assert peak_rate([0, 0, 1]) is None
    with pytest.raises(PlanError, match="the times of a trace must not go back"):
        from_trace([2, 1])


@pytest.mark.parametrize(
    ("burst", "rate", "peak", "text"),
    [
        (0.5, 1, None, "a burst must be at least 1 task, got 0.5"),
        (1, -1, None, "a rate must be positive, got -1"),
        (1, 0, None, "a rate must be positive, got 0"),
        (2, 1, 0.5, "the peak rate 0.5 is below the rate 1"),
        (float("nan"), 1, None, "nan is not a finite number"),
        ("many", 1, None, "'many' is not a number"),
    ],
)
def test_nonsense_is_refused(burst: float, rate: float, peak: float | None, text: str) -> None:
    with pytest.raises(PlanError, match=text):
        TokenBucket(burst, rate, peak=peak)


def test_a_peak_spreads_a_burst() -> None:
    flow = TokenBucket(10, 1, peak=5)
    assert [flow.moment(n) for n in (1, 2, 6, 13)] == [0, Fraction(1, 5), 1, 3]
    assert flow.curve(0) == 0
    assert flow.curve.after(0) == 1
    assert flow.curve(100) == 110
