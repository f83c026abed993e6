"""Batch mode against the worked cases of the algebra, and against the evaluator on random plans."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamproof.engines.spark import SparkEngine
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.verdict import Failure
from tests.reference.cases import WorkedCase, loosely, worked_cases
from tests.reference.compare import difference
from tests.reference.judging import FOUND, found_case, judge_of, rows_in

LEGAL = [case for case in worked_cases() if case.error in (None, "output_in_past", "unbounded_windows")]
FIRST = 31_000_000  # these random plans are Spark's own


@pytest.mark.parametrize("worked", LEGAL, ids=lambda worked: worked.name)
def test_worked_case(worked: WorkedCase, spark_engine: SparkEngine) -> None:
    streams = {name: CaseStream(worked.schemas[name], tuple(events)) for name, events in worked.streams.items()}
    verdict = judge_of(spark_engine).verdict(Case(worked.plan, streams, worked.horizon))
    assert verdict.word == "holds", verdict.text
    if worked.error is not None:
        assert isinstance(verdict.actual, Failure)
        assert verdict.actual.name == worked.error
    elif worked.compare == "exact" and worked.rows is not None:
        assert difference(loosely(worked.rows), loosely(rows_in(verdict.actual))) is None


def agree(engine: SparkEngine, numbers: range) -> None:
    for number in numbers:
        verdict = judge_of(engine).verdict(seeded_case(FIRST + number))
        assert not verdict.is_found, f"case {number}: {verdict.text}"


def test_some_random_plans_mean_what_the_evaluator_says(spark_engine: SparkEngine) -> None:
    agree(spark_engine, range(8))


@pytest.mark.slow
def test_many_random_plans_mean_what_the_evaluator_says(spark_engine: SparkEngine) -> None:
    agree(spark_engine, range(8, 220))


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_found_case(path: Path, spark_engine: SparkEngine) -> None:
    """What any engine ever got wrong."""
    verdict = judge_of(spark_engine).verdict(found_case(path))
    assert not verdict.is_found, verdict.text
