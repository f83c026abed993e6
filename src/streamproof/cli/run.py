"""``streamproof run``: a plan over files, on an engine.

One road, whatever the engine is: the job is made, its inputs are opened, and it runs in the way that the engine offers;
then what it gave is shown or written, and what was left out is counted. Which options an engine honours is looked up in
its `Capabilities`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamproof.cli.inputs import input_files, mapping_for, open_input, plain_name, rejected, split_input
from streamproof.cli.live import LiveRun
from streamproof.cli.options import takes
from streamproof.cli.outputs import refuse_outputs
from streamproof.cli.plans import load_plan, read_horizon, registry_of
from streamproof.cli.screen import counted, err, note, out, print_blocks, print_line, progress, show_head
from streamproof.cli.stopping import exit_code
from streamproof.engines.base import capabilities_of
from streamproof.engines.job import Job, on
from streamproof.engines.results import Emit, Metrics, Run
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, write
from streamproof.events.history import History
from streamproof.events.validate import Policy, Validator
from streamproof.pictures.text import marbles
from streamproof.plan import nodes
from streamproof.plan.limits import Limits

Mode = Literal["batch", "stream"]
PICTURE_ROWS = 12  # larger results are shown as a table only


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The command line."""

    plan: Annotated[str, typer.Argument(help="A plan: FILE.json, .xml, .eql, .sql or module:object.", metavar="PLAN")]
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE for each source: a file, a folder or a pattern.")
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            help="spark, duckdb, postgres, or local: part by part as input comes.", envvar="STREAMPROOF_ENGINE"
        ),
    ] = "spark"
    mode: Annotated[Mode | None, typer.Option(help="spark: batch (default), or stream.")] = None
    checkpoint: Annotated[Path | None, typer.Option(help="spark stream: where to go on from after a stop.")] = None
    growing: Annotated[
        bool, typer.Option("--growing", help="spark stream: more files will come; the end is not the end of history.")
    ] = False
    emit: Annotated[Emit, typer.Option(help="The canonical history, or physical events.")] = "cht"
    out: Annotated[Path | None, typer.Option(help="Write to this file; its ending tells the format.")] = None
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --out or --savepoint.")] = False
    json: Annotated[bool, typer.Option("--json", help="One JSON row per line, and errors as JSON.")] = False
    horizon: Annotated[str | None, typer.Option(help="Count only windows that end at or before this tick.")] = None
    map: Annotated[
        list[str] | None, typer.Option(help="Columns of real files, e.g. start=time,duration=1h,unit=ms.")
    ] = None
    on_error: Annotated[Policy, typer.Option(help="What happens to illegal events.")] = "fail"
    rejects: Annotated[Path | None, typer.Option(help="Where unreadable rows go; else NAME.rejects.jsonl.")] = None
    dead_letters: Annotated[Path | None, typer.Option(help="Where illegal events go under dead_letter.")] = None
    modules: Annotated[list[str] | None, typer.Option(help="Python modules with UDFs, UDAs and UDOs.")] = None
    dsn: Annotated[str | None, typer.Option(help="The PostgreSQL server, for --engine postgres.")] = None
    max_windows: Annotated[int, typer.Option(min=1, help="The most windows one event may fall into.")] = 1_000_000
    emission: Annotated[
        Literal["speculative", "eager", "final"], typer.Option(help="local: when results come out.")
    ] = "speculative"
    batch_size: Annotated[int | None, typer.Option(min=1, help="local: the most events that run at once.")] = None
    savepoint: Annotated[Path | None, typer.Option(help="local: after Ctrl-C, the savepoint goes here.")] = None
    from_savepoint: Annotated[Path | None, typer.Option(help="local: continue from such a savepoint.")] = None
    late_file: Annotated[Path | None, typer.Option(help="local: where events go that advance_time drops.")] = None
    on_module_error: Annotated[
        Literal["fail", "dead-letter"], typer.Option(help="local: what happens where a module fails.")
    ] = "fail"
    module_letters: Annotated[Path | None, typer.Option(help="local: where a module's failures go.")] = None
    metrics: Annotated[bool, typer.Option("--metrics", help="local: the run in numbers, at its end.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="local: no progress and no remarks.")] = False
    show_sql: Annotated[bool, typer.Option("--show-sql", help="Print the SQL instead of running it.")] = False
    limit: Annotated[int, typer.Option(min=0, help="How many rows to show on a terminal.")] = 20

    def job(self) -> Job:
        """The plan on the engine, with the options that the engine is made with."""
        honoured = capabilities_of(self.engine).options
        made_with: dict[str, Any] = {"dsn": self.dsn, "emission": self.emission}
        return on(
            load_plan(self.plan),
            self.engine,
            horizon=read_horizon(self.horizon),
            modules=registry_of(self.modules),
            limits=Limits(windows_per_event=self.max_windows),
            on_module_error="dead_letter" if self.on_module_error == "dead-letter" else "fail",
            **{name: value for name, value in made_with.items() if name in honoured and value is not None},
        )

    @property
    def continues(self) -> bool:
        """Whether the run continues from the savepoint that it replaces."""
        places = [None if path is None else os.path.realpath(path) for path in (self.savepoint, self.from_savepoint)]
        return places[0] is not None and places[0] == places[1]


@takes(Asked)
def run(asked: Asked) -> None:
    """Run a plan over files and print its canonical history."""
    refuse_mode(asked.engine, asked.mode, asked.checkpoint)
    job = asked.job()
    inputs = Inputs(job, asked)
    if asked.show_sql:
        print_line(job.sql(inputs.opened()))
        return
    is_live = job.engine.capabilities.start is not None
    way = _streamed if asked.mode == "stream" else _live if is_live else _whole
    ended = way(job, inputs, asked)
    inputs.report()
    for text in ended.left_out:
        note(text)
    ended.show()
    for text in () if asked.quiet else ended.notes:
        note(text)
    if asked.metrics and ended.metrics is not None:
        _show_metrics(ended.metrics, as_json=asked.json)
    if ended.code:
        raise typer.Exit(ended.code)


def _show_metrics(metrics: Metrics, *, as_json: bool) -> None:
    if as_json:
        print_line(f'{{"metrics": {metrics.to_json()}}}')
    else:
        err.print(str(metrics), markup=False)


def refuse_mode(engine: str, mode: Mode | None, checkpoint: Path | None) -> None:
    """``--mode`` is for engines that run files as a stream too, and ``--checkpoint`` for such streams."""
    if mode is not None and capabilities_of(engine).file_stream is None:
        raise InputError(f"the engine {engine} has no modes", fix="leave out --mode, or use --engine spark")
    if checkpoint is not None and mode != "stream":
        raise InputError("only a stream has a checkpoint", fix="say --engine spark --mode stream")


@dataclass(frozen=True, kw_only=True)
class Ended:
    """A run that is over."""

    show: Callable[[], None]  # the result, which is worked out
    left_out: Sequence[str] = ()
    notes: Sequence[str] = ()
    metrics: Metrics | None = None
    code: int = 0


def _whole(job: Job, inputs: Inputs, asked: Asked) -> Ended:
    """Inputs as wholes."""
    inputs.refuse_outputs()
    starting = job.engine.capabilities.starting()
    with progress("running" if starting is None else f"{starting}, and running") as doing:
        found = job.run(inputs.opened(on_rows=doing), validators=inputs.validators)
        return Ended(show=_shown(found, asked), left_out=found.left_out, notes=found.notes, metrics=found.metrics)


def _live(job: Job, inputs: Inputs, asked: Asked) -> Ended:
    """Part by part, with output as it comes."""
    inputs.refuse_outputs()
    starting = job.engine.capabilities.starting()
    if starting is not None and not asked.quiet:
        note(starting)
    live = LiveRun(job, inputs, asked)
    found = live.run()
    return Ended(
        show=(lambda: None) if found is None else _shown(found, asked),
        notes=live.notes(),
        metrics=live.query.metrics if asked.metrics else None,
        code=exit_code() if live.interrupted else 0,
    )


def _streamed(job: Job, inputs: Inputs, asked: Asked) -> Ended:
    """Files as a stream, with a checkpoint to go on from."""
    with progress(job.engine.capabilities.starting() or "running") as doing:
        try:
            found = job.stream_files(
                inputs.files, mappings=inputs.mappings, checkpoint=asked.checkpoint, out=asked.out, emit=asked.emit,
                emission=asked.emission, on_error=asked.on_error, final=not asked.growing, watch=doing,
            )  # fmt: skip
        except KeyboardInterrupt:
            if asked.checkpoint is not None:
                note(f"stopped; the same command goes on from {asked.checkpoint}")
            raise
        show = _shown(found, asked) if asked.out is None else _kept(found, asked)
        return Ended(show=show, left_out=found.left_out, notes=found.notes, metrics=found.metrics)


def _shown(found: Run, asked: Asked) -> Callable[[], None]:
    """Work out what is to be shown, or write it; what is given back prints it."""
    if asked.out is not None:
        count = found.write(asked.out, emit=asked.emit, overwrite=asked.overwrite)
        return lambda: _note_written(count, asked)
    if asked.emit == "events":
        events = found.events
        return lambda: print_blocks(events.json_lines())
    if asked.json:
        history = found.history
        return lambda: print_blocks(history.json_lines())
    head, rows = found.head(max(asked.limit, PICTURE_ROWS))
    return lambda: _show_head(head, rows, most=asked.limit)


def _kept(found: Run, asked: Asked) -> Callable[[], None]:
    """A result that is in the folder of ``--out`` already."""
    count = len(found.events) if asked.emit == "events" else found.head(0)[1]
    return lambda: _note_written(count, asked)


def _note_written(count: int, asked: Asked) -> None:
    note(f"{counted(count, 'row' if asked.emit == 'cht' else 'event')} in {asked.out}")


def _show_head(head: History, rows: int, *, most: int) -> None:
    show_head(head, rows, most=most)
    if 0 < rows <= PICTURE_ROWS:
        out.print(marbles(head, width=out.width), markup=False)


class Inputs:
    """The files of ``--input``, how they are read, and what becomes of what cannot be read or is illegal."""

    def __init__(self, job: Job, asked: Asked) -> None:
        self._job, self._asked = job, asked
        self._maps = asked.map or []
        names = nodes.sources(job.plan)
        self.files = input_files(asked.input or [], self._maps)
        self.validators = {name: Validator(policy=asked.on_error) for name in names}
        self._letters = _letters(asked.dead_letters, names)
        self.readers: dict[str, Reader] = {}

    @property
    def mappings(self) -> dict[str, ColumnMapping]:
        found = {name: mapping_for(name, self._maps) for name in self.files}
        return {name: mapping for name, mapping in found.items() if mapping is not None}

    def opened(self, *, on_rows: Callable[[int], None] | None = None) -> dict[str, Reader]:
        """A reader for each; ``on_rows`` is told how many rows were read."""
        declared = {node.name: node.schema for node in nodes.walk(self._job.plan) if isinstance(node, nodes.Source)}
        for name, path in self.files.items():
            self.readers[name] = open_input(
                name, path, maps=self._maps, schema=declared.get(name), rejects=self._asked.rejects, on_rows=on_rows
            )
        return self.readers

    def refuse_outputs(self) -> None:
        """Refuse files that cannot be written, or would be written over something, before anything is read."""
        asked = self._asked
        refuse_outputs(
            {
                "--out": asked.out, "--rejects": asked.rejects, "--late-file": asked.late_file,
                "--module-letters": asked.module_letters, "--savepoint": asked.savepoint,
                **{f"--dead-letters of {name}": path for name, path in self._letters.items()},
            },
            [split_input(text)[1] for text in asked.input or []],
            replaced=["--out", "--savepoint"] if asked.overwrite else ["--savepoint"] if asked.continues else (),
            ours=["--rejects", "--late-file", "--module-letters"] if asked.from_savepoint is not None else (),
        )  # fmt: skip
        if asked.rejects is not None and len(self.files) > 1:
            fix = "leave it out: each input then has a file NAME.rejects.jsonl of its own"
            raise InputError(
                "several inputs cannot share one file of rejects", at=f"--rejects {asked.rejects}", fix=fix
            )

    def report(self) -> None:
        """What was left out, if anything: never silent."""
        for name, reader in self.readers.items():
            if reader.rejected:
                note(f"input {name}: {rejected(reader)}")
        for name, validator in self.validators.items():
            for error, count in validator.counts.items():
                note(f"input {name}: {counted(count, 'event')} left out ({error})")
            if name in self._letters and len(validator.dead_letters):
                write(validator.dead_letters, self._letters[name])
                note(f"input {name}: they are in {self._letters[name]}")


def _letters(path: Path | None, sources: Sequence[str]) -> dict[str, Path]:
    """Where the illegal events of each source go: where there are several, each has a file of its own."""
    if path is None or len(sources) < 2:
        return {} if path is None else dict.fromkeys(sources, path)
    return {name: path.with_name(f"{path.stem}.{plain_name(name)}{path.suffix}") for name in sources}
