"""Running the command line in process: the same entry point, the same exit codes, no start-up cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from streamproof.cli.main import command

Case = Mapping[str, object]


@dataclass(frozen=True)
class Done:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Done]:
    """Call ``streamproof`` with these arguments, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: object) -> Done:
        capfd.readouterr()
        code = command([str(argument) for argument in arguments])
        printed = capfd.readouterr()
        return Done(code, printed.out, printed.err)

    return call


@pytest.fixture
def lay(tmp_path: Path) -> Callable[..., Path]:
    """Write a file: text as it is, a list as JSON lines, anything else as JSON."""

    def write(name: str, content: object) -> Path:
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif isinstance(content, str):
            path.write_text(content, encoding="utf-8")
        elif isinstance(content, Sequence):
            path.write_text("".join(json.dumps(item) + "\n" for item in content), encoding="utf-8")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
        return path

    return write
