"""Filters move towards the sources, so that what they remove costs nothing above.

>>> from streamproof.plan.explain import explain
>>> from streamproof.plan.parse import parse
>>> select = (("k", parse("l.k")), ("a", parse("l.v")), ("b", parse("r.v")))
>>> join = nodes.Join(nodes.Source("A"), nodes.Source("B"), parse("l.k = r.k"), select)
>>> plan = nodes.Where(join, parse("a > 1 and b < 5"))
>>> print(explain(plan))
where(a > 1 and b < 5)
└─ join(on=l.k = r.k, k=l.k, a=l.v, b=r.v)
   ├─ left: source(A)
   └─ right: source(B)
>>> print(explain(push_filter(plan, Registry())))
join(on=l.k = r.k, k=l.k, a=l.v, b=r.v)
├─ left: where(v > 1)
│  └─ source(A)
└─ right: where(v < 5)
   └─ source(B)

Each condition that must hold moves for itself. A condition that can fail passes only operators that keep its rows as
they are; one that reads ``le`` only operators that keep starts; and none passes an operator whose windows or sessions
it would change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from streamproof.errors import StreamproofError
from streamproof.plan import nodes
from streamproof.plan.expr import Col, Expr, Side, all_of, columns_of, conjuncts, transform
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Named, Node, Plan
from streamproof.plan.rewrites.normal_form import both_of, can_fail, names_read, reads_time, substituted
from streamproof.plan.windows import Hopping, Tumbling


def push_filter(plan: Plan, registry: Registry) -> Plan:
    """Move every condition of every where as far down as it may go."""
    sinker = _Sinker(registry)

    def push(node: Node) -> Node:
        return sinker.filtered(node.input, conjuncts(node.expr)) if isinstance(node, nodes.Where) else node

    return nodes.transform(plan, push)


@dataclass(frozen=True, slots=True)
class _Condition:
    """A condition on its way down, with what decides where it may go."""

    expr: Expr
    fails: bool
    reads_time: bool
    names: frozenset[str]

    @staticmethod
    def of(expr: Expr) -> _Condition:
        return _Condition(expr, can_fail(expr), reads_time(expr), names_read(expr))


@dataclass(frozen=True, slots=True)
class _Sinker:
    """Every rule gives the node with the condition below it, or None where the condition must stay above."""

    registry: Registry

    def filtered(self, plan: Plan, conditions: list[Expr]) -> Plan:
        """The plan under these conditions, each as far down as it may go."""
        stuck: list[Expr] = []
        for condition in conditions:
            sunk = self.sink(plan, _Condition.of(condition))
            if sunk is None:
                stuck.append(condition)
            else:
                plan = sunk
        return nodes.Where(plan, all_of(stuck)) if stuck else plan

    def sink(self, plan: Plan, condition: _Condition) -> Plan | None:
        return RULES.get(type(plan), _handed_on)(self, plan, condition)

    def below(self, plan: Plan, condition: Expr) -> Plan:
        """A plan under one condition, joined with the conditions that are there already."""
        sunk = self.sink(plan, _Condition.of(condition))
        if sunk is not None:
            return sunk
        if isinstance(plan, nodes.Where) and (both := both_of(plan.expr, condition)) is not None:
            return nodes.Where(plan.input, both)
        return nodes.Where(plan, condition)


Rule: TypeAlias = Callable[[_Sinker, Any, _Condition], "Plan | None"]


def _into_input(sinker: _Sinker, node: Node, condition: _Condition) -> Plan:
    return node.with_inputs((sinker.below(node.inputs[0], condition.expr), *node.inputs[1:]))


def passes(kind: type[Node]) -> bool:
    """Whether the traits of a node let filters on its payload pass."""
    return kind.keeps_payload and kind.meets in ("none", "payload", "pairs")


def _handed_on(sinker: _Sinker, node: Node, condition: _Condition) -> Plan | None:
    """Through operators that hand payloads on, where no row with another payload decides what comes of a row."""
    if (
        not passes(type(node))
        or (condition.fails and node.gives != "one")
        or (condition.reads_time and not node.keeps_starts)
    ):
        return None
    return _into_input(sinker, node, condition)


def never(sinker: _Sinker, node: Node, condition: _Condition) -> None:
    return None


def _where(sinker: _Sinker, node: nodes.Where, condition: _Condition) -> Plan | None:
    if condition.fails:  # it would see the rows that this where removes
        return None
    sunk = sinker.sink(node.input, condition)
    return None if sunk is None else replace(node, input=sunk)


def _select(sinker: _Sinker, node: nodes.Select, condition: _Condition) -> Plan | None:
    moved = substituted(condition.expr, dict(node.exprs))
    return None if moved is None else replace(node, input=sinker.below(node.input, moved))


def _extend(sinker: _Sinker, node: nodes.Extend, condition: _Condition) -> Plan | None:
    shrinks = not isinstance(node.by, int) or node.by < 0
    return None if condition.fails and shrinks else _into_input(sinker, node, condition)


def _union(sinker: _Sinker, node: nodes.Union, condition: _Condition) -> Plan:
    return nodes.Union(tuple(sinker.below(part, condition.expr) for part in node.ins))


def _let(sinker: _Sinker, node: nodes.Let, condition: _Condition) -> Plan:
    return replace(node, body=sinker.below(node.body, condition.expr))


def _session(sinker: _Sinker, node: nodes.Session, condition: _Condition) -> Plan | None:
    """Sessions are per key, so a condition on the key removes them whole."""
    whole = condition.names <= set(node.key) and bool(node.key) and not condition.reads_time
    return _into_input(sinker, node, condition) if whole and not condition.fails else None


def _group_apply(sinker: _Sinker, node: nodes.GroupApply, condition: _Condition) -> Plan | None:
    """A condition on the key removes groups whole; one without the key is the same inside."""
    keys = set(node.key)
    if condition.names <= keys and not condition.reads_time:
        return None if condition.fails else replace(node, input=sinker.below(node.input, condition.expr))
    if condition.names & keys:
        return None
    return replace(node, apply=sinker.below(node.apply, condition.expr))


def _udo(sinker: _Sinker, node: nodes.Udo, condition: _Condition) -> Plan | None:
    """Below a module only on columns that it promises to pass, and only where windows do not depend on events."""
    if not isinstance(node.window, Tumbling | Hopping) or node.map is None or condition.reads_time or condition.fails:
        return None
    try:
        promises = sinker.registry.find(node.fn, "udo").properties
    except StreamproofError:
        return None
    if not promises.deterministic or not condition.names or not condition.names <= promises.passes:
        return None
    moved = substituted(condition.expr, dict(node.map))
    return None if moved is None or can_fail(moved) else replace(node, input=sinker.below(node.input, moved))


def _inner_join(sinker: _Sinker, node: nodes.Join, condition: _Condition) -> Plan | None:
    """To the side that the condition reads; into the join's own condition if it reads both."""
    moved = _over_both(node.select, condition)
    if moved is None:
        return None
    sides = {column.side for column in columns_of(moved)}
    if sides == {"l", "r"}:
        both = both_of(node.on, moved)
        return None if both is None else replace(node, on=both)
    return _on_side(sinker, node, "r" if sides == {"r"} else "l", moved)


def _left_outer(sinker: _Sinker, node: nodes.LeftOuter, condition: _Condition) -> Plan | None:
    """Only to the left: a condition on the right also judges the nulls of fragments that nothing covers."""
    moved = _over_both(node.select, condition)
    if moved is None or any(column.side == "r" for column in columns_of(moved)):
        return None
    return _on_side(sinker, node, "l", moved)


def _over_both(select: Named | None, condition: _Condition) -> Expr | None:
    if select is None or condition.reads_time or condition.fails:
        return None
    moved = substituted(condition.expr, dict(select))
    return None if moved is None or can_fail(moved) else moved


def _on_side(sinker: _Sinker, node: nodes.Join, side: Side, moved: Expr) -> Plan:
    def without_side(part: Expr) -> Expr:
        return Col(part.name) if isinstance(part, Col) else part

    condition = transform(moved, without_side)
    if side == "l":
        return replace(node, left=sinker.below(node.left, condition))
    return replace(node, right=sinker.below(node.right, condition))


RULES: Final[dict[type[Node], Rule]] = {
    nodes.Where: _where,
    nodes.Select: _select,
    nodes.Extend: _extend,
    nodes.Union: _union,
    nodes.Let: _let,
    nodes.Session: _session,
    nodes.GroupApply: _group_apply,
    nodes.Udo: _udo,
    nodes.Join: _inner_join,
    nodes.FollowedBy: _inner_join,
    nodes.LeftOuter: _left_outer,
    nodes.FullOuter: never,  # both sides have nulls
    nodes.AdvanceTime: never,  # it counts events
}
"""The rules of nodes whose traits do not say it all."""
