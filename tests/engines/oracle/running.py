"""Plans over small histories, run on one database."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from streamproof.engines.base import Settings
from streamproof.engines.oracle.engine import Oracle
from streamproof.events.history import History
from streamproof.events.schema import Schema, Type
from streamproof.events.time import Unit
from streamproof.language.notation import from_data
from streamproof.plan.check import Typed, check
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan

Rows = Iterable[tuple[int, int, Mapping[str, Any]]]
S = {"op": "source", "name": "S"}
R = {"op": "source", "name": "R"}


def history(columns: Mapping[str, str | Type], rows: Rows, *, unit: Unit | None = None) -> History:
    return History.from_rows(Schema.of(columns, unit=unit), rows)


def typed(plan: Plan | Mapping[str, Any], *, registry: Registry | None = None, **inputs: History) -> Typed:
    node = plan if isinstance(plan, Plan) else from_data(plan)
    return check(node, {name: stream.schema for name, stream in inputs.items()}, registry=registry)


def run(
    engine: Oracle, plan: Plan | Mapping[str, Any], *, settings: Settings | None = None, **inputs: History
) -> History:
    """The result of a plan."""
    given = settings or Settings()
    ready = typed(plan, registry=given.registry, **inputs)
    batches = engine.run(ready, {name: [stream.to_batch()] for name, stream in inputs.items()}, given)
    return History.from_batches(ready.schema, batches)


def spans(found: History) -> list[tuple[Any, ...]]:
    """Rows as ``(le, re, values…)``."""
    return [(row.le, row.re, *row.payload.values()) for row in found.to_rows()]
