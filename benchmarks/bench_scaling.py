"""What a micro-batch costs on Spark, as a fixed part and a part per event: the figures to size a cluster with.

python benchmarks/bench_scaling.py [--query Q2 --query Q4] [--batches 6] [--rate 1000000]

Each query runs with micro-batches of several sizes; CPU seconds of the whole process tree per micro-batch (Python, Java
and the Python workers, once Java is warm) are fitted by o + c·events. From that follow the cores for a rate of events:
a micro-batch every T seconds takes o/T + c·rate cores, and T can be as short as o·(1 + spare) allows.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path

import numpy as np
from spark.micro import QUERIES, checkpoints, make_files, measured, ours

from streamproof.engines.spark.session import session
from streamproof.plan.nodes import sources

SIZES = (10_000, 100_000, 400_000)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--query", action="append", choices=list(QUERIES))
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--rate", type=int, default=1_000_000, help="events per second to extrapolate to")
    chosen = parser.parse_args()
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=memory if memory.is_dir() else None))
    spark = session(**{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2"})
    places = checkpoints(folder / "runs")
    try:
        for size in SIZES:
            for seed, name in enumerate(("S", "R")):
                make_files(folder / str(size) / name, size * chosen.batches, chosen.batches, seed)
        for name in chosen.query or QUERIES:
            title, stream = QUERIES[name]
            inputs = len(sources(stream.plan))
            points = []
            for size in (SIZES[0], *SIZES):  # the first warms Java up
                folders = {source: folder / str(size) / source for source in ("S", "R")}
                cpu, _, _ = measured(lambda f=folders, s=stream: ours(spark, s, f, next(places)))
                points.append((size * inputs, cpu / chosen.batches))
            events, costs = np.array(points[1:]).T
            each, fixed = np.polyfit(events, costs, 1)
            cores = [(seconds, fixed / seconds + each * chosen.rate) for seconds in (1, 10, 60)]
            shown = ", ".join(f"{needed:.1f} cores with one every {seconds} s" for seconds, needed in cores)
            print(
                f"{name} {title}: {fixed:.2f} CPU-s per micro-batch + {1e6 * each:.2f} µs per event "
                f"(measured {', '.join(f'{c:.2f} at {int(e):,}' for e, c in zip(events, costs, strict=True))}); "
                f"{chosen.rate:,} events/s: {shown}",
                flush=True,
            )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
