"""Intents: what to test, with holes for everything that is not said.

>>> from streamproof.workbench import intent as I
>>> left, right = I.stream(), I.stream()
>>> scenario = left.join(right).on(I.expr(left) == I.expr(right)).over(I.events(disorder="highly", duration=I.any))
>>> print(scenario)
join(stream, stream, on=…)
>>> case = scenario.concrete(1, seed=7)[0]
>>> type(case.plan).__name__, sorted(case.streams)
('Join', ['R', 'S'])

A scenario is an intent, so it can stand inside another one, and ``first >> second`` feeds one's output to the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any, Final

from streamproof.errors import PlanError, did_you_mean
from streamproof.plan.event_nodes import NODES
from streamproof.workbench.draw.operators import operators
from streamproof.workbench.draw.plans import DEEPEST
from streamproof.workbench.facets import EventFacets, events
from streamproof.workbench.holes import (  # any is the word of the tester
    ExprHole,
    Hole,
    OneOf,
    WindowHole,
    any,  # noqa: A004
    col,
    expr,
    one_of,
    window,
)

if TYPE_CHECKING:
    from streamproof.workbench.case import Case

__all__ = [
    "EventFacets", "ExprHole", "Hole", "Intent", "OneOf", "WindowHole", "any", "col", "events", "expr", "group",
    "one_of", "operator", "random_case", "random_plan", "stream", "window",
]  # fmt: skip

_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    **{node.op: tuple(part.name for part in fields(node) if part.name not in node.input_fields) for node in NODES},
    "stream": ("columns",), "operator": ("among",), "random": ("depth",), "case": ("depth",),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Intent:
    """A tree with holes. Methods put operators above it; what they are not told is a hole."""

    op: str
    inputs: tuple[Intent, ...] = ()
    fixed: Mapping[str, Any] = field(default_factory=dict)  # fields that are not holes, or holes with a shape
    data: EventFacets | None = None  # what the streams below are like
    name: str = ""

    def __post_init__(self) -> None:
        known = _FIELDS.get(self.op, ())
        for field_name in self.fixed:
            if field_name not in known:
                fix = did_you_mean(field_name, known) if known else "leave it out"
                raise PlanError(f'"{self.op}" has no field "{field_name}"', fix=fix)
        takes = operators().get(self.op, len(self.inputs))
        if len(self.inputs) != takes:
            raise PlanError(f'"{self.op}" takes {takes} inputs, got {len(self.inputs)}', fix=f"give {takes}")

    # --- any operator -------------------------------------------------------------------------------------------------

    def then(self, op: str, *others: Intent, **fixed: Any) -> Intent:
        """The operator of that name above this, with what is said about it."""
        if op not in operators() and op not in ("operator", "group_apply", "advance_time", "multicast"):
            raise PlanError(f'there is no operator "{op}"', fix=did_you_mean(op, sorted(operators())))
        said = {name: value for name, value in fixed.items() if value is not any}
        return Intent(op, (self, *others), said)

    def on(self, condition: Any) -> Intent:
        """The condition of a join, an anti-join or a clip: text, or an equality of holes."""
        return self.saying(on=condition)

    def saying(self, **fixed: Any) -> Intent:
        """More about this operator."""
        return replace(self, fixed={**self.fixed, **fixed})

    def over(self, data: EventFacets) -> Intent:
        """What the streams below are like."""
        return replace(self, data=data)

    def called(self, name: str) -> Intent:
        """The scenario's name."""
        return replace(self, name=name)

    def __rshift__(self, other: Intent) -> Intent:
        """This one's output feeds the other's streams."""
        return other.fed_by(self)

    def fed_by(self, source: Intent) -> Intent:
        """With ``source`` in the place of the first stream, and of all that are the same."""
        first = next((part for part in self.walk() if part.op == "stream"), None)
        if first is None:
            raise PlanError("the scenario has no stream to feed", fix="begin it with I.stream()")
        return self._replacing(first, source)

    def _replacing(self, part: Intent, by: Intent) -> Intent:
        if self is part:
            return by
        return replace(self, inputs=tuple(child._replacing(part, by) for child in self.inputs))

    def walk(self) -> Iterator[Intent]:
        """The intent's nodes, outermost first."""
        yield self
        for child in self.inputs:
            yield from child.walk()

    # --- by their names -----------------------------------------------------------------------------------------------

    def where(self, expr: Any = any) -> Intent:
        return self.then("where", expr=expr)

    def select(self, exprs: Any = any) -> Intent:
        return self.then("select", exprs=exprs)

    def shift(self, by: Any = any) -> Intent:
        return self.then("shift", by=by)

    def extend(self, by: Any = any) -> Intent:
        return self.then("extend", by=by)

    def alter_duration(self, dur: Any = any) -> Intent:
        return self.then("alter_duration", dur=dur)

    def to_point(self) -> Intent:
        return self.then("to_point")

    def point_at_end(self) -> Intent:
        return self.then("point_at_end")

    def chop(self, period: Any = any) -> Intent:
        return self.then("chop", period=period)

    def stitch(self) -> Intent:
        return self.then("stitch")

    def coalesce(self) -> Intent:
        return self.then("coalesce")

    def distinct(self) -> Intent:
        return self.then("distinct")

    def session(self, timeout: Any = any) -> Intent:
        return self.then("session", timeout=timeout)

    def union(self, other: Intent) -> Intent:
        return self.then("union", other)

    def join(self, other: Intent) -> Intent:
        return self.then("join", other)

    def left_outer(self, other: Intent) -> Intent:
        return self.then("left_outer", other)

    def full_outer(self, other: Intent) -> Intent:
        return self.then("full_outer", other)

    def followed_by(self, other: Intent) -> Intent:
        return self.then("followed_by", other)

    def without(self, other: Intent) -> Intent:
        return self.then("lasj", other)

    def clip(self, by: Intent) -> Intent:
        return self.then("clip", by)

    def aggregate(self, window: Any = any, aggs: Any = any) -> Intent:
        return self.then("agg", window=window, aggs=aggs)

    def topk(self, window: Any = any, k: Any = any) -> Intent:
        return self.then("topk", window=window, k=k)

    def uda(self, fn: Any = any, window: Any = any) -> Intent:
        return self.then("uda", fn=fn, window=window)

    def udo(self, fn: Any = any, window: Any = any) -> Intent:
        return self.then("udo", fn=fn, window=window)

    def advance_time(self, every: Any = any) -> Intent:
        return self.then("advance_time", every=every)

    def group_apply(self, apply: Intent | Callable[[Intent], Intent], *, key: Any = any) -> Intent:
        """The branch over each group: an intent with `group` as its leaf, or a function of it."""
        branch = apply if isinstance(apply, Intent) else apply(group())
        return self.then("group_apply", branch, key=key)

    def multicast(self, use: Callable[[Intent, Intent], Intent]) -> Intent:
        """This stream computed once and read twice: ``use`` gets it as two inputs."""
        return self.then("multicast", use(shared(), shared()))

    # --- concrete -----------------------------------------------------------------------------------------------------

    def concrete(self, count: int = 100, *, seed: int = 1, streams_per_plan: int = 4) -> list[Case]:
        """That many cases: first every pair of choices, then at random. The same for the same seed."""
        from streamproof.workbench.concretise import concretise  # noqa: PLC0415  # which reads intents

        return list(concretise(self, count, seed=seed, streams_per_plan=streams_per_plan))

    def __str__(self) -> str:
        if not self.inputs:
            return self.op
        said = (f"{name}={_short(value)}" for name, value in self.fixed.items())
        return f"{self.op}({', '.join([*map(str, self.inputs), *said])})"

    def __repr__(self) -> str:
        return f"Intent({self})"


def _short(value: Any) -> str:
    return value if isinstance(value, str) else "…" if isinstance(value, Hole) else repr(value)


def stream(columns: Mapping[str, str] | None = None, *, data: EventFacets | None = None) -> Intent:
    """A stream. Its columns are a hole, unless they are given with their types."""
    return Intent("stream", fixed={} if columns is None else {"columns": dict(columns)}, data=data)


def group() -> Intent:
    """Inside the branch of a group_apply: the events of the one group."""
    return Intent("group")


def shared() -> Intent:
    """Inside a multicast: the stream that is computed once."""
    return Intent("shared")


def operator(*inputs: Intent, among: tuple[str, ...] | None = None) -> Intent:
    """Any operator above the inputs; one that takes two where two are given."""
    arity = len(inputs)
    fitting = tuple(op for op, takes in operators().items() if takes == arity)
    return Intent("operator", inputs, {"among": among or fitting})


def random_plan(*inputs: Intent, depth: int = 3) -> Intent:
    """Any plan over the inputs, up to so many operators on each path."""
    return Intent("random", inputs, {"depth": depth})


def random_case(*, depth: int = DEEPEST) -> Intent:
    """Any plan over any dense streams, with any horizon and limit; only how the run goes is a choice of its own."""
    return Intent("case", fixed={"depth": depth})
