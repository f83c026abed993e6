"""One meaning: random plans by the evaluator, on the local engine, as streams in one stage and in many, in batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.spark import SparkEngine
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.evaluator.evaluate import TooManyRows, evaluate
from streamproof.workbench.evaluator.values import Row
from streamproof.workbench.oracle import MOST_ROWS
from tests.reference.compare import difference
from tests.reference.drawn import folded
from tests.reference.judging import rows_in
from tests.spark.stream.conftest import PARTITIONS
from tests.spark.stream.multiplex import run_chains, run_together
from tests.spark.stream.splitting import Subject
from tests.spark.stream.test_bucket import expected, random_subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIRST = 47_000_000  # these random plans are this file's own
CASES = 100
EVERY = 4  # one case in so many also runs in batch, where each is a job of its own


def subjects_from(first: int) -> Iterator[tuple[int, Subject, list[Row], History]]:
    """Cases that are not errors: number, subject, and what evaluator and local engine say."""
    for seed in range(first, first + CASES):
        subject = random_subject(seed)
        found = expected(subject)
        if isinstance(found, str):
            continue
        histories = {name: folded(stream) for name, stream in seeded_case(seed).streams.items()}
        settings = subject.settings
        try:
            rows = evaluate(
                subject.typed, histories, horizon=settings.horizon, limits=settings.limits,
                registry=settings.registry, most_rows=MOST_ROWS,
            )  # fmt: skip
        except TooManyRows:
            continue
        yield seed, subject, rows, found


def in_batch(spark: SparkSession, subject: Subject) -> list[Row]:
    inputs = {name: list(to_batches(stream)) for name, stream in subject.streams.items()}
    output = SparkEngine(session=spark).run(subject.typed, inputs, subject.settings)
    return rows_in(History.from_batches(subject.typed.schema, output))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 2, 3, 4])
def test_random_plans_mean_the_same_everywhere(partitions: int, spark: SparkSession, folder: Path) -> None:
    """In 1 to 8 buckets; the micro-batches are cut at random, and the chained query is stopped on the way."""
    cases = list(subjects_from(FIRST + CASES * partitions))
    spark.conf.set(PARTITIONS, str(partitions))  # the fixture puts it back
    subjects = [subject for _, subject, _, _ in cases]
    (folder / "fused").mkdir()
    (folder / "chained").mkdir()
    keep = partitions % 2 == 0
    fused = run_together(spark, subjects, folder / "fused", batches=2 + partitions, keep=keep)
    chained = run_chains(spark, subjects, folder / "chained", batches=6, restart=partitions, keep=not keep)
    wrong: list[str] = []
    for (seed, subject, rows, local), *streams in zip(cases, fused, chained, strict=True):
        ways = dict(zip(("local", "fused", "chained"), (local, *streams), strict=True))
        found = {way: [(row.le, row.re, row.payload) for row in history.to_rows()] for way, history in ways.items()}
        if seed % EVERY == 0:
            found["batch"] = in_batch(spark, subject)
        wrong += [f"case {seed}, {way}: {text}" for way, own in found.items() if (text := difference(rows, own))]
    assert wrong == []
    assert len(cases) > 0.7 * CASES
