"""The nodes of a plan. A plan is data: frozen, hashable, and never runs itself.

Every node names the fields that hold its input plans (`Node.inputs`), so walking and rebuilding need no special cases.

>>> from streamproof.plan.expr import Call, Col, literal
>>> plan = Where(Source("S"), Call("gt", (Col("v"), literal(1))))
>>> [type(node).__name__ for node in walk(plan)]
['Where', 'Source']
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, ClassVar, Literal, Self, TypeAlias

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.schema import Schema, check_names
from streamproof.events.time import Span, Unit, one_unit, read_unit
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import TRUE, Col, Expr, Side, Value
from streamproof.plan.limits import check_count
from streamproof.plan.modules import Clipping, Restriction, Stamping
from streamproof.plan.windows import Window

Named: TypeAlias = "tuple[tuple[str, Expr], ...]"
Output: TypeAlias = Literal["window", "point_end"]
Direction: TypeAlias = Literal["asc", "desc"]
Meeting: TypeAlias = Literal["none", "payload", "key", "pairs", "all"]
Yield: TypeAlias = Literal["one", "at most one", "any"]


@dataclass(frozen=True, slots=True)
class Node:
    """What all nodes share: the notation's ``op``, the names of the fields that are plans, and traits.

    Passes and engines decide by traits. The defaults promise nothing, so a node that declares none is never split,
    narrowed, or passed by a filter.
    """

    op: ClassVar[str]
    input_fields: ClassVar[tuple[str, ...]] = ("input",)

    meets: ClassVar[Meeting] = "all"
    """Which input rows decide about one result: one alone; those of equal payload, or equal in the field ``key``; a
    row of the first input with those of the second that ``on`` pairs it with; or all. Other rows may be elsewhere."""
    gives: ClassVar[Yield] = "any"
    """The number of output rows for a row of the first input."""
    keeps_payload: ClassVar[bool] = False
    """Whether output rows have all columns of a row of the first input unchanged; columns may be added."""
    keeps_starts: ClassVar[bool] = False
    """Whether an output row starts where the row of the first input does."""
    keeps_final: ClassVar[bool] = False
    """Whether input rows that never change give output rows that never change."""
    keeps_ctis: ClassVar[bool] = False
    """Whether the output has the least CTI of the inputs."""

    @property
    def reads(self) -> tuple[Expr, ...] | None:
        """The expressions that it evaluates, if it reads nothing else of its inputs' payload; None if it may."""
        return None

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(getattr(self, name) for name in self.input_fields)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Self:
        """The same node over other inputs."""
        return replace(self, **dict(zip(self.input_fields, inputs, strict=True)))


Plan: TypeAlias = Node


def named(expressions: Mapping[str, Expr]) -> Named:
    """Named expressions in their order, as nodes hold them."""
    return tuple(expressions.items())


def _names(columns: tuple[tuple[str, Any], ...]) -> None:
    check_names(name for name, _ in columns)


def one_of(value: str, name: str, known: tuple[str, ...]) -> None:
    if value not in known:
        fix = did_you_mean(str(value), known)
        raise PlanError(f"{name} must be one of {', '.join(known)}, got {value!r}", fix=fix)


# --- leaves -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Source(Node):
    """A named input stream. Its schema is inferred from the data unless given; so is the unit of its ticks."""

    op: ClassVar[str] = "source"
    input_fields: ClassVar[tuple[str, ...]] = ()
    meets: ClassVar[Meeting] = "none"
    name: str
    schema: Schema | None = None
    unit: Unit | None = None

    def __post_init__(self) -> None:
        if self.unit is not None:
            read_unit(self.unit, f'source "{self.name}"')
        if self.schema is not None and self.schema.unit != self.unit:
            unit = one_unit({"the source": self.unit, "its schema": self.schema.unit})
            object.__setattr__(self, "unit", unit)
            object.__setattr__(self, "schema", Schema(self.schema.columns, unit))


@dataclass(frozen=True, slots=True)
class GroupInput(Node):
    """Inside the apply branch of a `GroupApply`: the events of the one group."""

    op: ClassVar[str] = "group_input"
    input_fields: ClassVar[tuple[str, ...]] = ()
    meets: ClassVar[Meeting] = "none"


@dataclass(frozen=True, slots=True)
class Ref(Node):
    """A stream that an enclosing `Let` binds."""

    op: ClassVar[str] = "ref"
    input_fields: ClassVar[tuple[str, ...]] = ()
    name: str


@dataclass(frozen=True, slots=True)
class Let(Node):
    """Multicast: each bound stream is computed once and read by name, any number of times."""

    op: ClassVar[str] = "let"
    bind: tuple[tuple[str, Plan], ...]
    body: Plan

    @property
    def inputs(self) -> tuple[Node, ...]:
        return (*(plan for _, plan in self.bind), self.body)

    def with_inputs(self, inputs: tuple[Node, ...]) -> Let:
        names = (name for name, _ in self.bind)
        return Let(tuple(zip(names, inputs[:-1], strict=True)), inputs[-1])


# --- one event at a time ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RowWise(Node):
    """Each input row gives output rows by itself, and nothing is remembered."""

    meets: ClassVar[Meeting] = "none"
    keeps_payload: ClassVar[bool] = True
    keeps_final: ClassVar[bool] = True
    input: Plan

    @property
    def reads(self) -> tuple[Expr, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class Where(RowWise):
    """The events whose payload satisfies the condition; null is no."""

    op: ClassVar[str] = "where"
    gives: ClassVar[Yield] = "at most one"
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    expr: Expr

    @property
    def reads(self) -> tuple[Expr, ...]:
        return (self.expr,)


@dataclass(frozen=True, slots=True)
class Select(RowWise):
    """The same lifetimes with a new payload."""

    op: ClassVar[str] = "select"
    gives: ClassVar[Yield] = "one"
    keeps_payload: ClassVar[bool] = False
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    exprs: Named

    @property
    def reads(self) -> tuple[Expr, ...]:
        return tuple(expr for _, expr in self.exprs)

    def __post_init__(self) -> None:
        _names(self.exprs)


@dataclass(frozen=True, slots=True)
class Shift(RowWise):
    """Every lifetime moved later by ``by``; infinite ends stay."""

    op: ClassVar[str] = "shift"
    gives: ClassVar[Yield] = "one"
    by: Span


@dataclass(frozen=True, slots=True)
class Extend(RowWise):
    """Every end moved later by ``by``; a negative ``by`` shrinks, and empty lifetimes vanish."""

    op: ClassVar[str] = "extend"
    gives: ClassVar[Yield] = "at most one"
    keeps_starts: ClassVar[bool] = True
    by: Span


@dataclass(frozen=True, slots=True)
class AlterDuration(RowWise):
    """``[le, le + dur)``. ``dur`` may read le, re and the payload; an infinite end it reads stays infinite.

    ``dur`` None makes every lifetime infinite; a duration of 0 or less gives no row.
    """

    op: ClassVar[str] = "alter_duration"
    gives: ClassVar[Yield] = "at most one"
    keeps_starts: ClassVar[bool] = True
    dur: Expr | Span | None

    @property
    def reads(self) -> tuple[Expr, ...]:
        return () if isinstance(self.dur, int | str | timedelta | None) else (self.dur,)


@dataclass(frozen=True, slots=True)
class ToPoint(RowWise):
    """``[le, le + 1)``."""

    op: ClassVar[str] = "to_point"
    gives: ClassVar[Yield] = "one"
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class PointAtEnd(RowWise):
    """``[re, re + 1)`` for every event that ends."""

    op: ClassVar[str] = "point_at_end"
    gives: ClassVar[Yield] = "at most one"
    keeps_ctis: ClassVar[bool] = True


@dataclass(frozen=True, slots=True)
class Chop(RowWise):
    """Every lifetime cut at ``offset + k·period``."""

    op: ClassVar[str] = "chop"
    keeps_ctis: ClassVar[bool] = True
    period: Span
    offset: Span = 0

    def __post_init__(self) -> None:
        if isinstance(self.period, int) and self.period < 1:
            raise PlanError(f"period must be positive, got {self.period}", fix="give a period of at least 1 tick")


# --- equal payloads together ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PayloadWise(Node):
    """The lifetimes of each payload, put together in another way."""

    meets: ClassVar[Meeting] = "payload"
    keeps_payload: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    input: Plan


@dataclass(frozen=True, slots=True)
class Stitch(PayloadWise):
    """Touching lifetimes of equal payload become one; overlapping ones stay."""

    op: ClassVar[str] = "stitch"


@dataclass(frozen=True, slots=True)
class Coalesce(PayloadWise):
    """Touching or overlapping lifetimes of equal payload merge into one."""

    op: ClassVar[str] = "coalesce"


@dataclass(frozen=True, slots=True)
class Distinct(PayloadWise):
    """Per payload, each snapshot with at least one event once; lifetimes are not coalesced."""

    op: ClassVar[str] = "distinct"


# --- several streams --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Union(Node):
    """The bag union of streams with the same columns."""

    op: ClassVar[str] = "union"
    meets: ClassVar[Meeting] = "none"
    keeps_final: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    ins: tuple[Plan, ...]

    def __post_init__(self) -> None:
        if not self.ins:
            raise PlanError("a union needs at least one input", fix="give it streams to unite")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return self.ins

    def with_inputs(self, inputs: tuple[Node, ...]) -> Union:
        return Union(inputs)


@dataclass(frozen=True, slots=True)
class Join(Node):
    """Matching pairs whose lifetimes meet, over the intersection. Without ``select``, all columns of both sides."""

    op: ClassVar[str] = "join"
    input_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    meets: ClassVar[Meeting] = "pairs"
    keeps_final: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    optional: ClassVar[tuple[Side, ...]] = ()
    """The sides that a result may lack, with null for their columns."""
    left: Plan
    right: Plan
    on: Expr = TRUE
    select: Named | None = None

    def __post_init__(self) -> None:
        _names(self.select or ())

    @property
    def reads(self) -> tuple[Expr, ...] | None:
        return None if self.select is None else (self.on, *(expr for _, expr in self.select))


@dataclass(frozen=True, slots=True)
class LeftOuter(Join):
    """The join, and every left fragment that no right event covers, with nulls."""

    op: ClassVar[str] = "left_outer"
    keeps_final: ClassVar[bool] = False  # what nothing covers may be covered later
    optional: ClassVar[tuple[Side, ...]] = ("r",)


@dataclass(frozen=True, slots=True)
class FullOuter(Join):
    """The left outer join, and every right fragment that no left event covers, with nulls."""

    op: ClassVar[str] = "full_outer"
    keeps_final: ClassVar[bool] = False
    optional: ClassVar[tuple[Side, ...]] = ("l", "r")


@dataclass(frozen=True, slots=True)
class FollowedBy(Join):
    """Pairs where the right event starts strictly inside the left one: ``[r.le, min(l.re, r.re))``."""

    op: ClassVar[str] = "followed_by"


@dataclass(frozen=True, slots=True)
class AntiJoin(Node):
    """Per left event, the maximal fragments of its lifetime that no matching right event covers."""

    op: ClassVar[str] = "lasj"
    input_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    meets: ClassVar[Meeting] = "pairs"
    keeps_payload: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    left: Plan
    right: Plan
    on: Expr = TRUE

    @property
    def reads(self) -> tuple[Expr, ...]:
        return (self.on,)


@dataclass(frozen=True, slots=True)
class Clip(Node):
    """Every lifetime cut at the first strictly later start of a matching event of ``by``."""

    op: ClassVar[str] = "clip"
    input_fields: ClassVar[tuple[str, ...]] = ("input", "by")
    meets: ClassVar[Meeting] = "pairs"
    gives: ClassVar[Yield] = "one"
    keeps_payload: ClassVar[bool] = True
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    input: Plan
    by: Plan
    on: Expr = TRUE

    @property
    def reads(self) -> tuple[Expr, ...]:
        return (self.on,)


# --- groups and sessions ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class GroupApply(Node):
    """The union over all keys of ``apply`` over the group's events, with the key added. Null is a key of its own."""

    op: ClassVar[str] = "group_apply"
    meets: ClassVar[Meeting] = "key"
    input_fields: ClassVar[tuple[str, ...]] = ("input", "apply")
    input: Plan
    key: tuple[str, ...]
    apply: Plan

    def __post_init__(self) -> None:
        if not self.key:
            raise PlanError("group_apply needs at least one key column", fix='give key=["column"]')
        check_names(self.key)


@dataclass(frozen=True, slots=True)
class Session(Node):
    """Each event lasts until ``timeout`` after the last start of its session.

    In start order (per key), a gap of at least ``timeout`` begins a new session, and so does a start ``max`` or more
    after the session's first, where the lifetimes of the old one end at the latest.
    """

    op: ClassVar[str] = "session"
    meets: ClassVar[Meeting] = "key"
    gives: ClassVar[Yield] = "one"
    keeps_payload: ClassVar[bool] = True
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    input: Plan
    timeout: Span
    max: Span | None = None
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, span in (("timeout", self.timeout), ("max", self.max)):
            if isinstance(span, int) and span < 1:
                raise PlanError(f"{name} must be positive, got {span}", fix=f"give a {name} of at least 1 tick")

    @property
    def reads(self) -> tuple[Expr, ...]:
        return tuple(map(Col, self.key))


# --- windows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WindowNode(Node):
    """Results of each window, which all events in it decide."""

    input: Plan
    window: Window


@dataclass(frozen=True, slots=True)
class Aggregation(WindowNode):
    """Aggregates over each window."""

    op: ClassVar[str] = "agg"
    aggs: tuple[tuple[str, Aggregate], ...]
    output: Output = "window"

    def __post_init__(self) -> None:
        _names(self.aggs)
        one_of(self.output, "output", ("window", "point_end"))
        if not self.aggs:
            raise PlanError("an aggregation needs at least one aggregate", fix='give e.g. {"n": ["count", null]}')

    @property
    def reads(self) -> tuple[Expr, ...] | None:
        """The order of events includes their payload."""
        if any(agg.function.ordered for _, agg in self.aggs):
            return None
        return tuple(agg.arg for _, agg in self.aggs if agg.arg is not None)


@dataclass(frozen=True, slots=True)
class TopK(WindowNode):
    """The events of rank at most k in each window: ties are all kept and leave gaps, nulls come last."""

    op: ClassVar[str] = "topk"
    keeps_payload: ClassVar[bool] = True
    k: int
    by: tuple[tuple[Expr, Direction], ...]
    rank: str | None = None
    output: Output = "window"

    def __post_init__(self) -> None:
        one_of(self.output, "output", ("window", "point_end"))
        check_count(self.k, "k")
        if not self.by:
            raise PlanError("topk needs at least one expression to rank by", fix='give e.g. [["v", "desc"]]')
        for _, direction in self.by:
            one_of(direction, "the direction", ("asc", "desc"))
        if self.rank is not None:
            check_names([self.rank])

    @property
    def reads(self) -> tuple[Expr, ...]:
        return tuple(expr for expr, _ in self.by)


@dataclass(frozen=True, slots=True)
class Uda(WindowNode):
    """A user-defined aggregate: one value per window, in the column ``as_``."""

    op: ClassVar[str] = "uda"
    fn: str
    arg: Expr
    as_: str
    params: tuple[tuple[str, Value], ...] = ()
    clip: Clipping = "none"
    output: Output = "window"
    restriction: Restriction = "none"

    def __post_init__(self) -> None:
        check_names([self.as_])
        one_of(self.clip, "clip", ("none", "left", "right", "full"))
        one_of(self.output, "output", ("window", "point_end"))
        one_of(self.restriction, "restriction", ("none", "window_based", "time_bound"))

    @property
    def reads(self) -> tuple[Expr, ...]:
        return (self.arg,)


@dataclass(frozen=True, slots=True)
class Udo(WindowNode):
    """A user-defined operator: zero or more rows per window. Without ``map`` it sees all columns."""

    op: ClassVar[str] = "udo"
    fn: str
    map: Named | None = None
    params: tuple[tuple[str, Value], ...] = ()
    clip: Clipping = "none"
    stamp: Stamping = "align"
    restriction: Restriction = "none"

    def __post_init__(self) -> None:
        _names(self.map or ())
        one_of(self.clip, "clip", ("none", "left", "right", "full"))
        one_of(self.stamp, "stamp", ("align", "unchanged", "clip"))
        one_of(self.restriction, "restriction", ("none", "window_based", "time_bound"))

    @property
    def reads(self) -> tuple[Expr, ...] | None:
        return None if self.map is None else tuple(expr for _, expr in self.map)


@dataclass(frozen=True, slots=True)
class AdvanceTime(RowWise):
    """CTIs for a source that has none: every N events or every duration, at the greatest start minus ``delay``.

    Over complete input it is the identity; in a stream, what it drops is counted.
    """

    op: ClassVar[str] = "advance_time"
    gives: ClassVar[Yield] = "at most one"
    keeps_starts: ClassVar[bool] = True
    keeps_ctis: ClassVar[bool] = True
    every: int | None = None
    every_duration: Span | None = None
    delay: Span = 0
    late: Literal["drop", "adjust"] = "drop"
    final: bool = True

    def __post_init__(self) -> None:
        one_of(self.late, "late", ("drop", "adjust"))
        if (self.every is None) == (self.every_duration is None):
            raise PlanError("advance_time needs either every (events) or every_duration", fix="give one of them")
        if self.every is not None:
            check_count(self.every, "every")
        if isinstance(self.every_duration, int):
            check_count(self.every_duration, "every_duration", "ticks")
        if isinstance(self.delay, int) and self.delay < 0:
            raise PlanError(f"delay must not be negative, got {self.delay}", fix="give a delay of 0 or more")


CORE_NODES: tuple[type[Node], ...] = (
    Source, GroupInput, Ref, Let, Where, Select, Shift, Extend, AlterDuration, ToPoint, PointAtEnd, Chop, Stitch,
    Coalesce, Distinct, Union, Join, LeftOuter, FullOuter, FollowedBy, AntiJoin, Clip, GroupApply, Session,
    Aggregation, TopK, Uda, Udo, AdvanceTime,
)  # fmt: skip


def walk(plan: Plan) -> Iterator[Node]:
    """The plan's nodes, outermost first."""
    yield plan
    for child in plan.inputs:
        yield from walk(child)


def transform(plan: Plan, change: Callable[[Node], Node]) -> Plan:
    """Rebuild bottom-up, with ``change`` applied to every node."""
    inputs = tuple(transform(child, change) for child in plan.inputs)
    return change(plan.with_inputs(inputs) if inputs != plan.inputs else plan)


def sources(plan: Plan) -> tuple[str, ...]:
    """The names of the streams a plan reads, each once, in the order of their first mention."""
    return tuple(dict.fromkeys(node.name for node in walk(plan) if isinstance(node, Source)))


def parameters(node: Node) -> dict[str, Any]:
    """The fields of a node that are not input plans."""
    plans = ("bind", "body", "ins") if isinstance(node, Let | Union) else node.input_fields
    return {f.name: getattr(node, f.name) for f in fields(node) if f.name not in plans}
