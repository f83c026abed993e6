"""A bucket's state as a journal, without Spark: whichever worker has it in memory, and whatever attempts were lost."""

from __future__ import annotations

import random
from collections import OrderedDict
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, cast

import pytest

from streamproof.engines.spark.stream.bucket import Bucket
from streamproof.engines.spark.stream.journal import CLAIM, HEAD, TOKEN, BucketCache, CachedBucket, Journal, JournalHead
from streamproof.engines.spark.stream.wire import BucketInput, from_blobs, output_schema, to_blob
from streamproof.errors import InputError
from streamproof.events.history import History
from streamproof.thresholds import lowered
from streamproof.workbench.buckets import MemoryState, inputs_by_bucket
from tests.spark.stream.splitting import Subject, micro_batches
from tests.spark.stream.test_bucket import expected, history_of, random_subject

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState


def head_of(store: MemoryState) -> JournalHead:
    return JournalHead.read(cast("bytes", store.rows[HEAD,][0]))


def assert_no_more_than_needed(store: MemoryState, subject: Subject) -> None:
    """The entries since the savepoint, the pieces of the savepoint, and whose state it is."""
    head = head_of(store)
    entries, pieces = range(head.savepoint + 1, head.number + 1), range(-head.pieces, 0)
    assert {key for (key,) in store.rows} == {HEAD, CLAIM, *entries, *pieces}
    assert len(entries) <= subject.journal
    assert head.savepoint_bytes == sum(len(cast("bytes", store.rows[piece,][0])) for piece in pieces)


def run_elsewhere(subject: Subject, workers: list[BucketCache], seed: int) -> None:
    """Another run of the same query, with other micro-batches: what workers remember of it is not of this one."""
    for memory in workers:
        stores: dict[int, MemoryState] = {}
        for table in islice(micro_batches(subject, 6, seed + 1), seed % 4):
            for number, parts in inputs_by_bucket(table).items():
                journal = Journal(cast("MapState", stores.setdefault(number, MemoryState())), memory)
                journal.process(("", 0, number), subject.stage, parts, keep=True)


def run(subject: Subject, *, batches: int, seed: int) -> History:
    """What the outputs add up to, where two workers take turns, forget, and do work that is thrown away."""
    choices, stage = random.Random(seed), subject.stage
    workers: list[BucketCache] = [OrderedDict(), OrderedDict()]
    run_elsewhere(subject, workers, seed)
    stores: dict[int, MemoryState] = {}
    blobs: list[bytes] = []
    for table in micro_batches(subject, batches, seed):
        for number, parts in inputs_by_bucket(table).items():
            store, place = stores.setdefault(number, MemoryState()), ("", 0, number)
            if choices.random() < 0.3:  # of an attempt that is lost only the worker's memory stays
                lost = Journal(cast("MapState", store.copy()), choices.choice(workers))
                lost.process(place, stage, parts, keep=True)
            if choices.random() < 0.2:
                choices.choice(workers).clear()
            journal = Journal(cast("MapState", store), choices.choice(workers))
            output = journal.process(place, stage, parts, keep=choices.random() < 0.8)
            blobs += [to_blob(output.rows)] if output.rows is not None else []
            assert output.state > 0
            assert_no_more_than_needed(store, subject)
    return history_of(subject, from_blobs(blobs, output_schema(subject.typed.schema, subject.emit)))


@pytest.mark.parametrize("start", [0, 60])
def test_a_journal_means_what_a_bucket_means(start: int) -> None:
    compared = 0
    for seed in range(start, start + 60):
        subject, choices = random_subject(seed), random.Random(seed)
        wanted = expected(subject)
        if isinstance(wanted, str):
            continue
        ways = {
            "journal.least": choices.choice([0, 400, 1 << 18, 1 << 18]),
            "journal.piece": 300,
            "journal.kept": choices.choice([0, 1, 9, 9]),
        }
        with lowered(ways):
            assert run(subject, batches=1 + seed % 9, seed=seed) == wanted, f"case {seed}"
        compared += 1
    assert compared > 40


def written(subject: Subject) -> tuple[MemoryState, list[BucketInput]]:
    """The state of bucket 0 after all micro-batches but the last, and what the last brings."""
    store, stage = MemoryState(), subject.stage
    *before, last = micro_batches(subject, 6, 1)
    for table in before:
        for number, parts in inputs_by_bucket(table).items():
            if number == 0:
                Journal(cast("MapState", store), OrderedDict()).process(("", 0, 0), stage, parts, keep=False)
    return store, inputs_by_bucket(last)[0]


def test_every_part_of_a_state_is_needed() -> None:
    for seed in range(12):
        subject = random_subject(seed)
        with lowered({"journal.least": 0, "journal.piece": 300}):
            store, parts = written(subject)
            for key in list(store.rows):
                if key in {(HEAD,), (CLAIM,)}:  # a state without a head is a new one
                    continue
                without = store.copy()
                del without.rows[key]
                with pytest.raises(InputError, match="the state in the checkpoint has lost its part"):
                    Journal(cast("MapState", without), OrderedDict()).process(
                        ("", 0, 0), subject.stage, parts, keep=True
                    )


def test_a_bucket_that_was_kept_is_the_one_that_is_used() -> None:
    subject = random_subject(3)
    memory: BucketCache = OrderedDict()
    store = MemoryState()
    for table in micro_batches(subject, 4, 1):
        for number, parts in inputs_by_bucket(table).items():
            if number == 0:
                before = memory.get(("", 0, 0))
                Journal(cast("MapState", store), memory).process(("", 0, 0), subject.stage, parts, keep=True)
                kept = memory["", 0, 0]
                assert before is None or kept.bucket is before.bucket
                assert (kept.token, kept.number) == (head_of(store).token, head_of(store).number)
                assert isinstance(kept.bucket, Bucket)


@pytest.mark.parametrize("journal", [0, 1, 2, 32])
def test_what_a_worker_knows_of_another_run_is_not_used(journal: int) -> None:
    told = 0
    for seed in range(8):
        subject = replace(random_subject(seed), journal=journal)
        store, stage = MemoryState(), subject.stage
        for table in micro_batches(subject, 6, seed):
            parts = inputs_by_bucket(table).get(0)
            if parts is None:
                continue
            number = head_of(store).number if store.rows else 0
            wanted = Journal(cast("MapState", store.copy()), OrderedDict()).process(
                ("", 0, 0), stage, parts, keep=False
            )
            for known in range(1, number + 2):
                memory: BucketCache = OrderedDict({("", 0, 0): CachedBucket("0" * TOKEN, known, Bucket(stage, 0))})
                found = Journal(cast("MapState", store.copy()), memory).process(("", 0, 0), stage, parts, keep=False)
                assert (found.rows, found.cti) == (wanted.rows, wanted.cti), (seed, known)
                told += wanted.rows is not None
            Journal(cast("MapState", store), OrderedDict()).process(("", 0, 0), stage, parts, keep=False)
    assert told > 20


def test_the_state_of_another_query_is_refused_with_the_difference() -> None:
    subject, store = random_subject(3), MemoryState()
    mine, other = (replace(subject.stage, claim=f'{{"horizon": {horizon}}}') for horizon in (10, 77))
    first, second, *_ = [
        parts
        for table in micro_batches(subject, 6, 1)
        for number, parts in inputs_by_bucket(table).items()
        if not number
    ]
    Journal(cast("MapState", store), OrderedDict()).process(("", 0, 0), mine, first, keep=False)
    with pytest.raises(
        InputError, match="the state in the checkpoint was taken with horizon=10, this query has horizon=77"
    ):
        Journal(cast("MapState", store), OrderedDict()).process(("", 0, 0), other, second, keep=False)
    Journal(cast("MapState", store), OrderedDict()).process(("", 0, 0), mine, second, keep=False)
