"""A driver that runs a query over files, and is killed with all its processes where it is told.

    python -m tests.spark.stream.kill_target FOLDER [STEP BATCH]

STEP is a step of the sink (written, renamed, recorded), ``committing`` for a moment after the sink has everything and
before Spark has noted it, or ``seconds`` for a moment after the start of the first micro-batch.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from threading import Timer

from streamproof.engines.base import Settings
from streamproof.engines.spark.session import session
from streamproof.engines.spark.sinks import FileSink, OutputBatch
from streamproof.engines.spark.stream.files import FileRun, run_files
from tests.spark.sessions import FAST
from tests.spark.stream.test_tables import SALES


def kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)  # Java too, so that nothing can finish what was begun


def main(folder: Path, step: str, number: int) -> None:
    def on_step(reached: str, batch: int) -> None:
        if (reached, batch) == (step, number):
            kill()

    def watcher(batch: OutputBatch, metrics: object) -> None:
        if step == "committing" and batch.number == number:
            Timer(0.005, kill).start()

    if step == "seconds":
        Timer(number / 1000, kill).start()
    spark = session(**FAST)
    inputs = {"S": folder / "in"}
    run = FileRun(SALES.plan, inputs, folder / "cp", Settings(), final=False, options={"buckets": 3})
    run_files(spark, run, FileSink(folder / "out", content="cht", on_step=on_step), watcher=watcher)
    time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "", int(sys.argv[3]) if len(sys.argv) > 3 else -1)
