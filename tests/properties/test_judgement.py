"""Verdicts on runs: undecided fails, vacuity is told, reports show the stream; no Spark needed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import polars as pl
import pytest

import streamproof as sp
from streamproof.errors import InputError
from streamproof.properties import (
    FormulaError,
    PropertyFailed,
    always,
    assert_holds,
    eventually,
    every,
    html_report,
    implies,
    judge,
    now,
    prove,
    recorded,
    run_function,
    run_plan,
    run_recorded,
    run_stream,
    tumbling,
)

ORIGIN = datetime(2024, 1, 4, tzinfo=UTC)
ROWS = [(3, 1, 5.0), (70, 2, 0.5), (80, 2, 0.25), (300, 1, 2.0)]
STREAM = recorded(
    [{"at": ORIGIN + timedelta(minutes=m), "zone": zone, "danger": danger} for m, zone, danger in ROWS],
    time="at",
    size="1 hour",
)


def levels(frame: pd.DataFrame) -> pd.DataFrame:
    by_hour = frame.assign(at=frame["at"].dt.floor("h"))
    worst = by_hour.groupby(["at", "zone"], as_index=False)["danger"].max()
    return worst.assign(level=["Safe" if danger <= 1 else "Danger" for danger in worst["danger"]])


never_safe = now(lambda i, o: every(o, lambda row: row.level != "Safe"), "never Safe")


def test_a_failure_shows_the_stream_window_by_window() -> None:
    run = run_function(STREAM, levels)
    with pytest.raises(PropertyFailed) as failed:
        assert_holds(always(never_safe).during(6), run)
    text = str(failed.value)
    assert text.startswith("levels: fails at window 1 of 6\n  property  always(never Safe).during(6)")
    assert "zone=2, danger=0.25, at=01:20:00" in text
    assert "because   never Safe: no: 1 of 1 breaks it" in text
    assert "rows      4 in, 3 out, function" in text


def test_the_page_shows_it_too_and_escapes() -> None:
    run = run_function(STREAM, levels)
    found = judge(always(now(lambda i, o: len(o) < 1, "<b>few</b>")).during(2), run)
    page = html_report(found)
    assert page.startswith("<!doctype html>")
    assert "&lt;b&gt;few&lt;/b&gt;" in page
    assert "<b>few</b>" not in page
    assert page.count("<circle") == 7
    assert found._repr_html_().lstrip().startswith("<style>")


def test_undecided_fails_with_the_reason() -> None:
    run = run_function(STREAM, levels)
    with pytest.raises(PropertyFailed, match="the run has 6 windows, the formula needs 8"):
        assert_holds(always(now(lambda i, o: True)).during(8), run)
    assert not assert_holds(always(now(lambda i, o: True)).during(8), run, undecided="pass")


def test_an_error_fails_with_what_was_raised() -> None:
    with pytest.raises(PropertyFailed, match="a predicate raised AttributeError: no column 'color'"):
        assert_holds(always(now(lambda i, o: every(o, lambda r: r.color))).during(2), run_function(STREAM, levels))


def test_vacuity_is_told_and_can_fail() -> None:
    nothing = run_function(STREAM, lambda frame: frame.iloc[:0])
    assert judge(always(never_safe).during(6), nothing).vacuous == "the subject emitted no row"
    with pytest.raises(PropertyFailed, match="vacuous   the subject emitted no row"):
        assert_holds(always(never_safe).during(6), nothing, vacuous="fail")
    wrong = eventually(now(lambda i, o: len(o) > 0)).within(6)
    with pytest.raises(PropertyFailed, match="fails at window 5 of 6"):
        assert_holds(wrong, nothing)
    never = judge(always(implies(now(lambda i, o: len(i) > 9), never_safe)).during(6), run_function(STREAM, levels))
    assert never.vacuous == "no left side of implies ever held"


def test_formulas_without_bounds_are_for_monitors() -> None:
    with pytest.raises(FormulaError, match="use monitor"):
        assert_holds(always(never_safe), run_function(STREAM, levels))


def test_steps_rows_and_tests_that_are_none() -> None:
    run = run_function(STREAM, levels)
    with pytest.raises(FormulaError, match=r"steps=tumbling\('1 hour'\)"):
        judge(always(never_safe).during(6), run, steps="1 hour")  # type: ignore[arg-type]
    with pytest.raises(PropertyFailed, match="no row 0: the window has 0"):
        assert_holds(always(now(lambda i, o: o[0].zone > 0)).during(6), run)
    with pytest.raises(InputError, match="prove runs a test that given made"):
        prove(levels)
    with pytest.raises(InputError, match="the first argument is the Spark session, not WindowedStream"):
        run_stream(STREAM, STREAM, levels)  # type: ignore[arg-type]


def test_polars_functions_and_recordings() -> None:
    run = run_function(STREAM, lambda frame: frame.filter(pl.col("danger") > 1), frames="polars")
    assert len(run.output) == 2
    again = run_recorded(STREAM, run.outputs[0].table)
    assert assert_holds(always(now(lambda i, o: len(o) <= len(i))).during(6), again)


def test_temporal_plans() -> None:
    plan = sp.source("S").tumbling(3_600_000_000).aggregate(n=sp.count())
    run = run_plan(STREAM, plan)
    counted = always(now(lambda i, o: [row.n for row in o] == ([len(i)] if i else []))).during(6)
    assert assert_holds(counted, run, steps=tumbling("1 hour"))


def test_judgements_say_what_they_are() -> None:
    found: Any = judge(always(never_safe).during(1), run_function(STREAM, levels))
    assert found
    assert repr(found) == "Judgement(holds: holds)"


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ({"start": ORIGIN + timedelta(hours=1)}, "a row lies before the start of the stream"),
        ({"windows": 5}, "a row lies behind the end of the stream"),
        ({"windows": -1}, "a row lies behind the end of the stream"),
        ({"start": 2**62}, "4611686018427387904 is not an instant"),
        ({"start": 0, "size": "1 ms"}, "the limit is 16,777,216"),
    ],
)
def test_a_recording_leaves_no_row_out(told: dict[str, Any], words: str) -> None:
    rows = [{"at": ORIGIN + timedelta(hours=hour)} for hour in (0, 5)]
    with pytest.raises(InputError, match=words):
        recorded(rows, **{"time": "at", "size": "1 hour", **told})
    assert len(recorded(rows, time="at", size="1 hour", windows=6).windows) == 6


@pytest.mark.parametrize("wrong", [{"undecided": "ignore"}, {"vacuous": "no"}])
def test_a_word_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    run = run_function(STREAM, lambda frame: frame)
    with pytest.raises(InputError, match=f"{next(iter(wrong))} must be"):
        assert_holds(always(now(lambda _: True)).during(1), run, **wrong)
