"""Chained stages: plans whose key changes, cut where it does, against the local engine and DuckDB."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.base import Settings, prepare
from streamproof.engines.spark.stream.wire import answer_schema, from_blobs
from streamproof.events.history import History
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from tests.spark.stream.chained_plans import CHAINED, stream
from tests.spark.stream.chaining import Workers, chain_of, micro_batches
from tests.spark.stream.multiplex import run_chains
from tests.spark.stream.splitting import Subject
from tests.spark.stream.test_bucket import expected, history_of, random_subject

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def subject_of(plan: str, seed: int, buckets: int) -> Subject:
    query = CHAINED[plan][0]
    streams = {name: stream(name, seed) for name in nodes.sources(query.plan)}
    typed = prepare(query.plan, {name: part.schema for name, part in streams.items()}, Settings())
    return Subject(typed, streams, Settings(), buckets=buckets, emit="events" if seed % 2 else "rows")


def in_stages(
    subject: Subject, *, batches: int, seed: int, forget: bool, emission: Emission = "speculative"
) -> History:
    """What comes out of the stages, one micro-batch after the other."""
    chain = chain_of(subject)
    workers = Workers(chain.stages(subject.settings, emission, subject.emit), forget)
    blobs = [blob for table in micro_batches(subject, chain, batches, seed) for blob in workers.run(table)]
    assert workers.is_complete, "the end of time reaches every bucket of every stage"
    return history_of(subject, from_blobs(blobs, answer_schema(subject.typed.schema, subject.emit)))


@pytest.mark.parametrize("plan", CHAINED)
def test_stages_buckets_and_micro_batches_do_not_change_the_result(plan: str) -> None:
    for seed in range(4):
        subject = subject_of(plan, seed, buckets=1 + (3 * seed) % 8)
        wanted = CHAINED[plan][0].on("duckdb").run(dict(subject.streams)).history if seed == 0 else expected(subject)
        assert len(wanted) > 0
        assert chain_of(subject).layers == CHAINED[plan][1]
        found = in_stages(subject, batches=1 + seed, seed=seed, forget=bool(seed % 2))
        assert found == wanted, f"seed {seed}"


@pytest.mark.parametrize("emission", ["final", "eager"])
def test_emission_is_a_matter_of_the_last_stage(emission: Emission) -> None:
    for seed, plan in enumerate(CHAINED):
        subject = replace(subject_of(plan, seed, buckets=3), emit="rows")
        assert in_stages(subject, batches=4, seed=seed, forget=False, emission=emission) == expected(subject), plan


def test_random_plans_are_cut_at_random_places() -> None:
    chained = compared = 0
    for seed in range(2000, 2120):
        subject = random_subject(seed)
        wanted = expected(subject)
        if isinstance(wanted, str):
            continue
        found = in_stages(subject, batches=1 + seed % 5, seed=seed, forget=bool(seed % 2))
        assert found == wanted, f"case {seed}"
        compared, chained = compared + 1, chained + (chain_of(subject).layers > 1)
    assert compared > 90
    assert chained > 10


def test_every_shape_in_one_streaming_query(spark: SparkSession, folder: Path) -> None:
    """Many plans share the stages of one query; those with fewer stages pass by the later ones."""
    subjects = [subject_of(plan, n, buckets=1 + n % 4) for n, plan in enumerate(CHAINED)]
    results = run_chains(spark, subjects, folder, batches=4, restart=2)
    assert [plan for plan, s, found in zip(CHAINED, subjects, results, strict=True) if found != expected(s)] == []
