"""What is verified: an engine and the way in which it is run. Local and any engine over whole inputs; Spark has a file.

A new engine needs nothing here: `EngineSubject` runs whatever has the protocol.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from streamproof.engines.base import Engine, Settings, prepare
from streamproof.engines.local.graph import Graph
from streamproof.engines.local.graph_state import restore, save
from streamproof.engines.local.processor import Processor, context_of
from streamproof.errors import PlanWarning, StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.kernels.delta import Delta
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Pairing
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.rewrites import rewrite
from streamproof.thresholds import lowered
from streamproof.workbench.arrivals import Push, arrived, batches_of, pushes
from streamproof.workbench.case import Case
from streamproof.workbench.faults import CHANGES
from streamproof.workbench.oracle import CaseOracle
from streamproof.workbench.promises import WELL, Broken, CtiProgress, broken_promise
from streamproof.workbench.round_trip import through
from streamproof.workbench.schedule import Law
from streamproof.workbench.verdict import Failure, Outcome

STOPS_EVERYWHERE = 8  # a run of so few pushes, event by event, is stopped before each


@dataclass(frozen=True)
class SubjectRun:
    """What came of a run: a result, and perhaps a promise that was broken on the way."""

    outcome: Outcome
    broken: Broken = WELL


class Subject(Protocol):
    """Something that runs cases."""

    name: str
    streams: bool  # whether it works incrementally: then it may see errors that are gone in the end
    laws: tuple[Law, ...]  # what a schedule may ask of it; the rest of the schedule it leaves out
    lazy: bool  # whether it leaves out what nobody needs, with the errors that it would have been
    advances: bool  # whether advance_time does something in a live run; elsewhere it is the identity

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        """Run cases; those of one plan follow each other."""
        ...


def settings_of(case: Case, registry: Registry) -> Settings:
    return Settings(horizon=case.horizon, limits=case.limits, registry=registry, optimise=case.schedule.optimise)


def sized(case: Case) -> AbstractContextManager[None]:
    """While this lasts, code takes its ways for many rows as the schedule says."""
    return lowered(dict(case.schedule.thresholds))


def plan_of(case: Case) -> Plan:
    """The plan as it comes through the door of the schedule."""
    return through(case.plan, case.schedule.door)


def typed_of(case: Case, registry: Registry) -> Typed:
    """The plan as the engine gets it."""
    with warnings.catch_warnings(action="ignore", category=PlanWarning):  # drawn plans mean nothing
        return prepare(plan_of(case), case.schemas, settings_of(case, registry))


def failure_of(error: Exception) -> Failure:
    """An error as an outcome; an engine may only fail with errors that have names."""
    if isinstance(error, StreamproofError):
        return Failure(error.name, str(error))
    return Failure(f"crash: {type(error).__name__}", f"{type(error).__name__}: {error}")


class EngineSubject:
    """An engine over whole inputs: the result alone counts. One that is ``exact`` raises every error of a plan."""

    streams = False
    laws: tuple[Law, ...] = ("rewrite", "languages", "size")
    advances = False

    def __init__(self, engine: Engine, *, name: str | None = None, exact: bool = False) -> None:
        self.engine, self.name, self.lazy = engine, name or engine.name, not exact

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        return [self._one(case, registry) for case in cases]

    def _one(self, case: Case, registry: Registry) -> SubjectRun:
        with sized(case):
            return self._ran(case, registry)

    def _ran(self, case: Case, registry: Registry) -> SubjectRun:
        try:
            typed = typed_of(case, registry)
            inputs = {name: list(to_batches(stream.physical)) for name, stream in case.streams.items()}
            output = list(self.engine.run(typed, inputs, settings_of(case, registry)))
            return SubjectRun(History.from_batches(typed.schema, output))
        except Exception as error:
            return SubjectRun(failure_of(error))


class OracleSubject:
    """An oracle, judged as an engine over whole inputs."""

    streams = lazy = advances = False
    laws: tuple[Law, ...] = ("rewrite", "languages")

    def __init__(self, oracle: CaseOracle) -> None:
        self.oracle, self.name = oracle, oracle.name

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        return [self._one(case, registry) for case in cases]

    def _one(self, case: Case, registry: Registry) -> SubjectRun:
        try:
            plan = plan_of(case)
            if case.schedule.optimise:
                plan = rewrite(plan, case.schemas, registry=registry)
            return SubjectRun(self.oracle.expected(replace(case, plan=plan)))
        except Exception as error:
            return SubjectRun(failure_of(error))


class LocalSubject:
    """The local engine, incrementally: pieces pushed one by one, stopped and restored, pulled as they come."""

    name = "local"
    streams = True
    lazy = False
    laws: tuple[Law, ...] = (
        "batching", "disorder", "interleaving", "restart", "emission", "rewrite", "languages", "live",
        "settings", "size",
    )  # fmt: skip
    advances = True

    def run(self, cases: Sequence[Case], registry: Registry) -> list[SubjectRun]:
        return [self._one(case, registry) for case in cases]

    def _one(self, case: Case, registry: Registry) -> SubjectRun:
        with sized(case):
            return self._ran(case, registry)

    def _ran(self, case: Case, registry: Registry) -> SubjectRun:
        try:
            found = self._output(case, registry)
            final = case.schedule.emission == "final"
            broken = broken_promise(found.batches, final=final) or found.broken
            broken = broken or _left_over(case, found.kept)
            return SubjectRun(History.from_batches(found.schema, found.batches), broken)
        except Exception as error:
            return SubjectRun(failure_of(error))

    def _output(self, case: Case, registry: Registry) -> _Output:
        settings, parts = settings_of(case, registry), pushes(case, case.schedule)
        if case.schedule.live:
            return _live(case, settings, parts)
        typed = typed_of(case, registry)
        graph = _graph(typed, settings, case)
        deltas = [(n, Delta.from_batch(b)) for n, part in parts for b in batches_of(case.schemas[n], part)]
        deltas = [(name, delta) for name, delta in deltas if name in graph.sources]
        deltas += [(name, Delta.empty(schema, frontier=FOREVER)) for name, schema in graph.schemas.items()]
        stops, output = _stops(case, len(deltas)), []
        progress = CtiProgress(typed, case.schedule.emission)
        for number, (name, delta) in enumerate(deltas):
            if number in stops:
                state, graph = save(graph), _graph(typed, settings, case)
                restore(graph, state)
            output.append(graph.push(name, delta).to_batch(typed.schema))
            progress.check({name: delta.frontier}, output[-1].frontier)
        return _Output(typed.schema, output, graph.live_rows(), progress.broken)


@dataclass(frozen=True)
class _Output:
    """What came out, and what is still kept at the end."""

    schema: Schema
    batches: list[Batch]
    kept: int
    broken: Broken = WELL


def _left_over(case: Case, rows: int) -> Broken:
    """State that is kept for ever; of events without an end, an operator may keep that they have none."""
    if not rows:
        return WELL
    given = arrived(case) if case.schedule.live else case
    if any(stream.is_endless for stream in given.streams.values()):
        return WELL
    if any(map(_makes_endless, nodes.walk(case.plan))):
        return WELL
    return Broken("state", f"all input is complete, but {rows} rows are still kept")


def _makes_endless(node: nodes.Plan) -> bool:
    """Whether results of a node may have no end although its inputs have one."""
    unbounded = isinstance(node, nodes.AlterDuration) and node.dur is None
    return unbounded or (isinstance(node, Pairing) and node.max is None)


def _graph(typed: Typed, settings: Settings, case: Case) -> Graph:
    return Graph(typed, context_of(settings, case.schedule.emission))


def _stops(case: Case, count: int) -> set[int]:
    """The pushes before which the run is stopped and restored."""
    if not case.schedule.restart or count < 2:
        return set()
    if case.schedule.cuts < 0 and count <= STOPS_EVERYWHERE:
        return set(range(1, count))
    chance = random.Random(case.schedule.seed + 1)  # noqa: S311  # test data, not secrets
    return set(chance.sample(range(1, count), k=min(count - 1, chance.randint(1, 4))))


def _live(case: Case, settings: Settings, parts: Sequence[Push]) -> _Output:
    """As a running query: events are validated at its door and pulled as they come out."""
    processor, output = _processor(case, settings), []
    query = processor.start(plan_of(case), name="q")
    stops = _stops(case, len(parts) + 1)
    for number, (name, part) in enumerate(parts):
        if number in stops:
            output += query.pull()
            processor = _gone_on(case, processor.savepoint(), settings)
            query = processor.queries["q"]
        if len(part) and name in nodes.sources(case.plan):
            for given in _as_pushed(case, name, part):
                query.push(name, given)
        output += query.pull()
    query.finish()
    output += query.pull()
    return _Output(query.schema, output, query.metrics.live_rows)


def _gone_on(case: Case, savepoint: bytes, settings: Settings) -> Processor:
    """A processor that goes on; with something that is not as it was, unless that is refused."""
    if case.schedule.changed:
        other = CHANGES[case.schedule.changed](case)
        with suppress(StreamproofError):
            processor = _processor(other, settings_of(other, settings.registry))
            processor.start(plan_of(other), name="q")
            processor.load(savepoint)
            return processor
    return Processor.restore(savepoint, settings)


def _as_pushed(case: Case, name: str, part: PhysicalStream) -> Iterable[PhysicalStream | Batch]:
    """Events, or in every other run signed rows, which have no ids; advance_time needs those."""
    advanced = any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(case.plan))
    return [part] if advanced or case.schedule.seed % 2 else batches_of(case.schemas[name], part)


def _processor(case: Case, settings: Settings) -> Processor:
    processor = Processor(settings, emission=case.schedule.emission)
    for name, schema in case.schemas.items():
        processor.source(name, schema)
    return processor


def prefixes(case: Case) -> Iterator[dict[str, list[Batch]]]:
    """All that a streaming engine has seen, after each push."""
    seen: dict[str, list[Batch]] = {name: [] for name in case.streams}
    for name, part in pushes(case, case.schedule):
        for batch in batches_of(case.schemas[name], part):
            seen[name].append(batch)
            yield seen
