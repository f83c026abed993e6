"""What the reference pages promise to list, they list: functions, aggregates, operators, options, errors, names."""

from __future__ import annotations

import importlib.util
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

import streamproof as sp
from streamproof.cli.commands import app
from streamproof.errors import ERROR_NAMES
from streamproof.events.files import ColumnMapping
from streamproof.language.notation import OPS
from streamproof.plan.aggregates import AGGREGATES
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.modules import Properties
from streamproof.plan.windows import WINDOWS
from streamproof.query.stream import Grouped
from streamproof.query.windowed import Windowed

DOCS = Path(__file__).parents[2] / "docs"


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def cells(name: str) -> list[list[str]]:
    """The rows of all tables of a page."""
    lines = (line for line in page(name).splitlines() if line.startswith("| "))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=lambda function: function.name)
def test_every_function_has_its_row_with_its_meaning(function) -> None:
    rows = {row[0].strip("`"): row for row in cells("expressions.md") if len(row) == 4}
    assert function.name in rows
    plain = rows[function.name][3].replace("`", "").replace(r"\*", "*").replace("&#124;", "|")
    assert plain == function.summary
    assert rows[function.name][2] == function.takes


@pytest.mark.parametrize("aggregate", AGGREGATES.values(), ids=lambda aggregate: aggregate.name)
def test_every_aggregate_has_its_row_with_its_meaning(aggregate) -> None:
    rows = {row[0].strip("`").partition("(")[0]: row[1] for row in cells("windows.md") if len(row) == 2}
    assert rows.get(aggregate.name) == aggregate.summary


def test_every_operator_of_the_notation_is_listed() -> None:
    listed = " ".join(row[0] for row in cells("languages.md"))
    assert [op for op in OPS if f"`{op}`" not in listed] == []
    assert [kind for kind in WINDOWS if f'"{kind}"' not in page("languages.md")] == []


def test_every_method_of_a_stream_is_listed() -> None:
    methods = {name for kind in (sp.Stream, Grouped, Windowed) for name in vars(kind) if not name.startswith("_")}
    methods |= {name for base in sp.Stream.__mro__[1:-1] for name in vars(base) if not name.startswith("_")}
    internal = {"plan", "in_windows", "stream", "key", "input", "window", "finish", "results"}
    listed = " ".join(row[0] for row in cells("queries.md"))
    assert sorted(name for name in methods - internal if f".{name}(" not in listed and f"….{name}(" not in listed) == []


@pytest.mark.parametrize("name", ERROR_NAMES)
def test_every_error_name_is_explained(name: str) -> None:
    assert name in [row[0].strip("`") for row in cells("command-line.md")]


def test_every_command_and_option_is_listed() -> None:
    text = page("command-line.md")
    commands = get_command(app).commands  # type: ignore[attr-defined]  # a group of commands
    assert [name for name in commands if f"`streamproof {name}" not in text] == []
    sections = {part.partition("\n")[0]: part for part in text.split("\n## ")}
    for name, command in commands.items():
        options = [max(p.opts, key=len) for p in command.params if p.param_type_name == "option" and p.name != "help"]
        missing = [option for option in options if f"`{option}" not in sections.get(name, "")]
        assert not missing, f"{name}: {missing}"


def test_every_key_of_a_mapping_and_every_property_is_listed() -> None:
    keys = page("files.md")
    assert [
        field.name for field in fields(ColumnMapping) if f"`{field.name}=" not in keys.replace("rename.OLD", "rename")
    ] == []
    promised = [row[0].strip("`") for row in cells("modules.md")]
    assert [field.name for field in fields(Properties) if field.name not in promised] == []


def test_the_picture_is_what_its_script_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("make_picture", DOCS / "make_picture.py")
    assert spec is not None and spec.loader is not None  # noqa: PT018  # for the type checker
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    (tmp_path / "docs").mkdir()
    (tmp_path / "examples").symlink_to(DOCS.parent / "examples")
    monkeypatch.setattr(script, "HERE", tmp_path / "docs")
    script.main()
    assert (tmp_path / "docs/picture.svg").read_text(encoding="utf-8") == page("picture.svg")
