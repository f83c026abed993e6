"""``streamproof trace``: one input event on its way through every operator of a plan."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from streamproof.cli.inputs import input_files, open_input, rejected
from streamproof.cli.plans import load_plan, read_horizon, registry_of
from streamproof.cli.screen import note, print_line
from streamproof.engines.job import on
from streamproof.engines.local.trace import trace as follow
from streamproof.plan import nodes


def trace(
    plan: Annotated[str, typer.Argument(help="A plan: FILE.json, .xml, .eql, .sql or module:object.", metavar="PLAN")],
    event: Annotated[
        str, typer.Option(help="The id of the event to follow; a row without one is called by its line, e.g. #2.")
    ],
    input: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE for each source; JSONL, CSV, Parquet or Arrow.")
    ] = None,
    source: Annotated[str | None, typer.Option(help="Of which input, where several have such an id.")] = None,
    map: Annotated[
        list[str] | None, typer.Option(help="Columns of real files, e.g. start=time,duration=1h,unit=ms.")
    ] = None,
    modules: Annotated[list[str] | None, typer.Option(help="Python modules with UDFs, UDAs and UDOs.")] = None,
    horizon: Annotated[str | None, typer.Option(help="Count only windows that end at or before this tick.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object, and errors as JSON.")] = False,
) -> None:
    """Follow one event: what it became, which windows it touched, what was taken back, and when it was sealed."""

    job = on(load_plan(plan), "local", horizon=read_horizon(horizon), modules=registry_of(modules))
    declared = {node.name: node.schema for node in nodes.walk(job.plan) if isinstance(node, nodes.Source)}
    files = input_files(input or [], map or [])
    inputs = {name: open_input(name, path, maps=map or [], schema=declared.get(name)) for name, path in files.items()}
    found = follow(job, inputs, event, source=source)
    for name, reader in inputs.items():
        if reader.rejected:
            note(f"input {name}: {rejected(reader)}")
    print_line(jsonlib.dumps(found.to_json(), ensure_ascii=False) if json else str(found))
