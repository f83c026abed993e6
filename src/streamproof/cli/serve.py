"""``streamproof serve CONFIG``: queries with deadlines over replayed streams, bounds and observation side by side."""

from __future__ import annotations

import json as jsonlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from streamproof.cli.inputs import mapping_for
from streamproof.cli.plans import load_plan, registry_of
from streamproof.cli.screen import err, note, print_line, safe_text, show_pairs
from streamproof.engines.local.warming import is_cold
from streamproof.errors import InputError, StreamproofError
from streamproof.events.files import read
from streamproof.events.files.writer import check_target, replacing
from streamproof.qos import observed
from streamproof.qos.costs import PushCost, measured
from streamproof.qos.observed import HEADER, row
from streamproof.qos.serve_config import load_serve_config
from streamproof.qos.serving import EventReplay
from streamproof.qos.serving import serve as make_ready

if TYPE_CHECKING:
    from streamproof.qos.serve_config import ServeConfig, ServeQuery
    from streamproof.qos.server import Costs, Registration
    from streamproof.qos.serving import Serving, Tick

MOST_SECONDS = 1e9
SAMPLE = 50_000  # rows on which costs are measured


def serve(
    config: Annotated[Path, typer.Argument(help="A JSON file: share, scheduler, speed, duration_s, queries.")],
    duration: Annotated[float | None, typer.Option(help="Seconds to run, instead of the configuration's.")] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this file: .html or .json.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing --report file.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No live table on standard error.")] = False,
    modules: Annotated[
        list[str] | None, typer.Option(help="Python modules that plans call, or whose plans it names; repeatable.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The result as one JSON object.")] = False,
) -> None:
    """Run several queries over replayed streams, each within the latency and backlog it was admitted with.

    Exit code 0 when every query was admitted and kept its bounds, 1 otherwise.
    """

    if duration is not None and not 0 < duration < MOST_SECONDS:
        fix = "give seconds, e.g. --duration 60"
        raise InputError(f"--duration must be positive and finite, got {duration:g}", at="--duration", fix=fix)
    _check_report(report, overwrite=overwrite)
    read_config = load_serve_config(config)
    if is_cold() and not quiet:
        note("warming up (compiling kernels, once per installation)")
    read_config.server.modules = registry_of(modules)
    registrations, replays = _register(read_config, modules or [])
    for found in registrations:
        (note if found.admitted else print_line)(found.text)
    serving = _run(read_config, replays, duration or read_config.seconds, quiet=quiet or json)
    result = observed.as_dict(serving, registrations)
    if report is not None:
        text = observed.page(serving, registrations) if report.suffix == ".html" else jsonlib.dumps(result)
        with replacing(Path(os.path.realpath(report)), overwrite=True) as place:
            place.write_text(text, encoding="utf-8")
    if json:
        print_line(jsonlib.dumps(result, ensure_ascii=False))
    else:
        show_pairs([observed.row(found) for found in serving.observed.values()], header=observed.HEADER)
        note(f"{serving.elapsed:.1f} s; pushes {serving.busy_share:.1%}, scheduling {serving.scheduling_share:.1%}")
    if any(not found.admitted for found in registrations) or any(o.missed for o in serving.observed.values()):
        raise typer.Exit(1)


def _check_report(report: Path | None, *, overwrite: bool) -> None:
    if report is None:
        return
    if report.suffix not in (".html", ".json"):
        fix = "give a name that ends in .html or .json"
        raise InputError(f"cannot tell the format of {report}", at="--report", fix=fix)
    check_target(Path(os.path.realpath(report)), overwrite=overwrite)


def _register(config: ServeConfig, modules: list[str]) -> tuple[list[Registration], dict[str, dict[str, EventReplay]]]:
    """Ask for admission of every query in turn; the replays of those that are admitted."""
    registrations: list[Registration] = []
    replays: dict[str, dict[str, EventReplay]] = {}
    for query in config.queries:
        streams = _replays(config, query)
        try:
            found = _admit(config, query, streams, modules)
        except StreamproofError as error:
            raise error.within(f'query "{query.name}"') from None
        registrations.append(found)
        if found.admitted:
            replays[query.name] = streams
    return registrations, replays


def _replays(config: ServeConfig, query: ServeQuery) -> dict[str, EventReplay]:
    found = {}
    for name, given in query.inputs.items():
        mapping = mapping_for(name, [given.mapping] if given.mapping else [])
        try:
            found[name] = EventReplay.of(read(given.file, mapping=mapping).stream(), speed=config.speed)
        except InputError as error:
            raise error.within(f'query "{query.name}", input {name}') from None
    return found


def _admit(
    config: ServeConfig, query: ServeQuery, streams: Mapping[str, EventReplay], modules: list[str]
) -> Registration:
    arrivals = {name: given.arrival or streams[name].arrival() for name, given in query.inputs.items()}
    cost: Costs
    if isinstance(query.cost, PushCost):
        cost = query.cost
    else:
        cost = measured({name: stream.sample(SAMPLE) for name, stream in streams.items()}, quantile=query.cost)
    return config.server.register(
        load_plan(query.plan, modules=modules),
        query.qos,
        name=query.name,
        arrival=arrivals,
        cost=cost,
        window=query.window,
        schemas={name: stream.stream.schema for name, stream in streams.items()},
    )


def _run(
    config: ServeConfig, replays: Mapping[str, Mapping[str, EventReplay]], seconds: float, *, quiet: bool
) -> Serving:
    serving = make_ready(config.server, replays)
    with _live(quiet=quiet or not err.is_terminal) as tick:
        return serving.run(seconds, on_tick=tick)


@contextmanager
def _live(*, quiet: bool) -> Iterator[Tick | None]:
    """A table that is drawn again now and then, while nothing waits."""
    if quiet:
        yield None
        return
    with Live(console=err, auto_refresh=False, transient=True) as live:
        yield lambda serving: live.update(_table(serving), refresh=True)


def _table(serving: Serving) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", title=f"{serving.elapsed:.0f} s", title_justify="left")
    for name in HEADER:
        table.add_column(name, justify="left" if name in ("query", "misses") else "right")
    for found in serving.observed.values():
        style = "red" if found.missed else None
        table.add_row(*(escape(safe_text(cell)) for cell in row(found)), style=style)
    return table
