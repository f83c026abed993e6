"""The query processor: several queries over shared sources, in one graph.

>>> from streamproof.plan.nodes import Source, ToPoint
>>> processor = Processor()
>>> processor.source("S", Schema.of({"v": "int64"}))
>>> points = processor.start(ToPoint(Source("S")), name="points")
>>> processor.push("S", {"le": 1, "re": 5, "payload": {"v": 7}})
>>> points.history.to_rows()
[Row(le=1, re=2, payload={'v': 7})]

Equal operators over equal inputs run once, whoever needs them. A query that starts later sees each source as if it
consisted of the events that may still change at that time, and of all that come after.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from streamproof.arguments import Knows, door, often
from streamproof.engines.base import Settings, prepare
from streamproof.engines.local.gathering import WaitingBatches
from streamproof.engines.local.graph import Graph, GraphStep, source_of
from streamproof.engines.local.inlet import Content, Entry, Inlet
from streamproof.engines.local.metrics import Metrics, explain, metrics_of, source_metrics
from streamproof.engines.local.query import RunningQuery
from streamproof.engines.local.savepoint import load_state, rebuilt, save
from streamproof.errors import InputError, PlanError, RunError, StreamproofError, did_you_mean
from streamproof.events.schema import Schema, Type
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.delta import Delta, concat
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.failures import DeadLetter
from streamproof.plan.nodes import Plan

MANY = 10_000  # so many events that a source has to remember are worth a note


@often
class Processor(Knows):
    """Runs queries that may share sources and operators, read each other's output, start late and stop early."""

    @door
    def __init__(
        self,
        settings: Settings | None = None,
        *,
        emission: Emission = "speculative",
        keep_late: bool = False,
        latency: float = 0.0,
    ) -> None:
        """``keep_late`` keeps the events that advance_time drops, for `take_late`.

        ``latency``: so many seconds what is pushed may wait for more, to run together; it is checked at once all the
        same. Whoever asks for results as a whole (`history`, `metrics`, a savepoint) does not wait.
        """
        self.settings = settings or Settings()
        self.emission: Emission = emission
        self.queries: dict[str, RunningQuery] = {}
        self.inlets: dict[str, Inlet] = {}
        context = context_of(self.settings, emission)
        self.graph = Graph(None, context, advance_apart=True)
        self.keep_late = keep_late
        self._waiting = WaitingBatches[Entry, Delta](latency, _joined)
        self._failure: str | None = None

    # --- sources and queries ------------------------------------------------------------------------------------------

    @door
    def source(
        self, name: str, schema: Schema | Mapping[str, str | Type], *, validator: Validator | None = None
    ) -> None:
        """Declare a source. The validator says what happens to illegal events; by default the first is an error."""
        self.add_inlet(name, schema if isinstance(schema, Schema) else Schema.of(schema), validator or Validator())

    def add_inlet(self, name: str, schema: Schema, validator: Validator | None) -> None:
        """A source; without a validator its events are taken for legal."""
        self._refuse_name(name)
        self.inlets[name] = Inlet(name, schema, validator=validator, keep_late=self.keep_late)

    @door
    def start(self, plan: Plan, *, name: str | None = None, keep_history: bool = True) -> RunningQuery:
        """Start a query. Its sources are the processor's sources, and the outputs of running queries by their names."""
        plan = getattr(plan, "plan", plan)  # a fluent stream holds one
        self.settle()
        name = name or next(f"query{n}" for n in range(1, len(self.queries) + 2) if f"query{n}" not in self.queries)
        self._refuse_name(name)
        self._declare_sources(plan)
        typed = prepare(plan, self.schemas(plan), self.settings)
        start_offsets = {source: self._start_offset(source) for source in nodes.sources(plan)}
        return self.place(RunningQuery(self, name, plan, typed, start_offsets=start_offsets, keep_history=keep_history))

    def _declare_sources(self, plan: Plan) -> None:
        """The sources that the plan itself gives a schema."""
        for node in nodes.walk(plan):
            known = isinstance(node, nodes.Source) and (node.name in self.inlets or node.name in self.queries)
            if isinstance(node, nodes.Source) and node.schema is not None and not known:
                self.source(node.name, Schema(node.schema.columns, node.unit or node.schema.unit))

    def _refuse_name(self, name: str) -> None:
        if name in self.inlets or name in self.queries:
            raise PlanError(f'"{name}" is the name of a source or a query already', fix="choose another name")

    def schemas(self, plan: Plan) -> dict[str, Schema]:
        """What a plan can read here, by name; an error if it reads something else."""
        known = {name: inlet.schema for name, inlet in self.inlets.items()}
        known |= {name: query.schema for name, query in self.queries.items()}
        for name in nodes.sources(plan):
            if name not in known:
                fix = did_you_mean(name, known) if known else f'processor.source("{name}", {{"column": "int64"}})'
                raise PlanError(f'no source or running query is called "{name}"', fix=fix)
        return known

    def _start_offset(self, source: str) -> int:
        inlet = self.inlets.get(source)
        return self.queries[source].outlet.batches_out if inlet is None else inlet.pushes

    def place(self, query: RunningQuery, *, past_known: bool = False) -> RunningQuery:
        """Let a query run, from the start offsets of its sources on. ``past_known``: its state will be restored."""
        if not past_known:
            for root in roots_of(query.typed):
                self._refuse_unknown_past(root, query)
        before = set(self.graph.steps)
        query.step = self.graph.steps[self.graph.add(query.typed, start_offsets=query.start_offsets)]
        self.queries[query.name] = query
        for step in [step for step in self.graph.steps if step not in before and step.source is not None]:
            past = self._connect(step, query.start_offsets)
            if past is not None and not past_known:
                self._give(self._flow([step], past))
        return query

    def _refuse_unknown_past(self, root: Typed, query: RunningQuery) -> None:
        """A source that runs already can be joined where its live events are known."""
        name = source_of(root)
        if not query.start_offsets[name]:
            return
        if name in self.queries:
            self.queries[name].outlet.live()  # an error, if its history is not kept
            return
        inlet = self.inlets[name]
        if inlet.live(inlet.key(_advance_of(root))) is None:
            known = " and ".join(inlet.entries) or "not at all"
            raise PlanError(
                f'the source "{name}" is running, and its live events are known only {known}',
                at=f"query {query.name}",
                fix="read it the same way (the same advance_time, or none), or start the query before the first event",
            )

    def _connect(self, step: GraphStep, start_offsets: Mapping[str, int]) -> Delta | None:
        """Let a new root be fed; what it must know first, if it comes late."""
        assert step.source is not None
        name, start_offset = step.source, start_offsets[step.source]
        if name in self.queries:
            query = self.queries[name]
            self.graph.connect(self.graph.number(query.step), self.graph.number(step))
            return query.outlet.live() if start_offset and query.outlet.keep_history else None
        inlet = self.inlets[name]
        entry = inlet.entry(_advance_of(step.typed))
        entry.roots.append(step)
        return inlet.live(inlet.key(entry.node)) if start_offset else None

    @door
    def stop(self, name: str) -> None:
        """Stop a query; operators that nobody else needs are freed."""
        self._refuse_unknown(name)
        readers = [other.name for other in self.queries.values() if name in other.start_offsets]
        if readers:
            text = f'the query "{readers[0]}" reads the output of "{name}"'
            raise InputError(text, fix=f'stop "{readers[0]}" first')
        self.settle()
        query = self.queries.pop(name)
        self.graph.remove(self.graph.number(query.step))
        living = set(self.graph.steps)
        for inlet in self.inlets.values():
            for entry in inlet.entries.values():
                entry.roots = [step for step in entry.roots if step in living]

    def _refuse_unknown(self, name: str) -> None:
        if name not in self.queries:
            raise InputError(f'no running query is called "{name}"', fix=did_you_mean(name, self.queries))

    # --- data ---------------------------------------------------------------------------------------------------------

    def push(self, source: str, content: Content) -> None:
        """New events of a source: every query that reads it goes on. An illegal event changes nothing."""
        inlet = self._inlet(source)
        changes: list[tuple[Entry, Delta]] = []
        try:
            changes.extend(inlet.admit(content))
        except StreamproofError as error:
            error.at = f"input {source}, {error.at}" if error.at and not error.at.startswith("input ") else error.at
            if changes:
                self._failure = str(error)
            raise
        if not self._waiting.latency:
            self._run(changes)
            return
        for entry, delta in changes:
            self._waiting.put(entry, delta, len(delta))
        self.run_due()

    def run_due(self) -> None:
        """Run what was pushed, if it has waited long enough."""
        if self._waiting.is_due:
            self.settle()

    def settle(self) -> None:
        """Run all that was pushed and waits."""
        changes = self._waiting.take()
        if changes:
            self._run(changes)

    @door
    def finish(self, *sources: str) -> None:
        """These sources, or all, have ended: what they gave is complete."""
        self.settle()
        for source in sources or tuple(self.inlets):
            self._run(list(self._inlet(source).end()))

    def _inlet(self, source: str) -> Inlet:
        if self._failure is not None:
            raise RunError(f"the queries failed before: {self._failure}", fix="restore a savepoint, or start again")
        if source not in self.inlets:
            raise InputError(f'there is no source "{source}"', fix=did_you_mean(source, self.inlets))
        return self.inlets[source]

    def _run(self, changes: Sequence[tuple[Entry, Delta]]) -> None:
        """One change of every query's output, whatever the number of ways by which it came in."""
        try:
            found = self.graph.total([self._flow(entry.roots, delta) for entry, delta in changes])
        except StreamproofError as error:
            self._failure = str(error)
            raise
        self._give(found)

    def _flow(self, roots: Sequence[GraphStep], delta: Delta) -> dict[int, Delta]:
        return self.graph.flow([self.graph.number(step) for step in roots], delta) if roots else {}

    def _give(self, found: Mapping[int, Delta]) -> None:
        for query in self.queries.values():
            number = self.graph.number(query.step)
            if number in found:
                query.outlet.take(found[number])

    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the run so far."""
        found = []
        for name, inlet in self.inlets.items():
            sealing = inlet.complete or any(entry.sealing for entry in inlet.entries.values())
            if inlet.ended and inlet.events and not sealing and not inlet.is_plain:
                found.append(
                    f"input {name} has no CTIs, so no result was sealed before its end; "
                    "advance_time above the source makes them"
                )
            if inlet.remembered >= MANY and not sealing:
                found.append(
                    f"input {name}: {inlet.remembered:,} events are remembered, because any of them may still be "
                    "retracted; memory grows with the input until CTIs let them go: advance_time above the source "
                    "makes them"
                )
            counts = source_metrics(inlet)
            if counts.late_dropped or counts.late_adjusted:
                late = f"{counts.late_dropped:,} dropped, {counts.late_adjusted:,} adjusted"
                found.append(f"input {name}: events that came too late for advance_time: {late}")
        return tuple(found)

    def take_failures(self) -> list[DeadLetter]:
        """The calls of modules that failed since the last time, where ``on_module_error`` is dead_letter."""
        letters = self.graph.context.dead_letters
        taken = list(letters)
        letters.clear()
        return taken

    def take_late(self) -> dict[str, PhysicalStream]:
        """The events that advance_time dropped since the last call, by source; needs ``keep_late``."""
        late: dict[str, PhysicalStream] = {}
        for name, inlet in self.inlets.items():
            advances = [entry.advance for entry in inlet.entries.values() if entry.advance is not None]
            parts = [part for advance in advances for part in advance.take_dropped()]
            if parts:
                late[name] = PhysicalStream.concat(parts, schema=inlet.schema)
        return late

    # --- looking inside, and state ------------------------------------------------------------------------------------

    @door
    def metrics(self, name: str) -> Metrics:
        """One query in numbers."""
        self.settle()
        self._refuse_unknown(name)
        return metrics_of(self, name)

    def explain(self) -> str:
        """Every operator once, with what it reads and the queries that it works for."""
        return explain(self)

    def savepoint(self) -> bytes:
        """Everything: the queries with their output that nobody has read, the state, and what the sources remember."""
        self.settle()
        return save(self)

    @staticmethod
    @door
    def restore(savepoint: bytes, settings: Settings | None = None) -> Processor:
        """A new processor that goes on where the savepoint was taken. The settings give it its modules.

        Law: it goes on to the same output.
        """
        return rebuilt(Processor, savepoint, settings or Settings())

    @door
    def load(self, savepoint: bytes) -> None:
        """Put this processor, which runs the same queries with the same settings, into the state of a savepoint.

        A savepoint that is refused changes nothing.
        """
        load_state(self, savepoint)
        self._waiting.take()

    def failed(self, why: str | None) -> None:
        """From now on nothing can be pushed, for this reason; None takes that back."""
        self._failure = why


def _joined(parts: Sequence[Delta]) -> Delta:
    return concat(parts, frontier=max(part.frontier for part in parts))


def context_of(settings: Settings, emission: Emission) -> Context:
    """What kernels share, from a run's settings."""
    return Context(
        settings.registry,
        limits=settings.limits,
        emission=emission,
        horizon=settings.horizon,
        on_module_error=settings.on_module_error,
    )


def roots_of(typed: Typed) -> list[Typed]:
    """Where a plan is fed: not the sources that only an advance_time reads."""
    found: list[Typed] = []
    seen: set[int] = set()  # parts may be shared, level upon level
    waiting = [typed]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if is_root(part):
            found.append(part)
        else:
            waiting += part.inputs
    return found


def is_root(typed: Typed) -> bool:
    """Whether a node is fed from outside: a source, or advance_time with the source under it."""
    return isinstance(typed.node, nodes.Source | nodes.AdvanceTime)


def _advance_of(root: Typed) -> nodes.AdvanceTime | None:
    return root.node if isinstance(root.node, nodes.AdvanceTime) else None
