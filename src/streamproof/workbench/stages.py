"""Plans in chained stages of Spark, cut wherever their key changes, without starting Spark.

`StageSubject` is to plans whose key changes what `buckets.BucketSubject` is to a single stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from streamproof.engines.spark.stream.blobs import from_blobs
from streamproof.engines.spark.stream.bucket import Bucket, bucket_from
from streamproof.engines.spark.stream.chain import Chain
from streamproof.engines.spark.stream.doors import Door, pack
from streamproof.engines.spark.stream.links import forwarded
from streamproof.engines.spark.stream.ship import Stage
from streamproof.engines.spark.stream.wire import PACKED, Part, answer_schema
from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.modules import Registry
from streamproof.workbench.case import Case
from streamproof.workbench.pieces import batches_of, pushes
from streamproof.workbench.promises import Broken, broken_promise
from streamproof.workbench.schedule import Law
from streamproof.workbench.subjects import Ran, failure_of, settings_of, sized, typed_of

Key = tuple[int, int]


@dataclass
class StageWorkers:
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
        """Whether the end of time has reached every bucket."""
        count = sum(stage.doors[0].buckets for own in self.stages for stage in own.values())
        return len(self.buckets) == count and all(bucket.cti == FOREVER for bucket in self.buckets.values())


class StageSubject:
    """Every plan in as many stages as its key has changes, micro-batch by micro-batch."""

    name = "spark-chain"
    streams = True
    lazy = False
    laws: tuple[Law, ...] = (
        "batching", "disorder", "restart", "emission", "partitions", "rewrite", "languages", "size",
    )  # fmt: skip
    advances = False

    def run(self, cases: Sequence[Case], registry: Registry) -> list[Ran]:
        return [self._one(case, registry) for case in cases]

    def _one(self, case: Case, registry: Registry) -> Ran:
        try:
            with sized(case):
                return _in_stages(case, typed_of(case, registry), registry)
        except Exception as error:
            return Ran(failure_of(error))


def _in_stages(case: Case, typed: Typed, registry: Registry) -> Ran:
    schedule, read = case.schedule, nodes.sources(case.plan)
    doors = {name: Door(name, 0, case.schemas[name], "signed") for name in read}
    buckets = 1 + schedule.seed % 8 if schedule.buckets > 1 else 1
    chain = Chain.of(typed, doors, buckets, chained=True)
    workers = StageWorkers(chain.stages(settings_of(case, registry), schedule.emission, "rows"), schedule.restart)
    output = [workers.batch(chain, _signed(chain, given)) for given in _micro_batches(case, read)]
    broken = broken_promise(output, final=schedule.emission == "final")
    if not workers.is_complete:
        broken = broken or Broken("complete", "all input is complete, but not every bucket heard of it")
    return Ran(History.from_batches(typed.schema, output), broken)


def _micro_batches(case: Case, read: Sequence[str]) -> Iterator[dict[str, Batch]]:
    """The first piece of every source together, and so on; the last micro-batch brings the end of time."""
    held: dict[str, list[Batch]] = {name: [] for name in read}
    for name, piece in pushes(case, case.schedule):
        if name in held:
            held[name] += batches_of(case.schemas[name], piece)
    for together in zip_longest(*held.values()):
        yield {name: batch for name, batch in zip(held, together, strict=True) if batch is not None}
    yield {name: Batch.empty(case.schemas[name], frontier=FOREVER) for name in read}


def _signed(chain: Chain, batches: Mapping[str, Batch]) -> pa.Table:
    """Signed rows with their frontier, as they reach the stages."""
    found: list[dict[str, object]] = []
    for name, doors in chain.sources().items():
        for door in doors if name in batches else ():
            batch = batches[name]
            rows = pack(door, unkeyed(batch.rows), 0).to_pylist()
            reached = {row["bucket"] for row in rows}
            empty = {"query": door.query, "source": door.number, "order": 0, "events": 0, "dropped": 0}
            rows += [{**empty, "bucket": number} for number in range(door.buckets) if number not in reached]
            found += [{**row, "cti": batch.frontier} for row in rows]
    return pa.Table.from_pylist(found, schema=PACKED)


def unkeyed(rows: pa.Table) -> pa.Table:
    """Rows in normal form, all of bucket 0."""
    plain = rows.rename_columns([f"c{n}" for n in range(rows.num_columns)])
    return plain.add_column(0, "bucket", pa.array(np.zeros(rows.num_rows, np.int32)))
