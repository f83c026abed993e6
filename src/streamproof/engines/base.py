"""The engine protocol, and the record in which an engine declares what it offers beside it.

Every engine runs a typed plan over histories. Whatever else it can do stands in its `Capabilities`: nobody asks for its
name or looks for a method. An engine is found by its entry point, so another package can bring one.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

from streamproof import extensions
from streamproof.arguments import check_call
from streamproof.errors import InputError, PlanWarning
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import checked
from streamproof.events.validate import Validator
from streamproof.plan.check import Typed, check
from streamproof.plan.failures import DeadLetter, OnModuleError
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.results import cut_results
from streamproof.plan.rewrites import rewrite
from streamproof.thresholds import GROWTH, LARGEST_EXPRESSION

if TYPE_CHECKING:
    from streamproof.engines.feed import Feed
    from streamproof.engines.inputs import Loaded
    from streamproof.engines.results import FileStream, Metrics, Output


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


class LiveSource(Protocol):
    """How far a source of a running query has come."""

    schema: Schema
    ended: bool
    events: int  # that came
    latest: int  # the greatest start

    @property
    def frontier(self) -> int:
        """Its CTI."""
        ...


class LiveQuery(Protocol):
    """A plan that runs: events are pushed into its sources, and its output is pulled. `Job.start` gives one."""

    plan: Plan

    @property
    def schema(self) -> Schema: ...

    @property
    def sources(self) -> Mapping[str, LiveSource]: ...

    def push(self, source: str, content: Any, /) -> None:
        """New events: a Batch, a PhysicalStream, a History, events."""
        ...

    def finish(self, *sources: str) -> None:
        """These sources, or all, have ended: what they gave is complete."""
        ...

    def over(
        self,
        inputs: Mapping[str, Any] | None = None,
        *,
        most_rows: int | None = None,
        positions: Mapping[str, int] | None = None,
    ) -> Feed:
        """Run over whole inputs, those that it was started with unless others are given: a `Feed` of itself."""
        ...

    def pull(self) -> list[Batch]:
        """The batches of output since the last time."""
        ...

    def events(self) -> PhysicalStream:
        """The inserts, retractions and CTIs of the output since the last time."""
        ...

    @property
    def history(self) -> History:
        """What the output adds up to so far."""
        ...

    @property
    def cti(self) -> int:
        """Up to where the output is sealed."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing about the run."""
        ...

    @property
    def metrics(self) -> Metrics:
        """The query in numbers; asked for where the engine declares the option ``metrics``."""
        ...

    def take_late(self) -> Mapping[str, PhysicalStream]:
        """The events that came too late since the last call, by source; with the option ``late_file``."""
        ...

    def take_failures(self) -> list[DeadLetter]:
        """The calls of modules that failed since the last call; with the option ``on_module_error``."""
        ...

    def savepoint(self) -> bytes:
        """The whole state; with the option ``savepoint``."""
        ...

    def restore(self, savepoint: bytes, /) -> None:
        """Go on where a savepoint of the same query was taken."""
        ...


class Start(Protocol):
    """Lets a plan run on events as they come."""

    def __call__(
        self,
        plan: Plan,
        schemas: Mapping[str, Schema],
        settings: Settings,
        *,
        inputs: Mapping[str, Loaded],
        validators: Mapping[str, Validator],
        keep_history: bool,
        keep_late: bool,
    ) -> LiveQuery:
        """A running query over sources of these schemas; ``inputs`` are what its `over` reads.

        A source without a validator is one whose first illegal event is an error.
        """
        ...


class OverInputs(Protocol):
    """Runs a typed plan over inputs that the engine reads itself, and leaves the result where it lies."""

    def __call__(
        self, plan: Typed, inputs: Mapping[str, Loaded], settings: Settings, validators: Mapping[str, Validator]
    ) -> Output: ...


class OverFrames(Protocol):
    """A plan over data frames of the engine's own, as such a data frame."""

    def __call__(self, plan: Plan, inputs: Mapping[str, Any], settings: Settings) -> Any: ...


class OverTables(Protocol):
    """A plan over tables of the engine's own that keep growing; ``options`` are the engine's."""

    def __call__(self, plan: Plan, inputs: Mapping[str, Any], settings: Settings, **options: Any) -> Any: ...


class OverFileStream(Protocol):
    """A plan over files as a stream, to their end."""

    def __call__(self, plan: Plan, files: FileStream, settings: Settings) -> Output: ...


class ShowSql(Protocol):
    """The SQL that a typed plan becomes."""

    def __call__(self, plan: Typed, settings: Settings) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What an engine offers beside running a plan over histories; what is left out, it does not do.

    Of the options of ``streamproof run`` that are not for everybody, those that stand in ``options`` (or, with
    ``--mode stream``, in ``stream_options``) are honoured, and all others refused by name.
    """

    start: Start | None = None  # events as they come: `Job.start`, and then `Job.run` goes this way too
    inputs: OverInputs | None = None  # inputs that need not go through this process
    frames: OverFrames | None = None  # `Job.batch`
    tables: OverTables | None = None  # `Job.stream`
    file_stream: OverFileStream | None = None  # `Job.stream_files`, on the command line --mode stream
    sql: ShowSql | None = None  # `Job.sql`, on the command line --show-sql
    options: frozenset[str] = frozenset()  # of those, the engine is made with ``dsn`` and ``emission``
    stream_options: frozenset[str] = frozenset()
    starting: Callable[[], str | None] = lambda: None  # what takes seconds before a run begins now, in words


class Engine(Protocol):
    """What every engine offers. One that is made without any options can say what it supports."""

    name: str

    @property
    def capabilities(self) -> Capabilities:
        """What it offers beside `run`."""
        ...

    def supports(self) -> dict[str, bool | str]:
        """Each node's name with True, or with the reason why it is refused."""
        ...

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The output of a typed plan over its inputs, which are legal."""
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


def capabilities_of(name: str) -> Capabilities:
    """What the engine registered under ``name`` offers."""
    return engine(name).capabilities


def support() -> dict[str, dict[str, bool | str]]:
    """What each installed engine supports: the capability matrix."""
    return {name: engine(name).supports() for name in extensions.names("engines")}
