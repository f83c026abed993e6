"""Lengths of time as plans hold them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.events.time import FOREVER, duration
from streamproof.plan.durations import read_duration, read_span, write_duration
from streamproof.plan.expr import Call, Col, literal


@given(st.timedeltas(min_value=timedelta(days=-9999), max_value=timedelta(days=9999)))
def test_a_timedelta_keeps_its_length(span: timedelta) -> None:
    assert duration(read_span(span), "us") == duration(span, "us")


@given(st.integers(-(2**62) + 1, 2**62 - 1))
def test_whole_numbers_are_ticks_in_every_spelling(ticks: int) -> None:
    assert read_span(ticks) == read_span(str(ticks)) == ticks


@pytest.mark.parametrize("value", [True, 1.5, None, [5], b"5"])
def test_other_things_are_no_duration(value: object) -> None:
    with pytest.raises(PlanError, match="is not a duration") as caught:
        read_span(value)
    assert caught.value.fix == 'write ticks (5) or text with a unit ("5s")'


def test_a_new_lifetime_is_a_span_an_expression_or_infinite() -> None:
    assert read_duration(5) == 5
    assert read_duration("1m 30s") == "1m 30s"
    assert read_duration("inf") is None
    assert read_duration(FOREVER) is None
    assert read_duration("v * 2") == Call("mul", (Col("v"), literal(2)))
    assert read_duration("5") == literal(5)


@pytest.mark.parametrize("dur", [None, 5, -5, "5s", Col("inf"), Col("5s"), literal(5), Call("neg", (Col("v"),))])
def test_what_is_written_reads_back(dur: object) -> None:
    assert read_duration(write_duration(dur)) == dur  # type: ignore[arg-type]
