"""``streamproof convert``: between file formats, and from real files to event files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from streamproof.cli.inputs import open_input, rejected
from streamproof.cli.outputs import refuse_outputs
from streamproof.cli.screen import counted, note, progress
from streamproof.events.files import write
from streamproof.events.physical import to_history
from streamproof.events.validate import Validator

Emit = Literal["events", "cht"]


def convert(
    source: Annotated[
        Path, typer.Argument(help="JSONL, CSV, Parquet, Arrow: a file, folder or pattern.", metavar="FROM")
    ],
    target: Annotated[Path, typer.Argument(help="The file to write; its ending tells the format.", metavar="TO")],
    map: Annotated[list[str] | None, typer.Option(help="Columns of real files, e.g. start=time,unit=ms.")] = None,
    emit: Annotated[Emit, typer.Option(help="Physical events, or the canonical history they fold to.")] = "events",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
) -> None:
    """Convert a stream between formats. Nothing is lost: unreadable rows go to a rejects file and are counted."""
    refuse_outputs({"--out": target}, [source], replaced=["--out"] if overwrite else ())
    validator = Validator()
    with progress("reading") as advance:
        reader = open_input(source.stem, source, maps=map or [], on_rows=advance)
        if emit == "cht":
            history = to_history(validator.check(chunk) for chunk in reader)
            write(history, target, overwrite=overwrite)
            rows = counted(len(history), "event")
        else:
            stream = reader.stream()
            write(stream, target, overwrite=overwrite)
            rows = counted(reader.rows_read - reader.rejected, "row")
    note(f"{rows} in {target}")
    if reader.rejected:
        note(rejected(reader))
