"""``streamproof validate``: every rule that a physical stream breaks."""

from __future__ import annotations

import json as jsonlib
from pathlib import Path
from typing import Annotated

import typer

from streamproof.cli.inputs import open_input
from streamproof.cli.screen import counted, note, print_line, progress, show_pairs
from streamproof.events.validate import Order, Shape, Validator


def validate(
    file: Annotated[Path, typer.Argument(help="A stream: a file, a folder or a pattern.", metavar="FILE")],
    map: Annotated[list[str] | None, typer.Option(help="Columns of real files, e.g. start=time,unit=ms.")] = None,
    shape: Annotated[Shape | None, typer.Option(help="Hold the events to this shape.")] = None,
    order: Annotated[Order | None, typer.Option(help="Hold the events to this order.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per violation, then a summary.")] = False,
    limit: Annotated[int, typer.Option(min=0, help="How many violations to show.")] = 20,
) -> None:
    """Check a physical stream: CTI violations, unmatched retractions, shape, order. Exits 1 if a rule is broken."""
    validator = Validator(policy="drop", shape=shape, order=order, keep=limit)
    legal = 0
    with progress("checking") as advance:
        reader = open_input(file.stem, file, maps=map or [], on_rows=advance)
        for chunk in reader:
            legal += len(validator.check(chunk))
    broken = sum(validator.counts.values())
    if json:
        for violation in validator.violations:
            described = {"error": violation.name, "position": violation.position, "event": violation.event}
            print_line(jsonlib.dumps(described, ensure_ascii=False))
        summary = {
            "events": validator.rows_seen,
            "legal": legal,
            "broken": validator.counts,
            "rejected": reader.rejected,
        }
        print_line(jsonlib.dumps(summary))
    else:
        if broken:
            shown = ((str(v.position), v.name, v.event) for v in validator.violations)
            show_pairs(shown, header=("event", "error", "what"))
        rows = counted(reader.rows_read, "row")
        note(f"{rows}, {broken:,} break a rule, {reader.rejected:,} could not be read")
    if broken or reader.rejected:
        raise typer.Exit(1)
