"""``streamproof replay``: a stream at its own pace, into a folder, a socket, Kafka or standard output."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from streamproof.cli.screen import err, note, print_line
from streamproof.disorder.replaying import Recording, Replay
from streamproof.disorder.targets import open_target
from streamproof.disorder.units import read_unit
from streamproof.events.files.listing import read_separator

if TYPE_CHECKING:
    from streamproof.disorder.replaying import Played


def replay(
    file: Annotated[Path, typer.Argument(help="A CSV or JSONL file in arrival order, e.g. one that disorder made.")],
    to: Annotated[
        str, typer.Option(help="A folder, tcp://host:port, kafka://broker:port/topic, or - for standard output.")
    ] = "-",
    speed: Annotated[float, typer.Option(help="Times as fast: 60 plays an hour in a minute.")] = 1.0,
    as_fast_as_possible: Annotated[
        bool, typer.Option("--as-fast-as-possible", help="Keep the order only, not the delays.")
    ] = False,
    time: Annotated[
        str | None, typer.Option(help="The column that says when a row is due; else ingestion_time, or the first one.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="How long a tick is; else as the manifest says, or ms.")] = None,
    separator: Annotated[str, typer.Option(help="What separates the fields of a CSV file.")] = ",",
    every: Annotated[float, typer.Option(help="Into a folder: one file for so many seconds.")] = 1.0,
    rows_per_file: Annotated[
        int, typer.Option(min=1, max=2**31, help="Into a folder, as fast as possible: rows in a file.")
    ] = 10_000,
    key: Annotated[str | None, typer.Option(help="Into Kafka: the column that is the message's key.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Stop after so many rows.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="A file that remembers the place; if it exists, go on from there.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Into a folder that is not empty.")] = False,
    json: Annotated[
        bool, typer.Option("--json", help="How it went, and errors, as JSON; on standard error with --to -.")
    ] = False,
) -> None:
    """Play a stream back: every row is delivered when it is due, so that the delays are kept."""

    recording = Recording(
        file,
        time_column=time,
        unit=None if unit is None else read_unit(unit, "--unit"),
        separator=read_separator(separator, "--separator"),
    )
    going_on = resume is not None and resume.exists()
    target = open_target(to, recording, overwrite=overwrite or going_on, key=key)
    with _progress(file) as show:
        player = Replay(
            recording, target, speed=None if as_fast_as_possible else speed, every=every, rows_per_file=rows_per_file,
            limit=limit, state=resume, progress=show,
        )  # fmt: skip
        played = player.run()
    text = jsonlib.dumps(played.as_dict())
    if json and to == "-":
        err.print(text)
    elif json:
        print_line(text)
    else:
        note(_summary(played))


@contextmanager
def _progress(file: Path) -> Iterator[Callable[[Played], None]]:
    columns = (
        TextColumn("replaying"), BarColumn(), TextColumn("{task.fields[rows]:,} rows"),
        TextColumn("{task.fields[rate]:,.0f}/s"), TextColumn("lag {task.fields[lag]:.1f} ms"), TimeElapsedColumn(),
    )  # fmt: skip
    total = file.stat().st_size if file.is_file() else None
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task("replaying", total=total, rows=0, rate=0.0, lag=0.0)

        def show(played: Played) -> None:
            seconds = bar.tasks[0].elapsed or 1.0
            bar.update(
                task,
                completed=played.offset,
                rows=played.rows,
                rate=(played.rows - played.before) / seconds,
                lag=played.last_lag,
            )

        yield show


def _summary(played: Played) -> str:
    lag = played.lag(0.99)
    late = "" if lag is None else f"; 99 % at most {lag:.1f} ms late"
    bad = f"; {played.rejected:,} rows without a time left out" if played.rejected else ""
    return f"{played.rows - played.before:,} rows in {played.seconds:.1f} s{late}{bad}"
