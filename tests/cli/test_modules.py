"""``streamproof modules``: what is listed, and what trying a module says and exits with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Done

LIBRARY = '''
import streamproof as sp

@sp.uda("head", returns="float64", takes="float64", params=[sp.Parameter("scale", "float64", default=1.0)])
def head(values, *, scale):
    """The first value."""
    return values[0] if values[0] is None else values[0] * scale
'''


@pytest.fixture
def library(lay: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    lay("checked_library.py", LIBRARY)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(__import__("sys").modules, "checked_library", raising=False)
    return "checked_library"


def test_modules_are_listed(run: Callable[..., Done], library: str) -> None:
    done = run("modules", "--modules", library, "--json")
    assert done.code == 0
    assert {"head", "mean", "twavg"} <= {row["name"] for row in done.rows}
    assert "head@1" in run("modules", "--modules", library).out


def test_a_module_that_holds(run: Callable[..., Done]) -> None:
    done = run("modules", "check", "mean", "--windows", 50)
    assert (done.code, done.out) == (
        0,
        "uda mean@1: keeps to no_exceptions, type, deterministic, add, remove, apart, state, order_insensitive "
        "in 50 windows (seed 0)\n",
    )


@pytest.mark.parametrize("first", [True, False])
def test_a_module_that_does_not(run: Callable[..., Done], library: str, first: bool) -> None:
    load = ["--modules", library]
    done = run("modules", *(load if first else []), "check", "head", *([] if first else load), "--param", "scale=2")
    assert done.code == 1
    lines = done.out.splitlines()
    assert lines[:2] == ["uda head@1: 1 finding in 200 windows (seed 0)", "depends on the order of events"]
    assert lines[-1] == "  fix: sort the events first, or declare order_insensitive=False"


def test_the_report_as_json(run: Callable[..., Done], library: str) -> None:
    done = run("modules", "check", "head", "--modules", library, "--json", "--seed", 3)
    (report,) = done.rows
    assert (done.code, report["holds"], report["seed"]) == (1, False, 3)
    assert [finding["law"] for finding in report["findings"]] == ["order_insensitive"]  # type: ignore[attr-defined]


def test_columns_and_restriction_are_options(run: Callable[..., Done]) -> None:
    arguments = ["modules", "check", "passthrough", "--input", "x:int64", "--windows", 60]
    assert run(*arguments, "--clip", "left", "--restriction", "time_bound").code == 0
    done = run(*arguments, "--restriction", "window_based")
    assert done.code == 1
    assert "starts rows before their window" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], 'unknown module "nope"'),
        (["mean", "--param", "x"], '"x" is no parameter'),
        (["mean", "--param", "x=1"], 'uda mean@1 has no parameter "x"'),
        (["mean", "--input", "v"], '"v" is no column'),
        (["mean", "--modules", "no_such_library"], 'there is no Python module "no_such_library"'),
    ],
)
def test_usage_errors_exit_with_2(run: Callable[..., Done], arguments: list[str], message: str) -> None:
    done = run("modules", "check", *arguments)
    assert done.code == 2
    assert message in done.err
