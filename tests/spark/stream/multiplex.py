"""Many cases in one streaming query: each is a query of its own inside the one stateful stage, with its own buckets."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.engines.spark.failures import error_from
from streamproof.engines.spark.stream.chain import StageChain
from streamproof.engines.spark.stream.query import chained, stateful_stage
from streamproof.engines.spark.stream.running import state_store
from streamproof.engines.spark.stream.stage import QueryBytes
from streamproof.engines.spark.stream.wire import INPUT, ddl, from_blobs, output_schema
from streamproof.events.history import History
from tests.spark.stream.chaining import chain_of
from tests.spark.stream.chaining import micro_batches as chained_batches
from tests.spark.stream.splitting import Subject, micro_batches
from tests.spark.stream.test_bucket import history_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run_together(
    spark: SparkSession, subjects: Sequence[Subject], folder: Path, *, batches: int, keep: bool = True
) -> list[History]:
    """The result of every subject, all run in one streaming query."""
    numbered = [subject.numbered(n) for n, subject in enumerate(subjects)]
    _write_batches(numbered, folder / "in", batches)
    frame = spark.readStream.schema(ddl(INPUT)).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    answers: list[pa.Table] = []
    seen: list[int] = []

    def take(batch: DataFrame, number: int) -> None:
        seen.append(number)
        answers.append(batch.select("query", "cti", "rows").toArrow())

    packed = stateful_stage(frame, QueryBytes.of([subject.stage for subject in numbered]), keep=keep)
    writer = packed.writeStream.outputMode("append").foreachBatch(take).trigger(availableNow=True)
    with state_store(spark):
        query = writer.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        query.awaitTermination()
    except Exception as error:
        raise error_from(str(error)) from None
    assert len(seen) == batches, "one micro-batch per file"
    together = pa.concat_tables(answers)
    return [_result(subject, together) for subject in numbered]


def run_chains(
    spark: SparkSession, subjects: Sequence[Subject], folder: Path, *, batches: int, restart: int, keep: bool = True
) -> list[History]:
    """The result of every subject in chained stages, all in one streaming query that is started twice."""
    chains: list[StageChain] = []
    for subject in subjects:
        chains.append(chain_of(subject, first=sum(len(chain.fragments) for chain in chains)))
    staged = [
        chain.stages(subject.settings, "speculative", subject.emit)
        for chain, subject in zip(chains, subjects, strict=True)
    ]
    layers = max(chain.layers for chain in chains)
    hosts = [
        {n: s for stages in staged for n, s in (stages[k] if k < len(stages) else {}).items()} for k in range(layers)
    ]
    cut = [list(chained_batches(s, c, batches, seed=n)) for n, (s, c) in enumerate(zip(subjects, chains, strict=True))]
    answers: list[pa.Table] = []

    def take(batch: DataFrame, number: int) -> None:
        answers.append(batch.select("query", "cti", "rows").toArrow())

    (folder / "in").mkdir()
    for first, last in ((0, restart), (restart, batches)):
        for number in range(first, last):
            _write(pa.concat_tables([tables[number] for tables in cut]), folder / "in", number)
        frame = spark.readStream.schema(ddl(INPUT)).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
        packed = chained([frame, *[None] * (layers - 1)], [QueryBytes.of(host) for host in hosts], keep=keep)
        writer = packed.writeStream.outputMode("append").foreachBatch(take).trigger(availableNow=True)
        with state_store(spark):
            writer.option("checkpointLocation", str(folder / "checkpoint")).start().awaitTermination()
    together = pa.concat_tables(answers)
    return [_result(subject.numbered(chain.last), together) for subject, chain in zip(subjects, chains, strict=True)]


def _write_batches(subjects: Sequence[Subject], folder: Path, count: int) -> None:
    folder.mkdir()
    cut = [list(micro_batches(subject, count, seed=n)) for n, subject in enumerate(subjects)]
    for number in range(count):
        _write(pa.concat_tables([tables[number] for tables in cut]), folder, number)


def _write(table: pa.Table, folder: Path, number: int) -> None:
    file = folder / f"{number:03}.parquet"
    pq.write_table(table.cast(INPUT), file)
    os.utime(file, (1e9 + number, 1e9 + number))  # Spark reads files in the order of these


def _result(subject: Subject, answers: pa.Table) -> History:
    mine = answers.filter(pa.compute.equal(answers["query"], subject.query))
    schema = output_schema(subject.typed.schema, subject.emit)
    return history_of(subject, from_blobs(mine["rows"].drop_null().to_pylist(), schema))
