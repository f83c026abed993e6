"""The engine protocol, and the one door to all engines: ``plan.on(engine).run(inputs)`` gives a `Run`.

An engine is found by its entry point, so another package can bring one.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from streamproof import extensions
from streamproof.arguments import check_call
from streamproof.errors import InputError, PlanWarning
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.events.time import checked
from streamproof.plan.check import Typed, check
from streamproof.plan.failures import OnModuleError
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.results import cut_results
from streamproof.plan.rewrite import rewrite
from streamproof.thresholds import GROWTH, LARGEST_EXPRESSION

if TYPE_CHECKING:
    from streamproof.engines.local.processor import Processor


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run may be told besides plan and inputs."""

    horizon: int | None = None  # leaves out hopping, tumbling and chop windows that end later
    registry: Registry = field(default_factory=installed)
    limits: Limits = field(default_factory=Limits)
    on_module_error: OnModuleError = "fail"  # or dead_letter: what a failing module would have given is left out
    optimise: bool = True  # rewrite the plan before it runs; the result is the same

    def __post_init__(self) -> None:
        if self.horizon is not None:
            checked(self.horizon, "the horizon", InputError)


class Engine(Protocol):
    """What every engine offers."""

    name: str

    def supports(self) -> dict[str, bool | str]:
        """Each node's name with True, or with the reason why it is refused."""
        ...

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The output of a typed plan over its inputs."""
        ...


@runtime_checkable
class LiveEngine(Engine, Protocol):
    """An engine that takes events as they come."""

    def processor(self, settings: Settings, *, keep_late: bool = False) -> Processor:
        """A new processor, on which queries run."""
        ...


def prepare(plan: Plan, schemas: Mapping[str, Schema], settings: Settings) -> Typed:
    """The typed plan that an engine gets: checked, rewritten, and checked again.

    That of a plan which was prepared a moment ago, as after a restart, is at hand.
    """
    registry = settings.registry
    sizes = LARGEST_EXPRESSION.now, GROWTH.now
    known = tuple(schemas.items())
    return _prepared(_Itself(plan), known, _Itself(registry), registry.changes, settings.optimise, sizes)


@dataclass(frozen=True, slots=True, eq=False)
class _Itself:
    """Something as a key: itself, and nothing that is only equal, as a plan with 1 is to one with 1.0 or true."""

    value: Any

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self.value is other.value


@lru_cache(maxsize=16)
def _prepared(
    plan: _Itself,
    known: tuple[tuple[str, Schema], ...],
    modules: _Itself,
    _changes: int,
    optimise: bool,
    _sizes: tuple[int, int],
) -> Typed:
    given, schemas, registry = plan.value, dict(known), modules.value
    typed = check(given, schemas, registry=registry)
    for text in cut_results(typed):
        warnings.warn(text, PlanWarning, stacklevel=3)
    if not optimise:
        return typed
    return check(rewrite(given, schemas, registry=registry), schemas, registry=registry)


def engine(name: str, **options: object) -> Engine:
    """The engine registered under ``name``, made with its own options (e.g. ``dsn`` for postgres)."""
    made = extensions.load("engines", name)
    check_call(made, (), options)
    found: Engine = made(**options)
    return found


def support() -> dict[str, dict[str, bool | str]]:
    """What each installed engine supports: the capability matrix."""
    return {name: engine(name).supports() for name in extensions.names("engines")}
