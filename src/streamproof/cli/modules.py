"""``streamproof modules``: the modules that plans can call."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from streamproof.cli.plans import look_here
from streamproof.cli.screen import print_line, show_pairs
from streamproof.plan.library import installed
from streamproof.plan.modules import Module, Registry


def modules(
    load: Annotated[list[str] | None, typer.Option("--modules", help="Python modules to list as well.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per module.")] = False,
) -> None:
    """List the UDFs, UDAs and UDOs that are installed."""
    registry = Registry(installed())
    look_here()
    for reference in load or []:
        registry.load(reference)
    if json:
        for module in registry:
            print_line(jsonlib.dumps(_describe(module)))
        return
    rows = ((m.kind, f"{m.name}@{m.version}", ", ".join(_traits(m)), m.summary) for m in registry)
    show_pairs(rows, header=("kind", "name", "traits", "what it does"))


def _traits(module: Module) -> list[str]:
    traits = ["incremental"] if module.incremental else []
    if module.time_sensitive:
        traits.append("time-sensitive")
    return [*traits, *(f"{p.name}: {p.type}" for p in module.params)]


def _describe(module: Module) -> dict[str, object]:
    return {
        "kind": module.kind,
        "name": module.name,
        "version": module.version,
        "incremental": module.incremental,
        "time_sensitive": module.time_sensitive,
        "params": {p.name: str(p.type) for p in module.params},
        "summary": module.summary,
    }
