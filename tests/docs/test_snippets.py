"""Every snippet in the README and in docs/ runs, page by page, in a folder of its own.

A fence with a title is a file that later snippets use. Python fences share one namespace per page; where they hold
``>>>`` prompts, the output is compared. Console fences run their ``$`` lines and compare what is printed; ``...``
stands for any text. Where outputs changed on purpose, ``python -m tests.docs.refill docs/PAGE.md`` writes the new ones.
"""

from __future__ import annotations

import doctest
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<body>.*?)^(?P=indent)```", re.M | re.S)
SET_UP = ("make ", "git ", "cd ", "pip ", "source ")
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.DONT_ACCEPT_TRUE_FOR_1


@dataclass(frozen=True)
class Snippet:
    language: str
    options: str
    body: str
    line: int

    @property
    def title(self) -> str | None:
        found = re.search(r'title="([^"]+)"', self.options)
        return found.group(1) if found else None


def snippets(text: str) -> Iterator[tuple[re.Match[str], Snippet]]:
    """Each fence of a page and where it stands."""
    for match in FENCE.finditer(text):
        body = re.sub(rf"^{match['indent']}", "", match["body"], flags=re.M)
        yield match, Snippet(match["language"], match["options"], body, text.count("\n", 0, match.start()) + 1)


def run_python(snippet: Snippet, names: dict[str, object], page: Path) -> None:
    if ">>>" not in snippet.body:
        exec(compile(snippet.body, f"{page.name}:{snippet.line}", "exec"), names)
        return
    test = doctest.DocTestParser().get_doctest(snippet.body, names, page.name, str(page), snippet.line)
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    report: list[str] = []
    runner.run(test, out=report.append, clear_globs=False)
    names.update(test.globs)
    assert not runner.failures, "".join(report)


class Command(NamedTuple):
    shown: str  # the lines of the page that hold it
    line: str
    expected: str


def commands(body: str) -> Iterator[Command]:
    """The ``$`` lines of a console fence with what they print; set-up is shown for people and not run."""
    for part in re.split(r"^\$ ", body, flags=re.M)[1:]:
        line, _, expected = part.partition("\n")
        shown = f"$ {line}\n"
        while line.endswith("\\"):
            more, _, expected = expected.partition("\n")
            shown += f"{more}\n"
            line = line[:-1] + more.removeprefix("> ")
        yield Command(shown, "" if line.startswith(SET_UP) else line, expected)


def printed_by(line: str, folder: Path) -> str:
    """What a command prints, both outputs together, as a terminal shows them."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    quick = {"STREAMPROOF_ENGINE": "duckdb"}  # the same results without starting Spark for each
    environment = {**os.environ, **quick, "PATH": path, "NO_COLOR": "1", "COLUMNS": "100", "PYTHONWARNINGS": "error"}
    return subprocess.run(
        line, shell=True, cwd=folder, env=environment, text=True, timeout=120, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ).stdout  # fmt: skip


def run_console(snippet: Snippet, folder: Path, page: Path) -> None:
    for command in commands(snippet.body):
        if not command.line:
            continue
        printed = printed_by(command.line, folder)
        same = doctest.OutputChecker().check_output(command.expected, printed, FLAGS)
        expected = f"expected:\n{command.expected}\nprinted:\n{printed}"
        assert same, f"{page.name}:{snippet.line}: {command.line}\n{expected}"


def write_file(snippet: Snippet, folder: Path) -> None:
    assert snippet.title is not None
    file = folder / snippet.title
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(snippet.body, encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_snippet_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    names: dict[str, object] = {"__name__": "page"}
    before = set(sys.modules)
    for _, snippet in snippets(page.read_text(encoding="utf-8")):
        if snippet.title is not None:
            write_file(snippet, tmp_path)
        elif snippet.language == "python":
            run_python(snippet, names, page)
        elif snippet.language == "console":
            run_console(snippet, tmp_path, page)
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]  # another page may have a module of this name
