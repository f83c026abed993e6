"""``streamproof verify``: a suite on engines against the oracle; proof with coverage, or a shrunk case that replays."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from streamproof.cli.inputs import input_files, open_input, rejected
from streamproof.cli.plans import load_plan, look_here, registry_of
from streamproof.cli.screen import err, note, out, print_line
from streamproof.errors import InputError
from streamproof.events.files.writer import check_target
from streamproof.pictures.text import as_text
from streamproof.report.verification import write_report
from streamproof.workbench import bench, repro
from streamproof.workbench.modules import all_modules
from streamproof.workbench.picture import timeline_of
from streamproof.workbench.repro import name_of, pytest_file, save
from streamproof.workbench.round_trip import printed
from streamproof.workbench.runner import VerifyOptions, run_suite
from streamproof.workbench.user_plan import verify_plan
from streamproof.workbench.verdict import EXIT_CODES

REPROS = Path("streamproof-repros")
SECONDS_BETWEEN_LINES = 30


def verify(
    suite: Annotated[
        list[str] | None,
        typer.Argument(help="smoke, full, large, deep, fuzz, a file (*.suite.py or *.json), or with --input a plan."),
    ] = None,
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE for each source of a plan: verify that plan over these.")
    ] = None,
    map: Annotated[list[str] | None, typer.Option(help="Columns of these files, e.g. start=time,unit=ms.")] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            help="local, spark, spark-buckets, spark-chain, spark-stream, spark-batch, duckdb, postgres; repeatable."
        ),
    ] = None,
    oracle: Annotated[str, typer.Option(help="Who judges: duckdb, postgres or evaluator.")] = "duckdb",
    dsn: Annotated[str | None, typer.Option(help="The PostgreSQL server, e.g. postgresql://user@host/name.")] = None,
    cases: Annotated[
        int | None, typer.Option(min=1, help="How many cases per engine; the suite says, if left out.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same cases.")] = None,
    jobs: Annotated[int, typer.Option(min=1, max=256, help="Processes to work in; Spark has its own threads.")] = 1,
    time_budget: Annotated[float | None, typer.Option(min=0, help="Stop after so many seconds.")] = None,
    most: Annotated[int, typer.Option(min=1, help="Stop after so many differences.")] = 3,
    report: Annotated[Path | None, typer.Option(help="Write a page about the run to this HTML file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --report file.")] = False,
    repros: Annotated[Path, typer.Option(help="The folder for shrunk cases.")] = REPROS,
    resume: Annotated[Path | None, typer.Option(help="Keep what is done in this file, and go on from it.")] = None,
    replay: Annotated[Path | None, typer.Option(help="Judge one saved case again.")] = None,
    modules: Annotated[
        list[str] | None, typer.Option(help="Python modules: what plans call, and what suites import from this folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Results and errors as JSON.")] = False,
) -> None:
    """Verify engines: make queries and imperfect streams, run them, judge by SQL over the canonical history."""
    if modules:
        look_here()
    if replay is not None:
        raise typer.Exit(_replayed(replay, engine or [], dsn, json=json))
    if report is not None:
        check_target(Path(os.path.realpath(report)), overwrite=overwrite)
    if resume is not None:
        check_target(resume, overwrite=True)
    if not suite:
        fix = "give smoke, full, large, deep, fuzz, a file, or --replay FILE"
        raise InputError("no suite is given", at="streamproof verify", fix=fix)

    options = VerifyOptions(
        engines=tuple(engine or ()), oracle=oracle, dsn=dsn, cases=cases, seed=seed, jobs=jobs,
        time_budget=time_budget, most=most, resume=resume,
    )  # fmt: skip
    files = None if input is None else (input, map or [])
    results = [_run(name, options, repros, files, modules, json=json) for name in suite]
    if report is not None:
        write_report(results, report, overwrite=overwrite)
        note(f"report: {report}")
    if json:
        print_line(jsonlib.dumps([_plain(result) for result in results], ensure_ascii=False))
    raise typer.Exit(max(_exit_code(result) for result in results))


def _run(
    name: str, options: Any, folder: Path, files: tuple[list[str], list[str]] | None, modules: list[str] | None, *,
    json: bool,
) -> Any:  # fmt: skip

    with _bar(name) as advance:
        if files is None:
            result = run_suite(name, options, progress=advance)
        else:
            plan, streams = load_plan(name), _streams(*files)
            known = registry_of(modules, all_modules())
            result = verify_plan(plan, streams, options, name=Path(name).name, registry=known, progress=advance)
    save_found(result, folder)
    if not json:
        show_result(result, covers=files is None)
    return result


def _streams(inputs: list[str], maps: list[str]) -> dict[str, Any]:
    readers = {name: open_input(name, path, maps=maps) for name, path in input_files(inputs, maps).items()}
    streams = {name: reader.stream() for name, reader in readers.items()}
    for reader in readers.values():
        if reader.rejected:
            note(rejected(reader))
    return streams


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int, int], None]]:
    """Progress on standard error: a bar on a terminal, a line now and then elsewhere."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    last = monotonic()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(f"verify {name}", total=None)

        def step(done: int, planned: int, found: int) -> None:
            nonlocal last
            words = f"{found} found" if found else "all hold"
            bar.update(task, completed=done, total=planned, description=f"verify {name}: {words}")
            if not err.is_terminal and monotonic() - last > SECONDS_BETWEEN_LINES:
                last = monotonic()
                note(f"verify {name}: {done:,} of {planned:,} cases, {words}")

        yield step


def save_found(result: Any, folder: Path) -> None:
    """Every shrunk case as a repro file and as a test."""

    for one in result.found:
        place = folder / f"{name_of(one)}.json"
        save(one, place)
        test = place.with_name(f"test_{place.stem}.py")
        test.write_text(pytest_file(one), encoding="utf-8")
        result.repros.append(place)


def show_result(result: Any, *, covers: bool = True) -> None:
    """What came of a run, on the screen; ``covers``: with what the cases of a suite cover, and what not."""
    for tally in result.tallies.values():
        speed = tally.cases / tally.seconds * 60 if tally.seconds else 0
        laws = ", ".join(f"{law} {count:,}" for law, count in sorted(tally.laws.items()))
        words = ", ".join(f"{count:,} {word}" for word, count in tally.words.items())
        numbers = f"{tally.rows:,} rows, {speed:,.0f} cases a minute"
        out.print(f"[bold]{tally.engine}[/] against {result.oracle}: {words}; {numbers}")
        out.print(f"  laws: {laws}", style="dim")
    for name, findings in result.modules.items():
        for finding in findings:
            out.print(f"[bold red]fails[/] {escape(name)}: {escape(finding)}")
    if covers:
        _show_coverage(result)
    for one, place in zip(result.found, result.repros, strict=False):
        _show_found(one, place)
    stopped = f", stopped: {result.stopped}" if result.stopped else ""
    numbers = f"{result.cases:,} cases in {result.seconds:.0f} s{stopped}"
    out.print(f"{result.suite}, seed {result.seed}: [bold]{result.verdict}[/], {numbers}")


def _show_coverage(result: Any) -> None:
    for tally in result.tallies.values():
        missing = tally.coverage.missing()
        ops = tally.coverage.section("op")
        shown = f"{len(ops)} operators, {len(tally.coverage.section('aggregate'))} aggregates"
        modules, functions = len(tally.coverage.section("module")), len(tally.coverage.section("function"))
        rest = f"; not covered: {', '.join(missing[:12])}{' …' if len(missing) > 12 else ''}" if missing else ""
        out.print(
            f"  {tally.engine} covers {shown}, {modules} calls of modules, {functions} functions{rest}", style="dim"
        )


def _show_found(one: Any, place: Path) -> None:
    law = f" (law: {one.verdict.law})" if one.verdict.law else ""
    out.print(
        f"\n[bold red]{one.verdict.word}[/] {one.engine}: {escape(one.verdict.kind)}{law}, {one.case.size} events"
    )
    out.print(escape(one.verdict.text))
    out.print(escape(printed(one.case.plan, "python")), style="green")
    out.print(escape(as_text(timeline_of(one), width=min(out.width, 110))), highlight=False)
    out.print(f"again: streamproof verify --replay {place}\n")


def _replayed(path: Path, engines: list[str], dsn: str | None, *, json: bool) -> int:
    """Judge one saved case, on its engine or on others."""

    saved = repro.load(path)
    code = 0
    for name in bench.engine_names(engines) or [saved.engine]:
        verdict = bench.replay(replace(saved, engine=name), dsn=dsn)
        again = replace(saved, verdict=verdict, engine=name)
        code = max(code, verdict.exit_code)
        if json:
            print_line(jsonlib.dumps(repro.write(again), ensure_ascii=False))
        elif verdict.is_found:
            _show_found(again, path)
        else:
            rows = len(repro.shown_rows(verdict.actual))
            out.print(f"[bold]{verdict.word}[/] {name} on {escape(path.name)}: {rows} rows, as expected")
    return code


def _exit_code(result: Any) -> int:
    return EXIT_CODES[result.verdict]


def _plain(result: Any) -> dict[str, Any]:
    return {
        "suite": result.suite, "seed": result.seed, "oracle": result.oracle, "verdict": result.verdict,
        "cases": result.cases, "planned": result.planned, "seconds": round(result.seconds, 3),
        "stopped": result.stopped, "modules": result.modules, "repros": [str(path) for path in result.repros],
        "engines": {name: tally.as_dict() for name, tally in result.tallies.items()},
    }  # fmt: skip
