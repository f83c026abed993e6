"""A driver on a cluster: one plan as a stream and as a batch job, and on the way an executor is killed.

python -m tests.spark.cluster_target MASTER FOLDER
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.metrics import Metrics
from streamproof.engines.spark.session import session
from streamproof.engines.spark.sinks import FileSink, OutputBatch, read_output
from streamproof.engines.spark.stream.files import FileRun, run_files
from tests.spark.cluster import executors
from tests.spark.stream.test_tables import SALES, local, sales

EXECUTORS = {
    "spark.executor.cores": "1", "spark.executor.memory": "600m", "spark.cores.max": "2",
    "spark.sql.shuffle.partitions": "2", "spark.driver.host": "127.0.0.1",
}  # fmt: skip


def main(master: str, folder: Path) -> None:
    spark = session(**{"spark.master": master, **EXECUTORS})
    killed: list[int] = []

    def watcher(batch: OutputBatch, metrics: Metrics) -> None:
        if batch.number == 2:
            killed.append(executors(spark.sparkContext.applicationId)[0])
            os.kill(killed[0], signal.SIGKILL)

    run = FileRun(SALES.plan, {"S": folder / "in"}, folder / "cp", Settings(), options={"buckets": 4})
    run_files(spark, run, FileSink(folder / "out", content="cht"), watcher=watcher)
    chunks = sales(files=8)
    wanted = local(SALES, {"S": sp.PhysicalStream.concat(chunks)})
    batch = SALES.on("spark", session=spark).run({"S": sp.PhysicalStream.concat(chunks)}).history
    print(json.dumps({
        "killed": len(killed), "rows": len(wanted), "stream": read_output(folder / "out") == wanted,
        "batch": batch == wanted,
    }))  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
