"""A plan whose key changes, on Spark: fused into one stage of one bucket, or cut into stages.

python benchmarks/bench_chain.py [--events 1000000] [--batches 10] [--rounds 2] [--query count] [--buckets 2]

A keyed part, light or heavier, whose results go through a top 10 of all keys. Printed are CPU seconds of all
processes, the time in the kernels, and how much of that is in one bucket: the part that no further core makes faster.
See decision 16.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from engine.report import save
from pyspark.sql import SparkSession
from spark.micro import MAPPING, checkpoints, make_files, measured, table

import streamproof as sp
from streamproof.engines.spark.session import STREAMING, session
from streamproof.engines.spark.sinks import CallSink, OutputBatch
from streamproof.engines.spark.stream.chain import Stages

POINTS = sp.source("S").to_point()
QUERIES = {
    "count": POINTS.group_by("k").tumbling(10_000).aggregate(n=sp.count(), s=sp.sum("v")),
    "median": POINTS.group_by("k").tumbling(10_000).aggregate(n=sp.count(), m=sp.median("v"), d=sp.count_distinct("v")),
}
"""The keyed part: one that is light, and one that is heavier."""


@dataclass(frozen=True)
class Way:
    """One way to run a plan, and what it took."""

    query: str
    stages: Stages
    buckets: int
    cpu: float = 0.0
    kernels: float = 0.0  # seconds in all of them
    alone: float = 0.0  # of these, in stages of one bucket
    rows: int = 0

    def said(self) -> str:
        return (
            f"{self.query}, {self.stages} with {self.buckets} buckets: {self.cpu:.1f} CPU-s, "
            f"{self.kernels:.2f} s in kernels, {self.alone:.2f} s of them in one bucket, {self.rows} rows"
        )


def run(spark: SparkSession, way: Way, folder: Path, checkpoint: Path) -> Way:
    """The plan over all files, one per micro-batch."""
    rows = 0

    def count(batch: OutputBatch) -> None:
        nonlocal rows
        rows += batch.rows.num_rows

    found: dict[str, Any] = {}

    def work() -> int:
        best = QUERIES[way.query].tumbling(10_000).top(10, by=sp.desc("n"))
        query = best.on("spark", session=spark).stream(
            {"S": table(spark, folder)}, time=MAPPING, checkpoint=checkpoint, buckets=way.buckets, stages=way.stages
        )
        running = query.start(CallSink(count, emit="rows"), trigger={"availableNow": True})
        running.wait()
        found.update(running.metrics.as_dict())
        return rows

    cpu, _, _ = measured(work)
    stages = found.get("stages", {1: found})
    alone = stages[max(stages)]["micros"] / 1e6  # the last stage has one bucket, and if fused, it is the only one
    return Way(way.query, way.stages, way.buckets, cpu, found["micros"] / 1e6, alone, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--query", action="append", choices=list(QUERIES))
    parser.add_argument("--buckets", type=int, action="append")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=memory if memory.is_dir() else None))
    spark = session(**STREAMING, **{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    places = checkpoints(folder / "runs")
    ways: list[Way] = []
    for name in options.query or QUERIES:
        ways += [Way(name, "fused", 1), *(Way(name, "chained", count) for count in options.buckets or [2, 8])]
    try:
        make_files(folder / "warm", 20_000, 2, 0)
        make_files(folder / "S", options.events, options.batches, 1)
        for way in ways:
            run(spark, way, folder / "warm", next(places))
        found = []
        for _ in range(options.rounds):
            for way in ways:
                found.append(run(spark, way, folder / "S", next(places)))
                print(found[-1].said(), flush=True)
        save("chain", {"events": options.events, "ways": [asdict(way) for way in found]})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
