"""Stream mode on Spark: worked cases and random plans, many in one streaming query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import on
from streamproof.engines.spark.failures import WorkerError, error_from
from streamproof.errors import StreamproofError
from streamproof.events.compare import same_bag, same_snapshots
from streamproof.events.history import History
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import read_tick
from streamproof.language.notation import from_document
from tests.spark.stream.multiplex import run_together
from tests.spark.stream.splitting import Subject
from tests.spark.stream.test_bucket import expected, random_subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = json.loads((Path(__file__).parents[2] / "data/algebra.json").read_text(encoding="utf-8"))["cases"]
WORKED = [case for case in CASES if case["level"] == "cht"]


def worked_subject(case: dict[str, Any], buckets: int) -> Subject:
    job = on(from_document(case["query"]), "local", horizon=case.get("horizon"))
    loaded = job.open(case["streams"])
    typed = job.check({name: part.schema for name, part in loaded.items()})
    streams = {n: PhysicalStream.from_dicts(case["streams"][n], schema=part.schema) for n, part in loaded.items()}
    return Subject(typed, streams, Settings(horizon=case.get("horizon")), buckets=buckets)


def test_every_worked_case(spark: SparkSession, folder: Path) -> None:
    cases = [case for case in WORKED if "error" not in case["expected"]]
    subjects = [worked_subject(case, 1 + n % 4) for n, case in enumerate(cases)]
    results = run_together(spark, subjects, folder, batches=4)
    for case, found in zip(cases, results, strict=True):
        rows = [(read_tick(row["le"]), read_tick(row["re"]), row["payload"]) for row in case["expected"]["cht"]]
        same = same_bag if case["compare"] == "exact" else same_snapshots
        assert same(History.from_rows(found.schema, rows), found), case["id"]


@pytest.mark.parametrize("case", [c for c in WORKED if "error" in c["expected"]], ids=lambda case: case["id"])
def test_worked_cases_that_are_errors(case: dict[str, Any], spark: SparkSession, folder: Path) -> None:
    with pytest.raises((StreamproofError, WorkerError)) as raised:  # noqa: PT012  # some before anything runs
        subject = worked_subject(case, 2)
        run_together(spark, [subject], folder, batches=2)
    found = raised.value
    error = found if isinstance(found, StreamproofError) else error_from(str(found))  # rows are packed here
    assert error.name == case["expected"]["error"]


@pytest.mark.parametrize("keep", [True, False])
def test_random_plans_in_random_buckets_and_micro_batches(spark: SparkSession, folder: Path, keep: bool) -> None:
    subjects, wanted = [], []
    for seed in range(1000 + 100 * keep, 1100 + 100 * keep):
        subject = random_subject(seed)
        result = expected(subject)
        if not isinstance(result, str):
            subjects.append(subject)
            wanted.append(result)
    results = run_together(spark, subjects, folder, batches=3 + 2 * keep, keep=keep)
    assert [n for n, found in enumerate(results) if found != wanted[n]] == []
    assert len(results) > 70
