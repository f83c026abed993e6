"""A driver on a cluster: plans as streams, in one stage and in two, and as a batch job, while executors are killed.

python -m tests.spark.cluster_target MASTER FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.metrics import StreamMetrics
from streamproof.engines.spark.output import read_output
from streamproof.engines.spark.session import session
from streamproof.engines.spark.sinks import FileSink, OutputBatch
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.events.history import History
from tests.spark.cluster import executors
from tests.spark.stream.test_tables import SALES, local, sales

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS = {
    "spark.executor.cores": "1", "spark.executor.memory": "600m", "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1",
}  # fmt: skip


BUSY = SALES.tumbling(20).top(2, by=sp.desc("n"), keep=["k", "n"])
MOMENT = 0.4  # seconds; by then the next micro-batch is on its way


def streamed(spark: SparkSession, plan: sp.Stream, folder: Path, stages: str, *, delay: float) -> tuple[History, int]:
    """What a streaming query gives that loses an executor soon after its third micro-batch, and how many it lost."""
    killed: list[int] = []

    def kill() -> None:
        killed.append(executors(spark.sparkContext.applicationId)[0])
        os.kill(killed[0], signal.SIGKILL)

    killer = Timer(delay, kill)

    def watcher(batch: OutputBatch, metrics: StreamMetrics) -> None:
        if batch.number == 2:
            killer.start()

    options = {"buckets": 4, "stages": stages}
    run = FileRun(plan.plan, {"S": folder / "in"}, folder / f"{stages}-checkpoint", Settings(), options=options)
    run_files(spark, run, FileSink(folder / stages, content="cht"), watcher=watcher)
    killer.join()
    return read_output(folder / stages), len(killed)


def main(master: str, folder: Path) -> None:
    spark = session(**{"spark.master": master, **EXECUTORS})
    fused, lost = streamed(spark, SALES, folder, "fused", delay=0)
    chained, more = streamed(spark, BUSY, folder, "chained", delay=MOMENT)
    inputs = {"S": sp.PhysicalStream.concat(sales(files=8))}
    wanted, busy = local(SALES, inputs), local(BUSY, inputs)
    batch = SALES.on("spark", session=spark).run(inputs).history
    print(json.dumps({
        "killed": lost + more, "rows": [len(wanted), len(busy)], "stream": fused == wanted, "chained": chained == busy,
        "batch": batch == wanted,
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
