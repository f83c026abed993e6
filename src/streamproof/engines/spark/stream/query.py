"""A plan as one streaming query: sources packed, stateful stages that host the kernels, outputs unpacked.

    tables ──SparkSource──► rows ──packing──► INPUT ──BucketProcessor──► (EDGE ──BucketProcessor──►) OUTPUT ──► sink

`make_query` builds a `StreamQuery`; `StreamQuery.start` claims the checkpoint and runs it into a sink.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.engines.base import Settings, prepare
from streamproof.engines.claims import Claim, module_claim, plan_claim, schema_claim, settings_claim
from streamproof.engines.spark.failures import disk_errors
from streamproof.engines.spark.metrics import StreamMetrics, observed
from streamproof.engines.spark.origins import refuse_losing
from streamproof.engines.spark.positions import refuse_changed, refuse_gone
from streamproof.engines.spark.rows import quoted
from streamproof.engines.spark.session import meaning
from streamproof.engines.spark.sinks import Sink, SinkContext
from streamproof.engines.spark.sources import Layout, SparkSource, layouts_of, spark_type
from streamproof.engines.spark.stream import checkpoint as checkpoints
from streamproof.engines.spark.stream.chain import StageChain, Stages, advanced_sources, chaining_pays, read_apart
from streamproof.engines.spark.stream.keys import split_by, together_because
from streamproof.engines.spark.stream.ports import WITH_KINDS, SourcePort, packing
from streamproof.engines.spark.stream.running import STATE_STORE, Running, Watcher, locked, start
from streamproof.engines.spark.stream.stage import QueryBytes
from streamproof.engines.spark.stream.wire import EDGE, INPUT, KEY, OUTPUT, Emit, ddl, from_blobs, output_schema
from streamproof.errors import InputError, did_you_mean
from streamproof.events.schema import Schema, type_of_arrow
from streamproof.events.validate import Policy
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class StreamQueryOptions:
    """How a plan runs as a stream."""

    buckets: int | None = None  # None: as many as the session has shuffle partitions
    emission: Emission = "speculative"
    on_error: Policy = "fail"
    keep_in_memory: bool = True  # workers keep the buckets they served last; results do not depend on it
    stages: Stages = "auto"  # chained: cut where the key changes; auto: only where there are cores enough for it


class StreamQuery:
    """A plan over streaming tables. `frame` is its output as a streaming table; `start` runs it into a sink."""

    def __init__(
        self,
        spark: SparkSession,
        typed: Typed,
        sources: Mapping[str, SparkSource],
        settings: Settings,
        options: StreamQueryOptions,
        *,
        checkpoint: Path | None = None,
        extra: DataFrame | None = None,
        in_order: bool = False,
        plan: Plan,
    ) -> None:
        self.spark, self.typed, self.options = spark, typed, options
        self._plan = plan
        self.checkpoint, self._extra, self._in_order = checkpoint, extra, in_order
        self._sources, self._settings = sources, settings
        self.splitting = split_by(typed)
        ports = {name: self._port(source) for name, source in sources.items()}
        wanted = self._wanted()
        self.chain = StageChain.of(typed, ports, wanted, chained=self._is_chained(wanted))

    @property
    def buckets(self) -> int:
        """How many buckets there are in the stage that has the most."""
        return max(self.chain.buckets(fragment.number) for fragment in self.chain.fragments)

    @property
    def ports(self) -> tuple[SourcePort, ...]:
        """Where the rows of the sources come in."""
        return tuple(port for ports in self.chain.sources().values() for port in ports)

    @property
    def one_bucket_because(self) -> str | None:
        """Why there is one bucket, whatever number was asked for: the operator that needs all rows. None if not so."""
        return together_because(self.typed) if len(self.chain.fragments) == 1 else None

    def explain(self) -> str:
        """The stages: how many buckets each has, and by which columns their rows are spread."""
        lines = self.chain.explain()
        because = self.one_bucket_because
        return "\n".join([*lines, *([] if because is None else [f"one bucket: {because}"])])

    @cached_property
    def _recorded(self) -> checkpoints.CheckpointId | None:
        return checkpoints.recorded(self.checkpoint) if self.checkpoint is not None else None

    def _is_chained(self, buckets: int) -> bool:
        if self.options.stages not in ("auto", "fused", "chained"):
            fix = "use auto, fused or chained"
            raise InputError(f'unknown stages "{self.options.stages}"', fix=fix)
        if self.options.stages != "auto":
            return self.options.stages == "chained"
        if self._recorded is not None:
            return len(self._recorded.stages) > 1
        return chaining_pays(buckets, self.spark.sparkContext.defaultParallelism)

    def _wanted(self) -> int:
        if self.options.buckets is not None:
            if not 1 <= self.options.buckets <= 32767:
                raise InputError(
                    f"buckets must be 1 to 32767, got {self.options.buckets}", fix="a few per core are enough"
                )
            return self.options.buckets
        if self._recorded is not None:
            return self._recorded.buckets
        return int(self.spark.conf.get("spark.sql.shuffle.partitions") or 1)

    def _port(self, source: SparkSource) -> SourcePort:
        schema = self._schema(source)
        advanced = source.name in advanced_sources(self.typed)
        lenient = self.options.on_error != "fail" and source.form in WITH_KINDS
        if not source.can_be_followed and (advanced or self.options.on_error != "fail"):
            kind = "signed rows" if source.form == "signed" else "retractions"
            raise InputError(
                f"a source of {kind} has no ids, so events that come late cannot be followed",
                at=f"source {source.name}",
                fix='give it as inserts and retractions with ids, or with on_error="fail" and CTIs',
            )
        return SourcePort(
            source.name,
            0,
            schema,
            source.form,
            keeps_events=advanced or lenient or source.form == "physical",
            policy=self.options.on_error,
            in_order=self._in_order,
        )

    def _schema(self, source: SparkSource) -> Schema:
        """What the plan reads of a source: columns that nobody reads do not travel."""
        for part in walk(self.typed):
            if isinstance(part.node, nodes.Source) and part.node.name == source.name:
                return part.schema
        return source.schema

    def outputs(self, emit: Emit) -> DataFrame:
        """What the buckets put out: records with rows in blobs."""
        claim = json.dumps(self._facts(emit) | {"stages": self.chain.claims()})
        stages = self.chain.stages(self._settings, self.options.emission, emit, claim)
        with meaning(self.spark):
            packed = [self._packed(layer) for layer in range(1, self.chain.layers + 1)]
            return chained(packed, [QueryBytes.of(stage) for stage in stages], keep=self.options.keep_in_memory)

    def _packed(self, layer: int) -> DataFrame | None:
        """The sources that come in at a stage."""
        packed = [] if self._extra is None or layer > 1 else [self._extra]
        for name, ports in self.chain.sources().items():
            if self.chain.layer_of(name) == layer:
                split = (self.splitting or {}).get(name, ()) if ports[0].keys is None else ()
                normal = self._sources[name].normal(ports[0].schema, split=split, buckets=ports[0].buckets)
                packed.append(normal.mapInArrow(packing(*ports), ddl(INPUT)))
        return reduce(lambda one, other: one.union(other), packed) if packed else None

    def frame(self, emit: Emit = "events") -> DataFrame:
        """The output as a streaming table: physical events or signed rows, and the bucket each comes from.

        Each bucket has CTIs of its own; the stream's is the least of them. Whoever starts it does so in this session,
        which from now on keeps the state of new queries in the store that this one needs.
        """
        for name, value in STATE_STORE.items():
            self.spark.conf.set(name, value)
        schema, last = self.typed.schema, self.chain.last
        return observed(self.outputs(emit), last).mapInArrow(
            partial(_unpack, schema, emit, last), frame_ddl(schema, emit)
        )

    def start(
        self,
        sink: Sink,
        *,
        trigger: Mapping[str, Any] | None = None,
        name: str | None = None,
        watcher: Watcher | None = None,
        metrics: StreamMetrics | None = None,
    ) -> Running:
        """Run into a sink, from where the checkpoint left off. ``trigger`` is Spark's, e.g. {"availableNow": True}."""
        if self.checkpoint is None:
            raise InputError("a streaming run needs a checkpoint", fix='say checkpoint="folder"')
        with disk_errors():
            lock = locked(self.checkpoint)
            try:
                refuse_gone(self.checkpoint)
                if self._extra is None:  # else it is known what files were, not only when they were written
                    refuse_changed(self.checkpoint)
                return start(
                    self.spark,
                    self.outputs(sink.emit),
                    sink,
                    self._sink_context(self.claim(sink).run),
                    checkpoint=self.checkpoint,
                    lock=lock,
                    trigger=dict(trigger or {"processingTime": "0 seconds"}),
                    name=name,
                    partitions=self.buckets,
                    even=all(port.is_even for port in self.ports),
                    watcher=watcher,
                    metrics=metrics,
                )
            except BaseException:
                lock.close()
                raise

    def _sink_context(self, run: str) -> SinkContext:
        chain = self.chain
        layers = {fragment.number: fragment.layer for fragment in chain.fragments}
        count = chain.buckets(chain.fragments[-1].number)
        return SinkContext(self.typed.schema, count, run, chain.last, layers, self.checkpoint)

    def claim(self, sink: Sink) -> checkpoints.CheckpointId:
        """The claim on the checkpoint: made at the first start, checked at each further one."""
        assert self.checkpoint is not None, "a run without a checkpoint is refused before"
        plan, stages = checkpoints.digest_of(self.typed), self.chain.claims()
        facts = self._facts(sink.emit) | {"sink": type(sink).__name__}
        wanted = checkpoints.CheckpointId(plan, self.buckets, facts, stages, self.options.on_error)
        return checkpoints.claim(self.checkpoint, wanted)

    def _facts(self, emit: Emit) -> Claim:
        """All that the output depends on, beside the rows that come."""
        ports = {port.name: port for port in self.ports}
        return {
            "plan": plan_claim(self._plan),
            **settings_claim(self._settings),
            "emission": self.options.emission,
            "emit": emit,
            "in_order": self._in_order,
            "sources": {
                name: {
                    **schema_claim(self._schema(source)), **source.claim,
                    "follows_events": ports[name].keeps_events,
                }
                for name, source in self._sources.items()
            },
            "modules": module_claim(self._plan, self._settings.registry),
        }  # fmt: skip


def stateful_stage(packed: DataFrame, queries: QueryBytes, *, keep: bool = True, last: bool = True) -> DataFrame:
    """Every bucket of these queries. After it comes the sink, or another stage."""
    from streamproof.engines.spark.stream.processor import BucketProcessor  # noqa: PLC0415  # it is a class of Spark's

    return packed.groupBy(*KEY).transformWithStateInPandas(
        BucketProcessor(queries, keep=keep, last=last),
        ddl(OUTPUT if last else EDGE),
        outputMode="append",
        timeMode="none",
    )


def chained(packed: Sequence[DataFrame | None], stages: Sequence[QueryBytes], *, keep: bool = True) -> DataFrame:
    """Stages one after the other; each also takes in what is packed for it."""
    frame = packed[0]
    assert frame is not None, "the first stage reads sources"
    for number, queries in enumerate(stages, start=1):
        last = number == len(stages)
        frame = stateful_stage(frame, queries, keep=keep, last=last)
        more = None if last else packed[number]
        if more is not None:
            frame = frame.union(_on_edge(more))
    return frame


def _on_edge(packed: DataFrame) -> DataFrame:
    """Inputs of a later stage beside what comes from an earlier one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    zeros = [F.lit(0).cast("bigint").alias(name) for name in EDGE.names if name not in INPUT.names]
    return packed.select(*INPUT.names, *zeros)


def frame_ddl(schema: Schema, emit: Emit) -> str:
    """The columns of the output table, for Spark."""
    columns = [(field.name, _ddl(field.type)) for field in output_schema(schema, emit)]
    return ", ".join(f"{quoted(name)} {kind}" for name, kind in [*columns, ("bucket", "int")])


def _ddl(kind: pa.DataType) -> str:
    return "tinyint" if kind == pa.int8() else spark_type(type_of_arrow(kind))


def _unpack(schema: Schema, emit: Emit, last: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Outputs as rows, for ``mapInArrow``."""
    from streamproof.events.encode import cti as one_cti  # noqa: PLC0415  # workers that unpack know no more

    fields = output_schema(schema, emit)
    for batch in batches:
        batch = batch.filter(pc.equal(batch["query"], last))  # noqa: PLW2901  # others are counted only
        for bucket, cti, blob in zip(*(batch[n].to_pylist() for n in ("bucket", "cti", "rows")), strict=True):
            tables = [from_blobs([blob], fields)] if blob is not None else []
            if emit == "events":
                tables.append(one_cti(schema, cti).rows)
            for part in pa.concat_tables(tables).combine_chunks().to_batches() if tables else ():
                columns = [_for_spark(column) for column in part.columns]
                columns.append(pa.array([bucket] * part.num_rows, pa.int32()))
                yield pa.RecordBatch.from_arrays(columns, names=[*fields.names, "bucket"])


def _for_spark(column: pa.Array) -> pa.Array:
    return pa.nulls(len(column), pa.string()) if pa.types.is_null(column.type) else column


def open_sources(
    frames: Mapping[str, Any], time: Layout | Mapping[str, Layout] | None, given: Mapping[str, str]
) -> dict[str, SparkSource]:
    """The tables of the plan's sources, by what each is given as; one that is missing or too many is an error."""
    wanted = list(dict.fromkeys(given.values()))
    for name in frames:
        if name not in wanted:
            raise InputError(f'the plan has no source "{name}"', fix=did_you_mean(name, wanted))
    for name in wanted:
        if name not in frames:
            raise InputError(f'no input is given for the source "{name}"', fix=f'give inputs={{"{name}": table}}')
    layouts = layouts_of(time, wanted)
    for name, frame in frames.items():
        refuse_losing(name, frame)
    return {name: SparkSource(name, frames[table], layouts[table]) for name, table in given.items()}


def make_query(
    spark: SparkSession,
    plan: Plan,
    inputs: Mapping[str, DataFrame],
    settings: Settings,
    *,
    time: Layout | Mapping[str, Layout] | None = None,
    checkpoint: str | Path | None = None,
    extra: DataFrame | None = None,
    in_order: bool = False,
    **options: Any,
) -> StreamQuery:
    """A plan over streaming tables. ``options`` are those of `StreamQueryOptions`; ``extra`` is input that is packed
    already; ``in_order`` says that in each micro-batch partitions follow each other as their rows arrived.
    """
    known = [field.name for field in fields(StreamQueryOptions)]
    for name in options:
        if name not in known:
            raise InputError(f'there is no option "{name}" for a stream', fix=did_you_mean(name, known))
    with meaning(spark):
        apart, given = read_apart(plan)
        sources = open_sources(inputs, time, given)
        typed = prepare(apart, {name: source.schema for name, source in sources.items()}, settings)
        folder = None if checkpoint is None else Path(os.path.realpath(checkpoint))
        return StreamQuery(
            spark, typed, sources, settings, StreamQueryOptions(**options),
            checkpoint=folder, extra=extra, in_order=in_order, plan=plan,
        )  # fmt: skip
