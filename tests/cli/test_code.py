"""No code from where it does not belong: a folder full of traps, and every command runs in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.cli.processes import MODULE, PLAIN, SCRIPT

ROOT = Path(__file__).parents[2]
TRAPS = (
    "numba", "numpy", "pyarrow", "typing_extensions", "sitecustomize", "usercustomize", "conftest", "duckdb", "pyspark",
    "rich", "typer", "pandas", "sqlglot", "lark", "matplotlib", "yaml", "psycopg", "polars", "hypothesis", "pytest",
    "jinja2", "cronsim", "trap",
)  # fmt: skip
SHADOWS = ("streamproof", "json", "enum", "typing", "multiprocessing")  # `python -m` looks here before we can say no
ALL_COMMANDS = """
import sys
from streamproof.cli import main
main._look_in_installed_places()
for arguments in {commands!r}:
    code = main.command(arguments)
    print("END", arguments[0], code, flush=True)
"""
MAPPED = ["--input", "S=events.csv", "--map", "start=t"]
NO_SERVER = ["--engine", "duckdb"]
COMMANDS: Mapping[str, tuple[list[str], int]] = {
    "run": (["run", "plan.json", *MAPPED, *NO_SERVER], 0),
    "run local": (["run", "plan.json", *MAPPED, "--engine", "local"], 0),
    "run sql": (["run", "plan.sql", *MAPPED, *NO_SERVER], 0),
    "run eql": (["explain", "plan.eql"], 2),
    "run xml": (["explain", "plan.xml"], 0),
    "explain": (["explain", "plan.json", *MAPPED], 0),
    "trace": (["trace", "plan.json", "--event", "#2", *MAPPED], 0),
    "validate": (["validate", "events.csv", "--map", "start=t"], 0),
    "convert": (["convert", "events.csv", "events.parquet", "--map", "start=t"], 0),
    "generate": (["generate", "--count", "3", "--out", "g.jsonl"], 0),
    "analyze": (["analyze", "events.csv", "--event-time", "t", "--unit", "ms"], 0),
    "disorder": (["disorder", "disorder.json", "--out", "made"], 0),
    "disorder that names code": (["disorder", "trap.json"], 2),
    "replay": (["replay", "events.csv", "--as-fast-as-possible", "--to", "played"], 0),
    "qos": (["qos", "qos.json"], 0),
    "serve that names code": (["serve", "serve.json", "--quiet"], 2),
    "verify": (["verify", "suite.json", "--cases", "2"], 0),
    "verify that names code": (["verify", "trap.py"], 2),
    "verify a file of another kind": (["verify", "trap.txt"], 2),
    "modules": (["modules"], 0),
}


def lay_traps(folder: Path, names: tuple[str, ...] = TRAPS) -> Path:
    """A folder where every import that should not happen leaves a mark."""
    mark = folder.parent / "mark"
    for name in names:
        (folder / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write('{name} ')\ndef go(*_): pass\n")
    source = {"op": "source", "name": "S"}
    config = {"dataSource": {"file": "events.csv", "time": {"timeIndex": "t", "sourceTimeUnit": "ms"}}}
    experiment = {"targetOutOfOrderFactor": 10, "maxDelay": 20}
    fed = {"S": {"file": "events.csv", "map": "start=t,unit=ms"}}
    files: dict[str, object] = {
        "plan.json": {"op": "where", "in": source, "expr": "v > 1"},
        "plan.sql": "SELECT v FROM S",
        "plan.eql": "trap:go",
        "plan.xml": '<plan version="1"><source name="S"/></plan>',
        "events.csv": "t,v\n" + "".join(f"{10 * n},{n}\n" for n in range(1, 50)),
        "disorder.json": {**config, "experimentDataConfigurations": [experiment]},
        "trap.json": {**config, "experimentDataConfigurations": [{**experiment, "distribution": "trap:go"}]},
        "qos.json": (ROOT / "examples/qos/worked.json").read_text(),
        "serve.json": {"queries": [{"name": "q", "plan": "trap:go", "inputs": fed, "qos": {"max_latency_ms": 50}}]},
        "suite.json": {"scenarios": {"one": {"op": "to_point", "in": {"op": "stream"}}}},
        "trap.txt": f"open({str(mark)!r}, 'a').write('trap.txt ')",
        ".numba_config.yaml": "cache_dir: ./numba_cache\ncache_locator_classes: trap.go\n",
    }  # fmt: skip
    for name, content in files.items():
        (folder / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return mark


@pytest.fixture
def trapped(tmp_path: Path) -> tuple[Path, Path]:
    folder = tmp_path / "here"
    folder.mkdir()
    return folder, lay_traps(folder)


def call(arguments: list[str], folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        arguments, cwd=folder, env={**PLAIN, **env}, text=True, capture_output=True, timeout=300, check=False
    )


def test_no_command_runs_what_lies_in_the_current_folder(trapped: tuple[Path, Path]) -> None:
    folder, mark = trapped
    program = ALL_COMMANDS.format(commands=[arguments for arguments, _ in COMMANDS.values()])
    ran = call([sys.executable, "-c", program], folder)  # its first place to look is the current folder
    assert not mark.exists(), mark.read_text()
    ends = [line.split()[1:] for line in ran.stdout.splitlines() if line.startswith("END ")]
    wanted = [[arguments[0], str(code)] for arguments, code in COMMANDS.values()]
    assert ends == wanted, ran.stderr
    assert not (folder / "numba_cache").exists()


@pytest.mark.parametrize("program", [SCRIPT, MODULE], ids=["script", "module"])
def test_both_ways_to_start_are_safe(program: list[str], trapped: tuple[Path, Path]) -> None:
    folder, mark = trapped
    if program is SCRIPT:
        lay_traps(folder, SHADOWS)
    ran = call([*program, "verify", "suite.json", "--cases", "2", "--jobs", "2"], folder)
    assert ran.returncode == 0, ran.stderr
    assert not mark.exists(), mark.read_text()


def test_a_module_that_was_named_is_found_here_after_all_others(trapped: tuple[Path, Path]) -> None:
    folder, mark = trapped
    (folder / "mine.py").write_text(
        'import streamproof as sp\n\n@sp.udf("twice", returns="int64", takes=["int64"])\n'
        'def twice(v):\n    return 2 * v\n\nplan = sp.source("S").where("twice(v) > 90")\n'
        "def last(chances, lowest, highest):\n    return lowest * 0 + highest\n"
    )
    document = json.loads((folder / "trap.json").read_text().replace("trap:go", "mine:last"))
    (folder / "mine.json").write_text(json.dumps(document))
    commands = [
        ["disorder", "mine.json", "--out", "refused"],
        ["run", "mine:plan", *MAPPED, *NO_SERVER, "--modules", "mine", "--json"],
        ["disorder", "mine.json", "--out", "made", "--modules", "mine"],
    ]
    ran = call([sys.executable, "-c", ALL_COMMANDS.format(commands=commands)], folder)
    ends = [line for line in ran.stdout.splitlines() if line.startswith("END ")]
    assert ends == ["END disorder 2", "END run 0", "END disorder 0"], ran.stderr
    assert "nobody named the module mine" in ran.stderr
    assert ran.stdout.count('"payload"') == 4
    assert not mark.exists(), mark.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("mode", [[], ["--mode", "stream"]], ids=["batch", "stream"])
def test_spark_runs_nothing_of_the_current_folder(mode: list[str], trapped: tuple[Path, Path]) -> None:
    folder, mark = trapped
    (folder.parent / "bin").mkdir()
    (folder.parent / "jars").mkdir()
    submit = folder.parent / "bin/spark-submit"  # Spark looks for itself in the folder above, left to itself
    submit.write_text(f"#!/bin/sh\ntouch {mark}\n")
    submit.chmod(0o755)
    ran = call([*SCRIPT, "run", "plan.json", *MAPPED, "--engine", "spark", *mode, "--json"], folder)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.count('"payload"') == 48
    assert not mark.exists(), mark.read_text()


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs owners of files")
def test_compiled_code_is_kept_in_a_folder_of_the_users_own(tmp_path: Path) -> None:
    """Where a folder of that name is somebody's trap, another one is taken."""
    probe = (
        "import os; os.access = lambda *_: False; import streamproof\n"
        "place = os.environ['NUMBA_CACHE_DIR']; print(place, oct(os.stat(place).st_mode & 0o777))"
    )
    usual = tmp_path / f"streamproof-compiled-{os.getuid()}"
    environment = {"TMPDIR": str(tmp_path)}
    assert call([sys.executable, "-c", probe], tmp_path, **environment).stdout.split() == [str(usual), "0o700"]
    for mode in (0o755, 0o777, None):
        if mode is None:
            usual.rmdir()
            (tmp_path / "elsewhere").mkdir(mode=0o700)
            usual.symlink_to(tmp_path / "elsewhere")
        else:
            usual.chmod(mode)
        place, found = call([sys.executable, "-c", probe], tmp_path, **environment).stdout.split()
        assert (place != str(usual), found) == (True, "0o700")
