"""The worked cases of the algebra, as data for every engine that is held against them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from streamproof.events.event import Event, infer_schema, read_event
from streamproof.events.schema import Schema
from streamproof.events.time import read_tick
from streamproof.language.notation import from_document
from streamproof.plan.nodes import Plan
from streamproof.workbench.evaluator.values import Row

FILE = Path(__file__).parents[1] / "data" / "algebra.json"


@dataclass(frozen=True, slots=True)
class WorkedCase:
    """A plan over physical streams, and the history or the error that it gives."""

    name: str
    plan: Plan
    streams: Mapping[str, list[Event]]
    compare: str
    rows: list[Row] | None
    error: str | None
    horizon: int | None

    @property
    def schemas(self) -> dict[str, Schema]:
        return {name: infer_schema(events) for name, events in self.streams.items()}


def worked_cases() -> list[WorkedCase]:
    """All cases that say what a plan gives over complete streams."""
    cases = json.loads(FILE.read_text())["cases"]
    return [_case(case) for case in cases if case["level"] == "cht"]


def _case(case: Mapping[str, Any]) -> WorkedCase:
    rows = case["expected"].get("cht")
    return WorkedCase(
        name=case["id"],
        plan=from_document(case["query"]),
        streams={
            name: [read_event(event, number) for number, event in enumerate(events)]
            for name, events in case["streams"].items()
        },
        compare=case["compare"],
        rows=None if rows is None else [(read_tick(r["le"]), read_tick(r["re"]), r["payload"]) for r in rows],
        error=case["expected"].get("error"),
        horizon=case.get("horizon"),
    )


def loosely(rows: list[Row]) -> list[Row]:
    """Rows with floats for whole numbers: the cases write 15 where a result is 15.0."""
    return [(le, re, {name: _number(value) for name, value in payload.items()}) for le, re, payload in rows]


def _number(value: object) -> object:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value
