"""Whatever reads has a target of the fuzzer, or it is said here why not: a new reader without one fails."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from streamproof import extensions
from streamproof.events.files import FORMATS
from tests.reading.targets import CORPUS, ROOT, TARGETS, covered

SOURCES = ROOT / "src" / "streamproof"
READS = re.compile(
    r"(loads?|read|parse|open(ed)?|restore|decode|recorded|config(uration)?_of|split_input|mapping_for)(_\w+)?$"
    r"|from_(dicts?|text|json|bytes|document|file)$"
)
RAW = re.compile(r"\b(str|bytes|Path|Mapping|object|Any)\b")  # what a reader is given: not yet ours

OURS = {  # name as the walk finds it: why nobody else's bytes come there
    "engines/job.py:Job.open": "inputs by name, each read by engines/inputs.py:load",
    "engines/local/inlet.py:Entry.restore": "a part of a savepoint",
    "engines/local/inlet.py:Inlet.restore": "a part of a savepoint",
    "engines/local/outlet.py:Outlet.restore": "a part of a savepoint",
    "engines/oracle/database.py:Database.load": "rows that were read and checked, into a table",
    "engines/oracle/duckdb.py:DuckDb.load": "rows that were read and checked, into a table",
    "engines/oracle/postgres.py:Postgres.load": "rows that were read and checked, into a table",
    "engines/spark/stream/arrivals.py:Arrivals.restore": "Spark's own state store, which has checksums",
    "engines/spark/stream/arrivals.py:LiveRows.restore": "Spark's own state store, which has checksums",
    "engines/spark/stream/bucket.py:Bucket.restore": "Spark's own state store, which has checksums",
    "engines/spark/stream/journal.py:JournalHead.read": "Spark's own state store, which has checksums",
    "engines/spark/stream/journal.py:read_inputs": "Spark's own state store, which has checksums",
    "engines/spark/stream/query.py:open_sources": "frames of Spark, not bytes",
    "engines/spark/stream/stage.py:opened": "what the driver sent to its own worker",
    "events/advance.py:Advance.restore": "a part of a savepoint",
    "events/encode.py:Encoder.restore": "a part of a savepoint",
    "events/files/rejects.py:opened_anew": "a new file, to be written",
    "events/validate.py:Validator.restore": "a part of a savepoint",
    "plan/failures.py:DeadLetter.from_dict": "a part of a savepoint",
    "plan/modules.py:Registry.load": "a module that the user named: it is code, and is run",
    "properties/streams.py:recorded": "rows of a test, as Python has them",
    "workbench/bench.py:open_bench": "names of engines",
    "workbench/bench.py:open_oracle": "the name of an oracle",
}


def test_everything_that_reads_has_a_target() -> None:
    found = set(readers())
    assert sorted(found - covered() - set(OURS)) == [], "give it a target in tests/reading/targets.py"
    assert sorted((covered() | set(OURS)) - found - SPECIAL) == [], "what is no more needs no target"
    assert not covered() & set(OURS)


# given what is ours, they read what is not
SPECIAL = {
    "disorder/loading.py:load", "disorder/rows.py:read_bytes", "engines/spark/stream/checkpoint.py:recorded",
    "events/files/binary.py:read_metadata",
}  # fmt: skip


def readers() -> Iterator[str]:
    """Public functions that by their name read, and are given what is not yet a value of ours."""
    for path in sorted(SOURCES.rglob("*.py")):
        if path.relative_to(SOURCES).parts[0] == "kernels":  # fed by doors alone
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(SOURCES).as_posix()}:{name}" for name in _functions(tree.body, ""))


def _functions(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield from _functions(node.body, f"{node.name}.")
        if isinstance(node, ast.FunctionDef) and READS.match(node.name):
            given = [one.annotation for one in node.args.args if one.arg not in ("self", "cls")][:1]
            if any(one is not None and RAW.search(ast.unparse(one)) for one in given):
                yield prefix + node.name


def test_every_language_and_format_is_a_target() -> None:
    assert set(extensions.names("languages")) <= set(TARGETS)
    assert set(FORMATS) <= set(TARGETS)


def test_every_target_has_good_and_bad_inputs_that_are_small() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 2_000_000
    for target in TARGETS.values():
        names = [path.name for path in target.corpus()]
        assert any(name.startswith("good") for name in names), target.name
        assert target.binary or any(name.startswith("bad") for name in names), target.name
    assert {path.parent.name for path in files} <= {*TARGETS, "any"}
    assert all(Path(path.name).suffix == "" for path in files)
