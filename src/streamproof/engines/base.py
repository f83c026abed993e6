"""The engine protocol, and the one door to all engines: ``plan.on(engine).run(inputs)`` gives a `Run`.

An engine is found by its entry point, so another package can bring one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeAlias

from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.files import read
from streamproof.events.history import History
from streamproof.events.physical import PhysicalStream
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.events.validate import Validator
from streamproof.plan import extensions
from streamproof.plan.check import Typed, check
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan, sources
from streamproof.plan.rewrite import rewrite

Input: TypeAlias = "History | PhysicalStream | str | Path | Iterable[Mapping[str, object]] | Iterable[Batch]"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run may be told besides plan and inputs."""

    horizon: int | None = None  # leaves out hopping, tumbling and chop windows that end later
    registry: Registry = field(default_factory=installed)
    limits: Limits = field(default_factory=Limits)
    optimise: bool = True


class Engine(Protocol):
    """What every engine offers."""

    name: str

    def supports(self) -> dict[str, bool | str]:
        """Each node's name with True, or with the reason why it is refused."""
        ...

    def run(self, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Iterator[Batch]:
        """The output of a typed plan over its inputs."""
        ...


def engine(name: str, **options: object) -> Engine:
    """The engine registered under ``name``."""
    found: Engine = extensions.load("engines", name)(**options)
    return found
