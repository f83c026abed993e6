"""Whatever a command is given: it does what it is for, or says what is wrong, where, and what to give instead.

Every argument and every option of every command is replaced by each of many wrong ones of its kind: files that are
missing, empty, folders, devices, or of another kind; numbers that are negative, huge, or none; words that nobody knows.
The tables below say how each is given rightly; a test fails where one is missing.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from streamproof.cli.commands import app
from streamproof.errors import ERROR_NAMES
from tests.cli.conftest import Done

Run = Callable[..., Done]
ROOT = Path(__file__).parents[2]
SECONDS = 20.0  # for one call; those that would never end are ended

EVENTS = "t,v\n" + "".join(f"{10 * n},{n}\n" for n in range(1, 20))
SOURCE = {"op": "source", "name": "S"}
FED = "--input S=events.csv --map start=t,unit=ms"
CONFIG = {
    "dataSource": {"file": "events.csv", "time": {"timeIndex": "t", "sourceTimeUnit": "ms"}},
    "experimentDataConfigurations": [{"targetOutOfOrderFactor": 10, "maxDelay": 20}],
}
SERVED = {
    "share": "0.5", "duration_s": 0.1, "speed": 1000,
    "queries": [{
        "name": "q", "plan": "plan.json", "inputs": {"S": {"file": "events.csv", "map": "start=t,unit=ms"}},
        "qos": {"max_latency_ms": 60000},
    }],
}  # fmt: skip

LINES = {
    "demo": "",
    "run": f"plan.json {FED} --engine duckdb",
    "explain": "plan.json",
    "trace": f"plan.json --event #3 {FED}",
    "validate": "events.csv --map start=t",
    "convert": "events.csv made.parquet --map start=t --overwrite",
    "generate": "--count 5",
    "analyze": "events.csv --event-time t --unit ms --on here",
    "disorder": "disorder.json --out made --overwrite --on here",
    "replay": "events.csv --as-fast-as-possible --limit 2",
    "qos": "qos.json",
    "serve": "serve.json --quiet",
    "warm-up": "--quiet",
    "verify": "suite.json --cases 1 --engine duckdb",
    "modules": "",
    "modules check": "plain_max --windows 1 --modules plain_max",
}
"""How each command is called rightly, in the folder that `lay_files` lays."""

STREAM = f"no_plan.json {FED} --engine spark --mode stream"
LOCAL = f"plan.json {FED} --engine local"
BESIDE = {
    "run": {
        "overwrite": f"{LINES['run']} --out made.csv", "emission": LOCAL, "batch_size": LOCAL, "late_file": LOCAL,
        "from_savepoint": LOCAL, "savepoint": LOCAL, "on_module_error": LOCAL, "metrics": LOCAL,
        "module_letters": f"{LOCAL} --on-module-error dead-letter",
        "dead_letters": f"{LINES['run']} --on-error dead_letter", "checkpoint": STREAM,
        "growing": f"{STREAM} --checkpoint place", "mode": f"no_plan.json {FED} --engine spark",
        "dsn": f"no_plan.json {FED} --engine postgres",
    },
    "explain": {"map": "plan.json --input S=events.csv"},
    "generate": {"overwrite": "--count 5 --out made.csv"},
    "analyze": {
        "delay": f"{LINES['analyze']} --batch-rows 5", "window": f"{LINES['analyze']} --batch-rows 5",
        "overwrite": f"{LINES['analyze']} --html made.html", "partitions": "no_file.csv --event-time t --unit ms",
    },
    "disorder": {"partitions": "no_file.json --out made --overwrite"},
    "replay": {
        "speed": "events.csv --limit 0", "overwrite": "events.csv --as-fast-as-possible --to played",
        "every": "events.csv --to played --speed 1000 --overwrite",
        "rows_per_file": "events.csv --as-fast-as-possible --to played --overwrite",
        "key": "events.csv --to kafka://localhost:1/t",
    },
    "qos": {"overwrite": "qos.json --plot made.svg"},
    "serve": {
        "overwrite": "serve.json --quiet --report made.html", "duration": "no_file.json --quiet",
    },
    "verify": {
        "input": "plan.json --engine duckdb --map start=t", "map": "plan.json --engine duckdb --input S=events.csv",
        "dsn": "no_suite.json --cases 1 --engine postgres", "replay": "",
        "cases": "no_suite.json", "time_budget": "no_suite.json", "seed": "no_suite.json",
    },
}  # fmt: skip
"""What else an option needs, so that it means something."""

NAMES = (
    "", "no such thing", "nope", "\x1b[2J", "\u202e", "söme ünïcode", "\udcff", "a:b", ":", "=", "x" * 5000, "a,b",
    "-1", "--nope", "'", '"', "*", "os:getcwd", "[1]", "a\nb",
)  # fmt: skip
NUMBERS = ("-1", "0", "-3.5", "1e3", "1.5", "nan", "inf", "9" * 40, "0x10", "many", "", " ", "1_000", "٣")
FILES = (
    "no_such_file", "no_such_folder/file", "folder", ".", "/", "", "empty", "binary", "gzip", "text", "loop",
    "pipe", "socket", "/dev/null", "/dev/zero", "events.csv/below", "n" * 300, "\x1b[2J", "\udcff", "not_utf8", "~",
    "-", "a\nb", "/proc/self/mem", "numbers", "null", "deep", "list",
)  # fmt: skip
ENDINGS = (".csv", ".jsonl", ".json", ".parquet", ".arrow", ".sql", ".eql", ".xml", ".html", ".svg", ".py", "")
OF_KIND = {"plan": (".json",), "named file": (".csv", ".parquet"), "path": (".csv", ".json")}
CONTENTS: dict[str, bytes] = {
    "empty": b"", "binary": bytes(range(256)), "gzip": b"\x1f\x8b\x08\x00" + bytes(20), "text": b"just some words\n",
    "not_utf8": b"t,v\n\xff\xfe,1\n", "numbers": b"1\n2\n3\n", "null": b"null\n", "list": b"[1, 2]",
    "deep": b"[" * 5000 + b"]" * 5000,
}  # fmt: skip


def lay_files(folder: Path) -> None:
    """A folder with what the right lines need, and with every kind of wrong file under every ending."""
    documents: dict[str, object] = {
        "plan.json": {"op": "where", "in": SOURCE, "expr": "v > 1"}, "disorder.json": CONFIG, "serve.json": SERVED,
        "suite.json": {"scenarios": {"one": {"op": "to_point", "in": {"op": "stream"}}}},
    }  # fmt: skip
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document))
    (folder / "events.csv").write_text(EVENTS)
    (folder / "qos.json").write_text((ROOT / "examples/qos/worked.json").read_text())
    (folder / "plain_max.py").write_text(
        'import streamproof as sp\n\n@sp.uda("plain_max", returns="int64", takes="int64")\n'
        "def plain_max(values):\n    return max(values)\n"
    )
    for ending in ENDINGS:
        for name, content in CONTENTS.items():
            (folder / f"{name}{ending}").write_bytes(content)
        (folder / f"folder{ending}").mkdir()
        (folder / f"loop{ending}").symlink_to(f"loop{ending}")
        os.mkfifo(folder / f"pipe{ending}")
        with socket.socket(socket.AF_UNIX) as end:
            end.bind(f"socket{ending}")


class Hangs(BaseException):
    """A call that would not end."""


@contextmanager
def within(seconds: float) -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hangs

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def commands() -> dict[str, Any]:
    """Every command, and every command of a command."""
    found = {}
    for name, command in typer.main.get_command(app).commands.items():  # type: ignore[attr-defined]
        found[name] = command
        found |= {f"{name} {below}": inner for below, inner in getattr(command, "commands", {}).items()}
    return found


COMMANDS = commands()
FILE_OPTIONS = {"input"}  # NAME=FILE
PLANS = {"plan", "suite"}


def kind_of(parameter: Any) -> str:
    """What kind of thing an option or an argument takes."""
    if parameter.name in FILE_OPTIONS:
        return "named file"
    if parameter.name in PLANS:
        return "plan"
    annotation = parameter.type_descriptor.annotation
    (inner, *_) = [part for part in get_args(annotation) if part is not type(None)] or [annotation]
    return {bool: "flag", int: "number", float: "number", Path: "path"}.get(inner, "name")


def wrong_values(parameter: Any) -> Iterator[str]:
    kind = kind_of(parameter)
    if kind == "flag":
        return
    if kind == "number":
        yield from NUMBERS
    if kind in ("name", "number", "named file"):
        yield from NAMES
    if kind in ("path", "plan", "named file"):
        before = "S=" if kind == "named file" else ""
        for number, name in enumerate(FILES):
            for ending in {ENDINGS[number % len(ENDINGS)], *OF_KIND.get(kind, ENDINGS[:1])}:
                yield f"{before}{name}{'' if name.startswith(('/dev', '/proc')) else ending}"


def given(command: str, parameter: Any, value: str) -> list[str]:
    """A right line of a command, with one thing in it replaced."""
    words = BESIDE.get(command, {}).get(parameter.name, LINES[command]).split()
    if parameter.param_type_name == "argument":
        place = [p for p in COMMANDS[command].params if p.param_type_name == "argument"].index(parameter)
        return [*command.split(), *words[:place], value, *words[place + 1 :]]
    option = parameter.opts[0]
    while option in words and kind_of(parameter) != "flag":
        place = words.index(option)
        del words[place : place + 2]
    return [*command.split(), *words, option, value]


ODD = re.compile(
    r"<[\w.]+ object at|PosixPath\(|Traceback|Expr\(|Col\(|none are known here|ColumnMapping\(|say format=|Facets\("
)
"""What no message says: Python's own words, and advice for another door."""


def faults(done: Done, *, as_json: bool) -> str | None:
    """What is wrong with how a command ended, if anything."""
    text = done.out + done.err
    if any(not (char.isprintable() or char == "\n") for char in done.err):
        return f"control characters: {done.err!r:.300}"
    if (odd := ODD.search(text if done.code > 1 else done.err)) is not None:
        return f"says {odd[0]}: {text:.400}"
    if done.code not in (0, 1, 2, 3):
        return f"exit code {done.code}: {text:.400}"
    if done.code < 2:
        return None
    try:
        told = json.loads(done.out.splitlines()[-1]) if as_json else said(done.err)
    except (ValueError, IndexError):
        return f"not told as asked: {text!r:.400}"
    lacking = [part for part in ("error", "what", "at", "fix") if not told.get(part)]
    if lacking:
        return f"without {' and '.join(lacking)}: {text!r:.400}"
    return f"unexpected: {text:.400}" if told["error"] == "internal" else None


def said(text: str) -> dict[str, str]:
    """The last error in a text: its name, and its parts."""
    told: dict[str, str] = {}
    for line in text.splitlines():
        key, _, rest = line.strip().partition(": ")
        if key in ERROR_NAMES:
            told = {"error": key, "what": rest}
        elif key in ("at", "fix"):
            told[key] = rest
    return told


def wrong_calls(name: str, share: int) -> Iterator[tuple[list[str], bool]]:
    """Every ``share``-th wrong call of a command, and whether its errors are asked for as JSON."""
    parameters = [parameter for parameter in COMMANDS[name].params if parameter.name != "help"]
    has_json = any(parameter.name == "json" for parameter in parameters)
    for number, parameter in enumerate(parameters):
        for place, value in enumerate(wrong_values(parameter)):
            if (place + number) % share == 0:
                as_json = has_json and place // share % 2 == 0
                yield [*given(name, parameter, value), *(["--json"] if as_json else [])], as_json


def test_every_command_is_called_here() -> None:
    assert set(LINES) == set(COMMANDS)
    for command, options in BESIDE.items():
        assert set(options) <= {parameter.name for parameter in COMMANDS[command].params}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    lay_files(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", [name for name in LINES if name not in ("demo", "warm-up")])
def test_what_is_right_is_done(name: str, run: Run, place: Path) -> None:
    """Else what is refused below would be refused for another reason."""
    beside = [line for option, line in BESIDE.get(name, {}).items() if option not in ("map", "input", "replay")]
    for line in [LINES[name], *beside]:
        if "no_" not in line and "kafka" not in line:
            done = run(*name.split(), *line.split())
            assert done.code in (0, 1), (line, done)


@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name in LINES if name not in ("demo", "warm-up")])
def test_wrong_arguments_are_told(name: str, share: int, run: Run, place: Path) -> None:
    found = []
    for arguments, as_json in wrong_calls(name, share):
        with within(SECONDS):
            done = run(*arguments)
        if (why := "never ends" if "Hangs" in done.out + done.err else faults(done, as_json=as_json)) is not None:
            found.append(f"{[word[:80] for word in arguments]}: {why}")
    assert not found, f"{len(found)}:\n" + "\n".join(found[:60])


NUMBERED = itertools.count()
BROKEN = {
    "op": "join", "on": "l.v = r.zz",
    "left": {
        "op": "agg", "in": {"op": "where", "in": {**SOURCE, "schema": {"v": "int64"}}, "expr": "w > 1"},
        "window": {"type": "tumbling", "size": 10}, "aggs": {"n": ["sum", "nope"], "m": ["sum", "nada"]},
    },
    "right": {"op": "where", "in": {"op": "source", "name": "R", "schema": {"v": "int64"}}, "expr": "v"},
}  # fmt: skip
UNREADABLE = {
    "op": "union",
    "ins": [{"op": "where", "in": SOURCE, "expr": "v >", "bogus": 1}, {"op": "sorce"}, {**SOURCE, "nam": "x"}],
}


@pytest.mark.parametrize("name", ["explain {}", "run {} --engine duckdb", "trace {} --event a"])
@pytest.mark.parametrize(
    ("plan", "errors"),
    [
        (BROKEN, [
            "unknown_column: unknown column \"w\"", "unknown_column: unknown column \"nope\"",
            "unknown_column: unknown column \"nada\"", "type_mismatch: the condition of where must be bool, not int64",
        ]),
        (UNREADABLE, [
            'bad_plan: where has no field "bogus"', "bad_plan: cannot read the expression near '>'",
            "bad_plan: unknown op 'sorce'", 'bad_plan: source has no field "nam"',
        ]),
    ],
    ids=["broken", "unreadable"],
)  # fmt: skip
def test_all_errors_of_a_plan_are_told_at_once(
    name: str, plan: object, errors: list[str], run: Run, lay: Callable[..., Path]
) -> None:
    words = name.format(lay("p.json", plan)).split()
    if plan is BROKEN and words[0] != "explain":
        lay("e.jsonl", [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}])
        words += ["--input", "S=e.jsonl", "--input", "R=e.jsonl"]
    done = run(*words)
    assert (done.code, [line for line in done.err.splitlines() if not line.startswith(" ")]) == (2, errors)
    (told,) = run(*words, "--json").rows
    others = told.pop("others")
    assert isinstance(others, list)
    assert [f"{one['error']}: {one['what']}" for one in (told, *others)] == errors
    assert all(one["at"] and one["fix"] for one in (told, *others))


@pytest.mark.parametrize(
    ("code", "line", "what"),
    [
        ("plan = sp.source('S').tumbling(0)", 2, "size must be positive, got 0"),
        ("plan = sp.source('S')\n1 / 0", 3, "ZeroDivisionError: division by zero"),
        ("import nothing_of_that_name", 2, "ModuleNotFoundError: No module named 'nothing_of_that_name'"),
        ("def (", 2, "SyntaxError: invalid syntax"),
        ("raise SystemExit('no')", 2, "SystemExit: no"),
        ("sp.source('S').order_by('v')", 2, 'a Stream has no "order_by"'),
    ],
)
@pytest.mark.parametrize(
    "call", ["explain {}:plan", "run plan.json --engine duckdb --modules {}", "generate --pattern {}:f"]
)
def test_code_that_fails_is_told_with_its_line(
    code: str, line: int, what: str, call: str, *, run: Run, place: Path
) -> None:
    name = f"code_{next(NUMBERED)}"
    (place / f"{name}.py").write_text(f"import streamproof as sp\n{code}\n")
    done = run(*call.format(name).split())
    assert (done.code, said(done.err)["what"]) == (2, f"{name} cannot be loaded: {what}")
    assert said(done.err)["at"].startswith(f"{place / name}.py, line {line}")
