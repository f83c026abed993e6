"""The evaluator as an engine: it judges rewrites, and with wrong rules it judges the judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from streamproof.engines.base import Settings
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.plan.check import Typed, walk
from streamproof.plan.nodes import Source
from tests.reference.evaluator import RULES, evaluate
from tests.reference.values import Row


class ReferenceEngine:
    """Evaluates plans by definition; ``rules`` replaces the rules of some operators."""

    name = "reference"

    def __init__(self, rules: Mapping[type, object] | None = None) -> None:
        self.rules = {**RULES, **(rules or {})}

    def supports(self) -> dict[str, bool | str]:
        return {node.__name__: True for node in self.rules}

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        schemas = {part.node.name: part.schema for part in walk(plan) if isinstance(part.node, Source)}
        histories = {name: _rows(History.from_batches(schema, inputs[name])) for name, schema in schemas.items()}
        rows = evaluate(
            plan,
            histories,
            horizon=settings.horizon,
            limits=settings.limits,
            registry=settings.registry,
            rules=self.rules,  # type: ignore[arg-type]  # functions from context, node and rows to rows
        )
        yield Batch.from_rows(plan.schema, [(le, re, 1, payload) for le, re, payload in rows])


def _rows(history: History) -> list[Row]:
    return [(row.le, row.re, row.payload) for row in history.to_rows()]
