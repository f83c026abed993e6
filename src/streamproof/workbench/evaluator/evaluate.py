"""The meaning of a plan over complete histories: lists of ``(le, re, payload)``, one short function per operator.

>>> from streamproof.events.schema import Schema
>>> from streamproof.plan.check import check
>>> from streamproof.plan.nodes import Shift, Source
>>> evaluate(check(Shift(Source("S"), 2), {"S": Schema.of({"v": "int64"})}), {"S": [(1, 5, {"v": 7})]})
[(3, 7, {'v': 7})]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import LIFE_END, LIFE_START, Col, Expr
from streamproof.plan.library import installed
from streamproof.plan.limits import Limits
from streamproof.plan.modules import Registry
from streamproof.plan.rules import Rules
from streamproof.plan.typing import Scope, bind
from streamproof.workbench.evaluator import event_nodes, joins, lifetimes, windows
from streamproof.workbench.evaluator.expressions import Read, meaning
from streamproof.workbench.evaluator.values import Payload, Row, payload_identity, widen
from streamproof.workbench.evaluator.windows import WindowBounds

MANY_ROWS = 20_000
Rule = Callable[..., list[Row]]
"""From context, node and the rows of each input to the rows of the output."""


class TooManyRows(Exception):
    """The result of an operator is too large for quadratic loops."""


def evaluate(
    plan: Typed,
    histories: Mapping[str, Sequence[Row]],
    *,
    horizon: int | None = None,
    limits: Limits | None = None,
    registry: Registry | None = None,
    most_rows: int = MANY_ROWS,
    rules: Mapping[type[nodes.Node], Rule] | None = None,
) -> list[Row]:
    """The history that a plan gives over the histories of its sources; other ``rules`` than `RULES` are for testing."""
    bounds = WindowBounds(horizon, limits or Limits())
    return _World(histories, bounds, registry or installed(), most_rows, rules or RULES).rows(plan)


@dataclass(frozen=True, slots=True)
class _World:
    """What a plan is evaluated in: its sources, and inside an apply branch the events of the one group."""

    histories: Mapping[str, Sequence[Row]]
    bounds: WindowBounds
    registry: Registry
    most_rows: int
    rules: Mapping[type[nodes.Node], Rule]
    group: Sequence[Row] = ()
    known: dict[int, list[Row]] = field(default_factory=dict)  # results of shared parts

    def rows(self, plan: Typed) -> list[Row]:
        if id(plan) not in self.known:
            found = self._rows(plan)
            if len(found) > self.most_rows:
                raise TooManyRows(type(plan.node).__name__)
            self.known[id(plan)] = found
        return self.known[id(plan)]

    def _rows(self, plan: Typed) -> list[Row]:
        match plan.node:
            case nodes.Source(name):
                return list(self.histories[name])
            case nodes.GroupInput():
                return list(self.group)
            case nodes.GroupApply(key=key):
                return self._group_apply(plan, key)
        inputs = [self.rows(part) for part in plan.inputs]
        rule = Rules("the evaluator", self.rules)[plan.node]
        return rule(RuleContext(plan, self.bounds, self.registry), plan.node, *inputs)

    def _group_apply(self, plan: Typed, key: tuple[str, ...]) -> list[Row]:
        source, apply = plan.inputs
        groups: dict[Any, list[Row]] = {}
        for row in self.rows(source):
            groups.setdefault(payload_identity(row[2], key), []).append(row)
        result: list[Row] = []
        for rows in groups.values():
            inside = replace(self, group=rows, known={})
            values = {name: rows[0][2][name] for name in key}
            result += [(le, re, {**values, **payload}) for le, re, payload in inside.rows(apply)]
        return result


@dataclass(frozen=True, slots=True)
class RuleContext:
    """What the rule of an operator needs besides its node and its input rows."""

    plan: Typed
    bounds: WindowBounds
    registry: Registry

    def one(self, expr: Expr) -> Callable[[Row], Any]:
        """An expression over one input."""
        scope = Scope.one(self.plan.inputs[0].schema, times=("le", "re"), registry=self.registry)
        value = meaning(bind(expr, scope), scope)
        return lambda row: value(_reader(row))

    def two(self, expr: Expr) -> Callable[[Row | None, Row | None], Any]:
        """An expression over two inputs; a missing event reads as nulls."""
        left, right = (part.schema for part in self.plan.inputs)
        scope = Scope.two(left, right, registry=self.registry)
        value = meaning(bind(expr, scope), scope)
        return lambda a, b: value(_pair_reader(a, b))

    def match(self, on: Expr) -> joins.Match:
        condition = self.two(on)
        return lambda a, b: condition(a, b) is True


def _reader(row: Row) -> Read:
    times = {LIFE_START: row[0], LIFE_END: row[1]}
    return lambda column: times[column.name] if column.name in times else row[2][column.name]


def _pair_reader(left: Row | None, right: Row | None) -> Read:
    def read(column: Col) -> Any:
        row = left if column.side == "l" else right
        return None if row is None else _reader(row)(column)

    return read


# --- one event at a time, and unions ----------------------------------------------------------------------------------


def _where(context: RuleContext, node: nodes.Where, rows: list[Row]) -> list[Row]:
    condition = context.one(node.expr)
    return [row for row in rows if condition(row) is True]


def _select(context: RuleContext, node: nodes.Select, rows: list[Row]) -> list[Row]:
    payload = _payload(context, node.exprs)
    return [(row[0], row[1], payload(row)) for row in rows]


def _payload(context: RuleContext, exprs: nodes.Named) -> Callable[[Row], Payload]:
    values = [(name, context.one(expr)) for name, expr in exprs]
    return lambda row: {name: value(row) for name, value in values}


def _union(context: RuleContext, node: nodes.Union, *inputs: list[Row]) -> list[Row]:
    return [
        (le, re, {name: widen(payload[name], kind) for name, kind in context.plan.schema})
        for rows in inputs
        for le, re, payload in rows
    ]


# --- two inputs -------------------------------------------------------------------------------------------------------


def _join(context: RuleContext, node: nodes.Join, left: list[Row], right: list[Row]) -> list[Row]:
    return _selected(context, node, joins.overlapping(left, right, context.match(node.on)))


def _followed_by(context: RuleContext, node: nodes.FollowedBy, left: list[Row], right: list[Row]) -> list[Row]:
    return _selected(context, node, joins.following(left, right, context.match(node.on)))


def _left_outer(context: RuleContext, node: nodes.LeftOuter, left: list[Row], right: list[Row]) -> list[Row]:
    alone = joins.uncovered(left, right, context.match(node.on))
    return _join(context, node, left, right) + _selected(context, node, ((span, a, None) for span, a in alone))


def _full_outer(context: RuleContext, node: nodes.FullOuter, left: list[Row], right: list[Row]) -> list[Row]:
    match = context.match(node.on)
    alone = joins.uncovered(right, left, lambda b, a: match(a, b))
    both = _left_outer(context, node, left, right)  # type: ignore[arg-type]  # the same fields
    return both + _selected(context, node, ((span, None, b) for span, b in alone))


def _selected(context: RuleContext, node: nodes.Join, found: Any) -> list[Row]:
    values = [(name, context.two(expr)) for name, expr in node.select or ()]
    return [(le, re, {name: value(a, b) for name, value in values}) for (le, re), a, b in found]


def _anti_join(context: RuleContext, node: nodes.AntiJoin, left: list[Row], right: list[Row]) -> list[Row]:
    return [(le, re, a[2]) for (le, re), a in joins.uncovered(left, right, context.match(node.on))]


def _clip(context: RuleContext, node: nodes.Clip, rows: list[Row], by: list[Row]) -> list[Row]:
    return joins.clipped(rows, by, context.match(node.on))


# --- lifetimes --------------------------------------------------------------------------------------------------------


def _alter_duration(context: RuleContext, node: nodes.AlterDuration, rows: list[Row]) -> list[Row]:
    if node.dur is None:
        return lifetimes.lasting(rows)
    assert not isinstance(node.dur, int | str)
    duration = context.one(node.dur)  # type: ignore[arg-type]  # the check made every duration an expression
    return lifetimes.altered(rows, node.dur, duration)  # type: ignore[arg-type]


def _session(context: RuleContext, node: nodes.Session, rows: list[Row]) -> list[Row]:
    return lifetimes.sessions(rows, node)


# --- windows ----------------------------------------------------------------------------------------------------------


def _aggregation(context: RuleContext, node: nodes.Aggregation, rows: list[Row]) -> list[Row]:
    args = {name: context.one(agg.reads) for name, agg in node.aggs if agg.reads is not None}
    return windows.aggregated(context.plan, node, rows, args, context.bounds)


def _topk(context: RuleContext, node: nodes.TopK, rows: list[Row]) -> list[Row]:
    by = [(context.one(expr), direction) for expr, direction in node.by]
    return windows.ranked(node, rows, by, context.bounds)


def _uda(context: RuleContext, node: nodes.Uda, rows: list[Row]) -> list[Row]:
    return windows.called(context.plan, node, rows, context.one(node.arg), context.bounds)


def _udo(context: RuleContext, node: nodes.Udo, rows: list[Row]) -> list[Row]:
    return windows.produced(context.plan, node, rows, _payload(context, node.map or ()), context.bounds)


# --- event-driven queries ---------------------------------------------------------------------------------------------


def _during(context: RuleContext, node: During, left: list[Row], right: list[Row]) -> list[Row]:
    scope = Scope.one(context.plan.inputs[1].schema, registry=context.registry)
    args = {name: _over(meaning(agg.reads, scope)) for name, agg in node.aggs if agg.reads is not None}
    return event_nodes.observed(context.plan, node, (left, right), args, context.bounds)


def _over(value: Callable[[Read], Any]) -> Callable[[Row], Any]:
    return lambda row: value(_reader(row))


RULES: dict[type[nodes.Node], Rule] = {
    Transition: lambda context, node, rows: event_nodes.transitions(node, rows, context.one(node.expr)),
    Drift: lambda context, node, rows: event_nodes.drifts(node, rows, context.one(node.expr)),
    Pairing: lambda context, node, begins, ends: event_nodes.paired(node, begins, ends),
    During: _during,
    nodes.Where: _where,
    nodes.Select: _select,
    nodes.Union: _union,
    nodes.Join: _join,
    nodes.LeftOuter: _left_outer,
    nodes.FullOuter: _full_outer,
    nodes.FollowedBy: _followed_by,
    nodes.AntiJoin: _anti_join,
    nodes.Clip: _clip,
    nodes.AlterDuration: _alter_duration,
    nodes.Session: _session,
    nodes.Shift: lambda context, node, rows: lifetimes.shifted(rows, node.by),
    nodes.Extend: lambda context, node, rows: lifetimes.extended(rows, node.by),
    nodes.ToPoint: lambda context, node, rows: lifetimes.to_points(rows),
    nodes.PointAtEnd: lambda context, node, rows: lifetimes.points_at_end(rows),
    nodes.Chop: lambda context, node, rows: lifetimes.chopped(rows, node.period, node.offset, context.bounds),
    nodes.Stitch: lambda context, node, rows: lifetimes.stitched(rows),
    nodes.Coalesce: lambda context, node, rows: lifetimes.coalesced(rows),
    nodes.Distinct: lambda context, node, rows: lifetimes.distinct(rows),
    nodes.AdvanceTime: lambda context, node, rows: rows,
    nodes.Aggregation: _aggregation,
    nodes.TopK: _topk,
    nodes.Uda: _uda,
    nodes.Udo: _udo,
}
