"""``streamproof disorder``: streams with exactly the disorder that a configuration asks for."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streamproof.cli.plans import look_here
from streamproof.cli.screen import note, print_line, progress, show_pairs
from streamproof.disorder.config import read_configuration
from streamproof.disorder.generate import generate_disorder
from streamproof.disorder.units import shown
from streamproof.errors import InputError

if TYPE_CHECKING:
    from streamproof.disorder.generate import DataSet


def disorder(
    config: Annotated[Path, typer.Argument(help="The configuration, a JSON file.")],
    out: Annotated[Path, typer.Option(help="The folder for the data sets and their manifests.")] = Path(),
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace existing data sets.")] = False,
    on: Annotated[str, typer.Option(help="auto, spark, or here: in this process.")] = "auto",
    partitions: Annotated[
        int | None, typer.Option(min=1, max=100_000, help="On Spark, with so many partitions.")
    ] = None,
    work: Annotated[
        Path | None, typer.Option(help="A folder for what lies between the steps; every worker sees it.")
    ] = None,
    modules: Annotated[
        list[str] | None, typer.Option(help="Python modules whose functions the configuration may name; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The manifests, and errors, as JSON, one per line.")] = False,
) -> None:
    """Make disordered streams from a real one: the factor is hit to the event, or the highest reachable is said."""

    if modules:
        look_here()
    if on not in ("auto", "spark", "here"):
        raise InputError(f"--on cannot be {on}", at="--on", fix="auto, spark or here")
    configuration = read_configuration(config, modules or ())
    out.mkdir(parents=True, exist_ok=True)
    with progress("disordering"):
        made = generate_disorder(
            configuration, out=out, overwrite=overwrite, on=on, partitions=partitions, work=work or out
        )
    if json:
        for outcome in made:
            print_line(jsonlib.dumps(outcome.manifest, ensure_ascii=False))
    else:
        _show(made)
    if not all(outcome.exact for outcome in made):
        raise typer.Exit(1)


def _show(made: list[DataSet]) -> None:
    rows = [_row(outcome.path.name, outcome.manifest) for outcome in made]
    show_pairs(rows, header=("data set", "requested", "achieved", "reachable", "mean delay", "how"))
    source = made[0].manifest["source"]
    if source["rejected"]:
        note(f"{source['rejected']:,} rows could not be read; they are in {Path(source['file']).stem}.rejects.jsonl")
    if source["zone_assumed"]:
        note(f"{source['zone_assumed']:,} times name no zone and were read as UTC, or as the zone given")
    for outcome in made:
        if outcome.manifest["renamed_columns"]:
            note(f"{outcome.path.name}: columns renamed: {outcome.manifest['renamed_columns']}")
        if not outcome.exact:
            note(f"{outcome.path.name}: {_why(outcome.manifest)}")


def _row(name: str, manifest: Mapping[str, Any]) -> tuple[str, ...]:
    def share(of: str) -> str:
        part = manifest[of]
        return f"{part['factor']:.4g} % ({part['events']:,})"

    delays = manifest["delays"]
    mean = shown(delays["drawn"]["mean"], delays["unit"]) if delays["drawn"]["count"] else "–"
    return name, share("requested"), share("achieved"), share("reachable_max"), mean, manifest["mode"]


def _why(manifest: Mapping[str, Any]) -> str:
    if manifest["mode"] == "lowest reachable":
        return f"outages and clocks alone make {manifest['achieved']['factor']:.4g} %; less cannot be had with them"
    reachable = manifest["reachable_max"]
    return (
        f"{manifest['requested']['factor']:g} % cannot be reached with these delays: the highest is "
        f"{reachable['factor']:.4g} % ({reachable['events']:,} events), and that is what it has; "
        "a longer maxDelay reaches more"
    )
