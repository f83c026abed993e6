"""Plans in chained stages of Spark, cut wherever their key changes, without starting Spark.

`StageSubject` is to plans whose key changes what `buckets.BucketSubject` is to a single stage.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest

import numpy as np
import pyarrow as pa

from streamproof.engines.spark.stream.bucket import Bucket, bucket_from
from streamproof.engines.spark.stream.chain import StageChain
from streamproof.engines.spark.stream.ports import SourcePort, pack
from streamproof.engines.spark.stream.serving import forward
from streamproof.engines.spark.stream.stage import StageSpec
from streamproof.engines.spark.stream.wire import INPUT, BucketInput, from_blobs, inputs_in, output_schema, to_blob
from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.modules import Registry
from streamproof.workbench.arrivals import batches_of, pushes
from streamproof.workbench.case import Case
from streamproof.workbench.promises import Broken, broken_promise
from streamproof.workbench.schedule import Law
from streamproof.workbench.subjects import SubjectRun, failure_of, settings_of, sized, typed_of

Key = tuple[int, int]


@dataclass
class StageWorkers:
    """The buckets of all stages; with ``forget``, each starts every micro-batch from its saved state."""

    stages: list[dict[int, StageSpec]]
    forget: bool = False
    buckets: dict[Key, Bucket] = field(default_factory=dict)
    saved: dict[Key, bytes] = field(default_factory=dict)
    dead: list[bytes] = field(default_factory=list)
    dropped: int = 0
    events: int = 0

    def run(self, table: pa.Table) -> list[bytes]:
        """A micro-batch, from the sources to the sink."""
        waiting: dict[Key, list[BucketInput]] = {}
        columns = table.to_pydict()
        for query, bucket, content in zip(columns["query"], columns["bucket"], inputs_in(columns), strict=True):
            waiting.setdefault((query, bucket), []).append(content)
        out: list[bytes] = []
        for own in self.stages:
            for key in [key for key in waiting if key[0] in own]:
                stage = own[key[0]]
                output = self._bucket(key, stage).process(waiting.pop(key))
                self.saved[key] = self.buckets[key].save()
                self.dropped, self.events = self.dropped + output.dropped, self.events + output.events
                self.dead += [output.dead] if output.dead else []
                for query, number, part in forward(stage, output, key[1]):
                    waiting.setdefault((query, number), []).append(part)
                out += [to_blob(output.rows)] if output.rows is not None and not stage.edges else []
        assert not waiting, "everything reaches a stage"
        return out

    def _bucket(self, key: Key, stage: StageSpec) -> Bucket:
        if self.forget or key not in self.buckets:
            self.buckets[key] = bucket_from(stage, key[1], self.saved.get(key))
        return self.buckets[key]

    def batch(self, chain: StageChain, table: pa.Table) -> Batch:
        """A micro-batch from the sources to the sink, with the CTI that the sink knows after it."""
        schema = chain.typed.schema
        rows = consolidate(from_blobs(self.run(table), output_schema(schema, "rows")))
        last = [bucket.cti for (query, _), bucket in self.buckets.items() if query == chain.last]
        known = len(last) == chain.buckets(len(chain.fragments) - 1)
        return Batch(schema, rows, min(last) if known else BEGINNING)

    @property
    def is_complete(self) -> bool:
        """Whether the end of time has reached every bucket."""
        count = sum(stage.ports[0].buckets for own in self.stages for stage in own.values())
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

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        return [self._one(case, registry) for case in cases]

    def _one(self, case: Case, registry: Registry) -> SubjectRun:
        try:
            with sized(case):
                plain = replace(case, plan=nodes.transform(case.plan, _without_advance))
                return _in_stages(plain, typed_of(plain, registry), registry)
        except Exception as error:
            return SubjectRun(failure_of(error))


def _without_advance(node: nodes.Plan) -> nodes.Plan:
    """Its rule needs events with ids; here are signed rows, over which it is the identity."""
    return node.input if isinstance(node, nodes.AdvanceTime) else node


def _in_stages(case: Case, typed: Typed, registry: Registry) -> SubjectRun:
    schedule, read = case.schedule, nodes.sources(case.plan)
    ports = {name: SourcePort(name, 0, case.schemas[name], "signed") for name in read}
    buckets = 1 + schedule.seed % 8 if schedule.buckets > 1 else 1
    chain = StageChain.of(typed, ports, buckets, chained=True)
    workers = StageWorkers(chain.stages(settings_of(case, registry), schedule.emission, "rows"), schedule.restart)
    output = [workers.batch(chain, _signed(chain, given)) for given in _micro_batches(case, read)]
    broken = broken_promise(output, final=schedule.emission == "final")
    if not workers.is_complete:
        broken = broken or Broken("complete", "all input is complete, but not every bucket heard of it")
    return SubjectRun(History.from_batches(typed.schema, output), broken)


def _micro_batches(case: Case, read: Sequence[str]) -> Iterator[dict[str, Batch]]:
    """The first piece of every source together, and so on; the last micro-batch brings the end of time."""
    held: dict[str, list[Batch]] = {name: [] for name in read}
    for name, piece in pushes(case, case.schedule):
        if name in held:
            held[name] += batches_of(case.schemas[name], piece)
    for together in zip_longest(*held.values()):
        yield {name: batch for name, batch in zip(held, together, strict=True) if batch is not None}
    yield {name: Batch.empty(case.schemas[name], frontier=FOREVER) for name in read}


def _signed(chain: StageChain, batches: Mapping[str, Batch]) -> pa.Table:
    """Signed rows with their frontier, as they reach the stages."""
    found: list[dict[str, object]] = []
    for name, ports in chain.sources().items():
        for port in ports if name in batches else ():
            batch = batches[name]
            rows = pack(port, unkeyed(batch.rows), 0).to_pylist()
            reached = {row["bucket"] for row in rows}
            empty = {"query": port.query, "source": port.number, "order": 0, "events": 0, "dropped": 0}
            rows += [{**empty, "bucket": number} for number in range(port.buckets) if number not in reached]
            found += [{**row, "cti": batch.frontier} for row in rows]
    return pa.Table.from_pylist(found, schema=INPUT)


def unkeyed(rows: pa.Table) -> pa.Table:
    """Rows in normal form, all of bucket 0."""
    plain = rows.rename_columns([f"c{n}" for n in range(rows.num_columns)])
    return plain.add_column(0, "bucket", pa.array(np.zeros(rows.num_rows, np.int32)))
