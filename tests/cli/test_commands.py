"""Commands load when they are called, and the list of them says what they say."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import pytest
import typer

from streamproof.cli.commands import HELP, app
from tests.cli.conftest import Done

COMMANDS = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # of the group


@pytest.mark.parametrize("name", HELP)
def test_the_list_says_what_the_command_says(name: str) -> None:
    assert HELP[name] == COMMANDS[name].help.split("\n\n")[0].replace("\n", " ")


def test_the_list_loads_no_command(run: Callable[..., Done]) -> None:
    told = run("--help").out
    assert all(name in told for name in HELP)
    asked = "import sys; from streamproof.cli.main import command; command(['--help']); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", asked], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not {"pyarrow", "sqlglot", "numba", "streamproof.cli.run", "streamproof.plan"} & loaded


def test_what_is_no_command_is_refused_with_what_may_be_meant(run: Callable[..., Done]) -> None:
    done = run("rum")
    assert done.code == 2
    assert "No such command 'rum'. Did you mean 'run'" in done.err
