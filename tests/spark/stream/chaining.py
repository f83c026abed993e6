"""Subjects cut into chained stages, and their input in the form in which it reaches the first of them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from streamproof.engines.spark.stream.chain import StageChain
from streamproof.engines.spark.stream.ports import pack
from streamproof.engines.spark.stream.wire import INPUT
from streamproof.workbench.stages import unkeyed
from tests.spark.stream.splitting import Subject, cut_into


def chain_of(subject: Subject, *, first: int = 0) -> StageChain:
    """The stages of a subject, cut wherever its key changes."""
    ports = {port.name: port for port in subject.stage.ports}
    return StageChain.of(subject.typed, ports, subject.buckets, chained=True, first=first)


def micro_batches(subject: Subject, chain: StageChain, count: int, seed: int) -> Iterator[pa.Table]:
    """The input of a chain, cut at random into so many micro-batches."""
    for chunks in cut_into(subject, count, seed):
        found = [
            pack(port, unkeyed(chunk.rows), order)
            for name, ports in chain.sources().items()
            for order, chunk in enumerate(chunks[name])
            for port in ports
        ]
        yield pa.Table.from_batches(found, schema=INPUT)
