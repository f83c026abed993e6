"""``streamproof qos CONFIG``: which queries can be guaranteed, with which bounds, and what a simulation shows."""

from __future__ import annotations

import json as jsonlib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streamproof.cli.screen import note, print_line, show_pairs
from streamproof.pictures.service_curves import draw_curves
from streamproof.qos.admission import Admitted
from streamproof.qos.config import load_config
from streamproof.qos.exact import shown, shown_ms
from streamproof.qos.study import study

if TYPE_CHECKING:
    from streamproof.qos.admission import Decision
    from streamproof.qos.config import Config
    from streamproof.qos.simulate import Outcome
    from streamproof.qos.study import Study

_SIMULATION = ("policy", "query", "misses", "missed", "longest delay", "most waiting")


def qos(
    config: Annotated[Path, typer.Argument(help="A JSON file: capacity, scheduler, queries, simulate.")],
    plot: Annotated[Path | None, typer.Option(help="Draw the curves into this file: .svg, .png or .pdf.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --plot file.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
) -> None:
    """Admit queries with proven bounds of delay and backlog, or refuse them with the reason and the remedies.

    Exit code 0 when all are admitted, 1 when one is refused.
    """

    read = load_config(config)
    found = study(read)
    if plot is not None:
        _draw(found, plot, overwrite=overwrite)
    if json:
        print_line(jsonlib.dumps(found.as_dict(), ensure_ascii=False))
    else:
        _show(read, found)
        if plot is not None:
            note(f"the curves are in {plot}")
    if not all(decision.admitted for decision in found.decisions):
        raise typer.Exit(1)


def _show(config: Config, found: Study) -> None:
    show_pairs([_row(decision) for decision in found.decisions], header=("query", "admitted", "delay", "backlog"))
    for decision in found.decisions:
        if not decision.admitted:
            print_line(f"\n{decision.text}.")
    print_line("")
    show_pairs(found.facts(), header=(f"{config.machine.policy}", ""))
    if found.simulation is not None:
        assert config.simulate is not None
        kind = f"{config.simulate.arrivals} arrivals, {float(config.simulate.duration):,g} ms"
        refused = {decision.query.name for decision in found.decisions if not decision.admitted}
        print_line(f"\nSimulation: {kind}" + (", the refused queries too" if refused else ""))
        show_pairs(_outcomes(found.simulation, refused), header=_SIMULATION)


def _row(decision: Decision) -> tuple[str, ...]:
    if not isinstance(decision, Admitted):
        return decision.query.name, "no", "–", "–"
    bounds = (f"≤ {shown_ms(decision.delay_bound)}", f"≤ {shown(decision.backlog_bound)}")
    return (decision.query.name, f"yes ({decision.test})", *bounds)


def _outcomes(simulation: Mapping[str, Mapping[str, Outcome]], refused: Collection[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for policy, outcomes in simulation.items():
        for n, (name, got) in enumerate(outcomes.items()):
            cells = (f"{got.misses:,}", f"{got.miss_percent:.1f} %", f"{got.max_delay:,.1f} ms", f"{got.max_backlog:,}")
            rows.append((policy if n == 0 else "", f"{name} (refused)" if name in refused else name, *cells))
    return rows


def _draw(found: Study, path: Path, *, overwrite: bool) -> None:
    misses: Mapping[str, Mapping[str, float]] | None = None
    if found.simulation is not None:
        misses = {p: {n: got.miss_percent for n, got in by.items()} for p, by in found.simulation.items()}
    draw_curves(found.curves(), path, misses=misses, overwrite=overwrite)
