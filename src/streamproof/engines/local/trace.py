"""The tracer: follow one input event through every operator.

The plan runs twice in step, once with the event and once without it. Wherever the two differ, the event is the reason:
what it became, which windows it touched, what was taken back for it, and which CTI sealed it. A query that is not
traced pays nothing.

>>> from streamproof.engines.job import on
>>> from streamproof.language.notation import from_document
>>> job = on(from_document({"op": "where", "in": {"op": "source", "name": "S"}, "expr": "v > 1"}), "local")
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 2}}, {"kind": "cti", "t": 9}]
>>> print(trace(job, {"S": events}, "a"))
event a of S
  insert a [1, 5)
source(S)
  insert a [1, 5)
    + [1, 5) v=2
  final: sealed by CTI 9 of S
where(v > 1)
  insert a [1, 5)
    + [1, 5) v=2
  final: sealed by CTI 9 of S
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from streamproof.arguments import door
from streamproof.engines.inputs import Input, no_input
from streamproof.engines.job import Job
from streamproof.engines.local import in_turn
from streamproof.engines.local.graph import GraphStep, source_of
from streamproof.engines.local.graph_state import restore, save
from streamproof.engines.local.inlet import advance_for
from streamproof.engines.local.processor import roots_of
from streamproof.engines.local.watch import Moment, Moments, Signed, WatchedGraph, differing, rows, within
from streamproof.errors import InputError, did_you_mean, printable
from streamproof.events.advance import Advance
from streamproof.events.batch import Batch
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.labels import label


@door
def trace(job: Job, inputs: Mapping[str, Input], event: str, *, source: str | None = None) -> Trace:
    """Follow the event with this id. ``source`` says of which input, where several have such an id."""
    declared = {node.name: node.schema for node in nodes.walk(job.plan) if isinstance(node, nodes.Source)}
    streams = {name: Moments(name, value, declared.get(name)) for name, value in inputs.items()}
    _refuse_names(declared, streams)
    event = event.encode(errors="replace").decode()  # half a character is in no file
    schemas = {name: stream.schema for name, stream in streams.items()}
    typed = check(job.plan, schemas, registry=job.settings.registry)  # as written: no rewrite hides an operator
    context = Context(job.settings.registry, limits=job.settings.limits, horizon=job.settings.horizon)
    twins = _Twins(WatchedGraph(typed, context), event)
    followed = {name: event if source in (None, name) else None for name in twins.graph.sources}
    advances = _advances(typed)
    moments = {name: streams[name].moments(wanted, advances.get(name)) for name, wanted in followed.items()}
    for _, moment in in_turn(moments):
        twins.push(moment)
    for name, schema in twins.graph.schemas.items():
        twins.push(Moment(name, Batch.empty(schema, frontier=FOREVER), f"the end of {name}"))
    return twins.told()


def _advances(typed: Typed) -> dict[str, Advance]:
    """What does the work of advance_time for each source that is read under one, and in no other way."""
    found: dict[str, Advance] = {}
    ways: dict[str, set[str]] = {}
    for root in roots_of(typed):
        name = source_of(root)
        ways.setdefault(name, set()).add(label(root.node))
        if isinstance(root.node, nodes.AdvanceTime):
            found[name] = advance_for(root.node, keep_late=True)
    return {name: advance for name, advance in found.items() if len(ways[name]) == 1}


def _refuse_names(declared: Mapping[str, object], given: Mapping[str, object]) -> None:
    for name in given:
        if name not in declared:
            raise InputError(f'the plan has no source "{name}"', fix=did_you_mean(name, declared))
    for name in declared:
        if name not in given:
            raise no_input(name)


class _Twins:
    """The plan with the event and without it, in step."""

    def __init__(self, graph: WatchedGraph, event: str) -> None:
        self.graph = graph  # sees everything
        self.event = event
        self.without: WatchedGraph | None = None  # the twin that never sees the event, born when the event comes
        self.source = ""
        self.arrivals: list[Moment] = []
        self.passages = {step.identity: Passage(step.name) for step in graph.steps}
        self.totals: dict[str, _Total] = {step.identity: _Total() for step in graph.steps}

    def push(self, moment: Moment) -> None:
        if moment.event:
            self._arrive(moment)
        delta = Delta.from_batch(moment.batch)
        self.graph.push(moment.source, delta)
        if self.without is None:
            self.graph.put_out.clear()
            return
        if not moment.event:
            self.without.push(moment.source, delta)
        for step, twin in zip(self.graph.steps, self.without.steps, strict=True):
            self._compare(moment, step, twin)

    def _arrive(self, moment: Moment) -> None:
        if self.source and self.source != moment.source:
            raise InputError(
                f'both {self.source} and {moment.source} have an event "{self.event}"',
                at=f"{self.source}, {moment.source}",
                fix="say which: source=…, or --source NAME",
            )
        self.source = moment.source
        self.arrivals.append(moment)
        if self.without is None:
            shared = self.graph.context
            context = Context(shared.registry, limits=shared.limits, horizon=shared.horizon)
            self.without = WatchedGraph(self.graph.plan, context)
            restore(self.without, save(self.graph))

    def _compare(self, moment: Moment, step: GraphStep, twin: GraphStep) -> None:
        assert self.without is not None
        columns = self.graph.columns(step)
        ours, theirs = self.graph.taken(step), self.without.taken(twin)
        passage, total = self.passages[step.identity], self.totals[step.identity]
        found = differing(ours, theirs, columns)
        if len(found):
            changed = {row.identity for row in rows(found, columns)}
            shown = [row for row in rows(within(ours, found, columns), columns) if row.identity in changed]
            passage.changes += [RowChange(moment.text, shown)] if shown else []
            passage.sealed = None
            total.add(rows(found, columns))
        if moment.event:
            passage.touched += [text for text in self._touched(step, twin) if text not in passage.touched]
        if total.seen and passage.sealed is None and total.settled(self.graph.frontiers[step.identity]):
            passage.sealed = moment.text

    def _touched(self, step: GraphStep, twin: GraphStep) -> list[str]:
        assert self.without is not None
        ours, theirs = self.graph.windows(step), self.without.windows(twin)
        spans = [span for span in ours if ours[span] != theirs.get(span)]
        return [str(span) for span in sorted(spans, key=lambda span: (span.le, span.re, span.key))]

    def told(self) -> Trace:
        if not self.source:
            raise InputError(
                f'no input has an event "{self.event}"',
                fix="give the id of an insert; a row of a file without one is called by its line: "
                "#2 is the first below a header",
            )
        for identity, passage in self.passages.items():
            passage.added, passage.missing = self.totals[identity].more(), self.totals[identity].less()
        reached = self._reached()
        arrivals = [moment.event for moment in self.arrivals if moment.event]
        passages = [self.passages[step.identity] for n, step in enumerate(self.graph.steps) if n in reached]
        return Trace(self.event, self.source, arrivals, [moment.text for moment in self.arrivals], passages)

    def _reached(self) -> set[int]:
        """The steps that the source's events can come to."""
        reached = {self.graph.sources[self.source]}
        for number, step in enumerate(self.graph.steps):
            if number in reached:
                reached |= {reader for reader, _ in step.readers}
        return reached


@dataclass(slots=True)
class _Total:
    """What the event makes of an operator's output in all: more (+) and less (−) than without it."""

    weights: Counter[str] = field(default_factory=Counter)
    seen: dict[str, Signed] = field(default_factory=dict)

    def add(self, changes: list[Signed]) -> None:
        for row in changes:
            self.weights[row.identity] += row.w
            self.seen[row.identity] = row

    def _now(self, sign: int) -> list[Signed]:
        return [
            row._replace(w=abs(self.weights[name])) for name, row in self.seen.items() if sign * self.weights[name] > 0
        ]

    def more(self) -> list[Signed]:
        """What is there because of the event."""
        return self._now(+1)

    def less(self) -> list[Signed]:
        """What would be there without it."""
        return self._now(-1)

    def settled(self, frontier: int) -> bool:
        """Whether nothing of it can change any more; an end at the CTI is still open."""
        ends = [row.re for row in self.more()] or [row.le for row in self.seen.values()]
        return frontier >= FOREVER or all(end < frontier for end in ends)


@dataclass(slots=True)
class RowChange:
    """What one moment did to the output of an operator because of the event."""

    moment: str
    rows: list[Signed]


@dataclass(slots=True)
class Passage:
    """The event's way through one operator."""

    operator: str
    touched: list[str] = field(default_factory=list)  # windows that have the event in them, or are there because of it
    changes: list[RowChange] = field(default_factory=list)
    added: list[Signed] = field(default_factory=list)  # what is there in the end because of the event
    missing: list[Signed] = field(default_factory=list)  # what would be there in the end without it
    sealed: str | None = None  # the moment after which none of it can change

    def lines(self) -> Iterator[str]:
        yield self.operator
        if self.touched:
            yield f"  touched: {', '.join(self.touched)}"
        for change in self.changes:
            yield f"  {change.moment}"
            yield from (f"    {row}" for row in change.rows)
        if not self.changes:
            yield "  nothing: the event makes no difference here"
            return
        if self.missing:
            yield "  without the event there would be"
            yield from (f"    {str(row).removeprefix('+ ')}" for row in self.missing)
        yield f"  final: sealed by {self.sealed}" if self.sealed else "  not sealed by any CTI: it may still change"

    def to_json(self) -> dict[str, object]:
        return {
            "operator": self.operator,
            "touched": self.touched,
            "changes": [{"moment": c.moment, "rows": [row.to_json() for row in c.rows]} for c in self.changes],
            "added": [row.to_json() for row in self.added],
            "missing": [row.to_json() for row in self.missing],
            "sealed": self.sealed,
        }


@dataclass(slots=True)
class Trace:
    """Where an event came in, and its way through every operator, inputs before readers."""

    event: str
    source: str
    arrivals: list[dict[str, object]] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)
    passages: list[Passage] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"event {self.event} of {self.source}", *(f"  {text}" for text in self.shown)]
        return printable("\n".join([*lines, *chain.from_iterable(passage.lines() for passage in self.passages)]))

    def to_json(self) -> dict[str, object]:
        operators = [passage.to_json() for passage in self.passages]
        return {"event": self.event, "source": self.source, "arrivals": self.arrivals, "operators": operators}
