"""The command ``streamproof``: one file per subcommand, one way to fail.

Exit codes: 0 holds, 1 found something, 2 usage or bad input, 3 the infrastructure failed.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import version
from typing import TextIO

import typer

from streamproof.cli.analyze import analyze
from streamproof.cli.convert import convert
from streamproof.cli.demo import demo
from streamproof.cli.disorder import disorder
from streamproof.cli.explain import explain
from streamproof.cli.generate import generate
from streamproof.cli.modules import app as modules
from streamproof.cli.qos import qos
from streamproof.cli.replay import replay
from streamproof.cli.run import run
from streamproof.cli.screen import note, print_line, show_error
from streamproof.cli.serve import serve
from streamproof.cli.trace import trace
from streamproof.cli.validate import validate
from streamproof.cli.verify import verify
from streamproof.cli.warm_up import warm_up
from streamproof.errors import PlanWarning, StreamproofError

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
    app.command()(command)
app.add_typer(modules, name="modules")


def _show_version(wanted: bool) -> None:
    if wanted:
        print_line(f"streamproof {version('streamproof')}")
        raise typer.Exit


@app.callback()
def options(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Temporal streaming queries, and the workbench that proves them right."""


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """A warning of ours is a remark; one of a library looks as everywhere."""
    ours = issubclass(category, PlanWarning)
    note(f"warning: {message}" if ours else warnings.formatwarning(message, category, filename, lineno).rstrip())


def main() -> None:
    """Run the command line; every deliberate error becomes a message and an exit code."""
    warnings.showwarning = _show_warning
    try:
        app()
    except StreamproofError as error:
        show_error(error, as_json="--json" in sys.argv)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        note("interrupted; nothing was written")
        sys.exit(130)
    except BrokenPipeError:  # the reader, e.g. head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
