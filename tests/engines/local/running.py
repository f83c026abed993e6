"""Random plans that run as queries: their inputs as physical chunks, and several plans over one set of streams."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import pairwise

from streamproof.engines.base import Settings
from streamproof.engines.local.processor import Processor
from streamproof.engines.local.query import RunningQuery
from streamproof.errors import StreamproofError
from streamproof.events.stream import PhysicalStream
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.workbench.case import Case
from streamproof.workbench.draw.choices import RandomChoices
from streamproof.workbench.draw.plans import PlanMaker, seeded_case, shape_of
from streamproof.workbench.modules import all_modules

Push = tuple[str, PhysicalStream]


def settings_of(case: Case) -> Settings:
    return Settings(horizon=case.horizon, limits=case.limits, registry=all_modules(), optimise=False)


def pushes(case: Case, seed: int, *, most_cuts: int = 4) -> list[Push]:
    """The streams cut at random, in a random order that keeps each stream's own."""
    chance = random.Random(seed)
    waiting = {}
    for name, stream in case.streams.items():
        events = list(stream.events)
        cuts = sorted(chance.sample(range(len(events) + 1), k=min(chance.randint(0, most_cuts), len(events))))
        parts = [events[start:end] for start, end in pairwise([0, *cuts, len(events)])]
        waiting[name] = [PhysicalStream.from_events(part, schema=stream.schema) for part in parts]
    found: list[Push] = []
    while any(waiting.values()):
        name = chance.choice([name for name, parts in waiting.items() if parts])
        found.append((name, waiting[name].pop(0)))
    return found


def processor_of(case: Case, *, emission: Emission = "speculative") -> Processor:
    processor = Processor(settings_of(case), emission=emission)
    for name, schema in case.schemas.items():
        processor.source(name, schema)
    return processor


def alone(case: Case, plan: Plan, parts: Sequence[Push], *, emission: Emission = "speculative") -> RunningQuery | str:
    """The finished query of one plan by itself, or the name of its error."""
    try:
        processor = processor_of(case, emission=emission)
        query = processor.start(plan)
        for name, part in parts:
            processor.push(name, part)
        processor.finish()
    except StreamproofError as error:
        return error.name
    return query


def without_errors(start: int, count: int) -> Iterator[tuple[int, Case]]:
    """Random cases whose plan runs to its end."""
    for number in range(start, start + count):
        case = seeded_case(number)
        if not isinstance(alone(case, case.plan, pushes(case, number)), str):
            yield number, case


def more_plans(case: Case, seed: int, count: int) -> list[Plan]:
    """Other plans over the streams of a case, some of them on top of its own plan."""
    sources = tuple((nodes.Source(name), shape_of(stream)) for name, stream in case.streams.items())
    made = [PlanMaker(RandomChoices(seed * 100 + n), sources, case.horizon).plan(1 + n % 3)[0] for n in range(count)]
    return [*made, nodes.Coalesce(case.plan), nodes.Union((case.plan, case.plan))]
