"""Every input that is kept, good, bad or once a finding, is read or refused by each reader that it may come to."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from streamproof.errors import InputError, StreamproofError
from tests.reading.judge import judge
from tests.reading.targets import ROOT, TARGETS, Target


@cache
def verdicts() -> dict[tuple[str, str], str]:
    """What came of each input, in a process of its own; where one ends that process, another goes on behind it."""
    files = [(target.name, str(path)) for target in TARGETS.values() for path in target.corpus()]
    found: dict[tuple[str, str], str] = {}
    while len(found) < len(files):
        command = [sys.executable, "-m", "tests.reading.judge", "--from", str(len(found)), "every"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines()
        found.update(zip(files[len(found) :], lines, strict=False))
        if len(found) < len(files):
            found[files[len(found)]] = f"FOUND  the process died: exit {done.returncode}: {done.stderr[-300:]}"
    return found


@pytest.mark.parametrize("name", TARGETS)
def test_kept_inputs_are_read_or_refused(name: str) -> None:
    bad = [
        f"{path}: {text}" for (target, path), text in verdicts().items() if target == name and text.startswith("FOUND")
    ]
    assert bad == []


@pytest.mark.parametrize("name", TARGETS)
def test_good_inputs_get_past_the_first_door(name: str) -> None:
    """A target whose every input is refused at once finds nothing; one reader at least reads one of them."""
    good = [
        text for (target, path), text in verdicts().items() if target == name and Path(path).name.startswith("good")
    ]
    assert name in REFUSING or any(text.endswith(" read") for text in good), good


REFUSING = {"python": "Python is written, never read"}


@pytest.mark.parametrize(("does", "found"), [
    (lambda data, folder: int(data), True),
    (lambda data, folder: _burn(), True),
    (lambda data, folder: _refuse(""), True),
    (lambda data, folder: _refuse("no"), False),
    (lambda data, folder: None, False),
])  # fmt: skip
def test_what_is_a_finding(does: object, found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.reading.judge.CPU_SECONDS", 0.1)
    with tempfile.TemporaryDirectory() as folder:
        assert judge(Target("t", does, ()), b"x", Path(folder)).is_found is found  # type: ignore[arg-type]


def _burn() -> None:
    import time

    begun = time.process_time()
    while time.process_time() < begun + 0.15:
        pass


def _refuse(what: str) -> None:
    error: StreamproofError = InputError(what)
    raise error
