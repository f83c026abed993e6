"""A typed plan as a plan again: the form that all passes work on.

Nothing but types is left to be inferred: durations are ticks, joins name their columns, operators their mapping,
sources their schema, and the inputs of a union have its very types. The casts that the check put into expressions are
gone again: they follow from the types, and a plan reads as it was written. What is read twice is bound by one `Let` at
the top of its scope, which is the whole plan or an apply branch.

>>> from streamproof.plan.check import check
>>> from streamproof.plan.explain import explain
>>> plan = nodes.Let((("M", nodes.Shift(nodes.Source("S"), "2s")),), nodes.Union((nodes.Ref("M"), nodes.Ref("M"))))
>>> print(explain(to_plan(check(plan, {"S": Schema.of({"v": "int64"}, unit="ms")}))))
let(shared1)
├─ shared1 = shift(2000)
│  └─ source(S)
└─ in: union
   ├─ ref(shared1)
   └─ ref(shared1)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeAlias

from streamproof.events.schema import Schema
from streamproof.plan import expr, nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.expr import Apply, Call, Case, Cast, Col, Lit
from streamproof.plan.nodes import Node, Plan, parameters

Rebuild: TypeAlias = "Callable[[Typed, tuple[Plan, ...]], Plan]"
"""Makes the plan of a part from the plans of its inputs; a group's apply branch is not among them."""


def to_plan(root: Typed, rebuild: Rebuild | None = None) -> Plan:
    """The plan of a scope.

    Law: ``to_plan(check(to_plan(t))) == to_plan(t)``.
    """
    make = rebuild or rebuilt
    parts = parts_in_scope(root)
    readers = Counter(id(child) for part in parts for child in inputs_in_scope(part))
    plans: dict[int, Plan] = {}
    bound: list[tuple[str, Plan]] = []
    for part in parts:
        plan = as_written(make(part, tuple(plans[id(child)] for child in inputs_in_scope(part))))
        if readers[id(part)] > 1 and plan.inputs:
            bound.append((f"shared{len(bound) + 1}", plan))
            plan = nodes.Ref(bound[-1][0])
        plans[id(part)] = plan
    body = plans[id(root)]
    return nodes.Let(tuple(bound), body) if bound else body


def rebuilt(part: Typed, inputs: tuple[Plan, ...]) -> Plan:
    """The part's own node over these inputs."""
    match part.node:
        case nodes.GroupApply():
            return replace(part.node, input=inputs[0], apply=to_plan(part.inputs[1]))
        case nodes.Union():
            typed = zip(part.inputs, inputs, strict=True)
            return nodes.Union(tuple(_widened(child.schema, part.schema, plan) for child, plan in typed))
    return part.node.with_inputs(inputs)


def as_written(node: Node) -> Node:
    """The node without the casts that the check put into its expressions."""
    found = parameters(node)
    plain = {name: _without_casts(value) for name, value in found.items()}
    return node if plain == found else replace(node, **plain)


def _without_casts(value: Any) -> Any:
    match value:
        case Col() | Lit() | Call() | Apply() | Cast() | Case():
            return expr.as_written(value)
        case Aggregate(arg=arg):
            return value if arg is None else replace(value, arg=expr.as_written(arg))
        case tuple():
            return tuple(map(_without_casts, value))
    return value


def _widened(found: Schema, wanted: Schema, plan: Plan) -> Plan:
    """A union's input with its columns cast to the union's types, where they differ."""
    if all(found[name] == kind for name, kind in wanted):
        return plan
    casts = ((name, Col(name) if found[name] == kind else Cast(Col(name), kind)) for name, kind in wanted)
    return nodes.Select(plan, tuple(casts))


def inputs_in_scope(part: Typed) -> tuple[Typed, ...]:
    """The inputs that belong to the same scope: an apply branch is a scope of its own."""
    return part.inputs[:1] if isinstance(part.node, nodes.GroupApply) else part.inputs


def parts_in_scope(root: Typed) -> list[Typed]:
    """Every part of a scope once, inputs before the parts that read them."""
    found: dict[int, Typed] = {}

    def visit(part: Typed) -> None:
        if id(part) in found:
            return
        for child in inputs_in_scope(part):
            visit(child)
        found[id(part)] = part

    visit(root)
    return list(found.values())
