"""Random plans and cases: any operator above any other, to a depth; dense streams below.

>>> seeded_case(3).plan == seeded_case(3).plan
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.limits import Limits
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.draw.choices import Choices, DrawnColumn, DrawnShape, RandomChoices
from streamproof.workbench.draw.dense import UNITS, random_schema, random_stream
from streamproof.workbench.draw.operators import Made, OperatorMaker

DEEPEST = 5
LASTING = ("coalesce", "distinct", "stitch")
LIFETIMES = ("shift", "extend", "to_point", "point_at_end")
JOINS = ("join", "left_outer", "full_outer", "followed_by")


@dataclass(frozen=True, slots=True)
class PlanMaker:
    """Makes plans over the streams in scope: sources, or inside an apply branch the group's events; and bound names."""

    choices: Choices
    sources: tuple[Made, ...]
    horizon: int | None = None
    bound: tuple[Made, ...] = ()
    inside: bool = False  # in an apply branch

    @property
    def operators(self) -> OperatorMaker:
        return OperatorMaker(self.choices, self.horizon)

    def plan(self, depth: int) -> Made:
        """A plan of at most that many operators on each path to a leaf."""
        if depth <= 0 or self.choices.chance(8):
            return self._leaf()
        return self.choices.pick(self._makers())(depth - 1)

    def _makers(self) -> list[Callable[[int], Made]]:
        one, two = self._over_one, self._over_two
        light = [one("where"), one("select"), one(*LIFETIMES), one("alter_duration"), one(*LASTING)]
        heavy = [one("agg"), one("agg"), one("topk"), one("uda"), one("udo"), two(*JOINS), two(*JOINS), two("lasj")]
        groups = [self._group_apply, self._let, self._group_apply]
        return [*light, *heavy, two("clip"), two("union"), one("session"), one("chop"), *groups]

    def _leaf(self) -> Made:
        if self.bound and self.choices.chance(60):
            return self.choices.pick(self.bound)
        plan, shape = self.choices.pick(self.sources)
        if isinstance(plan, nodes.Source) and self.choices.chance(4):
            return advanced(self.choices, plan), shape
        return plan, shape

    def _over_one(self, *ops: str) -> Callable[[int], Made]:
        def make(depth: int) -> Made:
            inner = self.plan(depth)
            return self.operators.put(self.choices.pick(ops), [inner])

        return make

    def _over_two(self, *ops: str) -> Callable[[int], Made]:
        """Two inputs, often of the same stream."""

        def make(depth: int) -> Made:
            inputs = self.plan(depth), self.plan(min(depth, self.choices.integer(0, 2)))
            return self.operators.put(self.choices.pick(ops), inputs)

        return make

    def _let(self, depth: int) -> Made:
        plan, shape = self.plan(max(0, depth - 1))
        name = f"m{len(self.bound)}"
        body, result = replace(self, bound=(*self.bound, (nodes.Ref(name), shape))).plan(depth)
        return nodes.Let(((name, plan),), body), result

    def _group_apply(self, depth: int) -> Made:
        inner = self.plan(self.choices.integer(0, max(0, depth - 1)))
        key = self.operators.key(inner[1])
        if not key:
            return inner
        group = replace(self, sources=((nodes.GroupInput(), inner[1]),), bound=(), inside=True)
        return self.operators.group_apply(inner, key, group.plan(depth))


def random_case(choices: Choices, *, deepest: int = DEEPEST) -> Case:
    """A case; with depth the streams get shorter, so that results stay small."""
    unit = choices.pick(UNITS)
    depth = choices.integer(0 if choices.chance(5) else 1, deepest)
    streams = {
        name: random_stream(choices, random_schema(choices, unit), most=12 if depth < 4 else 8)
        for name in ("S", "R")[: choices.integer(1, 2)]
    }
    horizon = choices.integer(5, 30) if choices.chance(25) else None
    sources = tuple((nodes.Source(name), shape_of(stream)) for name, stream in streams.items())
    maker = PlanMaker(choices, sources, horizon)
    plan, shape = maker.plan(depth)
    if choices.chance(6):
        plan = maker.operators.risky(plan, shape)
    limits = Limits(windows_per_event=choices.integer(1, 4)) if choices.chance(2) else Limits()
    used = {name: streams[name] for name in nodes.sources(plan)}
    return Case(plan, used, horizon, limits)


def seeded_case(seed: int, *, deepest: int = DEEPEST) -> Case:
    """The same case for the same seed."""
    return replace(random_case(RandomChoices(seed), deepest=deepest), seed=seed)


def shape_of(*streams: CaseStream, size: int = 1000) -> DrawnShape:
    """What is known of the columns and lifetimes of streams with one schema; ``size`` bounds their integers."""
    schema: Schema = streams[0].schema
    columns = tuple((name, DrawnColumn(kind, size=size)) for name, kind in schema)
    rows = [row for stream in streams for row in stream.rows]
    no_end, no_start = any(row[1] == FOREVER for row in rows), any(row[0] == BEGINNING for row in rows)
    return DrawnShape(columns, schema.unit, no_end, no_start)


def advanced(choices: Choices, source: nodes.Plan, *, every: int | None = None) -> nodes.Plan:
    """An advance_time above a source: by events or by duration, with or without a delay, late ones gone or changed."""
    duration = choices.integer(1, 6) if every is None and choices.chance(40) else None
    return nodes.AdvanceTime(
        source,
        every=None if duration else every or choices.integer(1, 3),
        every_duration=duration,
        delay=choices.integer(1, 6) if choices.chance(50) else 0,
        late=choices.pick(("drop", "adjust")),
    )
