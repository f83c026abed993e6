"""A plan on an engine: the one road from inputs to a `Run`, for Python and for the command line.

>>> from streamproof.plan.nodes import Source, ToPoint
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}]
>>> on(ToPoint(Source("S")), "duckdb").run({"S": events}).history.to_rows()
[Row(le=1, re=2, payload={'v': 1})]
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from streamproof.arguments import Knows, door, doors
from streamproof.engines.base import Engine, LiveQuery, Settings, engine, prepare
from streamproof.engines.inputs import Input, Loaded, load, no_input
from streamproof.engines.results import FileStream, InBatches, Output, Run
from streamproof.errors import InputError, did_you_mean
from streamproof.events.schema import Schema, Type
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.failures import OnModuleError
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module, Registry
from streamproof.plan.nodes import Plan, sources


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
        started = perf_counter()
        output = self._output(inputs or {}, validators or {})
        return Run(self.plan, output, perf_counter() - started)

    def _output(self, inputs: Mapping[str, Input], validators: Mapping[str, Validator]) -> Output:
        """The one road: inputs are opened, the plan is checked, and the engine reads in the way that it offers."""
        offered = self.engine.capabilities
        if offered.start is not None:
            query = self.start(inputs, validators=validators, keep_history=False)
            parts = tuple(query.over())
            metrics = query.metrics if "metrics" in offered.options else None
            return InBatches(query.schema, parts, metrics, query.notes)
        opened = self.open(inputs)
        typed = self.check({name: part.schema for name, part in opened.items()})
        if offered.inputs is not None:
            return offered.inputs(typed, opened, self.settings, validators)
        batches = {name: part.checked(validators.get(name)).batches for name, part in opened.items()}
        return InBatches(typed.schema, tuple(self.engine.run(typed, batches, self.settings)))

    def start(
        self,
        given: Mapping[str, Input | Schema | Mapping[str, str | Type]] | None = None,
        *,
        validators: Mapping[str, Validator] | None = None,
        keep_history: bool = True,
        keep_late: bool = False,
    ) -> LiveQuery:
        """Let the plan run: push into it, pull from it. Only on engines that take events as they come: local.

        ``given`` has a schema for each source that does not declare its own, or a whole input, which
        `RunningQuery.over` then reads. ``keep_history`` False saves memory where output is only passed on.
        """
        start = self.engine.capabilities.start
        if start is None:
            text = f"the engine {self.engine.name} runs over whole inputs only"
            raise InputError(text, fix='use run(inputs), or start on the engine "local"')
        schemas, inputs = self._opened(given or {})
        checks = dict(validators or {})
        for name in (name for name, part in inputs.items() if part.makes_ids):
            checks.setdefault(name, Validator()).forgetful = True
        return start(
            self.plan, schemas, self.settings,
            inputs=inputs, validators=checks, keep_history=keep_history, keep_late=keep_late,
        )  # fmt: skip

    def _opened(
        self, given: Mapping[str, Input | Schema | Mapping[str, str | Type]]
    ) -> tuple[dict[str, Schema], dict[str, Loaded]]:
        """The schema of every source, and the inputs among what is given."""
        declared = self._declared(given)
        schemas = {name: schema for name, schema in declared.items() if schema is not None}
        inputs: dict[str, Loaded] = {}
        for name, value in given.items():
            if isinstance(value, Schema | Mapping):
                schemas[name] = value if isinstance(value, Schema) else Schema.of(value)
                continue
            inputs[name] = load(name, value, schema=declared[name])
            schemas[name] = inputs[name].schema
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

    def open(self, inputs: Mapping[str, Input]) -> dict[str, Loaded]:
        """Every source's input, opened: its schema is known, and nothing else of it is read."""
        declared = self._declared(inputs)
        self._refuse_missing(inputs)
        return {name: load(name, inputs[name], schema=declared[name]) for name in sources(self.plan)}

    def sql(self, inputs: Mapping[str, Input] | None = None) -> str:
        """The SQL that the plan becomes over these inputs, on an engine that runs SQL: duckdb, postgres."""
        show = self.engine.capabilities.sql
        if show is None:
            text = f"the engine {self.engine.name} does not use SQL"
            raise InputError(text, fix='use the engine "duckdb" or "postgres"')
        opened = self.open(inputs or {})
        return show(self.check({name: part.schema for name, part in opened.items()}), self.settings)

    def batch(self, inputs: Mapping[str, Any]) -> Any:
        """The plan over DataFrames, as a DataFrame, on an engine that has them: spark. See `SparkEngine.batch`."""
        over_frames = self.engine.capabilities.frames
        if over_frames is None:
            text = f"the engine {self.engine.name} does not read DataFrames"
            raise InputError(text, fix='use the engine "spark", or run(inputs)')
        return over_frames(self.plan, inputs, self.settings)

    def stream(self, inputs: Mapping[str, Any], **options: Any) -> Any:
        """The plan over tables that keep growing, on an engine that has them: spark. See `SparkEngine.stream`."""
        over_tables = self.engine.capabilities.tables
        if over_tables is None:
            text = f"the engine {self.engine.name} does not read streaming tables"
            raise InputError(text, fix='use the engine "spark", or push events into start() of "local"')
        return over_tables(self.plan, inputs, self.settings, **options)

    def stream_files(self, files: Mapping[str, str | Path], **options: Any) -> Run:
        """The plan over files, or folders of them, as a stream to their end. The options are those of `FileStream`."""
        over_files = self.engine.capabilities.file_stream
        if over_files is None:
            text = f"the engine {self.engine.name} does not run files as a stream"
            raise InputError(text, fix='use the engine "spark", or run(inputs)')
        self._declared(files)
        self._refuse_missing(files)
        started = perf_counter()
        what = FileStream(files={name: Path(path) for name, path in files.items()}, **options)
        return Run(self.plan, over_files(self.plan, what, self.settings), perf_counter() - started)

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
    if on_module_error != "fail" and "on_module_error" not in made.capabilities.options:
        raise InputError(f"the engine {made.name} ends at a module's first error", fix='use the engine "local"')
    return Job(plan, made, settings)
