"""A case: a complete plan, the streams it reads, and how a run goes; plain data with an id and a seed.

>>> from streamproof.workbench.draw.plans import seeded_case
>>> case = seeded_case(3)
>>> case.id == seeded_case(3).id
True
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

from streamproof.events.event import Event, Insert, write_event
from streamproof.events.history import History
from streamproof.events.order import ints
from streamproof.events.physical import to_history
from streamproof.events.schema import RE, Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.language import json as plan_json
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from streamproof.workbench.schedule import Schedule


def slug(text: str) -> str:
    """A text as part of the name of a file or a function, whatever is in it.

    >>> slug("joins of 2"), slug("../../etc/x"), slug('"; import os')
    ('joins_of_2', 'etc_x', 'import_os')
    """
    return re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_")[:80]


Row: TypeAlias = "tuple[int, int, dict[str, Any]]"


@dataclass(frozen=True)
class CaseStream:
    """A physical stream with its schema, as events or as columns: each is made from the other when it is asked for."""

    schema: Schema
    events: tuple[Event, ...]

    @staticmethod
    def of(physical: PhysicalStream) -> CaseStream:
        stream = CaseStream(physical.schema, tuple(physical.to_events()))
        stream.__dict__["physical"] = physical
        return stream

    @staticmethod
    def inserting(schema: Schema, rows: Iterable[Row]) -> CaseStream:
        """Rows of a history, each as one insert."""
        return CaseStream(schema, tuple(Insert(f"e{n}", le, re, payload) for n, (le, re, payload) in enumerate(rows)))

    @cached_property
    def physical(self) -> PhysicalStream:
        """The events as columns."""
        return PhysicalStream.from_events(self.events, schema=self.schema)

    @cached_property
    def history(self) -> History:
        """What the stream adds up to."""
        return to_history(self.physical, schema=self.schema)

    @property
    def is_endless(self) -> bool:
        """Whether an event of the history lasts for ever."""
        return bool((ints(self.history.rows[RE]) == FOREVER).any())

    @property
    def rows(self) -> list[Row]:
        """The history, row by row."""
        return [(row.le, row.re, dict(row.payload)) for row in self.history.to_rows()]


@dataclass(frozen=True)
class Case:
    """Everything that a run needs, and where it comes from."""

    plan: Plan
    streams: Mapping[str, CaseStream]
    horizon: int | None = None
    limits: Limits = field(default_factory=Limits)
    schedule: Schedule = field(default_factory=Schedule)
    seed: int = 0
    scenario: str = ""
    factors: Mapping[str, str] = field(default_factory=dict)  # what the draw was told: operators, windows, facets

    @property
    def schemas(self) -> dict[str, Schema]:
        return {name: stream.schema for name, stream in self.streams.items()}

    @cached_property
    def fingerprint(self) -> int:
        """A number that depends on plan and streams alone."""
        texts = [repr(write_event(event)) for stream in self.streams.values() for event in stream.events]
        return zlib.crc32("\n".join([plan_json.dumps(self.plan), *texts]).encode())

    @property
    def id(self) -> str:
        """The same for the same plan, streams and seed."""
        return f"{slug(self.scenario) or 'case'}-{self.seed}-{self.fingerprint:08x}"

    @property
    def size(self) -> int:
        """How many events the streams have, CTIs not counted."""
        return sum(len(stream.events) for stream in self.streams.values()) - self.ctis

    @property
    def ctis(self) -> int:
        """How many CTIs the streams have."""
        return sum(not hasattr(event, "id") for stream in self.streams.values() for event in stream.events)

    def together_with(self, others: Sequence[Case]) -> Case:
        """One case with the events of all of them, as far as they are cases of this plan."""
        alike = [other for other in others if other.plan is self.plan and other.horizon == self.horizon] or [self]
        streams = {
            name: CaseStream.inserting(stream.schema, (row for case in alike for row in case.streams[name].rows))
            for name, stream in self.streams.items()
        }
        return replace(self, streams=streams)
