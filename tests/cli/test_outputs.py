"""Where commands write: what cannot be written, or would write over something, is refused before anything is read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

from streamproof.cli.commands import app
from tests.cli.conftest import Done

Run = Callable[..., Done]
Lay = Callable[..., Path]
PLAN = {"op": "source", "name": "S"}
DIRTY = "t,v\n1,1\nx,2\n3,3\n"
FILES = ["--out", "--rejects", "--dead-letters", "--late-file", "--module-letters"]
BESIDE: dict[str, list[str]] = {
    "--dead-letters": ["--on-error", "dead_letter"],
    "--module-letters": ["--on-module-error", "dead-letter"],
}


@pytest.fixture
def command(lay: Lay) -> list[object]:
    lay("S.csv", DIRTY)
    return ["run", lay("p.json", PLAN), "--engine", "local", "--quiet", "--input", "S=S.csv", "--map", "start=t"]


@pytest.mark.parametrize("option", FILES)
@pytest.mark.parametrize("target", ["S.csv", "./S.csv", "link to S.csv"])
def test_no_output_takes_the_place_of_an_input(
    option: str, target: str, command: list[object], run: Run, tmp_path: Path
) -> None:
    (tmp_path / "link to S.csv").symlink_to("S.csv")
    more = ["--overwrite"] if option == "--out" else BESIDE.get(option, [])
    done = run(*command, option, target, *more)
    assert (done.code, done.out) == (2, "")
    assert "is read and cannot be written too" in done.err
    assert (tmp_path / "S.csv").read_text() == DIRTY


@pytest.mark.parametrize("option", FILES)
def test_nothing_is_written_over(option: str, command: list[object], run: Run, lay: Lay, tmp_path: Path) -> None:
    lay("x.jsonl", "dear")
    (tmp_path / "link.jsonl").symlink_to("elsewhere.jsonl")
    targets = ["x.jsonl"] if option == "--out" else ["x.jsonl", "link.jsonl"]
    for target in targets:
        done = run(*command, option, target, *BESIDE.get(option, []))
        assert done.code == 2, done.err
        assert "exists" in done.err
    assert (tmp_path / "x.jsonl").read_text() == "dear"
    assert not (tmp_path / "elsewhere.jsonl").exists()


@pytest.mark.parametrize("option", [*FILES, "--savepoint"])
@pytest.mark.parametrize(("target", "text"), [
    ("folder", "is a folder"), ("no/x.jsonl", "in a folder that does not exist"),
    ("pipe.jsonl", "is a device, a pipe or a socket"),
])  # fmt: skip
def test_what_cannot_be_written_is_told_at_once(
    option: str, target: str, text: str, command: list[object], run: Run
) -> None:
    Path("folder").mkdir()
    os.mkfifo("pipe.jsonl")
    done = run(*command, option, target, *BESIDE.get(option, []))
    assert (done.code, done.out) == (2, "")
    assert text in done.err


def test_two_outputs_are_two_files(command: list[object], run: Run) -> None:
    done = run(*command, "--out", "x.jsonl", "--rejects", "x.jsonl")
    assert done.code == 2
    assert "x.jsonl is written by --out already" in done.err


def test_rejects_of_each_run_are_kept(command: list[object], run: Run, tmp_path: Path) -> None:
    for name in ("S.rejects.jsonl", "S.rejects-2.jsonl", "S.rejects-3.jsonl"):
        done = run(*command)
        assert done.code == 0
        assert f"/{name}\n" in done.err
        assert json.loads((tmp_path / name).read_text())["line"] == 3


def test_several_inputs_do_not_share_a_file_of_rejects(run: Run, lay: Lay) -> None:
    lay("a.csv", DIRTY)
    plan = lay("p.json", {"op": "union", "ins": [PLAN, {"op": "source", "name": "R"}]})
    inputs = ["--input", "S=a.csv", "--input", "R=a.csv", "--map", "start=t", "--engine", "local", "--quiet"]
    done = run("run", plan, *inputs, "--rejects", "r.jsonl")
    assert done.code == 2
    assert "several inputs cannot share one file of rejects" in done.err
    assert run("run", plan, *inputs).code == 0


def test_each_source_has_its_own_dead_letters(run: Run, lay: Lay, tmp_path: Path) -> None:
    def late(name: str) -> list[dict[str, Any]]:
        event = {"kind": "insert", "id": name, "le": 1, "re": 5, "payload": {"v": 1}}
        return [{"kind": "cti", "t": 3}, event, {"kind": "cti", "t": "inf"}]

    plan = lay("p.json", {"op": "union", "ins": [PLAN, {"op": "source", "name": "R"}]})
    lay("S.jsonl", late("s")), lay("R.jsonl", late("r"))
    more = ["--on-error", "dead_letter", "--dead-letters", "dead.jsonl", "--engine", "duckdb"]
    done = run("run", plan, "--input", "S=S.jsonl", "--input", "R=R.jsonl", *more)
    assert done.code == 0, done.err
    assert [json.loads((tmp_path / f"dead.{name}.jsonl").read_text())["id"] for name in "SR"] == ["s", "r"]


def test_a_converted_file_does_not_replace_its_source(run: Run, lay: Lay, tmp_path: Path) -> None:
    lay("S.csv", DIRTY)
    done = run("convert", "S.csv", "S.csv", "--map", "start=t", "--overwrite")
    assert done.code == 2
    assert "S.csv is read and cannot be written too" in done.err
    assert (tmp_path / "S.csv").read_text() == DIRTY


@pytest.mark.parametrize(("name", "text"), [
    ("x.csv.gz", "call it by what it is: without .gz"),
    ("x.parquet.gz", "unpack the file first: gunzip"),
    ("x.csv.bz2", "unpack the file first: bunzip2"),
    ("x.tsv", "give it a name that ends in .jsonl, .csv"),
    ("folder", "the folder folder holds no files"),
])  # fmt: skip
def test_what_to_do_about_other_kinds_of_files(name: str, text: str, run: Run, lay: Lay, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    if name != "folder":
        lay(name, "x")
    done = run("run", lay("p.json", PLAN), "--engine", "local", "--input", f"S={name}")
    assert done.code == 2
    assert text in done.err


def test_milliseconds_are_no_seconds(run: Run, lay: Lay) -> None:
    lay("S.csv", "t,v\n1714557600000,1\n")
    done = run("run", lay("p.json", PLAN), "--engine", "local", "--input", "S=S.csv", "--map", "start=t,unit=s")
    assert done.code == 2
    assert 'the time in "t" is not within the years 1 to 9999: is s its unit?' in done.err
    assert "say the unit that the numbers have" in done.err


def test_a_full_disk_is_told_with_the_file(tmp_path: Path, lay: Lay) -> None:
    lay("S.csv", "t,v\n" + "".join(f"{n},{n * 7919}\n" for n in range(20_000)))
    for ending in ("csv", "jsonl", "parquet", "arrow"):
        text = f"ulimit -f 20; exec {sys.executable} -m streamproof convert S.csv out.{ending} --map start=t"
        done = subprocess.run(["bash", "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 3
        assert f"out.{ending} cannot be written: files may not be as large" in done.stderr
        assert f"at: {tmp_path}/out.{ending}" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {"S.csv"}


def test_pipes_and_blank_headers(run: Run, lay: Lay) -> None:
    os.mkfifo("pipe.csv")
    lay("blank.csv", "\n\nt,v\n1,2\n")
    for name, text in (("pipe.csv", "write what it gives to a file"), ("blank.csv", "the first line is blank")):
        done = run("run", lay("p.json", PLAN), "--engine", "local", "--input", f"S={name}", "--map", "start=t")
        assert done.code == 2
        assert text in done.err


WORKED = Path(__file__).parents[2] / "examples/qos/worked.json"
WRITTEN = {
    "run --out": "run p.json --engine local --input S=S.csv --map start=t --out {}",
    "run --savepoint": "run p.json --engine local --input S=S.csv --map start=t --savepoint {}",
    "convert": "convert S.csv {} --map start=t",
    "generate --out": "generate --seed 3 --out {}",
    "analyze --html": "analyze S.csv --event-time t --html {}",
    "disorder --out": "disorder c.json --out folder",
    "qos --plot": f"qos {WORKED} --plot {{}}",
    "serve --report": f"serve {WORKED.with_name('serve.json')} --report {{}}",
    "verify --report": "verify smoke --cases 1 --report {}",
}
"""A command line for each option that names what a command makes."""
READ_OR_KEPT = {
    "validate file", "convert source", "analyze file", "disorder config", "replay file", "qos config", "serve config",
    "verify replay", "run from_savepoint",  # what is read
    "run checkpoint", "replay resume", "verify resume",  # what a run goes on from, and keeps up to date
    "analyze work", "disorder work", "verify repros",  # folders for names of their own
    "run rejects", "run dead_letters", "run late_file", "run module_letters", "analyze rejects",  # never written over
}  # fmt: skip


def test_every_path_is_read_or_kept_or_written() -> None:
    """A new option that takes a path belongs into one of the two tables."""
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    paths = {f"{c.name} {p.name}" for c in commands for p in c.params if p.type_descriptor.annotation is Path}
    written = {name.replace(" --", " ") for name in WRITTEN} - {"convert"} | {"convert target"}
    assert paths == READ_OR_KEPT | written


@pytest.mark.parametrize("name", [name for name in WRITTEN if name != "disorder --out"])
def test_what_is_there_is_replaced_on_request_only(name: str, run: Run, lay: Lay) -> None:
    lay("S.csv", DIRTY), lay("p.json", PLAN)
    endings = {"convert": "jsonl", "generate --out": "jsonl", "run --out": "jsonl", "qos --plot": "svg"}
    target = lay(f"x.{endings.get(name, 'html')}", "dear")
    done = run(*WRITTEN[name].format(target).split())
    assert done.code == 2, done
    assert "exists" in done.err
    assert target.read_text() == "dear"


@pytest.mark.parametrize("name", ["run --savepoint", "verify --report"])
def test_overwrite_is_the_request(name: str, run: Run, lay: Lay) -> None:
    lay("S.csv", DIRTY), lay("p.json", PLAN)
    target = lay("x.html", "dear")
    done = run(*WRITTEN[name].format(target).split(), "--overwrite")
    assert done.code == 0, done
    assert (target.read_text() == "dear") == (name == "run --savepoint")  # which nobody interrupted
