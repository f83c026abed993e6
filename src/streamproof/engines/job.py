"""A plan on an engine, and what a run of it gives.

>>> from streamproof.plan.nodes import Source, ToPoint
>>> events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}]
>>> on(ToPoint(Source("S")), "duckdb").run({"S": events}).history.to_rows()
[Row(le=1, re=2, payload={'v': 1})]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from time import perf_counter

from streamproof.engines.base import Engine, Settings, engine
from streamproof.engines.inputs import Input, Loaded, load
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.marbles import marbles
from streamproof.events.physical import PhysicalStream, from_batches
from streamproof.events.schema import Schema
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module, Registry
from streamproof.plan.nodes import Plan, sources
from streamproof.plan.rewrite import rewrite


@dataclass(frozen=True, eq=False)
class Run:
    """The result of a run: the canonical history, the physical events, the batches, a picture."""

    plan: Plan
    schema: Schema
    batches: tuple[Batch, ...]
    seconds: float

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

    def __repr__(self) -> str:
        return f"Run({len(self.history)} events in {self.seconds:.2f} s)\n{self.picture()}"


@dataclass(frozen=True, eq=False)
class Job:
    """A plan bound to an engine: `run` it on inputs, any number of times."""

    plan: Plan
    engine: Engine
    settings: Settings

    def run(
        self, inputs: Mapping[str, Input] | None = None, *, validators: Mapping[str, Validator] | None = None
    ) -> Run:
        """Run to completion. ``inputs`` gives each source a file, events, a history or an Arrow table."""
        loaded = self.load(inputs or {}, validators or {})
        return self.run_loaded(loaded)

    def load(self, inputs: Mapping[str, Input], validators: Mapping[str, Validator]) -> dict[str, Loaded]:
        """Every source's input, read and checked."""
        declared = {n.name: n.schema for n in nodes.walk(self.plan) if isinstance(n, nodes.Source)}
        for name in inputs:
            if name not in declared:
                raise InputError(f'the plan has no source "{name}"', fix=did_you_mean(name, declared))
        for name in sources(self.plan):
            if name not in inputs:
                raise InputError(f'no input is given for the source "{name}"', fix=f"give --input {name}=FILE")
        return {n: load(n, inputs[n], schema=declared[n], validator=validators.get(n)) for n in sources(self.plan)}

    def run_loaded(self, loaded: Mapping[str, Loaded]) -> Run:
        """Run over inputs that are loaded already."""
        started = perf_counter()
        typed = self.check({name: part.schema for name, part in loaded.items()})
        batches = {name: part.batches for name, part in loaded.items()}
        output = tuple(self.engine.run(typed, batches, self.settings))
        return Run(self.plan, typed.schema, output, perf_counter() - started)

    def check(self, schemas: Mapping[str, Schema]) -> Typed:
        """The typed plan that the engine gets: checked, rewritten, and checked again."""
        registry = self.settings.registry
        typed = check(self.plan, schemas, registry=registry)
        if not self.settings.optimise:
            return typed
        return check(rewrite(self.plan, schemas, registry=registry), schemas, registry=registry)


def on(
    plan: Plan,
    engine_name: str,
    *,
    horizon: int | None = None,
    modules: Registry | list[Module] | None = None,
    limits: Limits | None = None,
    optimise: bool = True,
    **options: object,
) -> Job:
    """A plan on the engine of that name. ``options`` are the engine's own, e.g. ``dsn`` for postgres."""
    registry = installed() if modules is None else Registry([*installed(), *modules])
    settings = Settings(horizon=horizon, registry=registry, limits=limits or Limits(), optimise=optimise)
    return Job(plan, engine(engine_name, **options), settings)
