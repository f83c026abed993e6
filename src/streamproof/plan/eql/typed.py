"""The check's rules for the nodes of event-driven queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, TypeAlias

from streamproof.errors import PlanError
from streamproof.events.schema import BOOL, FLOAT64, INT64, NULL, Schema, Type
from streamproof.events.time import Span
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import Expr, Lit
from streamproof.plan.functions import common_type
from streamproof.plan.modules import Registry
from streamproof.plan.nodes import Node
from streamproof.plan.typing import Scope, aggregate_type, bind, bound_aggregate, require, type_of

Outcome: TypeAlias = "tuple[Node, Schema]"


class HasSchema(Protocol):
    """A checked input."""

    @property
    def schema(self) -> Schema: ...


class CheckedInputs(Protocol):
    """What the check tells a rule about the inputs."""

    @property
    def typed(self) -> Sequence[HasSchema]: ...
    @property
    def registry(self) -> Registry: ...
    def ticks(self, span: Span) -> int: ...


def transition(inputs: CheckedInputs, node: Transition) -> Outcome:
    schema = inputs.typed[0].schema
    scope = Scope.one(schema, registry=inputs.registry)
    expr = require(node.expr, scope, BOOL, "the condition of a transition")
    _known(schema, node.key)
    return replace(node, expr=expr), schema


def drift(inputs: CheckedInputs, node: Drift) -> Outcome:
    schema = inputs.typed[0].schema
    scope = Scope.one(schema, registry=inputs.registry)
    _known(schema, node.key)
    for expr, what in ((node.expr, "what drifts"), (node.step, "the step of a drift")):
        kind = type_of(expr, scope)
        if not (kind.is_numeric or kind == NULL):
            raise PlanError(f"{what} must be a number, not {kind}", fix="cast it", name="type_mismatch")
    _check_step(node.step)
    return replace(node, expr=bind(node.expr, scope, _measured_as(node.expr, node.step, scope))), schema


def _check_step(step: Expr) -> None:
    value = step.value if isinstance(step, Lit) else None
    if value is None or isinstance(value, str | bool) or not value > 0:  # type: ignore[operator]  # a number
        raise PlanError("the step of a drift must be a positive constant", fix='give e.g. "30"')


def _measured_as(expr: Expr, step: Expr, scope: Scope) -> Type:
    """The type in which a drift is measured: whole numbers among themselves, else floats."""
    return INT64 if {type_of(expr, scope), type_of(step, scope)} <= {INT64, NULL} else FLOAT64


def pairing(inputs: CheckedInputs, node: Pairing) -> Outcome:
    left, right = (part.schema for part in inputs.typed)
    _alike(left, right, node.key)
    longest = None if node.max is None else inputs.ticks(node.max)
    return replace(node, max=longest), left


def during(inputs: CheckedInputs, node: During) -> Outcome:
    left, right = (part.schema for part in inputs.typed)
    _alike(left, right, node.key)
    _known(right, node.group)
    scope = Scope.one(right, registry=inputs.registry)
    aggs = tuple((name, bound_aggregate(agg, scope)) for name, agg in node.aggs)
    columns = [(name, right[name]) for name in node.group]
    columns += left.columns
    columns += [(name, INT64) for name in (node.begin, node.end) if name is not None]
    columns += [(name, aggregate_type(agg, scope)) for name, agg in aggs]
    taken: set[str] = set()
    for name, _ in columns:
        if name in taken:
            fix = "rename it in the select below, or give the result another name"
            raise PlanError(f'two columns are called "{name}"', fix=fix, name="duplicate_column")
        taken.add(name)
    reach, hop = (None if span is None else inputs.ticks(span) for span in (node.reach, node.hop))
    return replace(node, aggs=aggs, reach=reach, hop=hop), Schema(tuple(columns), left.unit)


def _known(schema: Schema, names: tuple[str, ...]) -> None:
    for name in names:
        schema[name]  # an unknown column is an error


def _alike(left: Schema, right: Schema, key: tuple[str, ...]) -> None:
    """Both sides have the key, of one type or of types that compare."""
    for name in key:
        kinds = [left[name], right[name]]
        if common_type(kinds) is None:
            what = f'the key "{name}" is {kinds[0]} on the left and {kinds[1]} on the right'
            raise PlanError(what, fix="cast one of them", name="type_mismatch")
