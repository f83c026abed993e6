"""The local engine under quality of service: queries are registered with a wish, admitted, and run by deadlines.

Events that come within one period are one task, because a push costs far more than a row: a *basic* query groups its
events by a quarter of the wished latency, a *window* query by its window, and its tasks may be cut into pieces, each a
push of its own with all state kept. An operation is a microsecond of processor time; the machine does
``1000 · share`` of them per millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil
from typing import Final, TypeAlias

from streamproof.arguments import doors
from streamproof.engines.base import LiveQuery
from streamproof.engines.job import on
from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.plan.event_nodes import plan_qos
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan, sources
from streamproof.qos import admission
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.batching import BatchPlan
from streamproof.qos.costs import Measured, PushCost, calibrate
from streamproof.qos.exact import Exact, exact, millis, rounded, shown, shown_ms
from streamproof.qos.service import QoS
from streamproof.qos.tasks import Cost, QosQuery, QueryInput
from streamproof.qos.verifier import Machine, Policy, Test

OPS_PER_MS: Final = 1000  # an operation is a microsecond
GROUPING: Final = 4  # a basic query waits a quarter of its latency for more events
Costs: TypeAlias = "PushCost | Measured | Mapping[str, PushCost]"


@dataclass(frozen=True)
class TaskShape:
    """How the events of one source become tasks."""

    source: str
    arrival: TokenBucket  # of events
    cost: PushCost
    period: Fraction  # ms
    most: int  # events in a period, as declared
    rows: int  # events in a piece
    pieces: int

    @property
    def work_ms(self) -> float:
        """The processor time of a whole task."""
        return self.cost.of(self.most) if self.pieces == 1 else self.pieces * self.cost.of(self.rows)


@dataclass(frozen=True)
class RegisteredQuery:
    """A registered query: its bounds, for events, and how it runs."""

    name: str
    query: QosQuery
    shapes: tuple[TaskShape, ...]
    qos: QoS
    test: Test
    plan: BatchPlan | None  # how its tasks are put together, as of its admission
    admitted: bool = True

    @property
    def bound(self) -> tuple[Fraction, Fraction]:
        """The longest delay, in ms, and the most events that wait."""
        return self.delay_bound, self.backlog_bound

    @property
    def delay_bound(self) -> Fraction:
        """The longest from the arrival of an event to the end of the push that takes it, in ms; for a window query
        from the end of its window.
        """
        waits = Fraction(0) if self.query.task == "window" else self.shapes[0].period
        return waits + Fraction(self.query.wanted_ms)

    @property
    def backlog_bound(self) -> Fraction:
        """The most events that wait: as many as can come within the bound of the delay."""
        stay = self.delay_bound + (self.shapes[0].period if self.query.task == "window" else 0)
        return sum((s.arrival.burst + s.arrival.rate * stay for s in self.shapes), Fraction(0))

    @property
    def text(self) -> str:
        bounds = f"delay at most {shown_ms(self.delay_bound)}, backlog at most {shown(self.backlog_bound)}"
        cost = "; ".join(f"{shape.source}: {shape.cost.text}" for shape in self.shapes)
        return f"{self.name} is admitted ({self.test}): {bounds}; {cost}"


@dataclass(frozen=True)
class RejectedQuery:
    """A query that is not run: the reason, and the least latency with which it would be."""

    name: str
    qos: QoS
    refused: admission.Refused
    remedies: dict[str, object]
    admitted: bool = False

    @property
    def text(self) -> str:
        helps = self.remedies.get("max_latency_ms")
        place = self.refused.text.partition(": ")[2].partition(";")[0]
        reason = f"{self.name} wants {shown_ms(self.qos.latency_ms)}: {place}"
        if helps is not None:
            return f"{reason}; a latency of {shown_ms(exact(str(helps)))} would be admitted"
        return f"{reason}; no latency would help"

    def as_dict(self) -> dict[str, object]:
        return {**self.refused.as_dict(), "remedies": self.remedies, "reason": self.text}


Registration: TypeAlias = RegisteredQuery | RejectedQuery


@doors
@dataclass
class QueryServer:
    """Runs queries side by side and keeps what it promised.

    ``share`` is the part of one processor that may be planned with; the rest is for the scheduler and for noise.
    """

    share: Fraction
    machine: Machine
    promises: dict[str, RegisteredQuery] = field(default_factory=dict)
    running: dict[str, LiveQuery] = field(default_factory=dict)
    modules: Registry = field(default_factory=Registry)  # what plans call beside what is installed

    def __init__(
        self,
        *,
        share: Exact = "0.6",
        policy: Policy = "p-qed",
        quantum: Exact = "10 ms",
        test: Test = "reserved",
        modules: Registry | None = None,
    ) -> None:
        self.share = exact(share, at="share")
        if not 0 < self.share <= 1:
            raise PlanError(f"share lies between 0 and 1, got {shown(self.share)}", at="share", fix="try 0.6")
        self.machine = Machine.of(OPS_PER_MS * self.share, policy=policy, quantum_ms=millis(quantum), test=test)
        self.promises, self.running, self.modules = {}, {}, modules or Registry()

    def register(
        self,
        plan: Plan,
        qos: QoS | None = None,
        *,
        name: str,
        arrival: TokenBucket | Mapping[str, TokenBucket],
        cost: Costs,
        window: Exact | None = None,
        schemas: Mapping[str, Schema] | None = None,
    ) -> Registration:
        """Admit a query, or refuse it. Without a wish of its own the plan must carry one, as EQL's QOS clause gives it.

        ``arrival`` says how events come, per source. ``window`` makes it a window query: one task per so much time.
        """
        plan = getattr(plan, "plan", plan)
        wish = qos or qos_of(plan)
        if name in self.promises:
            raise PlanError(f'a query is called "{name}" already', fix="choose another name")
        for what, given in (("arrival", arrival), ("cost", cost)):
            _refuse_missing(what, given, sources(plan))
        flows = {source: arrival if isinstance(arrival, TokenBucket) else arrival[source] for source in sources(plan)}
        size = None if window is None else millis(window, at="window")
        costs = self._costs(plan, cost, flows, schemas or {}, size or wish.latency_ms / GROUPING)
        made = self._made(name, wish, flows, costs, size)
        decision = admission.admit([*(p.query for p in self.promises.values()), made[0]], self.machine)[-1]
        if isinstance(decision, admission.Refused):
            return self._refusal(decision, wish, lambda other: self._made(name, other, flows, costs, size)[0])
        promise = RegisteredQuery(name, *made, wish, decision.test, decision.plan)
        self.promises[name] = promise
        self.running[name] = on(plan, "local", modules=self.modules).start(dict(schemas or {}), keep_history=False)
        return promise

    def _costs(
        self,
        plan: Plan,
        cost: Costs,
        flows: Mapping[str, TokenBucket],
        schemas: Mapping[str, Schema],
        period: Fraction,
    ) -> dict[str, PushCost]:
        if isinstance(cost, PushCost):
            return dict.fromkeys(flows, cost)
        if not isinstance(cost, Measured):
            return dict(cost)
        query = on(plan, "local", modules=self.modules).start(dict(schemas), keep_history=False)
        most = max(_most(flow, period) for flow in flows.values())
        return calibrate(query, cost.sample, [1, max(2, most // 8), most], quantile=cost.quantile)

    def _made(
        self,
        name: str,
        wish: QoS,
        flows: Mapping[str, TokenBucket],
        costs: Mapping[str, PushCost],
        window: Fraction | None,
    ) -> tuple[QosQuery, tuple[TaskShape, ...]]:
        """The query as the scheduler sees it, and how its events become tasks."""
        longest = _within_backlog(wish, flows)
        period = window or longest / GROUPING
        shapes = tuple(self._shape(source, flow, costs[source], period, window) for source, flow in flows.items())
        inputs = [
            QueryInput(Cost(Fraction(ceil(shape.work_ms * OPS_PER_MS))), TokenBucket(1, 1 / period), shape.source)
            for shape in shapes
        ]
        rest = longest if window else longest - period
        return QosQuery(name, tuple(inputs), "window" if window else "basic", qos=QoS(rest)), shapes

    def _shape(
        self, source: str, flow: TokenBucket, cost: PushCost, period: Fraction, window: Fraction | None
    ) -> TaskShape:
        most = _most(flow, period)
        cut = self.machine.cut
        if window is None or cut is None:
            return TaskShape(source, flow, cost, period, most, most, 1)
        quantum = float(cut) / OPS_PER_MS
        if cost.of(1) > quantum:
            raise PlanError(
                f"a push of one row into {source} takes {cost.of(1):.2f} ms, the quantum is {quantum:.2f} ms of work",
                at=source, fix=f"give a quantum of at least {cost.of(2) / float(self.share):.1f} ms",
            )  # fmt: skip
        rows = min(most, cost.rows_within(quantum))
        return TaskShape(source, flow, cost, period, most, rows, ceil(most / rows))

    def _refusal(self, refused: admission.Refused, wish: QoS, make: Callable[[QoS], QosQuery]) -> RejectedQuery:
        """The refusal with the least latency that would be admitted."""
        others = [promise.query for promise in self.promises.values()]

        def fits(latency: Fraction) -> bool:
            made = make(QoS(latency, wish.max_backlog))
            return admission.admit([*others, made], self.machine)[-1].admitted

        least = admission.least_value(wish.latency_ms, fits)
        return RejectedQuery(
            refused.query.name, wish, refused, {} if least is None else {"max_latency_ms": rounded(least)}
        )


def _refuse_missing(what: str, given: object, names: Iterable[str]) -> None:
    """Refuse a setting that is given by source, but not for every source."""
    for name in names:
        if isinstance(given, Mapping) and name not in given:
            fix = f'give {what}={{"{name}": …}}, or one for all sources'
            raise PlanError(f'no {what} is given for the source "{name}"', at="register", fix=fix)


def qos_of(plan: Plan) -> QoS:
    """The wish that a plan carries: EQL's ``QOS LATENCY 500ms BACKLOG 1000``."""
    found = plan_qos(plan)
    if found is None:
        raise PlanError("a query needs a wish", fix='register(plan, QoS(max_latency="500 ms"), …), or QOS in its EQL')
    if isinstance(found.latency, int):
        raise PlanError(f"a latency of {found.latency} ticks is no time", at="QOS LATENCY", fix="give it a unit: 500ms")
    return QoS(millis(found.latency), found.backlog)


def _most(flow: TokenBucket, period: Fraction) -> int:
    """How many events may come in a period."""
    return int(flow.burst + flow.rate * period)


def _within_backlog(wish: QoS, flows: Mapping[str, TokenBucket]) -> Fraction:
    """The latency that keeps the backlog, too: no more events wait than come within it."""
    if wish.backlog is None:
        return wish.latency_ms
    bursts = sum((flow.burst for flow in flows.values()), Fraction(0))
    rates = sum((flow.rate for flow in flows.values()), Fraction(0))
    if wish.backlog <= bursts:
        raise PlanError(
            f"a backlog of {shown(wish.backlog)} cannot hold bursts of {shown(bursts)} events", at="qos.max_backlog",
            fix=f"give more than {shown(bursts)}",
        )  # fmt: skip
    return min(wish.latency_ms, (wish.backlog - bursts) / rates)
