"""A typed plan as a plan again: the form that all passes work on.

Nothing is left to be inferred: durations are ticks, joins name their columns, operators their mapping, sources their
schema, and the inputs of a union have its very types. What is read twice is bound by one `Let` at the top of its scope,
which is the whole plan or an apply branch.

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
from typing import TypeAlias

from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import Cast, Col
from streamproof.plan.nodes import Plan

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
        plan = make(part, tuple(plans[id(child)] for child in inputs_in_scope(part)))
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
