"""Random cases: a plan, the streams it reads, and a horizon now and then."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from tests.reference.choices import Choices, DrawnChoices, RandomChoices
from tests.reference.columns import Column, Shape
from tests.reference.plans import PlanMaker
from tests.reference.streams import UNITS, Stream, random_schema, random_stream

DEEPEST = 5


@dataclass(frozen=True, slots=True)
class Case:
    """Everything that a run needs."""

    plan: Plan
    streams: Mapping[str, Stream]
    horizon: int | None = None
    limits: Limits = field(default_factory=Limits)

    @property
    def schemas(self) -> dict[str, Schema]:
        return {name: stream.schema for name, stream in self.streams.items()}


def random_case(choices: Choices, *, deepest: int = DEEPEST) -> Case:
    """A case; with depth the streams get shorter, so that results stay small."""
    unit = choices.pick(UNITS)
    depth = choices.integer(0 if choices.chance(5) else 1, deepest)
    streams = {
        name: random_stream(choices, random_schema(choices, unit), most=12 if depth < 4 else 8)
        for name in ("S", "R")[: choices.integer(1, 2)]
    }
    horizon = choices.integer(5, 30) if choices.chance(25) else None
    sources = tuple((nodes.Source(name), _shape(stream)) for name, stream in streams.items())
    maker = PlanMaker(choices, sources, horizon)
    plan, shape = maker.plan(depth)
    if choices.chance(6):
        plan = maker.risky(plan, shape)
    limits = Limits(windows_per_event=choices.integer(1, 4)) if choices.chance(2) else Limits()
    used = {name: streams[name] for name in nodes.sources(plan)}
    return Case(plan, used, horizon, limits)


def seeded_case(seed: int, *, deepest: int = DEEPEST) -> Case:
    """The same case for the same seed."""
    return random_case(RandomChoices(seed), deepest=deepest)


def _shape(stream: Stream) -> Shape:
    columns = tuple((name, Column(kind, size=1000)) for name, kind in stream.schema)
    rows = stream.rows
    endless, ageless = any(row[1] == FOREVER for row in rows), any(row[0] == BEGINNING for row in rows)
    return Shape(columns, stream.schema.unit, endless, ageless)


@st.composite
def cases(draw: Callable[[st.SearchStrategy[int]], int], deepest: int = DEEPEST) -> Case:
    """Random cases, as a Hypothesis strategy."""
    return random_case(DrawnChoices(draw), deepest=deepest)
