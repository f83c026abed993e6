"""A plan on an engine, and what a run of it gives.

>>> from streamproof.plan.nodes import Source, ToPoint
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}]
>>> on(ToPoint(Source("S")), "duckdb").run({"S": events}).history.to_rows()
[Row(le=1, re=2, payload={'v': 1})]
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter
from typing import TYPE_CHECKING, Any

from streamproof.arguments import Knows, door, doors
from streamproof.engines.base import Engine, LiveEngine, Settings, engine, prepare
from streamproof.engines.frames import Tabular
from streamproof.engines.html import query_page
from streamproof.engines.inputs import Input, Loaded, load, no_input, unchecked
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.marbles import marbles
from streamproof.events.physical import from_batches
from streamproof.events.schema import Schema, Type
from streamproof.events.stream import PhysicalStream
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.failures import OnModuleError
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module, Registry
from streamproof.plan.nodes import Plan, sources

if TYPE_CHECKING:
    from streamproof.engines.local.metrics import Metrics
    from streamproof.engines.local.query import RunningQuery


@doors
@dataclass(frozen=True, eq=False)
class Run(Tabular, Knows):
    """The result of a run: the canonical history, the physical events, the batches, a picture."""

    plan: Plan
    schema: Schema
    batches: tuple[Batch, ...]
    seconds: float
    metrics: Metrics | None = None  # the run in numbers, where the engine counts
    notes: tuple[str, ...] = ()  # what is worth knowing: late events, sources that sealed nothing

    @cached_property
    def history(self) -> History:
        """The canonical history: the sum of all output."""
        return History.from_batches(self.schema, self.batches)

    @cached_property
    def events(self) -> PhysicalStream:
        """The output as inserts, retractions and CTIs."""
        return from_batches(self.batches, schema=self.schema)

    def picture(self, *, width: int = 100) -> str:
        """The output as a text timeline."""
        return marbles(self.history, width=width)

    def _repr_html_(self) -> str:
        title = f"{len(self.history):,} events in {self.seconds:.2f} s"
        return query_page(title, self.history, "" if self.metrics is None else str(self.metrics))

    def __repr__(self) -> str:
        return f"Run({len(self.history)} events in {self.seconds:.2f} s)\n{self.picture()}"


@doors
@dataclass(frozen=True, eq=False)
class Job(Knows):
    """A plan bound to an engine: `run` it on inputs, any number of times."""

    plan: Plan
    engine: Engine
    settings: Settings

    def run(
        self, inputs: Mapping[str, Input] | None = None, *, validators: Mapping[str, Validator] | None = None
    ) -> Run:
        """Run to completion. ``inputs`` gives each source a file, events, a history or an Arrow table."""
        if isinstance(self.engine, LiveEngine):
            return self._run_live(inputs or {}, validators or {})
        return self.run_loaded(self.load(inputs or {}, validators or {}))

    def _run_live(self, inputs: Mapping[str, Input], validators: Mapping[str, Validator]) -> Run:
        """Run to completion on an engine that takes events as they come."""
        started = perf_counter()
        query = self.start(inputs, validators=validators, keep_history=False)
        batches = tuple(query.over())
        seconds = perf_counter() - started
        return Run(self.plan, query.schema, batches, seconds, query.metrics, query.notes)

    def start(
        self,
        given: Mapping[str, Input | Schema | Mapping[str, str | Type]] | None = None,
        *,
        validators: Mapping[str, Validator] | None = None,
        keep_history: bool = True,
        keep_late: bool = False,
    ) -> RunningQuery:
        """Let the plan run: push into it, pull from it. Only on engines that take events as they come: local.

        ``given`` has a schema for each source that does not declare its own, or a whole input, which
        `RunningQuery.over` then reads. ``keep_history`` False saves memory where output is only passed on.
        """
        if not isinstance(self.engine, LiveEngine):
            text = f"the engine {self.engine.name} runs over whole inputs only"
            raise InputError(text, fix='use run(inputs), or start on the engine "local"')
        schemas, inputs = self._opened(given or {})
        processor = self.engine.processor(self.settings, keep_late=keep_late)
        for name, schema in schemas.items():
            processor.source(name, schema, validator=(validators or {}).get(name))
        query = processor.start(self.plan, name="query", keep_history=keep_history)
        query.given = inputs
        return query

    def _opened(
        self, given: Mapping[str, Input | Schema | Mapping[str, str | Type]]
    ) -> tuple[dict[str, Schema], dict[str, Input | Loaded]]:
        """The schema of every source, and the inputs among what is given."""
        declared = self._declared(given)
        schemas = {name: schema for name, schema in declared.items() if schema is not None}
        inputs: dict[str, Input | Loaded] = {}
        for name, value in given.items():
            if isinstance(value, Schema | Mapping):
                schemas[name] = value if isinstance(value, Schema) else Schema.of(value)
                continue
            loaded = unchecked(name, value, schema=declared[name])
            schemas[name], inputs[name] = loaded.schema, loaded
        self._refuse_missing(schemas)
        return schemas, inputs

    def _declared(self, given: Iterable[str]) -> dict[str, Schema | None]:
        """Every source of the plan with the schema that it declares; nothing else may be given."""
        declared = {n.name: n.schema for n in nodes.walk(self.plan) if isinstance(n, nodes.Source)}
        for name in given:
            if name not in declared:
                raise InputError(f'the plan has no source "{name}"', fix=did_you_mean(name, declared))
        return declared

    def _refuse_missing(self, given: Container[str]) -> None:
        for name in sources(self.plan):
            if name not in given:
                raise no_input(name)

    def load(self, inputs: Mapping[str, Input], validators: Mapping[str, Validator]) -> dict[str, Loaded]:
        """Every source's input, read and checked."""
        declared = self._declared(inputs)
        self._refuse_missing(inputs)
        return {n: load(n, inputs[n], schema=declared[n], validator=validators.get(n)) for n in sources(self.plan)}

    def run_loaded(self, loaded: Mapping[str, Loaded]) -> Run:
        """Run over inputs that are loaded already."""
        started = perf_counter()
        typed = self.check({name: part.schema for name, part in loaded.items()})
        batches = {name: part.batches for name, part in loaded.items()}
        output = tuple(self.engine.run(typed, batches, self.settings))
        return Run(self.plan, typed.schema, output, perf_counter() - started)

    def batch(self, inputs: Mapping[str, Any]) -> Any:
        """The plan over DataFrames, as a DataFrame, on an engine that has them: spark. See `SparkEngine.batch`."""
        over_frames = getattr(self.engine, "batch", None)
        if over_frames is None:
            text = f"the engine {self.engine.name} does not read DataFrames"
            raise InputError(text, fix='use the engine "spark", or run(inputs)')
        return over_frames(self.plan, inputs, self.settings)

    def stream(self, inputs: Mapping[str, Any], **options: Any) -> Any:
        """The plan over tables that keep growing, on an engine that has them: spark. See `SparkEngine.stream`."""
        over_tables = getattr(self.engine, "stream", None)
        if over_tables is None:
            text = f"the engine {self.engine.name} does not read streaming tables"
            raise InputError(text, fix='use the engine "spark", or push events into start() of "local"')
        return over_tables(self.plan, inputs, self.settings, **options)

    def check(self, schemas: Mapping[str, Schema]) -> Typed:
        """The typed plan that the engine gets: checked, rewritten, and checked again."""
        return prepare(self.plan, schemas, self.settings)


@door
def on(
    plan: Plan,
    engine_name: str,
    *,
    horizon: int | None = None,
    modules: Registry | list[Module] | None = None,
    limits: Limits | None = None,
    on_module_error: OnModuleError = "fail",
    optimise: bool = True,
    **options: object,
) -> Job:
    """A plan on the engine of that name. ``options`` are the engine's own, e.g. ``dsn`` for postgres."""
    registry = installed() if modules is None else Registry([*installed(), *modules])
    settings = Settings(
        horizon=horizon,
        registry=registry,
        limits=limits or Limits(),
        on_module_error=on_module_error,
        optimise=optimise,
    )
    made = engine(engine_name, **options)
    if on_module_error != "fail" and not isinstance(made, LiveEngine):
        raise InputError(f"the engine {made.name} ends at a module's first error", fix='use the engine "local"')
    return Job(plan, made, settings)
