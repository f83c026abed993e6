"""Files as a stream on Spark, to their end: what ``Job.stream_files`` and ``run --mode stream`` do."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from streamproof.engines.base import Settings
from streamproof.engines.results import FileStream, Whole
from streamproof.engines.spark.output import read_events, read_output
from streamproof.engines.spark.sinks import FileSink
from streamproof.engines.spark.stream.files import FileRun, run_files
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from streamproof.engines.spark.metrics import StreamMetrics


def stream_files(spark: SparkSession, plan: Plan, what: FileStream, settings: Settings) -> Whole:
    """Run everything that lies in the files now; without a checkpoint or a folder for output, nothing is left of it.

    With a checkpoint, a run that is interrupted goes on from there.
    """
    with ExitStack() as stack:
        checkpoint, folder = (
            given or Path(stack.enter_context(tempfile.TemporaryDirectory())) for given in (what.checkpoint, what.out)
        )
        run = FileRun(
            plan, what.files, checkpoint, settings, time=dict(what.mappings), final=what.final,
            options={"emission": what.emission, "on_error": what.on_error},
        )  # fmt: skip
        sink = FileSink(folder, content=what.emit)
        metrics = run_files(spark, run, sink, watcher=lambda _batch, found: what.watch(found.as_dict()["events"]))
        content = read_output(folder) if what.emit == "cht" else read_events(folder)
        return Whole(
            content, metrics, tuple(_notes(run, metrics)), tuple(_left_out(run, keeps=what.checkpoint is not None))
        )


def _notes(run: FileRun, metrics: StreamMetrics) -> Iterator[str]:
    for file, why in run.skipped().items():
        yield f"{file} was not read: {why}"
    if dropped := metrics.as_dict()["dropped"]:
        yield f"{dropped:,} event{'s' * (dropped != 1)} came too late and were left out"


def _left_out(run: FileRun, *, keeps: bool) -> Iterator[str]:
    for file, count in run.rejected().items():
        yield f"{count:,} row{'s' * (count != 1)} could not be read" + (f"; see {file}" if keeps else "")
