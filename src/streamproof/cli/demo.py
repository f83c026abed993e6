"""``streamproof demo``: temporal queries over a month of earthquakes, live and as backfill, and a bug that is found."""

from __future__ import annotations

from pathlib import Path

from rich.markup import escape

from streamproof import extensions
from streamproof.cli.demo_proof import prove
from streamproof.cli.plans import load_plan
from streamproof.cli.screen import out, show_history
from streamproof.engines.job import on
from streamproof.engines.results import Run
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, read
from streamproof.events.history import History
from streamproof.pictures.text import marbles
from streamproof.plan.explain import explain
from streamproof.plan.nodes import Plan

PICTURE_ROWS = 8


def demo() -> None:
    """The tour: temporal queries over a month of earthquakes, live equals backfill on Spark, a planted bug found."""
    folder = examples()
    quakes = folder / "earthquakes.csv"
    out.print(f"[bold]A month of earthquakes[/] ({quakes.name}, US Geological Survey, public domain)\n")
    points = read(quakes, mapping=ColumnMapping(start="time", unit="ms"))
    hours = read(quakes, mapping=ColumnMapping(start="time", duration="1h", unit="ms"))

    _title(1, "How many per day, and how strong?", "Each report is a point in time; a tumbling window counts them.")
    per_day = load_plan(str(folder / "per_day.json"))
    _show_plan(per_day)
    show_history(on(per_day, "duckdb").run({"quakes": points}).history, most=5)

    _title(
        2, "Where and when do they swarm?",
        "Each quake now lives for an hour. Per box of about 100 km, a snapshot tells how many are alive at once.",
    )  # fmt: skip
    swarms = load_plan(str(folder / "swarms.json"))
    _show_plan(swarms)
    result = on(swarms, "duckdb").run({"quakes": hours})
    show_history(result.history, most=PICTURE_ROWS)
    out.print("\nThe first of them on the time axis:", style="dim")
    out.print(marbles(_head(result), width=min(out.width, 110)), markup=False)
    prove(folder)
    _next_steps(folder)


def examples() -> Path:
    """The folder of examples: beside the sources in a checkout, inside the package where it is installed."""
    package = Path(__file__).parents[1]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / "earthquakes.csv").is_file():
            return folder
    raise InputError("the example files are missing", at=str(package), fix="install streamproof again")


def _title(number: int, question: str, meaning: str) -> None:
    out.print(f"\n[bold cyan]{number}. {question}[/]")
    out.print(meaning + "\n")


def _show_plan(plan: Plan) -> None:
    out.print(escape(extensions.load("languages", "python").dumps(plan).rstrip()), style="green")
    out.print()
    out.print(escape(explain(plan)), style="dim")
    out.print()


def _head(result: Run) -> History:
    return History(result.schema, result.history.rows.slice(0, PICTURE_ROWS))


def _next_steps(folder: Path) -> None:
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    out.print("\n[bold]Your turn[/] (after [bold]source .venv/bin/activate[/] in a checkout)\n")
    mapped = f"--input quakes={shown}/earthquakes.csv --map start=time,duration=1h,unit=ms"
    for command in (
        f"streamproof run {shown}/swarms.json {mapped}",
        f"streamproof run {shown}/swarms.json {mapped} --engine duckdb --show-sql",
        f"streamproof explain {shown}/swarms.json",
        "streamproof verify smoke --report report.html",
        "streamproof run --help",
    ):
        out.print(f"  {escape(command)}")
    out.print("\nThe README goes on from here: your own files, your own queries, your own modules.")
