"""All subcommands of ``streamproof``, one file each."""

from __future__ import annotations

import typer

from streamproof import __version__
from streamproof.cli.analyze import analyze
from streamproof.cli.convert import convert
from streamproof.cli.demo import demo
from streamproof.cli.disorder import disorder
from streamproof.cli.explain import explain
from streamproof.cli.generate import generate
from streamproof.cli.honoured import Command
from streamproof.cli.modules import app as modules
from streamproof.cli.qos import qos
from streamproof.cli.replay import replay
from streamproof.cli.run import run
from streamproof.cli.screen import print_line
from streamproof.cli.serve import serve
from streamproof.cli.trace import trace
from streamproof.cli.validate import validate
from streamproof.cli.verify import verify
from streamproof.cli.warm_up import warm_up

app = typer.Typer(
    name="streamproof",
    help="Temporal streaming queries, and the workbench that proves them right.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    demo, run, explain, trace, validate, convert, generate, analyze, disorder,
    replay, qos, serve, warm_up, verify,
):  # fmt: skip
    app.command(cls=Command)(command)
app.add_typer(modules, name="modules")


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(f"streamproof {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Temporal streaming queries, and the workbench that proves them right."""
