"""A driver that kills itself: python -m tests.spark.stream.kill_target FOLDER PLAN [STEP NUMBER]

STEP is a step of the sink (written, renamed, recorded) in micro-batch NUMBER, ``committing`` for a moment after the
sink has everything and before Spark has noted it, or ``millis`` for so many milliseconds after Spark is there.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from threading import Timer

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.session import session
from streamproof.engines.spark.sinks import Content, FileSink, OutputBatch
from streamproof.engines.spark.stream.files import FileRun, run_files
from tests.spark.sessions import FAST

S = sp.source("S")
PLANS: dict[str, tuple[sp.Stream, Content]] = {
    "keyed": (S.group_by("k").tumbling(10).aggregate(n=sp.count(), m=sp.max("v")), "cht"),
    "global": (S.hopping(20, 5).aggregate(n=sp.count(), s=sp.sum("v")), "rows"),
    "pairs": (S.multicast(lambda s: s.join(s, "l.k = r.k and l.v < r.v", select={"k": "l.k", "x": "r.v"})), "events"),
    "stages": (S.group_by("k").tumbling(10).aggregate(n=sp.count()).tumbling(20).aggregate(m=sp.max("n")), "cht"),
    "best": (S.group_by("k").snapshot().top(1, by=sp.desc("v"), keep=["v"]), "events"),
}
"""Each with the content of its output."""
OPTIONS = {"buckets": 3, "stages": "chained"}


def kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)  # Java too, so that nothing can finish what was begun


def main(folder: Path, plan: str, step: str, number: int) -> None:
    def on_step(reached: str, batch: int) -> None:
        if (reached, batch) == (step, number):
            kill()

    def watcher(batch: OutputBatch, metrics: object) -> None:
        if step == "committing" and batch.number == number:
            Timer(0.005, kill).start()

    spark = session(**FAST)
    if step == "millis":
        Timer(number / 1000, kill).start()
    stream, content = PLANS[plan]
    inputs = {"S": folder / "in"}
    run = FileRun(stream.plan, inputs, folder / "cp", Settings(), final=False, options=OPTIONS)
    run_files(spark, run, FileSink(folder / "out", content=content, on_step=on_step), watcher=watcher)
    time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *(sys.argv[3:4] or [""]), int(*(sys.argv[4:5] or ["-1"])))
