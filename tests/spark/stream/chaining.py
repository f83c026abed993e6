"""Subjects cut into chained stages, and their input in the form in which it reaches the first of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streamproof.engines.spark.stream.chain import Chain
from streamproof.engines.spark.stream.doors import pack
from streamproof.engines.spark.stream.wire import PACKED
from streamproof.workbench.stages import unkeyed
from tests.spark.stream.splitting import Subject, cut_into


def chain_of(subject: Subject, *, first: int = 0) -> Chain:
    """The stages of a subject, cut wherever its key changes."""
    doors = {door.name: door for door in subject.stage.doors}
    return Chain.of(subject.typed, doors, subject.buckets, chained=True, first=first)


def micro_batches(subject: Subject, chain: Chain, count: int, seed: int) -> Iterator[pa.Table]:
    """The input of a chain, cut at random into so many micro-batches."""
    for chunks in cut_into(subject, count, seed):
        found = [
            pack(door, unkeyed(chunk.rows), order)
            for name, doors in chain.sources().items()
            for order, chunk in enumerate(chunks[name])
            for door in doors
        ]
        yield pa.Table.from_batches(found, schema=PACKED)
