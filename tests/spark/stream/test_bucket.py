"""Buckets without Spark: any plan, cut into any buckets and micro-batches, saved and restored, means the same."""

from __future__ import annotations

import random
from typing import Any, Literal

import pyarrow as pa
import pytest

from streamproof.engines.base import Settings
from streamproof.engines.local import LocalEngine
from streamproof.engines.spark.stream.bucket import VERSION, Bucket, bucket_from, cut, joined
from streamproof.engines.spark.stream.stage import QueryBytes, opened
from streamproof.engines.spark.stream.wire import from_blobs, output_schema, to_blob
from streamproof.errors import InputError, StreamproofError
from streamproof.events.advance import Advance
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.physical import to_batches, to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.workbench.buckets import inputs_by_bucket
from streamproof.workbench.draw.plans import seeded_case
from streamproof.workbench.modules import all_modules
from tests.spark.stream.splitting import Subject, micro_batches


def random_subject(seed: int) -> Subject:
    case, choices = seeded_case(seed), random.Random(seed)
    settings = Settings(horizon=case.horizon, limits=case.limits, registry=all_modules())
    streams = {n: PhysicalStream.from_events(s.events, schema=s.schema) for n, s in case.streams.items()}
    plan = nodes.transform(case.plan, lambda n: n.input if isinstance(n, nodes.AdvanceTime) else n)  # it drops things
    typed = check(plan, case.schemas, registry=all_modules())
    emit = choices.choice(["rows", "events"])
    return Subject(
        typed, streams, settings, buckets=choices.randint(1, 8), emit=emit, journal=choices.choice([0, 1, 32])
    )


def expected(subject: Subject) -> History | str:
    """What the local engine says, or the name of its error."""
    inputs = {name: list(to_batches(stream)) for name, stream in subject.streams.items()}
    try:
        output = list(LocalEngine().run(subject.typed, inputs, subject.settings))
        return History.from_batches(subject.typed.schema, output)
    except StreamproofError as error:
        return error.name


def run_in_buckets(subject: Subject, *, batches: int, seed: int, forget: bool) -> History:
    """What the buckets' outputs add up to; with ``forget`` each starts every micro-batch from its saved state."""
    stage = subject.stage
    buckets: dict[int, Bucket] = {}
    saved: dict[int, bytes] = {}
    blobs: list[bytes] = []
    for table in micro_batches(subject, batches, seed):
        for number, parts in inputs_by_bucket(table).items():
            bucket = bucket_from(stage, number, saved.get(number)) if forget else buckets.get(number)
            bucket = bucket or Bucket(stage, number)
            output = bucket.process(parts)
            blobs += [to_blob(output.rows)] if output.rows is not None else []
            saved[number], buckets[number] = bucket.save(), bucket
    assert len(buckets) == subject.count, "the end of time reaches every bucket"
    assert all(bucket.cti == FOREVER for bucket in buckets.values())
    rows = from_blobs(blobs, output_schema(subject.typed.schema, subject.emit))
    return history_of(subject, rows)


def history_of(subject: Subject, rows: pa.Table) -> History:
    schema = subject.typed.schema
    if subject.emit == "events":
        return to_history(PhysicalStream(schema, rows), schema=schema)
    return History.from_batches(schema, [Batch(schema, rows)])


@pytest.mark.parametrize("start", range(0, 200, 100))
def test_buckets_and_micro_batches_do_not_change_the_result(start: int) -> None:
    compared = cut = 0
    for seed in range(start, start + 100):
        subject = random_subject(seed)
        wanted = expected(subject)
        if isinstance(wanted, str):
            continue
        try:
            found = run_in_buckets(subject, batches=1 + seed % 6, seed=seed, forget=bool(seed % 2))
        except StreamproofError as error:
            raise AssertionError(f"case {seed}: {error}") from error
        assert found == wanted, f"case {seed}"
        compared, cut = compared + 1, cut + (subject.count > 1)
    assert compared > 80
    assert cut > 10


@pytest.mark.parametrize("late", ["drop", "adjust"])
def test_advance_time_in_buckets_does_what_it_does_in_one_place(late: Literal["drop", "adjust"]) -> None:
    """Every bucket makes its CTIs from the starts of all events, so lateness does not depend on the bucket."""
    compared = dropped = 0
    for seed in range(150):
        choices = random.Random(seed)
        stream = next(iter(seeded_case(seed).streams.values()), None)
        if stream is None or "k" not in stream.schema or not stream.events:
            continue
        every = choices.randint(1, 4)
        spacing: dict[str, Any] = choices.choice([{"every": every}, {"every_duration": every}])
        delay = choices.randint(0, 3)
        whole, schema = PhysicalStream.from_events(stream.events, schema=stream.schema), stream.schema
        advance = Advance(**spacing, delay=delay, late=late)
        wanted = expected(Subject(_per_key(nodes.Source("S"), schema), {"S": advance.apply(whole)}, Settings()))
        source = nodes.AdvanceTime(nodes.Source("S"), **spacing, delay=delay, late=late)
        subject = Subject(_per_key(source, schema), {"S": whole}, Settings(), buckets=choices.randint(1, 6))
        found = run_in_buckets(subject, batches=1 + seed % 4, seed=seed, forget=bool(seed % 2))
        assert found == wanted, f"case {seed}"
        compared, dropped = compared + 1, dropped + advance.dropped
    assert compared > 80
    assert dropped > 50


def _per_key(source: nodes.Node, schema: Schema) -> Typed:
    """Something with state, by key."""
    branch = nodes.Select(nodes.Coalesce(nodes.GroupInput()), ())
    return check(nodes.GroupApply(source, ("k",), branch), {"S": schema})


def test_a_query_survives_the_way_to_a_worker() -> None:
    subject = random_subject(3)
    queries = QueryBytes.of([subject.stage])
    stage = opened(queries.queries[0], queries.digests[0])
    assert stage.typed.schema == subject.typed.schema
    assert {m.name for m in stage.registry} == {m.name for m in subject.settings.registry}
    assert [d.name for d in stage.ports] == [d.name for d in subject.stage.ports]


def test_a_state_of_another_version_is_refused() -> None:
    bucket = Bucket(random_subject(3).stage, 0)
    head, *rest = cut(bucket.save())
    head = head.replace(f'"version": {VERSION}'.encode(), b'"version": 99')
    with pytest.raises(InputError, match=f"has version 99, this program reads {VERSION}"):
        bucket.restore(joined([head, *rest]))
