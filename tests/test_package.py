"""The package as a whole: what importing it costs, and that its public names are real."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import streamproof

ROOT = Path(__file__).parents[1]
OLDEST = "3.11.0"
HEAVY = ("pyspark", "duckdb", "polars", "hypothesis", "pyarrow", "numpy", "sqlglot", "psycopg", "typer", "rich")
PROBE = """
import sys, time
start = time.perf_counter()
import streamproof
print(time.perf_counter() - start, *[name for name in {heavy!r} if name in sys.modules])
"""


def import_once() -> list[str]:
    command = [sys.executable, "-c", PROBE.format(heavy=HEAVY)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def test_importing_loads_no_engine_and_nothing_heavy() -> None:
    _, *loaded = import_once()
    assert loaded == []


def test_importing_takes_less_than_300_milliseconds() -> None:
    assert min(float(import_once()[0]) for _ in range(3)) < 0.3


@pytest.mark.parametrize("name", streamproof.__all__)
def test_every_public_name_loads(name: str) -> None:
    assert getattr(streamproof, name) is not None


def test_names_for_type_checkers_are_the_names_that_load() -> None:
    tree = ast.parse(Path(streamproof.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    declared = {alias.asname for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert declared == set(streamproof.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'sourze'"):
        streamproof.sourze  # noqa: B018


def test_what_is_locked_can_be_installed_with_the_oldest_python() -> None:
    """The first one that we name, not only the one that wrote the lock."""
    locked = set(re.findall(r"^([a-z0-9-]+)==", (ROOT / "requirements.lock").read_text("utf-8"), re.MULTILINE))
    refusing = [
        f"{name} {one.version}: {wanted}"
        for one in distributions()
        if (name := canonicalize_name(one.metadata["Name"])) in locked
        and (wanted := one.metadata["Requires-Python"])
        and OLDEST not in SpecifierSet(wanted)
    ]
    assert refusing == []
