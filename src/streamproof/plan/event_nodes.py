"""The nodes of event-driven queries: what makes an event happen, what pairs two of them, and what is seen meanwhile.

Of every input only starts matter (but for the ends of the observing events of `During`): an event is a tuple at the
instant it starts. Equal instants are ordered: ends before begins before data, and then by payload. Null is a key of its
own.

>>> from streamproof.plan.nodes import Source
>>> Pairing(Source("B"), Source("E"), ("k",), "fifo").policy
'fifo'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.schema import check_names
from streamproof.events.time import Span
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.eql.query import EqlQuery, Qos
from streamproof.plan.expr import Expr
from streamproof.plan.nodes import CORE_NODES, Meeting, Node, Plan, Yield, one_of, walk

Policy: TypeAlias = Literal["fifo", "lifo"]
Trigger: TypeAlias = Literal["start", "end", "hop", "arrival"]
Way: TypeAlias = Literal["any", "up", "down"]
POLICIES: tuple[Policy, ...] = ("fifo", "lifo")
TRIGGERS: tuple[Trigger, ...] = ("start", "end", "hop", "arrival")
WAYS: tuple[Way, ...] = ("any", "up", "down")


def _positive(span: Span | None, name: str) -> None:
    if isinstance(span, int) and span < 1:
        raise PlanError(f"{name} must be positive, got {span}", fix=f"give a {name} of at least 1 tick")


@dataclass(frozen=True, slots=True)
class Transition(Node):
    """The events at which a condition becomes true: it holds, and did not hold at the event before of the same key.

    The first event of a key counts as coming after one that does not fulfil it. The result is points.
    """

    op: ClassVar[str] = "transition"
    meets: ClassVar[Meeting] = "key"
    gives: ClassVar[Yield] = "at most one"
    keeps_payload: ClassVar[bool] = True
    keeps_starts: ClassVar[bool] = True
    input: Plan
    expr: Expr
    key: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Drift(Node):
    """The events at which a value has moved by at least ``step`` since the last such event of the same key.

    The first event of a key sets the reference and is none itself; null and NaN are passed over. Whole numbers are
    compared exactly if the step is one too, else as floats. The result is points.
    """

    op: ClassVar[str] = "drift"
    meets: ClassVar[Meeting] = "key"
    gives: ClassVar[Yield] = "at most one"
    keeps_payload: ClassVar[bool] = True
    keeps_starts: ClassVar[bool] = True
    input: Plan
    expr: Expr
    step: Expr
    way: Way = "any"
    key: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        one_of(self.way, "way", WAYS)


@dataclass(frozen=True, slots=True)
class Pairing(Node):
    """Each event on the right ends one open event on the left of the same key, with a strictly earlier start.

    It ends the one that began first (fifo) or last (lifo). An event that nothing ends lasts for ``max``, or for ever.
    """

    op: ClassVar[str] = "pairing"
    input_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    meets: ClassVar[Meeting] = "key"
    keeps_payload: ClassVar[bool] = True
    keeps_starts: ClassVar[bool] = True
    left: Plan
    right: Plan
    key: tuple[str, ...] = ()
    policy: Policy = "fifo"
    max: Span | None = None

    def __post_init__(self) -> None:
        one_of(self.policy, "policy", POLICIES)
        _positive(self.max, "max")


@dataclass(frozen=True, slots=True)
class During(Node):
    """Aggregates over the data (right) that each observing event (left) looks at: a point per group at each trigger.

    Triggers of a observing event ``[le, re)``, and the starts of the data that each sees, of equal key:

    - ``start``: t = le, those in ``(t − reach, t]``
    - ``end``: t = re, those in ``[le, re)``
    - ``hop``: t = le, le + hop, … below re, those in ``[le, t]`` and ``(t − reach, t]``
    - ``arrival``: every datum in ``[le, re)``, which sees its own group as ``hop`` does

    Without ``reach`` it has no limit. ``latest`` keeps of each group the last datum alone. A trigger that sees nothing
    gives no row, unless ``empty`` asks for one. ``begin`` and ``end`` name columns for the observing event's lifetime;
    where it has not ended the end is null, and results given before then are corrected when it ends.
    """

    op: ClassVar[str] = "during"
    input_fields: ClassVar[tuple[str, ...]] = ("left", "right")
    meets: ClassVar[Meeting] = "key"
    keeps_payload: ClassVar[bool] = True
    left: Plan
    right: Plan
    aggs: tuple[tuple[str, Aggregate], ...]
    trigger: Trigger = "end"
    key: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    reach: Span | None = None
    hop: Span | None = None
    begin: str | None = None
    end: str | None = None
    latest: bool = False
    empty: bool = False

    def __post_init__(self) -> None:
        one_of(self.trigger, "trigger", TRIGGERS)
        check_names([*(name for name, _ in self.aggs), *filter(None, (self.begin, self.end))])
        _positive(self.reach, "reach")
        _positive(self.hop, "hop")
        self._check_combination()

    def _check_combination(self) -> None:
        if not self.aggs:
            raise PlanError("during needs at least one aggregate", fix='give e.g. {"n": ["count", null]}')
        if (self.hop is not None) != (self.trigger == "hop"):
            raise PlanError("a hop belongs to the trigger hop, and only there", fix='give trigger "hop" and a hop')
        if self.reach is not None and self.trigger == "end":
            raise PlanError("the trigger end sees the whole event: it takes no reach", fix="leave reach out")
        if self.latest and self.trigger != "start":
            raise PlanError("latest belongs to the trigger start", fix="leave latest out")
        if self.empty and (self.trigger not in ("start", "end") or self.latest or set(self.group) - set(self.key)):
            raise PlanError(
                "empty needs the trigger start or end, without latest and without groups besides the key",
                fix="leave empty out",
            )


@dataclass(frozen=True, slots=True)
class EventQuery(Node):
    """An event-driven query over named streams. The check turns it into other nodes, so that no engine sees it."""

    op: ClassVar[str] = "eql"
    input_fields: ClassVar[tuple[str, ...]] = ()
    bind: tuple[tuple[str, Plan], ...]
    query: EqlQuery

    def __post_init__(self) -> None:
        missing = [name for name in self.query.streams() if name not in dict(self.bind)]
        if missing:
            raise PlanError(f'no stream is bound to "{missing[0]}"', fix="bind every stream that the query reads")

    @property
    def inputs(self) -> tuple[Node, ...]:
        return tuple(plan for _, plan in self.bind)

    def with_inputs(self, inputs: tuple[Node, ...]) -> EventQuery:
        return EventQuery(tuple((name, plan) for (name, _), plan in zip(self.bind, inputs, strict=True)), self.query)


EVENT_NODES: tuple[type[Node], ...] = (Transition, Drift, Pairing, During, EventQuery)
NODES: tuple[type[Node], ...] = (*CORE_NODES, *EVENT_NODES)


def plan_qos(plan: Plan) -> Qos | None:
    """How late results may be and how many tuples may wait; None where the plan does not say.

    >>> from streamproof.plan.nodes import Source
    >>> plan_qos(Source("S")) is None
    True
    """
    return next((node.query.qos for node in walk(plan) if isinstance(node, EventQuery) and node.query.qos), None)
