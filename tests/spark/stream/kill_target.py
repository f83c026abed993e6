"""A driver that kills itself: python -m tests.spark.stream.kill_target FOLDER PLAN [STEP NUMBER [CHANGES]]

STEP is a step of the sink (written, renamed, recorded) in micro-batch NUMBER, ``committing`` for a moment after the
sink has everything and before Spark has noted it, or ``millis`` for so many milliseconds after Spark is there.

CHANGES are names in `CHANGED`: before it goes on, the driver tries to go on with each of them, and notes in
``told.jsonl`` what came of it.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.spark.output import Content, expanded, read_state
from streamproof.engines.spark.session import session
from streamproof.engines.spark.session import settings as of_spark
from streamproof.engines.spark.sinks import FileSink, OutputBatch
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.errors import StreamproofError
from streamproof.plan.limits import Limits
from tests.spark.sessions import FAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


GIVEN: Mapping[str, Any] = {"files_per_batch": 2, "on_error": "drop", "emission": "speculative", **OPTIONS}
CHANGED: dict[str, Mapping[str, Any]] = {
    "emission final": {"emission": "final"},
    "emission eager": {"emission": "eager"},
    "horizon": {"horizon": 40},
    "limits": {"limits": Limits(windows_per_event=50)},
    "not optimised": {"optimise": False},
    "buckets": {"buckets": 2},
    "stages": {"stages": "fused"},
    "on_error fail": {"on_error": "fail"},
    "plan": {"plan": S.where("v > 3")},
    "plan: windows": {"plan": S.group_by("k").tumbling(11).aggregate(n=sp.count(), m=sp.max("v"))},
    "rows": {"content": "rows"},
    "cht": {"content": "cht"},
    "events": {"content": "events"},
    "jsonl": {"format": "jsonl"},
    "time": {"time": sp.ColumnMapping(start="re")},
    "place": {"place": "copy"},
    # what may change
    "dead letters": {"on_error": "dead_letter"},
    "files: one": {"files_per_batch": 1},
    "files: three": {"files_per_batch": 3},
    "not compact": {"compact": False},
    "not in memory": {"keep_in_memory": False},
    "Spark: parts": {"spark": {"spark.sql.shuffle.partitions": "3"}},
    "Spark: zone": {"spark": {"spark.sql.session.timeZone": "Asia/Tokyo", "spark.sql.ansi.enabled": "false"}},
    "Spark: upper case": {"spark": {"spark.sql.caseSensitive": "true"}},
    "Spark: rows at a time": {"spark": {"spark.sql.execution.arrow.maxRecordsPerBatch": "7"}},
}
"""What is not as it was at the start."""


def told(folder: Path, *words: object) -> None:
    with (folder / "told.jsonl").open("a") as out:
        out.write(json.dumps([str(word) for word in words]) + "\n")


@contextmanager
def away(place: Path, instead: Path | None = None) -> Iterator[None]:
    """A folder that is gone, or another one, until somebody refuses it."""
    aside = place.with_name(f"{place.name}-away")
    place.rename(aside)
    if instead is not None:
        shutil.copytree(instead, place)
    try:
        yield
    except StreamproofError:
        shutil.rmtree(place, ignore_errors=True)
        aside.rename(place)
        raise
    shutil.rmtree(aside)


@contextmanager
def altered(file: Path, data: Callable[[bytes], bytes | None]) -> Iterator[None]:
    """A file that is another one, or gone, until somebody refuses it."""
    about, before = file.stat(), file.read_bytes()
    after = data(before)
    file.unlink() if after is None else file.write_bytes(after)
    try:
        yield
    except StreamproofError:
        file.write_bytes(before)
        os.utime(file, ns=(about.st_atime_ns, about.st_mtime_ns))
        raise


def last(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern))


def last_of_output(folder: Path) -> Path:
    """The last file that counts; one that a kill left before it was recorded is written again, whatever is in it."""
    state = read_state(folder / "out")
    assert state is not None, "the first run wrote one"
    return folder / "out" / max(part.name for part in expanded(folder / "out", (*state.files, *state.open)))


DAMAGED: dict[str, Callable[[Path], Any]] = {
    "output gone": lambda folder: away(folder / "out"),
    "output of an earlier moment": lambda folder: away(folder / "out", folder / "out-before"),
    "checkpoint of an earlier moment": lambda folder: away(folder / "cp", folder / "cp-before"),
    "checkpoint gone": lambda folder: away(folder / "cp"),
    "file of the output lost": lambda folder: altered(last_of_output(folder), lambda data: None),
    "file of the output cut": lambda folder: altered(last_of_output(folder), lambda data: data[:-9]),
    "state of the output cut": lambda folder: altered(last(folder, "out/_stream*"), lambda data: data[:-9]),
    "claim cut": lambda folder: altered(last(folder, "cp/streamproof.json"), lambda data: data[:-9]),
    "input grown": lambda folder: altered(folder / "in/000000.parquet", lambda data: data + data),
    "input half": lambda folder: altered(last(folder, "in/*.parquet"), lambda data: data[: len(data) // 2]),
}
"""What is not as it was left."""


def kill() -> None:
    os.killpg(os.getpgid(0), signal.SIGKILL)  # Java too, so that nothing can finish what was begun


def drive(spark: SparkSession, folder: Path, plan: str, given: Mapping[str, Any], watch: tuple[str, int]) -> None:
    """Everything that lies there now, with these settings."""
    step, number = watch

    def on_step(reached: str, batch: int) -> None:
        if (reached, batch) == (step, number):
            kill()

    def watcher(batch: OutputBatch, metrics: object) -> None:
        if step == "committing" and batch.number == number:
            Timer(0.005, kill).start()

    stream, content = PLANS[plan]
    plain = {"plan": stream, "place": "in", "time": None, "content": content, "format": "parquet", "compact": True}
    told = {**plain, **given}
    options = {
        name: told[name] for name in ("buckets", "stages", "emission", "on_error", "keep_in_memory") if name in told
    }
    settings = Settings(**{name: told[name] for name in ("horizon", "limits", "optimise") if name in told})
    run = FileRun(
        told["plan"].plan, {"S": folder / told["place"]}, folder / "cp", settings, told["time"],
        told.get("files_per_batch", 1), final=False, options=options,
    )  # fmt: skip
    sink = FileSink(
        folder / "out", content=told["content"], format=told["format"], compact=told["compact"], on_step=on_step
    )
    with of_spark(spark, told.get("spark", {})):
        run_files(spark, run, sink, watcher=watcher)


def main(folder: Path, plan: str, step: str, number: int, *changes: str) -> None:
    place = folder / "spark"  # which goes with the folder: what is killed leaves it there
    place.mkdir(exist_ok=True)
    spark = session(**{**FAST, "spark.local.dir": str(place)})
    for change in changes:
        told(folder, change, "tried")
        try:
            with DAMAGED.get(change, lambda _: nullcontext())(folder):
                watch = ("", -1) if change in DAMAGED else (step, number)  # what is put back must not be killed
                drive(spark, folder, plan, {**GIVEN, **CHANGED.get(change, {})}, watch)
            told(folder, change, "done")
        except StreamproofError as error:
            told(folder, change, "refused", error)
    if step == "millis":
        Timer(number / 1000, kill).start()
    drive(spark, folder, plan, GIVEN if changes else OPTIONS, (step, number))
    time.sleep(0.1)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], *(sys.argv[3:4] or [""]), int(*(sys.argv[4:5] or ["-1"])), *sys.argv[5:])
