"""All subcommands of ``streamproof``: each lies in a file of its own, which is loaded when the command is called.

This is the one place where commands load lazily; within its file, a command imports what it needs at the top.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from streamproof import __version__

HELP: Final = {
    "demo": (
        "The tour: temporal queries over a month of earthquakes, live equals backfill on Spark, a planted bug found."
    ),
    "run": "Run a plan over files and print its canonical history.",
    "explain": "Show a plan as a tree with each engine's support, or print it in another language.",
    "trace": (
        "Follow one event: what it became, which windows it touched, what was taken back, and when it was sealed."
    ),
    "validate": (
        "Check a physical stream: CTI violations, unmatched retractions, shape, order. Exits 1 if a rule is broken."
    ),
    "convert": (
        "Convert a stream between formats. Nothing is lost: unreadable rows go to a rejects file and are counted."
    ),
    "generate": (
        "Make a stream from facets: a pure function of the seed. Prints the events, or with --out what was made."
    ),
    "analyze": "Say how disordered a stream is, what a watermark delay would lose, and which one to choose.",
    "disorder": (
        "Make disordered streams from a real one: the factor is hit to the event, or the highest reachable is said."
    ),
    "replay": "Play a stream back: every row is delivered when it is due, so that the delays are kept.",
    "qos": ("Admit queries with proven bounds of delay and backlog, or refuse them with the reason and the remedies."),
    "serve": ("Run several queries over replayed streams, each within the latency and backlog it was admitted with."),
    "warm-up": (
        "Compile what the local engine and the tools for disorder run. Once per installation; later runs start at once."
    ),
    "verify": (
        "Verify engines: make queries and imperfect streams, run them, judge by SQL over the canonical history."
    ),
    "modules": "List the UDFs, UDAs and UDOs that are installed; `check` tries one of them.",
}
"""The commands in the order of the help, with the first sentences of theirs: a list of commands loads none of them."""


class Commands(MutableMapping[str, Any]):
    """The commands by name, each loaded when it is asked for."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name)
        return self._loaded[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("a command stays")

    def __iter__(self) -> Iterator[str]:
        return iter(HELP)

    def __len__(self) -> int:
        return len(HELP)


def _load(name: str) -> Any:
    """A command out of its file: a function, or an app of commands of its own."""
    if name not in HELP:
        raise KeyError(name)
    word = name.replace("-", "_")
    found = vars(import_module(f"streamproof.cli.{word}"))
    if "app" in found:
        return typer.main.get_command(found["app"])
    alone = typer.Typer(rich_markup_mode="markdown", add_completion=False)
    alone.command(name, cls=import_module("streamproof.cli.honoured").Command)(found[word])
    return typer.main.get_command(alone)


class Group(TyperGroup):
    """The commands: listed from `HELP`, loaded when they are called."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = Commands()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, of which none is loaded for it."""
        self.commands = {name: TyperCommand(name, callback=None, help=text) for name, text in HELP.items()}
        super().format_help(ctx, formatter)


app = typer.Typer(
    name="streamproof",
    cls=Group,
    help="Temporal streaming queries, and the workbench that proves them right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"streamproof {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Temporal streaming queries, and the workbench that proves them right."""
