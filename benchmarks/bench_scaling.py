"""What a micro-batch costs on Spark, as a fixed part and a part per event: the figures to size a cluster with.

python benchmarks/bench_scaling.py [--query Q2 --query Q4] [--batches 7] [--rate 1000000]

Each query runs with micro-batches of several sizes; CPU seconds of the whole process tree per micro-batch (Python, Java
and the Python workers, once Java is warm) are fitted by o + c·events. From that follow the cores for a rate of events:
a micro-batch every T seconds takes o/T + c·rate cores. See docs/scaling.md.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from engine.report import save
from pyspark.sql import SparkSession
from spark.micro import QUERIES, checkpoints, hosted, make_files

from streamproof.engines.spark.session import STREAMING, session
from streamproof.plan.nodes import sources

SIZES = (10_000, 100_000, 300_000)
PERIODS = (1, 10, 60)
SKIPPED = 2  # micro-batches


@dataclass(frozen=True)
class Cost:
    """CPU seconds of a micro-batch with so many events, and the line through them."""

    query: str
    points: tuple[tuple[int, float], ...]

    @property
    def line(self) -> tuple[float, float]:
        """The fixed part, and the part per event; no part is below nothing."""
        events, costs = np.array(self.points).T
        each, fixed = np.polyfit(events, costs, 1)
        return max(0.0, float(fixed)), float(each)

    def cores(self, rate: int, period: float) -> float:
        fixed, each = self.line
        return fixed / period + each * rate

    def said(self, rate: int) -> str:
        fixed, each = self.line
        seen = ", ".join(f"{cost:.2f} at {events:,}" for events, cost in self.points)
        cores = ", ".join(f"{self.cores(rate, period):.1f} with one every {period} s" for period in PERIODS)
        return (
            f"{self.query}: {fixed:.2f} CPU-s per micro-batch + {1e6 * each:.2f} µs per event (measured {seen}); "
            f"cores for {rate:,} events/s: {cores}"
        )


def cost_of(spark: SparkSession, name: str, folder: Path, places: Iterator[Path]) -> Cost:
    """One query with micro-batches of each size; the first run warms Java up, and first micro-batches start a query."""
    _, stream = QUERIES[name]
    inputs, points = len(sources(stream.plan)), []
    for size in (SIZES[0], *SIZES):
        folders = {source: folder / str(size) / source for source in ("S", "R")}
        points.append((size * inputs, hosted(spark, stream, folders, next(places), skipped=SKIPPED)))
    return Cost(name, tuple(points[1:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--query", action="append", choices=list(QUERIES))
    parser.add_argument("--batches", type=int, default=7)
    parser.add_argument("--rate", type=int, default=1_000_000, help="events per second to extrapolate to")
    options = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=memory if memory.is_dir() else None))
    spark = session(**STREAMING, **{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    places = checkpoints(folder / "runs")
    try:
        for size in SIZES:
            for seed, name in enumerate(("S", "R")):
                make_files(folder / str(size) / name, size * options.batches, options.batches, seed)
        found = []
        for name in options.query or QUERIES:
            found.append(cost_of(spark, name, folder, places))
            print(found[-1].said(options.rate), flush=True)
        save("scaling", {each.query: {"points": each.points, "line": each.line} for each in found})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
