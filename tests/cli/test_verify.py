"""``streamproof verify``: verdicts, exit codes, files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from streamproof.cli.commands import app
from streamproof.cli.demo_proof import disordered, planted_bug
from streamproof.errors import InfrastructureError, InputError
from streamproof.events.event import Insert
from streamproof.events.physical import to_history
from streamproof.events.stream import PhysicalStream

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


def test_a_plan_of_your_own_over_your_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("q.eql").write_text("SELECT last(v) FROM S AT BECOMES(D: open = 1);", encoding="utf-8")
    Path("s.csv").write_text("at,v\n1,5\n4,6\n9,7\n", encoding="utf-8")
    Path("d.csv").write_text("at,open\n2,1\n3,0\n4,1\n12,1\n", encoding="utf-8")
    given = ["--input", "S=s.csv", "--input", "D=d.csv", "--map", "start=at,unit=s", "--cases", "8"]
    ran = CliRunner().invoke(app, ["verify", "q.eql", *given])
    assert ran.exit_code == 0, ran.output
    assert "q.eql, seed 1: holds, 8 cases" in ran.output
    missing = CliRunner().invoke(app, ["verify", "q.eql", *given[:2], *given[4:]])
    assert isinstance(missing.exception, InputError)
    assert missing.exception.what == 'no input is given for the source "D"'


def test_a_bug_is_found_over_your_own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    sources = {side: {"op": "source", "name": name} for side, name in (("left", "S"), ("right", "R"))}
    plan = {"op": "followed_by", **sources, "select": {"v": "l.v"}}
    Path("plan.json").write_text(json.dumps(plan), encoding="utf-8")
    for name in ("S", "R"):
        Path(f"{name}.csv").write_text("at,v\n" + "".join(f"{n},{n}\n" for n in range(20)), encoding="utf-8")
    given = ["plan.json", "--input", "S=S.csv", "--input", "R=R.csv", "--map", "start=at,duration=9", "--cases", "2"]
    with planted_bug():
        ran = CliRunner().invoke(app, ["verify", *given])
    assert ran.exit_code == 1, ran.output
    assert ", 2 events" in ran.output
    assert CliRunner().invoke(app, ["verify", *given]).exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["verify"], "no suite is given"),
        (["verify", "smoek"], 'there is no suite "smoek"'),
        (["verify", "--replay", "none.json"], "there is no file none.json"),
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


def test_a_server_that_is_not_there_is_told_of_before_anything_runs() -> None:
    given = ["verify", "smoke", "--oracle", "postgres", "--dsn", "postgresql://nobody@127.0.0.1:1/none"]
    with pytest.raises(InfrastructureError, match="cannot connect to PostgreSQL"):
        CliRunner().invoke(app, given, catch_exceptions=False)
