"""The repro file: one JSON document with plan, streams, run and verdict, that replays with one command.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> case = seeded_case(3)
>>> again = read(write(Repro(case, Verdict("holds"), engine="local")))
>>> again.case.plan == case.plan, again.case.streams == dict(case.streams)
(True, True)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from streamproof import documents
from streamproof.errors import InputError
from streamproof.events.event import read_event, typed, write_event
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import show_tick
from streamproof.language.notation import from_document, to_document
from streamproof.plan.limits import Limits
from streamproof.workbench.case import Case, CaseStream, slug
from streamproof.workbench.schedule import Schedule
from streamproof.workbench.verdict import WORDS, Outcome, Verdict, Word

FORMAT: Final = "streamproof-repro"
VERSION: Final = 1
SHOWN_ROWS: Final = 200
_KINDS: Final[Mapping[str, Any]] = {
    "engine": str, "oracle": str, "suite": str, "scenario": str, "seed": int, "horizon": int | None,
    "windows_per_event": int, "schedule": dict, "streams": dict, "verdict": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Repro:
    """A case, what came of it, and where."""

    case: Case
    verdict: Verdict
    engine: str
    oracle: str = "duckdb"
    suite: str = ""


def write(repro: Repro) -> dict[str, Any]:
    """The repro as plain data."""
    case, verdict = repro.case, repro.verdict
    return {
        "format": FORMAT,
        "version": VERSION,
        "engine": repro.engine,
        "oracle": repro.oracle,
        "suite": repro.suite,
        "scenario": case.scenario,
        "seed": case.seed,
        "plan": to_document(case.plan),
        "horizon": case.horizon,
        "windows_per_event": case.limits.windows_per_event,
        "schedule": case.schedule.as_dict(),
        "streams": {name: _write_stream(stream) for name, stream in case.streams.items()},
        "verdict": {
            "word": verdict.word, "kind": verdict.kind, "law": verdict.law, "text": verdict.text,
            "expected": _write_outcome(verdict.expected), "actual": _write_outcome(verdict.actual),
        },
    }  # fmt: skip


def _write_stream(stream: CaseStream) -> dict[str, Any]:
    return {
        "schema": {name: str(kind) for name, kind in stream.schema},
        "unit": stream.schema.unit,
        "events": [write_event(event) for event in stream.events],
    }


def _write_outcome(outcome: Outcome | None) -> Any:
    """For people who read the file; replaying makes it anew."""
    if isinstance(outcome, History):
        rows = outcome.to_json_lines().splitlines()[:SHOWN_ROWS]
        return [json.loads(row) for row in rows]
    return None if outcome is None else {"error": outcome.name, "text": outcome.text}


def read(document: Mapping[str, Any]) -> Repro:
    """The inverse of `write`, but for what the verdict expected and found."""
    if document.get("format") != FORMAT or document.get("version") != VERSION:
        raise InputError(
            "this is no repro file of this version", fix=f'it begins with "format": "{FORMAT}", "version": {VERSION}'
        )
    try:
        said = document["verdict"]
        for key, kind in _KINDS.items():
            if not isinstance(document[key], kind):
                raise TypeError(f'"{key}" is {document[key]!r:.40}')
        case = Case(
            from_document(document["plan"]),
            {name: _read_stream(stream) for name, stream in document["streams"].items()},
            document["horizon"],
            Limits(windows_per_event=document["windows_per_event"]),
            Schedule.read(document["schedule"]),
            document["seed"],
            document["scenario"],
        )
        word: Word = said["word"] if said["word"] in WORDS else "undecided"
        verdict = Verdict(word, said["kind"], said["text"], engine=document["engine"], law=said["law"])
        return Repro(case, verdict, document["engine"], document["oracle"], document["suite"])
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(f"the repro file is damaged: {error}", fix="write it again with verify") from None


def _read_stream(document: Mapping[str, Any]) -> CaseStream:
    schema = Schema.of(document["schema"], unit=document["unit"])
    events = [read_event(event, number) for number, event in enumerate(document["events"])]
    return CaseStream(schema, tuple(typed(event, schema) for event in events))


def save(repro: Repro, path: Path) -> None:
    """Write the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(write(repro), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(path: Path) -> Repro:
    """Read the file."""
    try:
        return read(_object(documents.load(path, constants=True)))
    except InputError as error:
        raise error.located(str(path)) from None


def _object(document: Any) -> Mapping[str, Any]:
    if not isinstance(document, dict):
        raise InputError("this is no repro file: it holds no object", fix="give a file that verify wrote")
    return document


def name_of(repro: Repro) -> str:
    """What the files of a repro are called: letters, digits and underscores."""
    return slug(f"{repro.engine}-{repro.case.id}")


def pytest_file(repro: Repro) -> str:
    """The repro as a test that stands alone: it fails as long as the difference is there.

    Whatever a case holds stands there as a Python literal: it can never be code.
    """
    lines = json.dumps(write(repro), indent=1, ensure_ascii=True).splitlines(keepends=True)
    about = f"{repro.engine} against {repro.oracle}: {' '.join(repro.verdict.text.split())[:160]}"
    return _TEST.format(about=ascii(about), name=name_of(repro), document="\n".join(f"    {line!a}" for line in lines))


_TEST: Final = '''"""What `streamproof verify` found and shrunk: this fails as long as the difference is there."""

import json

from streamproof.workbench.bench import replay
from streamproof.workbench.repro import read

ABOUT = {about}
REPRO = (
{document}
)


def test_{name}() -> None:
    verdict = replay(read(json.loads(REPRO)))
    assert not verdict.is_found, verdict.text
'''


def command(path: Path) -> str:
    """How to run it again."""
    return f"streamproof verify --replay {path}"


def shown_rows(outcome: Outcome | None, *, most: int = 12) -> list[str]:
    """What a run gave, for people."""
    if outcome is None:
        return []
    if not isinstance(outcome, History):
        return [f"error {outcome.name}", *outcome.text.splitlines()]
    rows = outcome.to_rows()
    lines = [f"[{show_tick(row.le)}, {show_tick(row.re)}) {dict(row.payload)}" for row in rows[:most]]
    return [*lines, f"… {len(rows) - most} more"] if len(rows) > most else lines or ["no rows"]
