"""What a running query can tell about itself in numbers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from streamproof.engines.local.graph import Graph, GraphStep
from streamproof.engines.local.inlet import Inlet
from streamproof.errors import printable
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.kernels.windows.kernel import WindowKernel

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor


@dataclass(frozen=True, slots=True)
class SourceMetrics:
    """What came from one source."""

    events: int
    cti: int | None  # the last CTI; None before the first
    late_dropped: int  # by advance_time
    late_adjusted: int
    left_out: dict[str, int]  # illegal events that were not let through, by the error's name


@dataclass(frozen=True, slots=True)
class OperatorMetrics:
    """What one operator did and holds."""

    name: str
    rows_in: int
    rows_out: int
    live_rows: int
    queries: tuple[str, ...]  # those that need it: more than one where it is shared


@dataclass(frozen=True, slots=True)
class Metrics:
    """A query in numbers."""

    sources: dict[str, SourceMetrics]
    operators: tuple[OperatorMetrics, ...]
    inserted: int  # rows of the output that came
    retracted: int  # rows of the output that were taken back
    cti: int | None  # the output's CTI; None before the first
    lag: int | None  # from the output's CTI to the latest start in the input; None before the first CTI
    live_windows: int
    live_rows: int  # rows in the state of all operators
    state_bytes: int

    @property
    def events_in(self) -> int:
        return sum(source.events for source in self.sources.values())

    @property
    def corrections(self) -> float:
        """Rows taken back per row that came."""
        return self.retracted / self.inserted if self.inserted else 0.0

    @property
    def shared(self) -> int:
        """How many operators other queries use too."""
        return sum(len(operator.queries) > 1 for operator in self.operators)

    def to_json(self) -> str:
        """All numbers as one JSON object; a CTI of ∞ is "inf"."""
        more = {"events_in": self.events_in, "corrections": round(self.corrections, 6), "shared": self.shared}
        numbers = asdict(self)
        for part in (numbers, *numbers["sources"].values()):
            part["cti"] = None if part["cti"] is None else show_tick(part["cti"])
        return json.dumps({**numbers, **more}, ensure_ascii=False)

    def __str__(self) -> str:
        lines = [f"input {name}: {_source(source)}" for name, source in self.sources.items()]
        lines.append(
            f"output: {self.inserted:,} rows inserted, {self.retracted:,} taken back "
            f"({self.corrections:.1%} corrections), CTI {_tick(self.cti)}"
            + (f", lag {self.lag:,}" if self.lag is not None else "")
        )
        lines.append(f"state: {self.live_rows:,} rows, {self.live_windows:,} windows, {self.state_bytes:,} bytes")
        lines += [f"  {operator}" for operator in map(_operator, self.operators)]
        return printable("\n".join(lines))


def _source(source: SourceMetrics) -> str:
    parts = [f"{source.events:,} events, CTI {_tick(source.cti)}"]
    parts += [f"{source.late_dropped:,} late and dropped"] if source.late_dropped else []
    parts += [f"{source.late_adjusted:,} late and adjusted"] if source.late_adjusted else []
    parts += [f"{count:,} left out ({name})" for name, count in source.left_out.items()]
    return ", ".join(parts)


def _operator(operator: OperatorMetrics) -> str:
    shared = f", shared by {', '.join(operator.queries)}" if len(operator.queries) > 1 else ""
    return f"{operator.name}: {operator.rows_in:,} → {operator.rows_out:,} rows, {operator.live_rows:,} held{shared}"


def _tick(tick: int | None) -> str:
    return "none" if tick is None else str(show_tick(tick))


def source_metrics(inlet: Inlet) -> SourceMetrics:
    """One source in numbers."""
    entries = inlet.entries.values()
    ctis = [entry.frontier for entry in entries]
    left_out: dict[str, int] = {}
    for entry in entries:
        for name, count in (entry.validator.counts if entry.validator is not None else {}).items():
            left_out[name] = left_out.get(name, 0) + count
    advances = [entry.advance for entry in entries if entry.advance is not None]
    return SourceMetrics(
        events=inlet.events,
        cti=min(ctis) if ctis and min(ctis) > BEGINNING else None,
        late_dropped=sum(advance.dropped for advance in advances),
        late_adjusted=sum(advance.adjusted for advance in advances),
        left_out=left_out,
    )


def operator_metrics(step: GraphStep, queries: tuple[str, ...]) -> OperatorMetrics:
    """One operator in numbers."""
    return OperatorMetrics(step.name, step.rows_in, step.rows_out, step.kernel.live_rows(), queries)


def live_windows(step: GraphStep) -> int:
    """How many windows of a step may still change."""
    return len(step.kernel.inspect().open) if isinstance(step.kernel, WindowKernel) else 0


def state_bytes(step: GraphStep) -> int:
    """The size of a step's state: that of the arrays in what it saves."""
    return sum(getattr(value, "nbytes", 8) for value in step.kernel.save().values())


def lag(latest: int, cti: int) -> int | None:
    """How far the output's CTI is behind the latest start."""
    if cti in (BEGINNING, FOREVER) or latest == BEGINNING:
        return 0 if cti == FOREVER else None
    return max(0, latest - cti)


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
