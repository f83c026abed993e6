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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, TypeAlias

from streamproof.events.schema import Schema
from streamproof.plan import expr, nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.expr import (
    LIFE_END,
    LIFE_START,
    Apply,
    Call,
    Case,
    Cast,
    Col,
    Expr,
    Lit,
    all_of,
    columns_of,
    conjuncts,
    transform,
    user_functions,
    walk,
)
from streamproof.plan.nodes import Node, Plan, parameters
from streamproof.thresholds import LARGEST_EXPRESSION

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


SAFE: Final = frozenset({
    "eq", "ne", "lt", "lte", "gt", "gte", "same", "in", "is_null", "and", "or", "not", "coalesce", "nullif", "least",
    "greatest", "lower", "upper", "trim", "ltrim", "rtrim", "length", "contains", "starts_with", "ends_with",
})  # fmt: skip
"""Functions that give a value whatever they get. Arithmetic may overflow, a text may become too long, and an engine may
refuse a pattern."""

_TIMES: Final = (LIFE_START, LIFE_END)


def can_fail(expr: Expr) -> bool:
    """Whether evaluating the expression on some row might be an error. In doubt, yes."""
    return any(_can_fail_itself(part) for part in walk(expr))


def _can_fail_itself(part: Expr) -> bool:
    match part:
        case Col() | Lit() | Case():
            return False
        case Cast(strict=strict):
            return strict
        case Call(fn):
            return fn not in SAFE
        case Apply():
            return True


def names_read(expr: Expr) -> frozenset[str]:
    """The payload columns that an expression reads, without their side."""
    return frozenset(column.name for column in columns_of(expr) if column.name not in _TIMES)


def reads_time(expr: Expr) -> bool:
    """Whether the expression reads the event's lifetime."""
    return any(column.name in _TIMES for column in columns_of(expr))


def size(exprs: Iterable[Expr]) -> int:
    """How many nodes expressions have."""
    return sum(1 for expr in exprs for _ in walk(expr))


def substituted(expr: Expr, definitions: Mapping[str, Expr]) -> Expr | None:
    """The expression with every column replaced by its definition.

    None where that would call a user-defined function twice, read a column without definition, or grow too large.
    """
    for column in columns_of(expr):
        if column.name in _TIMES:
            continue
        if column.name not in definitions or user_functions(definitions[column.name]):
            return None
    uses = (part.name for part in walk(expr) if isinstance(part, Col) and part.name in definitions)
    if size([expr, *(definitions[name] for name in uses)]) > LARGEST_EXPRESSION.now:
        return None
    return with_definitions(expr, definitions)


def with_definitions(expr: Expr, definitions: Mapping[str, Expr]) -> Expr:
    """The expression with every column that has a definition replaced by it."""

    def define(part: Expr) -> Expr:
        return definitions.get(part.name, part) if isinstance(part, Col) and part.side is None else part

    return transform(expr, define)


def both_of(first: Expr, second: Expr) -> Expr | None:
    """Both conditions as one.

    None if the second can fail, since it would see the rows that the first removes, or if one condition grew too large.
    """
    if can_fail(second) or size([first, second]) > LARGEST_EXPRESSION.now:
        return None
    return all_of([*conjuncts(first), *conjuncts(second)])
