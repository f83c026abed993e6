"""Every end is a clean end: signals at any moment, readers that leave, disks that are full, errors nobody expected."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from streamproof.cli import failures
from streamproof.cli.main import command
from tests.cli.conftest import Done
from tests.cli.processes import MODULE, PLAIN, SCRIPT, Ended, stopped
from tests.cli.test_code import MAPPED, lay_traps

Run = Callable[..., Done]
START_UP = 0.2  # seconds in which Python itself may not have come to our first line yet
WITHIN = 7.0  # seconds: our patience, then what is left is ended
COMMANDS = {
    "duckdb": ["run", "plan.json", *MAPPED, "--engine", "duckdb"],
    "local": ["run", "plan.json", *MAPPED, "--engine", "local"],
    "verify": ["verify", "smoke", "--jobs", "2"],
    "generate": ["generate", "--count", "3000000", "--out", "many.jsonl", "--overwrite"],
    "replay": ["replay", "slow.csv", "--to", "played", "--every", "0.1", "--resume", "place.json", "--overwrite"],
    "serve": ["serve", "server.json"],
    "disorder": ["disorder", "disorder.json", "--out", "made", "--overwrite"],
}
SPARK = {
    "spark": ["run", "plan.json", *MAPPED, "--engine", "spark"],
    "spark stream": ["run", "plan.json", *MAPPED, "--engine", "spark", "--mode", "stream"],
}
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def is_clean(ended: Ended, number: int, *, may_be_done: bool = True) -> None:
    assert ended.code == 128 + number or (may_be_done and ended.code in (0, 1)), ended
    assert "Traceback" not in ended.err, ended
    assert "Exception" not in ended.err, ended
    assert "\tat " not in ended.err, ended  # Java's
    assert ended.orphans == (), ended
    assert ended.seconds < WITHIN, ended


@pytest.fixture
def place(tmp_path: Path) -> Path:
    lay_traps(tmp_path, ())
    (tmp_path / "slow.csv").write_text("ingestion_time,x\n" + "".join(f"{1000 * n},a\n" for n in range(100)))
    serve = json.loads((tmp_path / "serve.json").read_text())
    serve["queries"][0]["plan"] = "plan.json"
    (tmp_path / "server.json").write_text(json.dumps({**serve, "duration_s": 60}))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "after", "number", "group"),
    [
        ("duckdb", 0.25, signal.SIGINT, True), ("local", 1.0, signal.SIGTERM, False),
        ("verify", 2.5, signal.SIGTERM, False), ("verify", 3.5, signal.SIGINT, False),
        ("verify", 3.0, signal.SIGINT, True), ("replay", 1.5, signal.SIGHUP, False),
        ("serve", 2.5, signal.SIGINT, True),
    ],
)  # fmt: skip
def test_a_signal_ends_a_command(name: str, after: float, number: int, group: bool, place: Path) -> None:
    is_clean(stopped([*SCRIPT, *COMMANDS[name]], place, after=after, number=number, group=group), number)


@pytest.mark.slow
def test_signals_at_forty_moments(place: Path) -> None:
    chance = random.Random(1)
    for _ in range(40):
        name, number = chance.choice(sorted(COMMANDS)), chance.choice(SIGNALS)
        after = START_UP + chance.random() * chance.choice([0.5, 2, 6])
        program = chance.choice([SCRIPT, MODULE])
        ended = stopped([*program, *COMMANDS[name]], place, after=after, number=number, group=chance.random() < 0.5)
        is_clean(ended, number)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SPARK))
@pytest.mark.parametrize("number", SIGNALS[:2])
def test_signals_while_spark_starts_and_runs(name: str, number: int, place: Path) -> None:
    chance = random.Random(f"{name}{number}")
    for _ in range(4):
        ended = stopped(
            [*SCRIPT, *SPARK[name]], place, after=1 + 9 * chance.random(), number=number, group=chance.random() < 0.5
        )
        is_clean(ended, number)


def test_before_the_first_module_is_loaded(place: Path) -> None:
    """Python's own start-up is not ours; as soon as our first line has run, an end is clean."""
    program = "import os, signal, sys; from streamproof.cli import main; main._end_at_once_if_told(); {}"
    for number in SIGNALS:
        line = program.format(f"os.kill(os.getpid(), {int(number)}); print('on')")
        ran = subprocess.run([sys.executable, "-c", line], env=PLAIN, capture_output=True, text=True, check=False)
        assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, "", "interrupted\n")


def test_a_program_that_does_not_end_by_itself_is_ended(tmp_path: Path) -> None:
    """Deep in a loop that swallows everything, with a child that ignores polite requests."""
    program = (
        "import subprocess, sys, time\nfrom streamproof.cli import stopping\nstopping.listen()\n"
        "subprocess.Popen(['sh', '-c', 'trap \"\" TERM INT HUP; while :; do sleep 0.1; done'])\n"
        "while True:\n    try:\n        time.sleep(60)\n    except BaseException:\n        pass\n"
    )
    ended = stopped([sys.executable, "-c", program], tmp_path, after=1.0, number=signal.SIGTERM)
    is_clean(ended, signal.SIGTERM, may_be_done=False)


@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("{} generate --count 50000 | head -n 1", 141), ("{} modules | true", 141), ("{} --help | true", 141),
        ("{} run none.json 2>&1 | true", 141), ("{} generate --count 9 >/dev/full", 3),
        ("{} run none.json --json >/dev/full", 3), ("{} --help >/dev/full", 3), ("{} modules >&-", 3),
        ("{} modules --json >&- 2>&-", 3), ("{} modules <&- >/dev/null", 0), ("{} modules 2>&- >/dev/null", 0),
    ],
)  # fmt: skip
def test_where_output_cannot_go(line: str, code: int, unbuffered: str, tmp_path: Path) -> None:
    if "/dev/full" in line and not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    script = f"{line.format(SCRIPT[0])}; exit ${{PIPESTATUS[0]}}"
    env = {**PLAIN, "PYTHONUNBUFFERED": unbuffered}
    ran = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert ran.returncode == code, ran
    assert "Traceback" not in ran.stderr
    assert len(ran.stderr.splitlines()) <= 3, ran.stderr
    if code == 3 and "2>&-" not in line:
        assert ran.stderr.startswith("infrastructure: "), ran.stderr


@pytest.mark.parametrize("locale", [
    {"LANG": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"}, {"PYTHONOPTIMIZE": "2"},
], ids=lambda locale: next(iter(locale)))  # fmt: skip
def test_results_are_the_same_in_every_locale(locale: dict[str, str], tmp_path: Path) -> None:
    """In one without accents, tables and text ended in an exception; and no check stands in an assert alone."""
    (tmp_path / "s.csv").write_text("le,re,k\n1,5,café\n2,9,ü €\n", encoding="utf-8")
    (tmp_path / "p.json").write_text('{"op": "source", "name": "S"}')
    arguments = [*SCRIPT, "run", "p.json", "--input", "S=s.csv"]
    for more in ([], ["--json"]):
        usual, other = (
            subprocess.run([*arguments, *more], cwd=tmp_path, env={**PLAIN, **env}, capture_output=True, check=False)
            for env in ({}, locale)
        )
        assert (other.returncode, other.stdout, other.stderr) == (0, usual.stdout, usual.stderr)
        assert "café".encode() in other.stdout


UNEXPECTED = [
    PermissionError(13, "Permission denied", "/x"), IsADirectoryError(21, "Is a directory", "/x"),
    OSError(28, "No space left on device"), MemoryError(), RecursionError("too deep"), ValueError("a\nb"),
    UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"), pa.ArrowInvalid("bad"), pa.ArrowMemoryError("no"),
    KeyError("k"), AssertionError(), ZeroDivisionError("division by zero"), ImportError("numpy is broken"),
]  # fmt: skip


@pytest.mark.parametrize("error", UNEXPECTED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("as_json", [True, False])
def test_an_error_that_nobody_expected(
    error: Exception, as_json: bool, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(self: object, *_: object) -> None:
        raise error

    monkeypatch.setattr(failures.End, "run", fails)
    monkeypatch.setattr(failures.tempfile, "tempdir", str(tmp_path))
    done = run("modules", *(["--json"] if as_json else []))
    assert done.code == 3
    assert "Traceback" not in done.err
    told = done.rows[0] if as_json else {"fix": done.err}
    if as_json:
        assert told["error"] in ("infrastructure", "internal")
    (details,) = tmp_path.glob("streamproof-error-*")
    assert str(details) in str(told["fix"])
    assert details.stat().st_mode & 0o777 == 0o600
    assert type(error).__name__ in details.read_text()
    monkeypatch.setenv(failures.DEBUG, "1")
    assert "Traceback" in run("modules").err
    assert len(list(tmp_path.glob("streamproof-error-*"))) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "p.json", "--engin", "x"], ["run"], ["nonsense"], ["run", "p.json", "--batch-size", "0"], ["--nope"],
        ["run", "p.json", "--mode", "other"], ["modules", "check"], ["modules", "nonsense"],
        ["generate", "--count", "x"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_command_line_that_cannot_be_read(arguments: list[str], run: Run) -> None:
    done = run(*arguments)
    assert (done.code, done.out) == (2, "")
    assert [line.strip().partition(":")[0] for line in done.err.splitlines()] == ["bad_input", "at", "fix"]
    done = run(*arguments, "--json")
    assert (done.code, done.err) == (2, "")
    (told,) = done.rows
    assert set(told) == {"error", "what", "at", "fix"}


def test_the_version_is_said_once(run: Run) -> None:
    import streamproof

    assert run("--version").out == f"streamproof {streamproof.__version__}\n"
    ran = subprocess.run([*MODULE, "--version"], env=PLAIN, capture_output=True, text=True, check=False)
    assert ran.stdout == f"streamproof {streamproof.__version__}\n"


def test_a_call_in_a_program_keeps_its_signals(tmp_path: Path) -> None:
    before = [signal.getsignal(number) for number in SIGNALS]
    assert command(["modules"]) == 0
    assert [signal.getsignal(number) for number in SIGNALS] == before
    assert os.environ.get("PYTHONSAFEPATH") is None
