"""Cases as JSON files, so that what a fuzz run found is replayed for ever.

>>> from tests.reference.random_cases import seeded_case
>>> case = seeded_case(3)
>>> from_json(to_json(case)).streams == case.streams
True
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamproof.events.event import read_event, typed, write_event
from streamproof.events.schema import Schema
from streamproof.language.notation import from_document, to_document
from streamproof.plan.limits import Limits
from tests.reference.random_cases import Case
from tests.reference.streams import Stream

FOLDER = Path(__file__).parents[1] / "data" / "found"
VERSION = 1


def to_json(case: Case) -> dict[str, Any]:
    """The case as a document."""
    return {
        "version": VERSION,
        "plan": to_document(case.plan),
        "horizon": case.horizon,
        "windows_per_event": case.limits.windows_per_event,
        "streams": {name: _stream_to_json(stream) for name, stream in case.streams.items()},
    }


def _stream_to_json(stream: Stream) -> dict[str, Any]:
    return {
        "schema": {name: str(kind) for name, kind in stream.schema},
        "unit": stream.schema.unit,
        "events": [write_event(event) for event in stream.events],
    }


def from_json(document: dict[str, Any]) -> Case:
    """The inverse of `to_json`."""
    assert document["version"] == VERSION
    return Case(
        from_document(document["plan"]),
        {name: _stream_from_json(stream) for name, stream in document["streams"].items()},
        document["horizon"],
        Limits(windows_per_event=document["windows_per_event"]),
    )


def _stream_from_json(document: dict[str, Any]) -> Stream:
    schema = Schema.of(document["schema"], unit=document["unit"])
    events = [read_event(event, number) for number, event in enumerate(document["events"])]
    return Stream(schema, tuple(typed(event, schema) for event in events))
