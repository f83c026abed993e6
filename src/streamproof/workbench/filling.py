"""Filling the holes of an intent: from the intent and a row of choices to a plan over streams of known columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from streamproof.errors import PlanError
from streamproof.events.schema import FLOAT64, Schema
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.event_nodes import NODES
from streamproof.plan.expr import Call, Col, Expr, literal
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import Window
from streamproof.workbench.draw.choices import Choices, DrawnColumn, DrawnShape, Readable, readable, readable_pair
from streamproof.workbench.draw.expressions import ExpressionMaker
from streamproof.workbench.draw.operators import Made, OperatorMaker
from streamproof.workbench.draw.plans import PlanMaker, advanced
from streamproof.workbench.holes import ExprHole, Hole, OneOf
from streamproof.workbench.intent import Intent


@dataclass
class Filler:
    """Fills one intent: what was chosen for it, and the streams below it."""

    choices: Choices
    row: Mapping[str, Any]
    numbers: Mapping[int, int]  # of the intent's nodes, by identity
    streams: Mapping[int, Made]  # of the intent's stream leaves, by identity
    schemas: Mapping[str, Schema]
    registry: Registry
    horizon: int | None = None
    group: Made | None = None
    bound: tuple[Made, ...] = ()
    lets: int = field(default=0)

    def fill(self, intent: Intent) -> Made:
        """The plan of the intent."""
        match intent.op:
            case "stream":
                return self.streams[id(intent)]
            case "group":
                if self.group is None:
                    raise PlanError("I.group() stands outside of a group_apply", fix="use it in the branch")
                return self.group
            case "shared":
                return self.bound[-1]
            case "random":
                return self._random(intent)
            case "group_apply":
                return self._group_apply(intent)
            case "multicast":
                return self._multicast(intent)
            case "advance_time":
                plan, shape = self.fill(intent.inputs[0])
                return advanced(self.choices, plan, every=intent.fixed.get("every")), shape
        return self._put(intent, [self.fill(child) for child in intent.inputs])

    def _maker(self, intent: Intent) -> OperatorMaker:
        window = self.row.get(f"{self.numbers[id(intent)]}.window")
        return OperatorMaker(self.choices, self.horizon, window)

    def _put(self, intent: Intent, inputs: list[Made]) -> Made:
        op = intent.op
        if op == "operator":
            op = self.row[f"{self.numbers[id(intent)]}.operator"]
        made = self._maker(intent).put(op, inputs)
        fixed = {name: value for name, value in intent.fixed.items() if name not in ("among", "columns")}
        fixed = {name: value for name, value in fixed.items() if name != "window" or not isinstance(value, Hole | str)}
        return self._fixed(intent, made, fixed, inputs) if fixed else made

    # --- what is said -------------------------------------------------------------------------------------------------

    def _fixed(self, intent: Intent, made: Made, fixed: Mapping[str, Any], inputs: list[Made]) -> Made:
        """The operator with the fields that are given; what is known of its result is looked up again."""
        plan, shape = made
        kind = next((node for node in NODES if node.op == intent.op), None)
        if kind is None or not isinstance(plan, kind):
            return made
        values = {name: self._value(name, value, intent, inputs) for name, value in fixed.items()}
        changed = replace(plan, **values)
        return changed, self._known(changed, shape)

    def _known(self, plan: Plan, shape: DrawnShape) -> DrawnShape:
        if self.group is not None or self.bound:
            return shape
        schema = check(plan, self.schemas, registry=self.registry).schema
        before = dict(shape.columns)
        columns = tuple(
            (name, before[name] if name in before and before[name].type == kind else DrawnColumn(kind, kind == FLOAT64))
            for name, kind in schema
        )
        return replace(shape, columns=columns)

    def _value(self, name: str, value: Any, intent: Intent, inputs: list[Made]) -> Any:
        if isinstance(value, OneOf):
            value = self.choices.pick(value.options)
        if isinstance(value, ExprHole):
            return self._condition(value, intent, inputs)
        if name in ("expr", "on", "arg") and isinstance(value, str):
            return parse(value)
        if name == "dur" and isinstance(value, str):
            return parse(value)
        if name in ("exprs", "select") and isinstance(value, Mapping):
            return tuple((column, parse(text)) for column, text in value.items())
        if name == "aggs" and isinstance(value, Mapping):
            return tuple((column, _aggregate(parts)) for column, parts in value.items())
        if name == "key":
            return (value,) if isinstance(value, str) else tuple(value)
        return value

    def _condition(self, hole: ExprHole, intent: Intent, inputs: list[Made]) -> Expr:
        if hole.compared is None:
            return self._expression(hole, intent, inputs, "bool" if hole.kind is None else hole.kind)
        fn, left, right = hole.compared
        kind = left.kind or (right.kind if isinstance(right, ExprHole) else None) or self._kind(left, intent, inputs)
        first = self._expression(left, intent, inputs, kind)
        if isinstance(right, ExprHole):
            return Call(fn, (first, self._expression(right, intent, inputs, kind)))
        return Call(fn, (first, literal(right)))

    def _kind(self, hole: ExprHole, intent: Intent, inputs: list[Made]) -> str:
        """The type of an exact column that the hole can read."""
        reads = self._reads(hole, intent, inputs)
        kinds = [column.type.kind for _, column in reads.columns if not column.rough and column.type.kind != "null"]
        return self.choices.pick(kinds or ["int64"])

    def _expression(self, hole: ExprHole, intent: Intent, inputs: list[Made], kind: str) -> Expr:
        reads = self._reads(hole, intent, inputs)
        if hole.column is not None:
            return next((c for c, _ in reads.columns if c.name == hole.column), Col(hole.column))
        depth = 0 if self.choices.chance(60) else 1
        return ExpressionMaker(self.choices, reads).of(kind, depth)[0]

    def _reads(self, hole: ExprHole, intent: Intent, inputs: list[Made]) -> Readable:
        if len(inputs) == 1:
            return readable(inputs[0][1])
        pair = readable_pair(inputs[0][1], inputs[1][1])
        side = next((s for s, child in zip("lr", intent.inputs, strict=False) if _has(child, hole.of)), None)
        return pair if side is None else replace(pair, columns=tuple(c for c in pair.columns if c[0].side == side))

    # --- binders ------------------------------------------------------------------------------------------------------

    def _random(self, intent: Intent) -> Made:
        sources = tuple(self.fill(child) for child in intent.inputs)
        return PlanMaker(self.choices, sources, self.horizon).plan(intent.fixed["depth"])

    def _group_apply(self, intent: Intent) -> Made:
        inner = self.fill(intent.inputs[0])
        maker = self._maker(intent)
        said = intent.fixed.get("key")
        key = maker.key(inner[1]) if said is None else self._value("key", said, intent, [inner])
        if not key:
            return inner
        inside = replace(self, group=(nodes.GroupInput(), inner[1]), bound=())
        return maker.group_apply(inner, key, inside.fill(intent.inputs[1]))

    def _multicast(self, intent: Intent) -> Made:
        plan, shape = self.fill(intent.inputs[0])
        name = f"m{len(self.bound)}"
        inside = replace(self, bound=(*self.bound, (nodes.Ref(name), shape)))
        body, result = inside.fill(intent.inputs[1])
        return nodes.Let(((name, plan),), body), result


def _has(intent: Intent, part: Intent | None) -> bool:
    return part is not None and any(node is part for node in intent.walk())


def _aggregate(parts: Any) -> Aggregate:
    if isinstance(parts, Aggregate):
        return parts
    fn, arg, *params = (parts, None) if isinstance(parts, str) else parts
    return Aggregate(fn, parse(arg) if isinstance(arg, str) else arg, tuple(params))


def is_windowed(op: str) -> bool:
    """Whether the operator takes a window."""
    return any(node.op == op and issubclass(node, nodes.WindowNode) for node in NODES)


__all__ = ["Filler", "Window", "is_windowed"]
