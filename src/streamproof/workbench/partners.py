"""What a streaming engine may see of a plan on the way that no complete input shows: rows whose partners are late.

Windows give their results when time has passed over them. So where a row meets the result of a window, in an anti join,
an outer join or a clip, it is alone for a while, even if both come from one event. And what a window reads of an event
is evaluated when it comes, whether or not its window is ever complete: as if it were in a snapshot.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import replace
from itertools import chain, combinations, count
from typing import Final

from streamproof.events.schema import BOOL
from streamproof.plan import nodes
from streamproof.plan.expr import Lit
from streamproof.plan.nodes import Node, Plan, transform
from streamproof.plan.windows import Snapshot, Window

MOST: Final = 4  # operators of which every choice is tried; of more, each alone and all together


def with_late_partners(plan: Plan) -> Iterator[Plan]:
    """The plan as it is while partners are still to come: in one of its operators, or in several.

    >>> from streamproof.plan.parse import parse
    >>> plan = nodes.AntiJoin(nodes.Source("S"), nodes.Source("R"), parse("true"))
    >>> [type(part).__name__ for late in with_late_partners(plan) for part in nodes.walk(late)]
    ['AntiJoin', 'Source', 'Where', 'Source']
    """
    numbers = range(sum(len(_waiting(node)) for node in nodes.walk(plan)))
    sizes = range(1, len(numbers) + 1) if len(numbers) <= MOST else (1, len(numbers))
    for chosen in chain.from_iterable(combinations(numbers, size) for size in sizes):
        yield _without(plan, chosen)


def _waiting(node: Node) -> tuple[str, ...]:
    """The inputs without which an operator goes on, or the window."""
    match node:
        case nodes.Aggregation() | nodes.TopK() | nodes.Uda() | nodes.Udo() if node.window != Snapshot():
            return ("window",)
        case nodes.AntiJoin() | nodes.LeftOuter():
            return ("right",)
        case nodes.FullOuter():
            return ("left", "right")
        case nodes.Clip():
            return ("by",)
    return ()


def _without(plan: Plan, chosen: Container[int]) -> Plan:
    numbers = count()

    def change(node: Node) -> Node:
        late = [name for name in _waiting(node) if next(numbers) in chosen]
        return replace(node, **{name: _early(getattr(node, name)) for name in late})

    return transform(plan, change)


def _early(part: Node | Window) -> Node | Window:
    """An input before its rows come, or a window that is never incomplete."""
    return nodes.Where(part, Lit(False, BOOL)) if isinstance(part, Node) else Snapshot()
