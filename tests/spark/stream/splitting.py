"""Cases cut into micro-batches and buckets, in the form in which they reach the stateful stage."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.engines.spark.stream.chain import advanced_sources
from streamproof.engines.spark.stream.keys import split_by
from streamproof.engines.spark.stream.ports import BUCKET, SourcePort, pack
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import INPUT, Emit
from streamproof.events.encode import cti
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed


@dataclass(frozen=True)
class Subject:
    """A typed plan with its input, ready to be run in buckets."""

    typed: Typed
    streams: Mapping[str, PhysicalStream]
    settings: Settings
    buckets: int = 1
    emit: Emit = "rows"
    query: int = 0
    journal: int = 32

    @property
    def splitting(self) -> dict[str, tuple[str, ...]] | None:
        return split_by(self.typed)

    @property
    def count(self) -> int:
        return 1 if self.splitting is None else self.buckets

    @property
    def stage(self) -> StageSpec:
        settings = self.settings
        advanced = advanced_sources(self.typed)
        ports = tuple(self._port(n, name, advanced.get(name)) for n, name in enumerate(self.streams))
        return StageSpec(
            self.typed,
            ports,
            settings.registry,
            settings.limits,
            horizon=settings.horizon,
            emit=self.emit,
            journal=self.journal,
        )

    def _port(self, number: int, name: str, advance: nodes.AdvanceTime | None) -> SourcePort:
        schema = self.streams[name].schema
        port = SourcePort(name, number, schema, "physical", self.count, query=self.query)
        return replace(port, keeps_events=advance is not None, advance=advance)

    def numbered(self, query: int) -> Subject:
        return replace(self, query=query)


def micro_batches(subject: Subject, count: int, seed: int) -> Iterator[pa.Table]:
    """The input as packed rows, cut at random into so many micro-batches; the last one brings the end of time."""
    for chunks in cut_into(subject, count, seed):
        batches = [
            pack(port, with_buckets(subject, port, chunk), order)
            for port in subject.stage.ports
            for order, chunk in enumerate(chunks[port.name])
        ]
        yield pa.Table.from_batches(batches, schema=INPUT)


def cut_into(subject: Subject, count: int, seed: int) -> Iterator[dict[str, list[PhysicalStream]]]:
    """The events of each source, micro-batch by micro-batch."""
    choices = random.Random(seed)
    cuts = {
        name: sorted(choices.randint(0, len(stream)) for _ in range(count - 1))
        for name, stream in subject.streams.items()
    }
    for number in range(count):
        yield {name: list(_chunk(stream, cuts[name], number, count)) for name, stream in subject.streams.items()}


def _chunk(stream: PhysicalStream, cuts: Sequence[int], number: int, count: int) -> Iterator[PhysicalStream]:
    start = cuts[number - 1] if number else 0
    end = cuts[number] if number < count - 1 else len(stream)
    chunk = stream.slice(start, end - start)
    if number == count - 1:
        chunk = PhysicalStream.concat([chunk, cti(stream.schema, FOREVER)])
    if len(chunk):
        yield chunk


def with_buckets(subject: Subject, port: SourcePort, chunk: PhysicalStream) -> pa.Table:
    """The chunk in normal form: the bucket of each row first."""
    columns = (subject.splitting or {}).get(port.name, ())
    keys = [chunk.payload[name].to_pylist() for name in columns]
    numbers = [_hash([key[n] for key in keys]) % subject.count for n in range(len(chunk))]
    bucket = pa.array(np.array(numbers, np.int32))
    return pa.table([bucket, *chunk.rows.columns], names=[BUCKET, *chunk.rows.column_names])


def _hash(values: list[object]) -> int:
    shown = [repr(abs(value) if isinstance(value, float) else value) for value in values]
    return zlib.crc32("|".join(shown).encode())
