"""Batch mode against the worked cases of the algebra, and against the evaluator on random plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from streamproof.engines.spark import SparkEngine
from tests.reference.cases import WorkedCase, loosely, worked_cases
from tests.reference.compare import difference
from tests.reference.found import FOLDER, from_json
from tests.reference.judge import judge
from tests.reference.random_cases import Case, seeded_case
from tests.reference.streams import Stream

LEGAL = [case for case in worked_cases() if case.error in (None, "output_in_past", "unbounded_windows")]
FIRST = 31_000_000  # these random plans are Spark's own
FOUND = sorted(FOLDER.glob("*.json"))


@pytest.mark.parametrize("worked", LEGAL, ids=lambda worked: worked.name)
def test_worked_case(worked: WorkedCase, spark_engine: SparkEngine) -> None:
    streams = {name: Stream(worked.schemas[name], tuple(events)) for name, events in worked.streams.items()}
    verdict = judge(Case(worked.plan, streams, worked.horizon), spark_engine)
    assert verdict.agrees, verdict.text
    if worked.error is not None:
        assert verdict.actual == worked.error
    elif worked.compare == "exact" and worked.rows is not None:
        assert not isinstance(verdict.actual, str)
        assert difference(loosely(worked.rows), loosely(verdict.actual)) is None


def agree(engine: SparkEngine, numbers: range) -> None:
    for number in numbers:
        verdict = judge(seeded_case(FIRST + number), engine)
        assert verdict.agrees is not False, f"case {number}: {verdict.text}"


def test_some_random_plans_mean_what_the_evaluator_says(spark_engine: SparkEngine) -> None:
    agree(spark_engine, range(8))


@pytest.mark.slow
def test_many_random_plans_mean_what_the_evaluator_says(spark_engine: SparkEngine) -> None:
    agree(spark_engine, range(8, 220))


@pytest.mark.slow
@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_found_case(path: Path, spark_engine: SparkEngine) -> None:
    """What any engine ever got wrong."""
    verdict = judge(from_json(json.loads(path.read_text())), spark_engine)
    assert verdict.agrees is not False, verdict.text
