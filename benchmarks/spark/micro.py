"""Micro-batches: what one costs however small it is, and how cost grows with its size."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # what everybody calls it

import streamproof as sp
from spark.cpu import tree_cpu
from streamproof.engines.spark.sinks import CallSink, OutputBatch
from streamproof.plan.nodes import sources

KEYS, DELAY, LONGEST = 1_000, 5_000, 20
FOREVER = sp.FOREVER
S, R = sp.source("S"), sp.source("R")
POINTS = S.to_point()
QUERIES = {
    "Q2": ("keyed tumbling count, sum", POINTS.group_by("k").tumbling(1000).aggregate(n=sp.count(), s=sp.sum("v"))),
    "Q3": ("keyed hopping avg", POINTS.group_by("k").hopping(10_000, 1000).aggregate(a=sp.avg("v"))),
    "Q4": ("keyed temporal join", S.join(R, "l.k = r.k", select={"k": "l.k", "x": "l.v", "y": "r.v"})),
    "Q6": ("top 3 per second", POINTS.tumbling(1000).top(3, by=sp.desc("v"))),
}
MAPPING = sp.ColumnMapping(start="le", end="re", kind="kind", unit="ms", payload=["k", "v"])


def make_files(folder: Path, events: int, batches: int, seed: int) -> None:
    """One event per millisecond on average; at the end of each file a CTI that trails behind."""
    random = np.random.default_rng(seed)
    folder.mkdir(parents=True)
    size = events // batches
    for number in range(batches):
        le = np.arange(number * size, (number + 1) * size, dtype=np.int64)
        last = FOREVER if number == batches - 1 else int(le[-1]) - DELAY
        table = pa.table({
            "kind": pa.array(np.append(np.zeros(size, np.int8), np.int8(2))),
            "le": np.append(le, last),
            "re": np.append(le + random.integers(1, LONGEST + 1, size), last),
            "at": pa.array(np.append(le, le[-1]) * 1000, pa.timestamp("us", "UTC")),
            "until": pa.array(np.append(le + LONGEST, le[-1]) * 1000, pa.timestamp("us", "UTC")),
            "k": random.integers(0, KEYS, size + 1),
            "v": random.integers(0, 1000, size + 1) / 8,
        })  # fmt: skip
        file = folder / f"{number:06}.parquet"
        pq.write_table(table, file)
        os.utime(file, (1e9 + number, 1e9 + number))


def table(spark: SparkSession, folder: Path) -> DataFrame:
    schema = spark.read.parquet(str(folder)).schema
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder))


def ours(spark: SparkSession, stream: sp.Stream, folders: dict[str, Path], checkpoint: Path) -> int:
    rows = [0]

    def count(batch: OutputBatch) -> None:
        rows[0] += batch.rows.num_rows

    frames = {name: table(spark, folders[name]) for name in sources(stream.plan)}
    query = stream.on("spark", session=spark).stream(frames, time=MAPPING, checkpoint=checkpoint)
    query.start(CallSink(count, emit="rows"), trigger={"availableNow": True}).wait()
    return rows[0]


def measured(work: Callable[[], int]) -> tuple[float, float, int]:
    cpu, clock = tree_cpu(), time.perf_counter()
    rows = work()
    return tree_cpu() - cpu, time.perf_counter() - clock, rows


def checkpoints(folder: Path) -> Iterator[Path]:
    number = 0
    while True:
        yield folder / f"checkpoint-{number}"
        number += 1


def floor(spark: SparkSession, folder: Path, runs: int) -> None:
    """Seconds per micro-batch of 50 rows: ours, and a stateful function that does nothing."""
    make_files(folder / "small", 50 * 24, 24, seed=3)
    frames = {"S": folder / "small"}

    def nothing(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415  # on the worker

        count = sum(len(frame) for frame in frames)
        state.update((count,))
        yield pd.DataFrame({"n": [count]})

    def idle(checkpoint: Path) -> list[dict[str, Any]]:
        frame = table(spark, folder / "small").withColumn("bucket", F.lit(0)).groupBy("bucket")
        stage = frame.applyInPandasWithState(nothing, "n bigint", "n bigint", "append", "NoTimeout")
        writer = stage.writeStream.outputMode("append").foreachBatch(lambda batch, _: batch.collect() and None)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
        query.awaitTermination()
        return query.recentProgress

    def kernels(checkpoint: Path) -> list[dict[str, Any]]:
        stream = QUERIES["Q2"][1]
        query = stream.on("spark", session=spark).stream(
            {"S": table(spark, frames["S"])}, time=MAPPING, checkpoint=checkpoint, buckets=1
        )
        running = query.start(CallSink(lambda _: None, emit="rows"), trigger={"availableNow": True})
        running.wait()
        return running.query.recentProgress

    places = checkpoints(folder / "floor")
    for _ in range(runs):
        for name, work in (("do nothing", idle), ("ours", kernels)):
            progress = work(next(places))[4:]
            whole, adding = (
                sorted(p["durationMs"][part] for p in progress)[len(progress) // 2]
                for part in ("triggerExecution", "addBatch")
            )
            print(f"{name:12} median {whole} ms per micro-batch, {adding} in addBatch", flush=True)
