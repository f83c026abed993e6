"""``streamproof analyze``: how disordered a stream is, and which watermark delay to choose."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, cast

import typer

from streamproof.cli.outputs import refuse_outputs
from streamproof.cli.screen import note, print_line, progress, safe_text
from streamproof.disorder.analysis import analyze_file
from streamproof.disorder.units import TimeUnit, read_unit
from streamproof.errors import InputError
from streamproof.events.files.listing import read_separator
from streamproof.events.files.rejects import free_name
from streamproof.events.files.writer import check_target, replacing


def analyze(
    file: Annotated[Path, typer.Argument(help="A CSV, JSONL or Parquet file, perhaps packed, or a folder of them.")],
    event_time: Annotated[str, typer.Option(help="The column with the event time: its name, or its number from 0.")],
    arrival: Annotated[
        str | None, typer.Option(help="The column with the arrival; else rows arrive as they stand.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="How long a tick is: ps, ns, us, ms, s. Instants: us.")] = None,
    key: Annotated[str | None, typer.Option(help="A column to tell devices apart: which ones are late?")] = None,
    separator: Annotated[str, typer.Option(help="What separates the fields of a CSV file.")] = ",",
    header: Annotated[
        bool | None,
        typer.Option("--header/--no-header", help="Whether the first line names the columns; else it is found out."),
    ] = None,
    format: Annotated[str | None, typer.Option(help="csv, jsonl or parquet; else by the ending.")] = None,
    zone: Annotated[str | None, typer.Option(help="The zone of instants that name none; else UTC.")] = None,
    more: Annotated[bool, typer.Option("--more", help="Inversions, Kendall's tau, buffer, displacement, REM.")] = False,
    batch_rows: Annotated[
        int | None, typer.Option(min=1, max=2**40, help="What would Spark drop with micro-batches of so many rows?")
    ] = None,
    delay: Annotated[str | None, typer.Option(help="With --batch-rows: at this watermark delay, e.g. 10m.")] = None,
    window: Annotated[str | None, typer.Option(help="With --batch-rows: in tumbling windows of this length.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a report with plots to this file.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --html file.")] = False,
    rejects: Annotated[
        Path | None, typer.Option(help="Where rows go that cannot be read; else NAME.rejects.jsonl.")
    ] = None,
    on: Annotated[str, typer.Option(help="auto, spark, or here: in this process.")] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="On Spark, with so many partitions.")
    ] = None,
    work: Annotated[Path | None, typer.Option(help="A folder for what lies between the steps.")] = None,
    json: Annotated[bool, typer.Option("--json", help="The figures, and errors, as JSON.")] = False,
) -> None:
    """Say how disordered a stream is, what a watermark delay would lose, and which one to choose."""

    ticks = _unit(unit)
    if on not in ("auto", "spark", "here"):
        raise InputError(f"--on cannot be {on}", at="--on", fix="auto, spark or here")
    if html is not None:
        check_target(Path(os.path.realpath(html)), overwrite=overwrite)
    refuse_outputs({"--rejects": rejects}, [file])
    rejects = rejects or free_name(Path(f"{file.stem}.rejects.jsonl"))
    with progress("analyzing"):
        found = analyze_file(
            file, _column(event_time), arrival=None if arrival is None else _column(arrival), unit=ticks,
            key=None if key is None else _column(key), separator=read_separator(separator, "--separator"),
            header=header, format=format, zone=zone, more=more, batch_rows=batch_rows, delay=delay, window=window,
            on=on, partitions=partitions, work=work, rejects=rejects,
        )  # fmt: skip
    if html is not None:
        with replacing(Path(os.path.realpath(html)), overwrite=overwrite) as place:
            place.write_text(found.to_html(), encoding="utf-8")
    print_line(found.to_json() if json else safe_text(str(found)))
    if found["rejected"] and not json:
        note(f"the rejected rows are in {rejects}")
    if html is not None and not json:
        note(f"the report is in {html}")


def _unit(text: str | None) -> TimeUnit | None:
    return None if text is None else read_unit(text, "--unit")


def _column(text: str) -> int | str:
    return cast("int | str", text)  # a number is a place, unless a column has that name
