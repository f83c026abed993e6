"""``streamproof run --engine spark --mode stream``: files as a stream on Spark, with a checkpoint to go on from.

Nothing here loads Spark before a run begins.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from streamproof.cli.inputs import input_files, mapping_for
from streamproof.cli.screen import counted, err, note, print_blocks, print_line, progress, show_history
from streamproof.engines.job import Job
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping
from streamproof.events.history import History
from streamproof.events.validate import Policy

Mode = Literal["batch", "stream"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """What a streaming run on Spark is told."""

    checkpoint: Path | None  # without one, the run cannot be continued
    out: Path | None  # a folder
    emit: Literal["cht", "events"]
    emission: str
    on_error: Policy
    metrics: bool
    quiet: bool
    as_json: bool
    limit: int
    growing: bool  # more files will come


def refuse_mode(engine: str, mode: Mode | None, checkpoint: Path | None) -> None:
    """``--mode`` and ``--checkpoint`` are Spark's."""
    if engine != "spark" and mode is not None:
        raise InputError(f"the engine {engine} has no modes", fix="leave out --mode, or use --engine spark")
    if checkpoint is not None and mode != "stream":
        raise InputError("only a stream has a checkpoint", fix="say --engine spark --mode stream")


def run_stream(job: Job, inputs: list[str], maps: list[str], options: StreamOptions) -> None:
    """Run everything that lies in the input files or folders as a stream, and show or keep its output."""
    modules = ("stream.files", "sinks", "session")
    files, sinks, sessions = (importlib.import_module(f"streamproof.engines.spark.{name}") for name in modules)
    places = input_files(inputs, maps)
    with ExitStack() as stack, progress("starting Spark") as doing:
        checkpoint = options.checkpoint or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder = options.out or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sink = sinks.FileSink(folder, content=options.emit)
        run = files.FileRun(
            job.plan, places, checkpoint, job.settings, time=_layouts(places, maps), final=not options.growing,
            options={"emission": options.emission, "on_error": options.on_error},
        )  # fmt: skip
        session = sessions.active() or sessions.session(**sessions.STREAMING)
        doing.now("running on Spark")
        try:
            found = files.run_files(session, run, sink, watcher=lambda _batch, m: doing(m.as_dict()["events"]))
        except KeyboardInterrupt:
            if options.checkpoint is not None:
                note(f"stopped; the same command goes on from {options.checkpoint}")
            raise
        _give(sinks.read_output(folder), folder, options)
        for file, why in {} if options.quiet else run.skipped().items():
            note(f"{file} was not read: {why}")
        for file, count in run.rejected().items():
            note(f"{counted(count, 'row')} could not be read" + (f"; see {file}" if options.checkpoint else ""))
    _report(found, options)


def _layouts(places: Mapping[str, Path], maps: list[str]) -> dict[str, ColumnMapping]:
    found = {name: mapping_for(name, maps) for name in places}
    return {name: mapping for name, mapping in found.items() if mapping is not None}


def _give(history: History, folder: Path, options: StreamOptions) -> None:
    if options.out is not None:
        note(f"{counted(len(history), 'row')} in {folder}")
    elif options.as_json or options.emit == "events":
        print_blocks(history.json_lines())
    else:
        show_history(history, most=options.limit)


def _report(metrics: Any, options: StreamOptions) -> None:
    found = metrics.as_dict()
    if found["dropped"] and not options.quiet:
        note(f"{counted(found['dropped'], 'event')} came too late and were left out")
    if options.metrics and options.as_json:
        print_line(f'{{"metrics": {metrics.to_json()}}}')
    elif options.metrics:
        err.print("\n".join(f"{name}: {value}" for name, value in found.items()), markup=False)
