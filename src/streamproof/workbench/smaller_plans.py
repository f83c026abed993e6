"""Plans one step smaller: their inputs, parts of them smaller, parameters and expressions simpler.

>>> from streamproof.plan.expr import Lit
>>> from streamproof.events.schema import INT64
>>> list(smaller_expressions(Lit(2, INT64)))[:2]
[Lit(value=0, type=Type('int64')), Lit(value=1, type=Type('int64'))]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from typing import Any

from streamproof.errors import StreamproofError
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Apply, Call, Cast, Col, Expr, Lit, children, literal
from streamproof.plan.expr import Case as CaseExpr
from streamproof.plan.nodes import Node, Plan
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling
from streamproof.workbench.smaller_streams import simpler_values


def smaller_plans(plan: Plan) -> Iterator[Plan]:
    """The plan's inputs, the plan with one of its inputs smaller, the plan with simpler parameters."""
    yield from _instead(plan)
    for n, child in enumerate(plan.inputs):
        for smaller in smaller_plans(child):
            yield plan.with_inputs((*plan.inputs[:n], smaller, *plan.inputs[n + 1 :]))
    yield from _simpler_nodes(plan)


def shallower_plans(plan: Plan) -> Iterator[Plan]:
    """The plan with one of its nodes replaced by what it reads, from the top down: the largest steps."""
    yield from _instead(plan)
    for n, child in enumerate(plan.inputs):
        for smaller in shallower_plans(child):
            yield plan.with_inputs((*plan.inputs[:n], smaller, *plan.inputs[n + 1 :]))


def repeated_parts(plan: Plan) -> Iterator[Plan]:
    """A part that occurs more than once replaced by its input in all places: one alone may not be enough."""
    counts = Counter(part for part in nodes.walk(plan) if part.inputs)
    for part, count in counts.items():
        for child in part.inputs if count > 1 else ():
            yield _replaced(plan, part, child)


def _replaced(plan: Plan, part: Node, child: Node) -> Plan:
    return nodes.transform(plan, lambda node: child if node == part else node)


def _instead(plan: Plan) -> Iterator[Plan]:
    if isinstance(plan, nodes.Let):
        yield nodes.transform(plan.body, lambda node: _bound(plan, node))
        yield from (bound for _, bound in plan.bind)
        return
    if isinstance(plan, nodes.GroupApply):
        yield nodes.transform(plan.apply, lambda node: plan.input if isinstance(node, nodes.GroupInput) else node)
        yield plan.input
        return
    yield from plan.inputs
    if isinstance(plan, nodes.Union) and len(plan.ins) > 1:
        yield from (replace(plan, ins=plan.ins[:n] + plan.ins[n + 1 :]) for n in range(len(plan.ins)))
    if isinstance(plan, nodes.LeftOuter | nodes.FullOuter | nodes.FollowedBy):
        yield nodes.Join(plan.left, plan.right, plan.on, plan.select)


def _bound(let: nodes.Let, node: Node) -> Node:
    return dict(let.bind).get(node.name, node) if isinstance(node, nodes.Ref) else node


def _simpler_nodes(plan: Plan) -> Iterator[Plan]:
    """One field of the node simpler."""
    for field in fields(plan):
        if field.name in (*plan.input_fields, "ins", "bind", "body"):
            continue
        for simpler in _simpler_fields(getattr(plan, field.name), field.default):
            with suppress(StreamproofError, TypeError, ValueError):  # a node refuses fields that make no sense
                yield replace(plan, **{field.name: simpler})


def _simpler_fields(value: Any, default: Any) -> Iterator[Any]:
    if isinstance(default, str | int | None) and value != default:
        yield default
    if isinstance(value, int) and value > 1:
        yield from dict.fromkeys((1, value // 2, value - 1))
    if isinstance(value, CountStart | CountEnd):
        yield from (replace(value, n=n) for n in dict.fromkeys((1, value.n - 1)) if 0 < n < value.n)
    if isinstance(value, Hopping):
        yield Tumbling(value.size, value.offset)
    if isinstance(value, Hopping | Tumbling):
        yield Snapshot()
        if value.offset:
            yield replace(value, offset=0)
    elif is_dataclass(value) and isinstance(value, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from smaller_expressions(value)
    elif isinstance(value, tuple):
        yield from _smaller_tuples(value)


def _smaller_tuples(values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    for n, value in enumerate(values):
        if len(values) > 1:
            yield values[:n] + values[n + 1 :]
        for simpler in _smaller_parts(value):
            yield (*values[:n], simpler, *values[n + 1 :])


def _smaller_parts(value: Any) -> Iterator[Any]:
    """A named expression, a named aggregate or an expression to rank by, with a smaller expression."""
    if not (isinstance(value, tuple) and len(value) == 2):
        return
    first, second = value
    if isinstance(second, Aggregate):
        if second.arg is not None:
            yield from ((first, replace(second, arg=arg)) for arg in smaller_expressions(second.arg))
    elif isinstance(second, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from ((first, expr) for expr in smaller_expressions(second))
    elif isinstance(first, Col | Lit | Call | Apply | Cast | CaseExpr):
        yield from ((expr, second) for expr in smaller_expressions(first))


def smaller_expressions(expr: Expr) -> Iterator[Expr]:
    """A constant, the parts of the expression, and the expression with one part smaller."""
    if not isinstance(expr, Lit | Col):
        yield from (literal(True), literal(0))  # the check refuses the one of another type
    yield from children(expr)
    match expr:
        case Call(args=args) | Apply(args=args):
            for n, arg in enumerate(args):
                if len(args) > 2:
                    yield replace(expr, args=args[:n] + args[n + 1 :])
                for smaller in smaller_expressions(arg):
                    yield replace(expr, args=(*args[:n], smaller, *args[n + 1 :]))
        case Cast(arg=arg):
            yield from (replace(expr, arg=smaller) for smaller in smaller_expressions(arg))
        case CaseExpr(branches, default):
            for n, (when, then) in enumerate(branches):
                if len(branches) > 1:
                    yield CaseExpr(branches[:n] + branches[n + 1 :], default)
                for smaller in smaller_expressions(when):
                    yield CaseExpr((*branches[:n], (smaller, then), *branches[n + 1 :]), default)
                for smaller in smaller_expressions(then):
                    yield CaseExpr((*branches[:n], (when, smaller), *branches[n + 1 :]), default)
            yield from (CaseExpr(branches, smaller) for smaller in smaller_expressions(default))
        case Lit(value, kind):
            yield from (Lit(simpler, kind) for simpler in simpler_values(value) if simpler is not None)
