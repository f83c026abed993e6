"""``streamproof run``: a plan over files, on an engine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from streamproof.cli.inputs import input_files, open_input, plain_name, rejected, split_input
from streamproof.cli.live_options import Emission, Emit, LiveOptions, Output, live_run, report
from streamproof.cli.outputs import refuse_outputs
from streamproof.cli.plans import load_plan, read_horizon, registry_of
from streamproof.cli.screen import counted, note, out, print_blocks, print_line, progress, show_history
from streamproof.cli.spark_stream import Mode, StreamOptions, refuse_mode, run_stream
from streamproof.cli.stopping import exit_code
from streamproof.engines.inputs import Input
from streamproof.engines.job import Job, Run, on
from streamproof.errors import InputError
from streamproof.events.files import Reader, write
from streamproof.events.validate import Policy, Validator
from streamproof.plan import nodes
from streamproof.plan.limits import Limits

PICTURE_ROWS = 12  # larger results are shown as a table only


def run(
    plan: Annotated[str, typer.Argument(help="A plan: FILE.json, .xml, .eql, .sql or module:object.", metavar="PLAN")],
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE for each source; JSONL, CSV, Parquet or Arrow.")
    ] = None,
    engine: Annotated[
        str,
        typer.Option(
            help="spark, duckdb, postgres, or local: part by part as input comes.", envvar="STREAMPROOF_ENGINE"
        ),
    ] = "spark",
    mode: Annotated[Mode | None, typer.Option(help="spark: batch (default), or stream.")] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="spark stream: where to go on from after a stop.")] = None,
    growing: Annotated[
        bool, typer.Option("--growing", help="spark stream: more files will come; the end is not the end of history.")
    ] = False,
    emit: Annotated[Emit, typer.Option(help="The canonical history, or physical events.")] = "cht",
    out: Annotated[Path | None, typer.Option(help="Write to this file; its ending tells the format.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --out or --savepoint.")] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON row per line, and errors as JSON.")] = False,
    horizon: Annotated[str | None, typer.Option(help="Count only windows that end at or before this tick.")] = None,
    map: Annotated[
        list[str] | None, typer.Option(help="Columns of real files, e.g. start=time,duration=1h,unit=ms.")
    ] = None,
    on_error: Annotated[Policy, typer.Option(help="What happens to illegal events.")] = "fail",
    rejects: Annotated[Path | None, typer.Option(help="Where unreadable rows go; else NAME.rejects.jsonl.")] = None,
    dead_letters: Annotated[Path | None, typer.Option(help="Where illegal events go under dead_letter.")] = None,
    modules: Annotated[list[str] | None, typer.Option(help="Python modules with UDFs, UDAs and UDOs.")] = None,
    dsn: Annotated[str | None, typer.Option(help="The PostgreSQL server, for --engine postgres.")] = None,
    max_windows: Annotated[int, typer.Option(min=1, help="The most windows one event may fall into.")] = 1_000_000,
    emission: Annotated[Emission, typer.Option(help="local: when results come out.")] = "speculative",
    batch_size: Annotated[int | None, typer.Option(min=1, help="local: the most events that run at once.")] = None,
    savepoint: Annotated[Path | None, typer.Option(help="local: after Ctrl-C, the savepoint goes here.")] = None,
    from_savepoint: Annotated[Path | None, typer.Option(help="local: continue from such a savepoint.")] = None,
    late_file: Annotated[Path | None, typer.Option(help="local: where events go that advance_time drops.")] = None,
    on_module_error: Annotated[
        Literal["fail", "dead-letter"], typer.Option(help="local: what happens where a module fails.")
    ] = "fail",
    module_letters: Annotated[Path | None, typer.Option(help="local: where a module's failures go.")] = None,
    metrics: Annotated[bool, typer.Option("--metrics", help="local: the run in numbers, at its end.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="local: no progress and no remarks.")] = False,
    show_sql: Annotated[bool, typer.Option("--show-sql", help="Print the SQL instead of running it.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="How many rows to show on a terminal.")] = 20,
) -> None:
    """Run a plan over files and print its canonical history."""
    refuse_mode(engine, mode, checkpoint)
    settings: dict[str, Any] = {
        "horizon": read_horizon(horizon), "modules": registry_of(modules),
        "limits": Limits(windows_per_event=max_windows),
    }  # fmt: skip
    if mode == "stream":
        told = StreamOptions(
            checkpoint=checkpoint, out=out, emit=emit, emission=emission, on_error=on_error, metrics=metrics,
            quiet=quiet, as_json=json, limit=limit, growing=growing,
        )  # fmt: skip
        run_stream(on(load_plan(plan), engine, **settings), input or [], map or [], told)
        return
    options = LiveOptions(
        emission=emission, batch_size=batch_size, savepoint=savepoint, from_savepoint=from_savepoint,
        late_file=late_file, on_module_error=on_module_error, module_letters=module_letters,
        metrics=metrics, quiet=quiet,
    )  # fmt: skip
    engine_options: dict[str, Any] = {**({} if dsn is None else {"dsn": dsn}), **options.engine_options(engine)}
    job = on(load_plan(plan), engine, **settings, **engine_options)
    letters = _letters(dead_letters, nodes.sources(job.plan))
    refuse_outputs(
        {
            "--out": out, "--rejects": rejects, "--late-file": late_file, "--module-letters": module_letters,
            "--savepoint": savepoint, **{f"--dead-letters of {name}": path for name, path in letters.items()},
        },
        [split_input(text)[1] for text in input or []],
        replaced=["--out", "--savepoint"] if overwrite else ["--savepoint"] if _same(savepoint, from_savepoint) else (),
        ours=["--rejects", "--late-file", "--module-letters"] if from_savepoint is not None else (),
    )  # fmt: skip
    if rejects is not None and len(input or []) > 1:
        fix = "leave it out: each input then has a file NAME.rejects.jsonl of its own"
        raise InputError("several inputs cannot share one file of rejects", at=f"--rejects {rejects}", fix=fix)
    validators = {name: Validator(policy=on_error) for name in nodes.sources(job.plan)}
    output = Output(emit=emit, out=out, overwrite=overwrite)
    with progress("reading") as doing:
        is_live = engine == "local" and not show_sql  # which shows its own progress
        readers, files = _open(job, input or [], map or [], rejects, None if is_live else doing)
        loaded = {} if is_live else job.load(readers, validators)
        if show_sql:
            print_line(_sql(job, {name: part.schema for name, part in loaded.items()}))
            return
        doing.now("starting Spark, and running" if engine == "spark" else "running")
        result = None if is_live else job.run_loaded(loaded)
    if is_live:
        live = live_run(job, readers, validators, options=options, output=output, files=files)
        result = live.run()
    _report(readers, validators, letters)
    if result is not None:
        _give(result, output, as_json=json, limit=limit, streamed=is_live and emit == "events")
    if is_live:
        report(live, options, as_json=json)
    if result is None:
        raise typer.Exit(exit_code())


def _same(savepoint: Path | None, from_savepoint: Path | None) -> bool:
    """Returns whether a run continues from the savepoint that it replaces."""
    if savepoint is None or from_savepoint is None:
        return False
    return os.path.realpath(savepoint) == os.path.realpath(from_savepoint)


def _give(result: Run, output: Output, *, as_json: bool, limit: int, streamed: bool) -> None:
    """The result, unless it went out piece by piece already."""
    if streamed:
        return
    if output.out is None:
        _show(result, emit=output.emit, as_json=as_json, limit=limit)
        return
    write(result.history if output.emit == "cht" else result.events, output.out, overwrite=output.overwrite)
    note(f"{counted(len(result.history), 'row')} in {output.out}")


def _open(
    job: Job, inputs: list[str], maps: list[str], rejects: Path | None, advance: Callable[[int], None] | None
) -> tuple[dict[str, Input], dict[str, Path]]:
    """Readers of the inputs, and their files."""
    declared = {node.name: node.schema for node in nodes.walk(job.plan) if isinstance(node, nodes.Source)}
    readers: dict[str, Input] = {}
    files = input_files(inputs, maps)
    for name, path in files.items():
        readers[name] = open_input(name, path, maps=maps, schema=declared.get(name), rejects=rejects, on_rows=advance)
    return readers, files


def _sql(job: Job, schemas: Mapping[str, object]) -> str:
    show: Callable[..., str] | None = getattr(job.engine, "show_sql", None)
    if show is None:
        raise InputError(f"the engine {job.engine.name} does not use SQL", fix="use --engine duckdb or postgres")
    return show(job.check(schemas), job.settings)  # type: ignore[arg-type]  # Loaded.schema are schemas


def _letters(path: Path | None, sources: Sequence[str]) -> dict[str, Path]:
    """Where the illegal events of each source go: where there are several, each has a file of its own."""
    if path is None or len(sources) < 2:
        return {} if path is None else dict.fromkeys(sources, path)
    return {name: path.with_name(f"{path.stem}.{plain_name(name)}{path.suffix}") for name in sources}


def _report(readers: Mapping[str, Input], validators: Mapping[str, Validator], letters: Mapping[str, Path]) -> None:
    """What was left out, if anything: never silent."""
    for name, reader in readers.items():
        if isinstance(reader, Reader) and reader.rejected:
            note(f"input {name}: {rejected(reader)}")
    for name, validator in validators.items():
        for error, count in validator.counts.items():
            note(f"input {name}: {counted(count, 'event')} left out ({error})")
        if name in letters and len(validator.dead_letters):
            write(validator.dead_letters, letters[name])
            note(f"input {name}: they are in {letters[name]}")


def _show(result: Run, *, emit: Emit, as_json: bool, limit: int) -> None:
    if emit == "events":
        print_blocks(result.events.json_lines())
    elif as_json:
        print_blocks(result.history.json_lines())
    else:
        show_history(result.history, most=limit)
        if 0 < len(result.history) <= PICTURE_ROWS:
            out.print(result.picture(width=out.width), markup=False)
