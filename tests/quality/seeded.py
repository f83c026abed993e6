"""Bugs that nobody thought of: in each module of a room one slip, picked by a seed, and whether the tests see it.

    python -m tests.quality.seeded                         every bug of the list that is not judged yet
    python -m tests.quality.seeded --again survived        those that survived; also killed, all, or a part of a name
    python -m tests.quality.seeded --draw --seed 2         pick other bugs

The list with what came of it is tests/data/seeded-mutants.json. Each bug is planted in a copy of the tree; there the
tests that belong to its module run, most specific first, until one fails: the module's own examples, the files of
tests that import it, the folder of its room. A bug that changes nothing that anybody can see is marked
``equivalent`` in the list, with the reason, by hand.
"""

# ruff: noqa: E501  # a page of the documentation stands as it is

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.quality.operators import Site, chosen

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src" / "streamproof"
LIST: Final = ROOT / "tests" / "data" / "seeded-mutants.json"
PAGE: Final = ROOT / "docs" / "mutation-score.md"
CPU_SECONDS: Final = 120  # of one run of tests; a loop without end is a find
SEED: Final = 1

# room: how many of its modules, and the folders of tests that belong to it
ROOMS: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "plan/rewrites": (6, ("tests/plan/test_rewrite.py", "tests/agreement/test_rewrite.py")),
    "plan/driven": (7, ("tests/plan/driven", "tests/language/eql")),
    "events": (10, ("tests/events",)),
    "events/files": (10, ("tests/events/files",)),
    "query": (8, ("tests/query", "tests/language/test_python.py")),
    "qos": (10, ("tests/qos",)),
    "engines": (3, ("tests/engines", "tests/cli/test_restarts.py")),
    "documents.py": (1, ("tests/test_documents.py",)),
    "properties": (10, ("tests/properties",)),
    "disorder": (11, ("tests/disorder",)),
    "engines/spark/batch": (6, ("tests/spark/batch",)),
    "engines/spark/stream": (3, ("tests/spark/stream",)),
    "engines/spark/sinks.py": (1, ("tests/spark/test_sinks.py",)),
}
# always among them: what was named when the rooms were chosen
ALWAYS: Final = frozenset(
    {"events/validate.py", "engines/spark/stream/journal.py", "engines/claims.py", "engines/sealed.py"}
)
NEEDS_SPARK: Final = re.compile(r"pyspark|SparkSession|\bspark: |tests/[\w/]*spark")
MOST_ELSEWHERE: Final = 4  # files of tests in other rooms

Bug = dict[str, Any]


def drawn(seed: int) -> list[Bug]:
    """One bug in each module that is drawn. The same seed and the same text give the same bug."""
    found = []
    for room, (count, _) in ROOMS.items():
        modules = modules_of(room)
        Random(f"{seed}:{room}").shuffle(modules)
        modules.sort(key=lambda module: module not in ALWAYS)
        bugs = (bug for module in modules if (bug := bug_in(module, room, seed)) is not None)
        found += [bug for bug, _ in zip(bugs, range(count), strict=False)]
    return found


def modules_of(room: str) -> list[str]:
    """The modules that stand in a room itself."""
    place = SOURCES / room
    files = [place] if place.is_file() else sorted(place.glob("*.py"))
    return [file.relative_to(SOURCES).as_posix() for file in files]


def bug_in(module: str, room: str, seed: int) -> Bug | None:
    """The bug that a seed picks in a module."""
    site = chosen((SOURCES / module).read_text(encoding="utf-8"), f"{seed}:{module}")
    if site is None:
        return None
    return {"file": module, "room": room, "seed": seed, "operator": site.operator, "old": site.old, "new": site.new}


def applies(bug: Bug) -> bool:
    """Whether the text that a bug changes still stands where it stood."""
    path = SOURCES / bug["file"]
    return path.is_file() and path.read_text(encoding="utf-8").count(bug["old"]) == 1


def tests_of(bug: Bug) -> list[str]:
    """What runs for a bug, most specific first: its module's examples, tests that import it, its room's tests."""
    module = bug["file"].removesuffix(".py").replace("/", ".")
    package, _, name = module.rpartition(".")
    imports = re.compile(
        rf"streamproof\.{re.escape(module)}\b|from streamproof\.{re.escape(package)} import [^\n]*\b{name}\b"
    )
    with_spark = bug["room"].startswith("engines/spark")
    own = [f"src/streamproof/{bug['file']}"]
    near = [path for path in _test_files(ROOT / "tests") if imports.search((ROOT / path).read_text(encoding="utf-8"))]
    folders = ROOMS[bug["room"]][1]
    room = [path for folder in folders for path in _test_files(ROOT / folder)]
    if not with_spark:
        near, room = ([path for path in paths if not _needs_spark(path)] for paths in (near, room))
    elsewhere = [path for path in near if path not in room]
    return list(dict.fromkeys([*own, *(path for path in near if path in room), *elsewhere[:MOST_ELSEWHERE], *room]))


def _needs_spark(path: str) -> bool:
    return NEEDS_SPARK.search(f"{path}\n{(ROOT / path).read_text(encoding='utf-8')}") is not None


def _test_files(place: Path) -> list[str]:
    files = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
    return [file.relative_to(ROOT).as_posix() for file in files if "quality" not in file.parts]


class Copy:
    """A copy of the tree, in which one bug at a time is planted."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        for name in ("src", "tests", "examples", "docs", "benchmarks"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        for name in ("conftest.py", "pyproject.toml", "README.md", "CHANGELOG.md", "mkdocs.yml"):
            shutil.copy2(ROOT / name, folder / name)

    def judge(self, bug: Bug | None, paths: Sequence[str]) -> Bug:
        """What the tests say with the bug in the tree."""
        if bug is None:
            return self._run(paths, {})
        path = self.root / "src" / "streamproof" / bug["file"]
        text = path.read_text(encoding="utf-8")
        path.write_text(Site("", 0, bug["old"], bug["new"]).applied(text), encoding="utf-8")
        compiled = "njit" in text or "kernels.compiled" in text
        try:
            with tempfile.TemporaryDirectory() as cache:
                return self._run(paths, {"NUMBA_CACHE_DIR": cache} if compiled else {})
        finally:
            path.write_text(text, encoding="utf-8")

    def _run(self, paths: Sequence[str], more: dict[str, str]) -> Bug:
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1", **more}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "--tb=line", *paths]
        begun = time.monotonic()
        done = subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, preexec_fn=_limit
        )
        seconds = round(time.monotonic() - begun, 1)
        failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
        if done.returncode == 0:
            return {"result": "survived", "seconds": seconds}
        by = failed[0] if failed else f"the tests do not end (exit {done.returncode})"
        return {"result": "killed", "by": by, "seconds": seconds}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 5))


def known() -> list[Bug]:
    """The list as it was kept."""
    bugs: list[Bug] = json.loads(LIST.read_text(encoding="utf-8")) if LIST.exists() else []
    return bugs


def keep(bugs: list[Bug]) -> None:
    LIST.write_text(json.dumps(bugs, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_page(bugs)


HEAD: Final = "## Bugs that nobody chose"
TEXT: Final = """{head}

The bugs above are those that somebody thought of. These are picked by a rule: in each module of a room one slip (a comparison, a
constant, `and` for `or`, a condition turned around, a statement that is missing, two arguments swapped, `min` for `max`, `+` for `-`),
chosen by a seed. For each the fast tests of its module and room run in a copy of the tree.

**{killed} of {count}** are killed; {equivalent} more change nothing that can be seen, {survived} survive.

| room | bugs | killed | equivalent | survived |
| --- | --- | --- | --- | --- |
{rows}

{alive}The list is `tests/data/seeded-mutants.json`; `python -m tests.quality.seeded` judges what is new in it, `--draw --seed N` picks others.
A bug counts as long as the text that it changes is still there.
"""


def write_page(bugs: list[Bug]) -> None:
    """The second half of the page of the documentation."""
    text = PAGE.read_text(encoding="utf-8").partition(HEAD)[0].rstrip() + "\n\n"
    PAGE.write_text(text + section(bugs), encoding="utf-8")


def section(bugs: list[Bug]) -> str:
    """What came of the list, in words."""
    judged = [bug for bug in bugs if applies(bug) and "result" in bug]
    rows = []
    for room in ROOMS:
        own = [bug["result"] for bug in judged if bug["room"] == room]
        numbers = [len(own), *(own.count(word) for word in ("killed", "equivalent", "survived"))]
        rows.append(f"| `{room}` | " + " | ".join(map(str, numbers)) + " |")
    results = [bug["result"] for bug in judged]
    counts = {word: results.count(word) for word in ("killed", "equivalent", "survived")}
    alive = [f"- `{bug['file']}`: {bug['reason']}\n" for bug in judged if bug["result"] == "equivalent"]
    lines = "Equivalent, and why:\n\n" + "".join(alive) + "\n" if alive else ""
    return TEXT.format(head=HEAD, count=len(judged), rows="\n".join(rows), alive=lines, **counts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw bugs, or judge those of the list."""
    parser = argparse.ArgumentParser(prog="python -m tests.quality.seeded")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--draw", action="store_true", help="pick the bugs, and forget those of before")
    parser.add_argument("--again", help="judge again: survived, killed, all, or a part of the file's name")
    parser.add_argument("--baseline", action="store_true", help="run the tests of every room without a bug")
    given = parser.parse_args(arguments)
    bugs = drawn(given.seed) if given.draw else known()
    keep(bugs)
    with tempfile.TemporaryDirectory(prefix="streamproof-mutants-") as folder:
        copy = Copy(Path(folder))
        for bug in _wanted(bugs, given.again) if not given.baseline else ():
            _forget(bug)
            bug.update(copy.judge(bug, tests_of(bug)))
            print(bug["result"], bug["file"], bug["operator"], bug.get("by", bug["new"]), bug["seconds"], flush=True)
            keep(bugs)
        for room in ROOMS if given.baseline else ():
            some = [path for bug in bugs if bug["room"] == room for path in tests_of(bug)]
            print(room, copy.judge(None, list(dict.fromkeys(some))), flush=True)
    return 1 if any(bug.get("result") == "survived" for bug in bugs) else 0


def _wanted(bugs: list[Bug], again: str | None) -> Iterator[Bug]:
    for bug in sorted(bugs, key=lambda bug: list(ROOMS).index(bug["room"])):
        result = bug.get("result")
        named = again is not None and (again in {"all", result} or again in bug["file"])
        if applies(bug) and result != "equivalent" and (named if again else result is None):
            yield bug


def _forget(bug: Bug) -> None:
    for name in ("result", "by", "seconds"):
        bug.pop(name, None)


if __name__ == "__main__":
    sys.exit(main())
