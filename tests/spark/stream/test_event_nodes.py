"""Event-driven queries in buckets and micro-batches, saved and restored: what Spark's stream mode does to them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.base import Settings
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.language.eql import loads
from streamproof.plan.check import check
from streamproof.workbench.case import Case
from streamproof.workbench.draw.choices import RandomChoices
from tests.kernels.event_driven.random_nodes import random_node_case
from tests.language.eql.queries import random_query_case
from tests.spark.stream.multiplex import run_together
from tests.spark.stream.splitting import Subject
from tests.spark.stream.test_bucket import expected, run_in_buckets

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def subject_of(case: Case, seed: int) -> Subject:
    choices = random.Random(seed)
    streams = {n: PhysicalStream.from_events(s.events, schema=s.schema) for n, s in case.streams.items()}
    emit = choices.choice(["rows", "events"])
    settings = Settings(horizon=case.horizon)
    return Subject(check(case.plan, case.schemas), streams, settings, buckets=choices.randint(1, 8), emit=emit)


@pytest.mark.parametrize("make", [random_query_case, random_node_case], ids=["queries", "nodes"])
def test_buckets_and_micro_batches_do_not_change_the_result(make: object) -> None:
    cut = 0
    for seed in range(16):
        subject = subject_of(make(RandomChoices(seed)), seed)  # type: ignore[operator]
        wanted = expected(subject)
        if isinstance(wanted, str):
            continue
        assert run_in_buckets(subject, batches=1 + seed % 5, seed=seed, forget=bool(seed % 2)) == wanted, f"seed {seed}"
        cut += subject.count > 1
    assert cut > 1


@pytest.mark.slow
@pytest.mark.parametrize("make", [random_query_case, random_node_case], ids=["queries", "nodes"])
def test_random_ones_on_spark(make: object, spark: SparkSession, folder: Path) -> None:
    subjects, wanted = [], []
    for seed in range(3000, 3080):
        subject = subject_of(make(RandomChoices(seed)), seed)  # type: ignore[operator]
        result = expected(subject)
        if not isinstance(result, str):
            subjects.append(subject)
            wanted.append(result)
    results = run_together(spark, subjects, folder, batches=4)
    assert [n for n, found in enumerate(results) if found != wanted[n]] == []
    assert len(results) > 50


def test_a_query_with_a_key_is_split_by_it() -> None:
    schemas = {
        "Heart": Schema.of({"soldier": "string", "bpm": "int64"}, unit="s"),
        "Pos": Schema.of({"soldier": "string", "speed": "float64"}, unit="s"),
    }
    stands = "LASTING(BECOMES(Pos: speed = 0), BECOMES(Pos: speed > 0) BY soldier)"
    keyed = Subject(check(loads(f"SELECT count(*) FROM Heart DURING {stands}"), schemas), {}, Settings())
    assert keyed.splitting == {"Heart": ("soldier",), "Pos": ("soldier",)}
    alone = loads("SELECT count(*) FROM Heart DURING LASTING(BECOMES(Pos: speed = 0), +5s)")
    assert Subject(check(alone, schemas), {}, Settings()).splitting is None
