"""``streamproof modules``: the modules that plans can call, and whether one of them keeps to what it declares."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from streamproof.cli.honoured import Command
from streamproof.cli.plans import registry_of
from streamproof.cli.screen import print_line, safe_text, show_pairs
from streamproof.errors import PlanError, did_you_mean
from streamproof.kernels.modulecheck import check_module
from streamproof.plan.library import installed
from streamproof.plan.modules import Clipping, Module, Registry, Restriction

Load = Annotated[list[str] | None, typer.Option("--modules", help="Python modules to look into as well.")]
app = typer.Typer(invoke_without_command=True, no_args_is_help=False, add_completion=False)


@app.callback()
def modules(
    context: typer.Context,
    load: Annotated[list[str] | None, typer.Option("--modules", help="Python modules to list as well.")] = None,
    json: Annotated[bool, typer.Option("--json", help="One JSON object per module.")] = False,
) -> None:
    """List the UDFs, UDAs and UDOs that are installed; `check` tries one of them."""
    if context.invoked_subcommand is not None:
        context.obj = load or []
        return
    registry = registry_of(load, installed())
    if json:
        for module in registry:
            print_line(jsonlib.dumps(_describe(module)))
        return
    rows = ((m.kind, f"{m.name}@{m.version}", ", ".join(_traits(m)), m.summary) for m in registry)
    show_pairs(rows, header=("kind", "name", "traits", "what it does"))


@app.command(cls=Command)
def check(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The module, as plans call it: NAME or NAME@VERSION.")],
    load: Load = None,
    param: Annotated[list[str] | None, typer.Option("--param", help="A parameter, as NAME=VALUE in JSON.")] = None,
    columns: Annotated[
        list[str] | None, typer.Option("--input", help="A column that it reads, as NAME:TYPE; for a UDA its argument.")
    ] = None,
    clip: Annotated[Clipping, typer.Option(help="How lifetimes are clipped before it sees them.")] = "none",
    restriction: Annotated[Restriction, typer.Option(help="The promise that plans make for it.")] = "none",
    plain: Annotated[bool, typer.Option("--plain", help="Without nulls, NaN, infinities and endless events.")] = False,
    seed: Annotated[int, typer.Option(help="Another seed tries other windows.")] = 0,
    windows: Annotated[int, typer.Option(help="How many windows to try.", min=1)] = 200,
    json: Annotated[bool, typer.Option("--json", help="The report as one JSON object.")] = False,
) -> None:
    """Try a module on random windows, and say what it does not keep to. Exit code 1 if there is something."""

    module = _find(registry_of([*(context.obj or []), *(load or [])], installed()), name)
    report = check_module(
        module, params=dict(map(_pair, param or [])), inputs=dict(map(_column, columns or [])) or None, clip=clip,
        restriction=restriction, plain=plain, seed=seed, windows=windows,
    )  # fmt: skip
    print_line(jsonlib.dumps(report.as_dict()) if json else safe_text(report.to_text()))
    if not report.holds:
        raise typer.Exit(1)


def _find(registry: Registry, name: str) -> Module:
    """The module of that name, of whatever kind."""
    kinds = sorted({module.kind for module in registry if name in (module.name, f"{module.name}@{module.version}")})
    if not kinds:
        known = sorted({module.name for module in registry})
        raise PlanError(
            f'unknown module "{name}"', fix=did_you_mean(name.partition("@")[0], known), name="unknown_module"
        )
    return registry.find(name, kinds[0])


def _pair(text: str) -> tuple[str, object]:
    name, found, value = text.partition("=")
    try:
        if found:
            return name, jsonlib.loads(value)
    except ValueError:
        return name, value  # text needs no quotes
    raise PlanError(f'"{text}" is no parameter', fix="write NAME=VALUE, e.g. --param cut=2")


def _column(text: str) -> tuple[str, str]:
    name, found, kind = text.partition(":")
    if not (name and found and kind):
        raise PlanError(f'"{text}" is no column', fix="write NAME:TYPE, e.g. --input v:float64")
    return name.strip(), kind.strip()


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
