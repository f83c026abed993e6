"""The local engine: a plan runs incrementally, in process, over batches of signed rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from math import inf
from typing import Final, Protocol, TypeVar, get_args

from streamproof.engines.base import Capabilities, Settings
from streamproof.engines.inputs import Loaded
from streamproof.engines.local.gathering import gathered
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.processor import Processor, context_of
from streamproof.engines.local.query import RunningQuery
from streamproof.engines.local.rules import KERNELS
from streamproof.engines.local.warming import is_cold
from streamproof.errors import PlanError
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.kernels.base import Emission
from streamproof.kernels.delta import Delta
from streamproof.plan.check import Typed
from streamproof.plan.nodes import Plan

HONOURED: Final = frozenset(
    (
        "emission", "batch_size", "savepoint", "from_savepoint", "late_file", "on_module_error", "module_letters",
        "metrics",
    )
)  # fmt: skip
"""The options of ``streamproof run`` that are this engine's."""


class LocalEngine:
    """Runs a typed plan batch by batch; at the end of its inputs, history is complete."""

    name = "local"

    def __init__(self, *, emission: Emission = "speculative", latency: float = 0.0) -> None:
        """``latency``: so many seconds batches and pushes may wait for others, to run together; see `gathering`."""
        if emission not in get_args(Emission):
            raise PlanError(f'unknown emission "{emission}"', fix="use speculative, eager or final")
        if not 0 <= latency < inf:
            raise PlanError(f"a latency of {latency} seconds", fix="use 0 or more, e.g. 0.02")
        self.emission: Emission = emission
        self.latency = latency

    @staticmethod
    def supports() -> dict[str, bool | str]:
        """Every node: those without a kernel of their own are part of the graph itself."""
        return KERNELS.supports() | dict.fromkeys(("Let", "Ref", "GroupApply", "GroupInput", "EventQuery"), True)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(start=self.start, options=HONOURED, starting=_warming)

    def start(
        self,
        plan: Plan,
        schemas: Mapping[str, Schema],
        settings: Settings,
        *,
        inputs: Mapping[str, Loaded],
        validators: Mapping[str, Validator],
        keep_history: bool,
        keep_late: bool,
    ) -> RunningQuery:
        """A running query on a processor of its own."""
        processor = Processor(settings, emission=self.emission, keep_late=keep_late, latency=self.latency)
        for name, schema in schemas.items():
            processor.source(name, schema, validator=validators.get(name))
        query = processor.start(plan, name="query", keep_history=keep_history)
        query.given = inputs
        return query

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The output over batches, which have no order of arrival: advance_time finds nothing late in them."""
        graph = Graph(plan, context_of(settings, self.emission))
        read = {name: inputs[name] for name in graph.sources}  # a stream that nobody reads is left alone
        batches = in_turn(read)
        for name, batch in gathered(batches, latency=self.latency) if self.latency else batches:
            yield graph.push(name, Delta.from_batch(batch)).to_batch(plan.schema)
        for name, schema in graph.schemas.items():  # at their end, all inputs are complete
            yield graph.push(name, Delta.empty(schema, frontier=FOREVER)).to_batch(plan.schema)


def _warming() -> str | None:
    """What the first run of an installation does before it begins."""
    return "warming up (compiling kernels, once per installation)" if is_cold() else None


class Frontiered(Protocol):
    """Something with a CTI: a batch, or what a tracer makes of one."""

    @property
    def frontier(self) -> int: ...


T = TypeVar("T", bound=Frontiered)


def in_turn(inputs: Mapping[str, Iterable[T]]) -> Iterator[tuple[str, T]]:
    """The batches of all inputs, always from the input that is furthest behind."""
    remaining = {name: iter(batches) for name, batches in inputs.items()}
    frontiers = dict.fromkeys(remaining, BEGINNING)
    while remaining:
        name = min(remaining, key=frontiers.__getitem__)
        batch = next(remaining[name], None)
        if batch is None:
            del remaining[name]
            continue
        frontiers[name] = max(frontiers[name], batch.frontier)
        yield name, batch
