"""Micro-batches: what one costs however small it is, and how cost grows with its size."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # what everybody calls it

import streamproof as sp
from spark.cpu import tree_cpu
from streamproof.engines.spark.sinks import CallSink
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


def checkpoints(folder: Path) -> Iterator[Path]:
    number = 0
    while True:
        yield folder / f"checkpoint-{number}"
        number += 1


class Clock:
    """CPU seconds of the whole process tree between the ends of micro-batches; the first ones warm Java up."""

    def __init__(self, skipped: int) -> None:
        self._skipped, self._seen = skipped, [tree_cpu()]

    def tick(self, *_: object) -> None:
        self._seen.append(tree_cpu())

    @property
    def each(self) -> float:
        spent = np.diff(self._seen)[self._skipped :]
        return float(np.median(spent))


def idle(spark: SparkSession, folder: Path, checkpoint: Path, skipped: int) -> float:
    """CPU seconds per micro-batch of a stateful function that does nothing."""
    clock = Clock(skipped)

    def nothing(key: Any, frames: Iterator[Any], state: Any) -> Iterator[Any]:
        import pandas as pd  # noqa: PLC0415  # on the worker

        count = sum(len(frame) for frame in frames)
        state.update((count,))
        yield pd.DataFrame({"n": [count]})

    def seen(batch: DataFrame, _: int) -> None:
        batch.collect()
        clock.tick()

    frame = table(spark, folder).withColumn("bucket", F.lit(0)).groupBy("bucket")
    stage = frame.applyInPandasWithState(nothing, "n bigint", "n bigint", "append", "NoTimeout")
    writer = stage.writeStream.outputMode("append").foreachBatch(seen).trigger(availableNow=True)
    writer.option("checkpointLocation", str(checkpoint)).start().awaitTermination()
    return clock.each


def hosted(
    spark: SparkSession, stream: sp.Stream, folders: dict[str, Path], checkpoint: Path, skipped: int, **how: Any
) -> float:
    """CPU seconds per micro-batch of ours."""
    clock = Clock(skipped)
    frames = {name: table(spark, folders[name]) for name in sources(stream.plan)}
    query = stream.on("spark", session=spark).stream(frames, time=MAPPING, checkpoint=checkpoint, **how)
    query.start(CallSink(clock.tick, emit="rows"), trigger={"availableNow": True}).wait()
    return clock.each


def floor(spark: SparkSession, folder: Path, runs: int) -> tuple[float, float]:
    """CPU seconds per micro-batch of 50 rows: ours, and a stateful function that does nothing."""
    make_files(folder / "small", 50 * 24, 24, seed=3)
    places, small = checkpoints(folder / "floor"), folder / "small"
    stream, mine, theirs = QUERIES["Q2"][1], [], []
    for _ in range(runs):
        theirs.append(idle(spark, small, next(places), skipped=6))
        mine.append(hosted(spark, stream, {"S": small}, next(places), skipped=6, buckets=1))
    return min(mine), min(theirs)


def live_files(folder: Path, keys: int, batches: int) -> None:
    """A file with an event of each key, and then files that touch one key in a hundred."""
    random = np.random.default_rng(7)
    folder.mkdir(parents=True)
    for number in range(batches):
        touched = np.arange(keys) if number == 0 else random.choice(keys, keys // 100, replace=False)
        le = np.full(len(touched), number * 1000, np.int64)
        last = number * 1000 - DELAY
        rows = pa.table({
            "kind": pa.array(np.append(np.zeros(len(touched), np.int8), np.int8(2))),
            "le": np.append(le, last),
            "re": np.append(le + 1, last),
            "k": np.append(touched, 0),
            "v": np.append(random.integers(0, 1000, len(touched)) / 8, 0.0),
        })  # fmt: skip
        file = folder / f"{number:06}.parquet"
        pq.write_table(rows, file)
        os.utime(file, (1e9 + number, 1e9 + number))


def lively(spark: SparkSession, folder: Path, counts: tuple[int, ...]) -> list[float]:
    """CPU seconds per micro-batch that touches one key in a hundred, with so many keys alive."""
    places = checkpoints(folder / "lively")
    stream = POINTS.group_by("k").tumbling(10**12).aggregate(n=sp.count(), s=sp.sum("v"))
    spent = []
    for keys in counts:
        live_files(folder / f"live-{keys}", keys, 12)
        spent.append(hosted(spark, stream, {"S": folder / f"live-{keys}"}, next(places), skipped=4))
    return spent
