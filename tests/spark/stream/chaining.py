"""Chained stages without Spark: what a worker does to a micro-batch, stage after stage, in one process."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.engines.spark.stream.blobs import from_blobs
from streamproof.engines.spark.stream.bucket import Bucket, bucket_from
from streamproof.engines.spark.stream.chain import Chain
from streamproof.engines.spark.stream.doors import Door, pack
from streamproof.engines.spark.stream.links import forwarded
from streamproof.engines.spark.stream.ship import Stage
from streamproof.engines.spark.stream.wire import PACKED, Part, answer_schema
from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.rewrites.normal_form import to_plan
from tests.spark.stream.splitting import Subject, cut_into

Key = tuple[int, int]


def chain_of(subject: Subject, *, first: int = 0) -> Chain:
    """The stages of a subject, cut wherever its key changes."""
    doors = {door.name: door for door in subject.stage.doors}
    return Chain.of(subject.typed, doors, subject.buckets, chained=True, first=first)


def packed(chain: Chain, chunks: Mapping[str, Iterable[pa.Table]]) -> pa.Table:
    """Rows of the sources in normal form, without their bucket, as they reach the first stage."""
    found = [
        pack(door, _with_zeros(table), order)
        for name, doors in chain.sources().items()
        for order, table in enumerate(chunks[name])
        for door in doors
    ]
    return pa.Table.from_batches(found, schema=PACKED)


def micro_batches(subject: Subject, chain: Chain, count: int, seed: int) -> Iterator[pa.Table]:
    """The input of a chain, cut at random into so many micro-batches."""
    for chunks in cut_into(subject, count, seed):
        yield packed(
            chain, {name: [c.rows.rename_columns(_plain(c.rows)) for c in own] for name, own in chunks.items()}
        )


def _plain(rows: pa.Table) -> list[str]:
    return [f"c{n}" for n in range(rows.num_columns)]


@dataclass
class Workers:
    """The buckets of all stages; with ``forget``, each starts every micro-batch from its saved state."""

    stages: list[dict[int, Stage]]
    forget: bool = False
    buckets: dict[Key, Bucket] = field(default_factory=dict)
    saved: dict[Key, bytes] = field(default_factory=dict)
    dead: list[bytes] = field(default_factory=list)
    dropped: int = 0
    events: int = 0

    def run(self, table: pa.Table) -> list[bytes]:
        """A micro-batch, from the sources to the sink."""
        waiting: dict[Key, list[Part]] = {}
        names = ("source", "order", "cti", "events", "dropped", "dead", "all", "rows")
        for row in table.to_pylist():
            waiting.setdefault((row["query"], row["bucket"]), []).append(Part(*(row[name] for name in names)))
        out: list[bytes] = []
        for own in self.stages:
            for key in [key for key in waiting if key[0] in own]:
                stage = own[key[0]]
                answer = self._bucket(key, stage).answer(waiting.pop(key))
                self.saved[key] = self.buckets[key].save()
                self.dropped, self.events = self.dropped + answer.dropped, self.events + answer.events
                self.dead += [answer.dead] if answer.dead else []
                for query, number, part in forwarded(stage, answer, key[1]):
                    waiting.setdefault((query, number), []).append(part)
                out += [answer.rows] if answer.rows is not None and not stage.links else []
        assert not waiting, "everything reaches a stage"
        return out

    def _bucket(self, key: Key, stage: Stage) -> Bucket:
        if self.forget or key not in self.buckets:
            self.buckets[key] = bucket_from(stage, key[1], self.saved.get(key))
        return self.buckets[key]

    def batch(self, chain: Chain, table: pa.Table) -> Batch:
        """A micro-batch from the sources to the sink, with the CTI that the sink knows after it."""
        schema = chain.typed.schema
        rows = consolidate(from_blobs(self.run(table), answer_schema(schema, "rows")))
        last = [bucket.cti for (query, _), bucket in self.buckets.items() if query == chain.last]
        known = len(last) == chain.buckets(len(chain.fragments) - 1)
        return Batch(schema, rows, min(last) if known else BEGINNING)

    @property
    def is_complete(self) -> bool:
        count = sum(stage.doors[0].buckets for own in self.stages for stage in own.values())
        return len(self.buckets) == count and all(bucket.cti == FOREVER for bucket in self.buckets.values())


class ChainEngine:
    """An engine that runs every plan in chained stages, in this process: for the fuzz."""

    name = "spark-chain"

    def __init__(self) -> None:
        self.runs = self.chained = self.stages = 0

    @staticmethod
    def supports() -> dict[str, bool | str]:
        return {}

    def run(
        self,
        plan: Typed,
        inputs: Mapping[str, Iterable[Batch]],
        settings: Settings,
        *,
        emission: Emission = "speculative",
    ) -> Iterator[Batch]:
        """The output, micro-batch by micro-batch: the first batch of every input together, and so on."""
        held = {name: list(batches) for name, batches in inputs.items()}
        chance = random.Random(zlib.crc32(repr([to_plan(plan), [len(own) for own in held.values()]]).encode()))
        schemas = {part.node.name: part.schema for part in walk(plan) if isinstance(part.node, nodes.Source)}
        doors = {name: Door(name, 0, schemas[name], "signed") for name in held if name in schemas}
        chain = Chain.of(plan, doors, chance.randint(1, 8), chained=True)
        self.runs, self.chained = self.runs + 1, self.chained + (len(chain.fragments) > 1)
        self.stages = max(self.stages, chain.layers)
        workers = Workers(chain.stages(settings, emission, "rows"), forget=chance.random() < 0.5)
        for number in range(max((len(own) for own in held.values()), default=0)):
            here = {name: own[number] for name, own in held.items() if number < len(own) and name in schemas}
            yield workers.batch(chain, _signed(chain, here))
        yield workers.batch(chain, _signed(chain, {n: Batch.empty(s, frontier=FOREVER) for n, s in schemas.items()}))
        assert workers.is_complete, "the end of time reaches every bucket"


def _signed(chain: Chain, batches: Mapping[str, Batch]) -> pa.Table:
    """Signed rows with their frontier, as they reach the stages."""
    found: list[dict[str, object]] = []
    for name, doors in chain.sources().items():
        for door in doors if name in batches else ():
            batch = batches[name]
            table = batch.rows.rename_columns(_plain(batch.rows))
            rows = pack(door, _with_zeros(table), 0).to_pylist()
            reached = {row["bucket"] for row in rows}
            empty = {"query": door.query, "source": door.number, "order": 0, "events": 0, "dropped": 0}
            rows += [{**empty, "bucket": number} for number in range(door.buckets) if number not in reached]
            found += [{**row, "cti": batch.frontier} for row in rows]
    return pa.Table.from_pylist(found, schema=PACKED)


def _with_zeros(table: pa.Table) -> pa.Table:
    return table.add_column(0, "bucket", pa.array(np.zeros(table.num_rows, np.int32)))
