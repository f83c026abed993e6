"""What a streaming engine may see of a plan on the way that no complete input shows: rows whose partners are late.

Windows give their results when time has passed over them. So where a row meets the result of a window, in an anti join,
an outer join or a clip, it is alone for a while, even if both come from one event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Literal

from streamproof.events.schema import BOOL
from streamproof.plan import nodes
from streamproof.plan.expr import Lit
from streamproof.plan.nodes import Node, Plan, transform

Side = Literal["left", "right"]


def with_late_partners(plan: Plan) -> Iterator[Plan]:
    """The plan as it is while partners are still to come: from the right, and from the left of full outer joins.

    >>> from streamproof.plan.parse import parse
    >>> plan = nodes.AntiJoin(nodes.Source("S"), nodes.Source("R"), parse("true"))
    >>> [type(part).__name__ for late in with_late_partners(plan) for part in nodes.walk(late)]
    ['AntiJoin', 'Source', 'Where', 'Source']
    """
    sides: tuple[Side, ...] = ("right", "left")
    for side in sides:
        late = transform(plan, partial(_without, side=side))
        if late != plan:
            yield late


def _without(node: Node, *, side: Side) -> Node:
    waits = nodes.FullOuter if side == "left" else nodes.AntiJoin | nodes.LeftOuter | nodes.FullOuter
    if isinstance(node, waits):
        return replace(node, **{side: nodes.Where(getattr(node, side), Lit(False, BOOL))})
    if isinstance(node, nodes.Clip) and side == "right":
        return replace(node, by=nodes.Where(node.by, Lit(False, BOOL)))
    return node
