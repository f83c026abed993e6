"""``streamproof verify``: verdicts, exit codes, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamproof.cli.demo_proof import disordered, planted_bug
from streamproof.cli.main import app
from streamproof.errors import InputError
from streamproof.events.event import Insert
from streamproof.events.physical import PhysicalStream, to_history

SUITE = """
from streamproof.workbench import intent as I
from streamproof.workbench.suite import Suite
scenario = I.stream().followed_by(I.stream()).over(I.events(pattern="dense", speculative=False)).called("follows")
SUITE = Suite("mine", (scenario,), cases=80)
"""


@pytest.fixture
def suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "mine.suite.py"
    path.write_text(SUITE, encoding="utf-8")
    return path


def test_it_holds(suite: Path) -> None:
    ran = CliRunner().invoke(app, ["verify", str(suite), "--cases", "12", "--report", "r.html"])
    assert ran.exit_code == 0, ran.output
    assert "mine, seed 1: holds, 12 cases" in ran.output
    assert Path("r.html").exists()


def test_what_is_found_can_be_replayed(suite: Path) -> None:
    with planted_bug():
        ran = CliRunner().invoke(app, ["verify", str(suite), "--most", "1", "--json"])
        assert ran.exit_code == 1
        (result,) = json.loads(ran.stdout.splitlines()[-1])
        assert result["verdict"] == "fails"
        (place,) = result["repros"]
        again = CliRunner().invoke(app, ["verify", "--replay", place])
        assert again.exit_code == 1
        assert "fails local: rows" in again.output
        assert f"again: streamproof verify --replay {place}" in again.output
    assert CliRunner().invoke(app, ["verify", "--replay", place]).exit_code == 0
    assert len(list(Path("streamproof-repros").glob("test_*.py"))) == 1


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["verify"], "no suite is given"),
        (["verify", "smoek"], 'there is no suite "smoek"'),
        (["verify", "--replay", "none.json"], "cannot read the repro file"),
    ],
)
def test_bad_input_is_said(arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = CliRunner().invoke(app, arguments)
    assert isinstance(ran.exception, InputError)
    assert text in ran.exception.what


def test_the_tour_comes_out_of_order_but_means_the_same() -> None:
    events = [Insert(f"e{n}", n, n + 5, {"v": n}) for n in range(50)]
    stream = PhysicalStream.from_events(events)
    late = disordered(stream)
    assert to_history(late) == to_history(stream)
    assert [e.id for e in late.to_events() if isinstance(e, Insert)] != [e.id for e in events]
