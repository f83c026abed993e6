"""Bugs that nobody thought of: in each module of a room one slip, picked by a seed, and whether the tests see it.

    python -m tests.quality.seeded                         every bug of the list that is not judged yet
    python -m tests.quality.seeded --again survived        those that survived; also killed, all, or a part of a name
    python -m tests.quality.seeded --draw --seed 2         pick more bugs, and judge them
    python -m tests.quality.seeded --room kernels          in one room; may be given several times

The list with what came of it is tests/data/seeded-mutants.json. Each bug is planted in a copy of the tree; there the
tests that belong to its module run, most specific first, until one fails: the module's own examples, the files of
tests that import it, the folder of its room. What they let pass is hunted for by the suite ``full``, where the module
has a part in how plans run. A bug that changes nothing that anybody can see is marked
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
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tests.quality.mutants import compiled_with, hunt_in, shown_alone
from tests.quality.operators import Site, chosen

ROOT: Final = Path(__file__).parents[2]
SOURCES: Final = ROOT / "src" / "streamproof"
LIST: Final = ROOT / "tests" / "data" / "seeded-mutants.json"
PAGE: Final = ROOT / "docs" / "mutation-score.md"
CPU_SECONDS: Final = 120  # of one run of tests; a loop without end is a find
SPARK_SECONDS: Final = 900  # the same, where the tests start Spark
FULL_SECONDS: Final = 60  # of the workbench's hunt for what the tests let pass
SEED: Final = 1


class Room(NamedTuple):
    """Modules of one folder, and what judges them."""

    count: int  # how many of its modules a seed picks
    tests: tuple[str, ...]  # folders, files and patterns of tests that belong to it
    engine: str = ""  # the suite `full` on this engine looks for what its tests let pass


ROOMS: Final[dict[str, Room]] = {
    "plan/rewrites": Room(6, ("tests/plan/test_rewrite.py", "tests/agreement/test_rewrite.py"), "local"),
    "plan/eql": Room(7, ("tests/plan/eql", "tests/language/eql"), "local"),
    "events": Room(10, ("tests/events",), "local"),
    "events/files": Room(10, ("tests/events/files",)),
    "query": Room(8, ("tests/query", "tests/language/test_python.py")),
    "qos": Room(10, ("tests/qos", "tests/cli/test_qos.py", "tests/cli/test_serve.py")),
    "engines": Room(3, ("tests/engines", "tests/cli/test_restarts.py"), "local"),
    "documents.py": Room(1, ("tests/test_documents.py",)),
    "properties": Room(10, ("tests/properties",)),
    "disorder": Room(11, ("tests/disorder", "tests/cli/test_disorder.py")),
    "engines/spark/batch": Room(6, ("tests/spark/batch",), "spark-batch"),
    "engines/spark/stream": Room(3, ("tests/spark/stream",), "spark-buckets"),
    "engines/spark/sinks.py": Room(1, ("tests/spark/test_sinks.py", "tests/spark/test_output.py")),
    "kernels": Room(8, ("tests/kernels/*.py", "tests/engines/local/test_bounded.py"), "local"),
    **{
        f"kernels/windows/{name}": Room(
            count, ("tests/kernels/windows", "tests/engines/local/test_bounded.py"), "local"
        )
        for name, count in {
            "recompute": 4,
            "shared": 4,
            "hopping_sums": 3,
            "snapshot_sums": 2,
            "snapshot_extremes": 1,
        }.items()
    },
    "engines/local": Room(6, ("tests/engines/local",), "local"),
    "engines/oracle": Room(6, ("tests/engines/oracle",), "local"),
}
# always among them: what was named when the rooms were chosen
ALWAYS: Final = frozenset(
    {
        "events/validate.py", "engines/spark/stream/journal.py", "engines/claims.py", "engines/sealed.py",
        "engines/spark/batch/hoisting.py", "kernels/interning.py", "kernels/store.py", "engines/local/graph.py",
        "qos/admission.py",
    }
)  # fmt: skip
NEEDS_SPARK: Final = re.compile(r"pyspark|SparkSession|\bspark: |tests/[\w/]*spark")
MOST_ELSEWHERE: Final = 4  # files of tests in other rooms

Bug = dict[str, Any]


def drawn(seed: int, rooms: Sequence[str]) -> list[Bug]:
    """One bug in each module that is drawn. The same seed and the same text give the same bug."""
    found = []
    for room in rooms:
        modules = modules_of(room)
        Random(f"{seed}:{room}").shuffle(modules)
        modules.sort(key=lambda module: module not in ALWAYS)
        bugs = (bug for module in modules if (bug := bug_in(module, room, seed)) is not None)
        found += [bug for bug, _ in zip(bugs, range(ROOMS[room].count), strict=False)]
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
    with_spark = NEEDS_SPARK.search((SOURCES / bug["file"]).read_text(encoding="utf-8")) is not None
    own = [f"src/streamproof/{bug['file']}"]
    near = [path for path in _test_files(ROOT / "tests") if imports.search((ROOT / path).read_text(encoding="utf-8"))]
    folders = ROOMS[bug["room"]].tests
    room = [path for folder in folders for place in sorted(ROOT.glob(folder)) for path in _test_files(place)]
    if not with_spark:  # unless nothing else imports the module
        room = [path for path in room if not _needs_spark(path)]
        near = [path for path in near if not _needs_spark(path)] or near
    elsewhere = [path for path in near if path not in room]
    return list(dict.fromkeys([*own, *(path for path in near if path in room), *elsewhere[:MOST_ELSEWHERE], *room]))


def _needs_spark(path: str) -> bool:
    return NEEDS_SPARK.search(f"{path}\n{(ROOT / path).read_text(encoding='utf-8')}") is not None


def _test_files(place: Path) -> list[str]:
    files = sorted(place.rglob("test_*.py")) if place.is_dir() else [place] if place.name.startswith("test_") else []
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
            return self._run(paths, SPARK_SECONDS)
        source, original = self.root / "src" / "streamproof", SOURCES / bug["file"]
        path = source / bug["file"]
        path.write_text(Site("", 0, bug["old"], bug["new"]).applied(path.read_text(encoding="utf-8")), encoding="utf-8")
        _delete(compiled_with(source, path.stem))
        try:
            found = self._run(paths, SPARK_SECONDS if any(map(_needs_spark, paths)) else CPU_SECONDS)
            engine = ROOMS[bug["room"]].engine
            return self._hunted(found, engine) if found["result"] == "survived" and engine else found
        finally:
            _delete(compiled_with(source, path.stem))
            shutil.copy2(original, path)  # with its time, which compiled code knows it by
            for kept in compiled_with(SOURCES, path.stem):
                shutil.copy2(kept, source / kept.relative_to(SOURCES))

    def _hunted(self, found: Bug, engine: str) -> Bug:
        hunt = hunt_in(self.root / "src", engine, seconds=FULL_SECONDS)
        shown = next(iter([*shown_alone(hunt), *hunt["found"]]), None)
        seconds = round(found["seconds"] + hunt["seconds"], 1)
        if shown is None and "error" not in hunt:
            return {**found, "seconds": seconds}
        kind = shown["kind"] + (f" ({shown['law']})" if shown["law"] else "") if shown else "it does not run"
        return {"result": "killed", "by": f"full on {engine}: {kind}", "seconds": seconds}

    def failing(self, tests: Sequence[str]) -> list[str]:
        """Those that fail without any bug: what they say of one is worth nothing."""
        return self._failed(tests, SPARK_SECONDS)[1] if tests else []

    def _run(self, paths: Sequence[str], cpu_seconds: int) -> Bug:
        begun = time.monotonic()
        code, failed = self._failed(["-x", *paths], cpu_seconds)
        seconds = round(time.monotonic() - begun, 1)
        if code == 0:
            return {"result": "survived", "seconds": seconds}
        by = failed[0] if failed else f"the tests do not end (exit {code})"
        return {"result": "killed", "by": by, "seconds": seconds}

    def _failed(self, arguments: Sequence[str], cpu_seconds: int) -> tuple[int, list[str]]:
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "--tb=line", *arguments]
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen(
                command, cwd=self.root, env=environment, stdout=out, stderr=out, start_new_session=True,
            )  # fmt: skip
            resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 5))
            try:
                code = process.wait(10 * cpu_seconds)
            except subprocess.TimeoutExpired:  # it waits for what never comes
                code = -1
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            out.seek(0)
            return code, re.findall(r"^(?:FAILED|ERROR) (.+?)(?: - .*)?$", out.read(), re.MULTILINE)


def _delete(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink()


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
chosen by a seed. For each the fast tests of its module and room run in a copy of the tree; where plans run, `full` then hunts for
what they let pass.

**{killed} of {count}** are killed; {equivalent} more change nothing that can be seen, {survived} survive.

| room | bugs | killed | equivalent | survived |
| --- | --- | --- | --- | --- |
{rows}

{alive}The list is `tests/data/seeded-mutants.json`; `python -m tests.quality.seeded` judges what is new in it, `--draw --seed N` picks more.
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
    parser.add_argument("--draw", action="store_true", help="pick more bugs, by a seed that was not used yet")
    parser.add_argument("--room", action="append", choices=ROOMS, help="in these rooms alone")
    parser.add_argument("--again", help="judge again: survived, killed, all, or a part of the file's name")
    parser.add_argument("--baseline", action="store_true", help="run the tests of every room without a bug")
    given = parser.parse_args(arguments)
    bugs = known()
    if given.draw:
        places = {(bug["file"], bug["new"]) for bug in bugs}
        bugs += [bug for bug in drawn(given.seed, given.room or list(ROOMS)) if (bug["file"], bug["new"]) not in places]
    keep(bugs)
    judged: list[Bug] = []
    with tempfile.TemporaryDirectory(prefix="streamproof-mutants-") as folder:
        copy = Copy(Path(folder))
        for bug in _wanted(bugs, given.again, given.room or list(ROOMS)) if not given.baseline else ():
            _forget(bug)
            bug.update(copy.judge(bug, tests_of(bug)))
            print(bug["result"], bug["file"], bug["operator"], bug.get("by", bug["new"]), bug["seconds"], flush=True)
            keep(bugs)
            judged.append(bug)
        broken = copy.failing(sorted({bug["by"] for bug in judged if "::" in bug.get("by", "")}))
        for bug in judged:
            if bug.get("by") in broken:
                print("not judged", bug["file"], bug.pop("by"), "fails without the bug too", flush=True)
                _forget(bug)
        keep(bugs)
        for room in ROOMS if given.baseline else ():
            some = [path for bug in bugs if bug["room"] == room for path in tests_of(bug)]
            print(room, copy.judge(None, list(dict.fromkeys(some))), flush=True)
    return 1 if any(bug.get("result") == "survived" for bug in bugs) else 0


def _wanted(bugs: list[Bug], again: str | None, rooms: Sequence[str]) -> Iterator[Bug]:
    for bug in sorted((bug for bug in bugs if bug["room"] in rooms), key=lambda bug: rooms.index(bug["room"])):
        result = bug.get("result")
        named = again is not None and (again in {"all", result} or again in bug["file"])
        if applies(bug) and result != "equivalent" and (named if again else result is None):
            yield bug


def _forget(bug: Bug) -> None:
    for name in ("result", "by", "seconds"):
        bug.pop(name, None)


if __name__ == "__main__":
    sys.exit(main())
