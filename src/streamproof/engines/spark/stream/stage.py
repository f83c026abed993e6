"""What goes to the workers.

A query goes as bytes, inside the live application only: nothing of it is ever written into a checkpoint. Modules that
an installed package offers go by name; others go by value, with the code of the file they are written in.
"""

from __future__ import annotations

import importlib
import io
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from types import ModuleType
from typing import Any

from streamproof.engines.spark.stream.keys import holds_state
from streamproof.engines.spark.stream.ports import SourcePort
from streamproof.engines.spark.stream.wire import Emit
from streamproof.kernels.base import Emission
from streamproof.plan.check import Typed, walk
from streamproof.plan.library import calls_modules, installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Module, ModuleKind, Registry


@dataclass(frozen=True, slots=True)
class StageEdge:
    """Where the output of a fragment goes: a port of a later one."""

    query: int
    source: int  # the number of the port
    keys: tuple[str, ...]
    buckets: int


@dataclass(frozen=True, slots=True)
class StageSpec:
    """Everything that a bucket needs to know about its query, or its fragment of one."""

    typed: Typed
    ports: tuple[SourcePort, ...]
    registry: Registry
    limits: Limits
    emission: Emission = "speculative"
    horizon: int | None = None
    emit: Emit = "rows"
    journal: int = 32  # micro-batches between savepoints, at most
    edges: tuple[StageEdge, ...] = ()  # none: what comes out is for the sink
    seals: bool = True  # emission final: rows are held back until nothing can change them
    claim: str = ""  # all that its state depends on, as JSON

    @property
    def is_replayable(self) -> bool:
        """Whether the same input again gives the same state: always, unless user modules are asked again."""
        return not any(calls_modules(part.node) for part in walk(self.typed))

    @property
    def is_light(self) -> bool:
        """Whether a savepoint is smaller than what came in: no row is remembered."""
        events = self.emit == "events" or any(port.keeps_events for port in self.ports)
        return not (events or holds_state(self.typed) or self.emission == "final")


@dataclass(frozen=True, slots=True)
class QueryBytes:
    """Queries in bytes, to be opened where they are needed, once per worker."""

    queries: Mapping[int, bytes]
    digests: Mapping[int, str]

    @staticmethod
    def of(stages: Iterable[StageSpec] | Mapping[int, StageSpec]) -> QueryBytes:
        """The stages of queries, by their numbers or in their order."""
        numbered = stages if isinstance(stages, Mapping) else dict(enumerate(stages))
        packed = {number: _dumps(stage) for number, stage in numbered.items()}
        return QueryBytes(packed, {n: blake2b(part, digest_size=12).hexdigest() for n, part in packed.items()})


_OPENED: dict[str, StageSpec] = {}


def opened(packed: bytes, digest: str) -> StageSpec:
    """A query in bytes, as it was."""
    if digest not in _OPENED:
        _OPENED[digest] = _loads(packed)
    return _OPENED[digest]


def _dumps(stage: StageSpec) -> bytes:
    from pyspark import cloudpickle  # noqa: PLC0415  # only where queries are sent

    class Pickler(cloudpickle.CloudPickler):
        def reducer_override(self, value: Any) -> Any:
            if isinstance(value, Module) and _is_installed(value):
                return _installed_module, (value.name, value.version, value.kind)
            return super().reducer_override(value)  # type: ignore[no-untyped-call]  # pyspark's copy has no types

    file = io.BytesIO()
    with _by_value(stage.registry):
        Pickler(file).dump(stage)  # type: ignore[no-untyped-call]
    return file.getvalue()


def _loads(data: bytes) -> StageSpec:
    from pyspark import cloudpickle  # noqa: PLC0415

    stage: StageSpec = cloudpickle.loads(data)
    return stage


def _is_installed(module: Module) -> bool:
    known = [m for m in installed() if (m.name, m.version, m.kind) == (module.name, module.version, module.kind)]
    return bool(known) and known[0].implementation is module.implementation


def _installed_module(name: str, version: str, kind: ModuleKind) -> Module:
    return installed().find(f"{name}@{version}", kind)


@contextmanager
def _by_value(registry: Registry) -> Iterator[None]:
    """While this lasts, functions from files that workers may not have are sent with their code."""
    from pyspark import cloudpickle  # noqa: PLC0415

    homes = {home for m in registry if not _is_installed(m) and (home := _home(m.implementation)) is not None}
    for home in homes:
        cloudpickle.register_pickle_by_value(home)  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        for home in homes:
            cloudpickle.unregister_pickle_by_value(home)  # type: ignore[no-untyped-call]


def _home(function: Callable[..., Any]) -> ModuleType | None:
    """The Python module of a function, unless it is installed or has no file of its own."""
    name = getattr(function, "__module__", None)
    if name is None or name == "__main__":
        return None
    home = sys.modules.get(name) or importlib.import_module(name)
    file = getattr(home, "__file__", None) or ""
    places = (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), sysconfig.get_path("stdlib"))
    return None if not file or file.startswith(places) else home
