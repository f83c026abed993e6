"""Random nodes of event-driven queries: transitions, drifts, pairings, and what is seen during events.

Ties are ordered by payload, so nothing here reads columns that are only nearly the same everywhere.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from streamproof.events.schema import INT64
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.event_nodes import POLICIES, TRIGGERS, WAYS, Drift, During, Pairing, Transition, Trigger
from streamproof.plan.expr import Call, Col, Expr, Lit, literal
from streamproof.plan.nodes import Plan
from streamproof.workbench.draw.choices import Choices, DrawnColumn, DrawnShape, readable
from streamproof.workbench.draw.expressions import ExpressionMaker
from streamproof.workbench.draw.windowed import Made, WindowMaker

if TYPE_CHECKING:
    from streamproof.workbench.draw.operators import OperatorMaker

STEPS: Final = (1, 2, 5, 0.5)


def transition(maker: OperatorMaker, inner: Made) -> Made:
    plan, shape = _exact(inner)
    condition = ExpressionMaker(maker.choices, readable(shape)).condition(2)
    return Transition(plan, condition, _key(maker.choices, shape)), replace(shape, no_end=False)


def drift(maker: OperatorMaker, inner: Made) -> Made:
    plan, shape = _exact(inner)
    way, step = maker.choices.pick(WAYS), literal(maker.choices.pick(STEPS))
    return (
        Drift(plan, _number(maker.choices, shape), step, way, _key(maker.choices, shape)),
        replace(shape, no_end=False),
    )


def _number(choices: Choices, shape: DrawnShape) -> Expr:
    """A small number, so that steps matter."""
    floats = [Col(name) for name, column in shape.columns if column.type.kind == "float64"]
    if floats and choices.chance(30):
        return choices.pick(floats)
    return Call("mod", (ExpressionMaker(choices, readable(shape)).of("int64", 1)[0], Lit(12, INT64)))


def pairing(maker: OperatorMaker, one: Made, other: Made) -> Made:
    (left, a), (right, b) = _exact(one), _exact(other)
    choices = maker.choices
    longest = choices.integer(1, 9) if choices.chance(50) else None
    node = Pairing(left, right, _shared(choices, a, b), choices.pick(POLICIES), longest)
    return node, replace(a, no_end=longest is None)


def during(maker: OperatorMaker, one: Made, other: Made) -> Made:
    (left, a), (right, b) = _exact(one), _exact(other)
    choices = maker.choices
    trigger: Trigger = choices.pick(TRIGGERS)
    key = _shared(choices, a, b)
    groups = [name for name in b.names if name not in a.names and name not in key]
    group = (choices.pick(groups),) if groups and choices.chance(30) else ()
    aggs, results = _aggregates(choices, WindowMaker(choices, b, maker.horizon), taken=(*group, *a.names))
    times = [name if name not in (*group, *a.names) and choices.chance(40) else None for name in ("begin", "end")]
    latest = trigger == "start" and choices.chance(25)
    empty = trigger in ("start", "end") and not latest and not group and choices.chance(25)
    no_end = trigger == "hop" and a.no_end and maker.horizon is None
    reach = choices.integer(1, 8) if trigger != "end" and not latest and (no_end or choices.chance(50)) else None
    hop = choices.integer(1, 5) if trigger == "hop" else None
    node = During(left, right, aggs, trigger, key, group, reach, hop, times[0], times[1], latest, empty)
    known = tuple((name, column) for name, column in b.columns if name in group)
    told = tuple((name, DrawnColumn(INT64)) for name in times if name is not None)
    return node, replace(a, columns=(*known, *a.columns, *told, *results), no_end=False)


def _aggregates(
    choices: Choices, windows: WindowMaker, *, taken: tuple[str, ...]
) -> tuple[tuple[tuple[str, Aggregate], ...], tuple[tuple[str, DrawnColumn], ...]]:
    names = [name for name in ("a0", "a1", "b0", "b1", "c0", "d0", "d1", "d2") if name not in taken]
    names += [f"seen{n}" for n in range(20) if f"seen{n}" not in taken]
    made = [(name, *windows.aggregate()) for name in names[: choices.integer(1, 2)]]
    return tuple((name, agg) for name, agg, _ in made), tuple((name, column) for name, _, column in made)


def _key(choices: Choices, shape: DrawnShape) -> tuple[str, ...]:
    return (choices.pick(shape.names),) if shape.columns and choices.chance(50) else ()


def _shared(choices: Choices, left: DrawnShape, right: DrawnShape) -> tuple[str, ...]:
    """A column that both sides have, of one type."""
    types = dict(right.columns)
    names = [name for name, column in left.columns if name in types and types[name].type == column.type]
    return (choices.pick(names),) if names and choices.chance(60) else ()


def _exact(made: Made) -> Made:
    """Without the columns that are only nearly the same everywhere."""
    plan, shape = made
    if not shape.rough:
        return made
    kept = tuple((name, column) for name, column in shape.columns if not column.rough)
    exprs: nodes.Named = tuple((name, Col(name)) for name, _ in kept) or (("one", Lit(1, INT64)),)
    columns = kept or (("one", DrawnColumn(INT64, size=1)),)
    exact: Plan = nodes.Select(plan, exprs)
    return exact, replace(shape, columns=columns)


EVENT_NODES: Final[dict[str, tuple[int, Callable[..., Made]]]] = {
    "transition": (1, transition),
    "drift": (1, drift),
    "pairing": (2, pairing),
    "during": (2, during),
}
"""How many inputs each has, and how it is put above them."""
