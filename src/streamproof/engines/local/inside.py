"""Looking inside a processor: which operators work for which queries, and all that in numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from streamproof.engines.local.graph import Graph
from streamproof.engines.local.metrics import Metrics, lag, live_windows, operator_metrics, source_metrics, state_bytes
from streamproof.errors import printable

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor


def users(processor: Processor) -> dict[str, tuple[str, ...]]:
    """For each step, by its identity, the queries that need it."""
    graph, feeds = processor.graph, feeds_of(processor.graph)
    needed: dict[str, list[str]] = {step.identity: [] for step in graph.steps}
    for name, query in processor.queries.items():
        waiting, seen = [graph.number(query.step)], set[int]()
        while waiting:
            number = waiting.pop()
            if number not in seen:
                seen.add(number)
                waiting += feeds[number]
        for number in seen:
            needed[graph.steps[number].identity].append(name)
    return {identity: tuple(names) for identity, names in needed.items()}


def feeds_of(graph: Graph) -> list[list[int]]:
    """The steps that each step reads."""
    feeds: list[list[int]] = [[] for _ in graph.steps]
    for number, step in enumerate(graph.steps):
        for reader, _ in step.readers:
            feeds[reader].append(number)
    return feeds


def metrics_of(processor: Processor, name: str) -> Metrics:
    """One query in numbers."""
    needed, outlet = users(processor), processor.queries[name].outlet
    steps = [step for step in processor.graph.steps if name in needed[step.identity]]
    read = {step.source for step in steps}
    inlets = {source: inlet for source, inlet in processor.inlets.items() if source in read}
    latest = max((inlet.latest for inlet in inlets.values()), default=outlet.frontier)
    behind = lag(latest, outlet.frontier)
    return Metrics(
        sources={source: source_metrics(inlet) for source, inlet in inlets.items()},
        operators=tuple(operator_metrics(step, needed[step.identity]) for step in steps),
        inserted=outlet.inserted,
        retracted=outlet.retracted,
        cti=None if behind is None else outlet.frontier,
        lag=behind,
        live_windows=sum(map(live_windows, steps)),
        live_rows=sum(step.kernel.live_rows() for step in steps),
        state_bytes=sum(map(state_bytes, steps)),
    )


def explain(processor: Processor) -> str:
    """Every operator once, with what it reads and the queries that it works for."""
    needed, feeds = users(processor), feeds_of(processor.graph)
    lines = []
    for number, step in enumerate(processor.graph.steps):
        reads = f" ← {', '.join(f'#{feed}' for feed in feeds[number])}" if feeds[number] else ""
        names = needed[step.identity]
        who = f"{'shared by' if len(names) > 1 else 'for'} {', '.join(names)}"
        lines.append((f"#{number} {step.name}{reads}", who))
    width = max((len(left) for left, _ in lines), default=0)
    return printable("\n".join(f"{left:<{width}}   {who}" for left, who in lines))
