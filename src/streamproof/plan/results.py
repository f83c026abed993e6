"""Results of windows that go into windows again: do they fit, or are they cut?

A result lasts as long as its window. In windows that it does not fit into it counts several times, each time as a
whole, which is seldom meant::

    hopping(10, hop=5)   [0 ── a ── 10)
                               [5 ── b ── 15)
    tumbling(5)          |  a   |  a b  |  b   |      a and b are ranked with each other, though their windows differ

>>> cut_by(Hopping(10, 5), Tumbling(5)), cut_by(Tumbling(10), Tumbling(60)), cut_by(Tumbling(10), Tumbling(10, 3))
(True, False, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import gcd
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from streamproof.plan import nodes
from streamproof.plan.labels import label, window_label
from streamproof.plan.nodes import Node, Plan
from streamproof.plan.windows import Hopping, Snapshot, Tumbling, Window

if TYPE_CHECKING:
    from streamproof.plan.check import Typed

P = TypeVar("P")
View: TypeAlias = "Callable[[P], tuple[Node, tuple[P, ...]]]"
"""A part of a plan as its node and its inputs."""


def window_of_results(plan: Plan) -> Window | None:
    """The windows whose lifetimes the events of a plan have; None where they have others.

    >>> from streamproof.plan.aggregates import Aggregate
    >>> window_of_results(nodes.Aggregation(nodes.Source("S"), Tumbling(10), (("n", Aggregate("count")),)))
    Tumbling(size=10, offset=0)
    """
    return _made_in(plan, lambda part: (part, part.inputs), ())


def _made_in(part: P, view: View[P], groups: tuple[P, ...]) -> Window | None:
    """``groups`` has what the groups around a part are made of, the innermost last."""
    node, inputs = view(part)
    match node:
        case nodes.Aggregation(output="window") | nodes.TopK(output="window") | nodes.Uda(output="window"):
            return node.window
        case nodes.Udo(stamp="align"):
            return node.window
        case nodes.Where() | nodes.Select() | nodes.Distinct():
            return _made_in(inputs[0], view, groups)
        case nodes.GroupApply():
            return _made_in(inputs[1], view, (*groups, inputs[0]))
        case nodes.GroupInput() if groups:
            return _made_in(groups[-1], view, groups[:-1])
        case nodes.Union():
            first, *rest = (_made_in(one, view, groups) for one in inputs)
            return first if all(other == first for other in rest) else None
    return None


def cut_by(inner: Window, outer: Window) -> bool:
    """Whether a result of one window can lie in windows of another without fitting into them; lengths are in ticks."""
    match inner, outer:
        case Hopping(size, hop), Snapshot():
            return _ticks(hop) < _ticks(size)  # at each end of one another one is alive
        case Tumbling() | Hopping(), Tumbling() | Hopping():
            size, hop, offset = _grid(inner)
            size2, hop2, offset2 = _grid(outer)
            step = gcd(hop, hop2)  # a start and a bound can be this far apart, plus the distance of the grids
            return any(((bound - offset) % step or step) < size for bound in (offset2, offset2 + size2))
    return False


def _grid(window: Tumbling | Hopping) -> tuple[int, int, int]:
    hop = window.hop if isinstance(window, Hopping) else window.size
    return _ticks(window.size), _ticks(hop), _ticks(window.offset)


def _ticks(span: object) -> int:
    assert isinstance(span, int), "a typed plan holds ticks"
    return span


def cut_results(root: Typed) -> Iterator[str]:
    """A warning for each node of a typed plan that divides results of windows by windows that they do not fit into."""
    seen: set[int] = set()

    def visit(part: Typed, groups: tuple[Typed, ...]) -> Iterator[str]:
        if id(part) in seen:
            return
        seen.add(id(part))
        if isinstance(part.node, nodes.GroupApply):
            yield from visit(part.inputs[0], groups)
            yield from visit(part.inputs[1], (*groups, part.inputs[0]))
            return
        for below in part.inputs:
            yield from visit(below, groups)
        if isinstance(part.node, nodes.WindowNode):
            inner = _made_in(part.inputs[0], lambda one: (one.node, one.inputs), groups)
            if inner is not None and cut_by(inner, part.node.window):
                yield _warning(part.node, inner)

    yield from visit(root, ())


def _warning(node: Node, inner: Window) -> str:
    return (
        f"{label(node)} divides results that last as long as their windows, {window_label(inner)}: "
        "one that lies in several windows counts in each. "
        "For the results of the same window write same_window(); "
        'to count each once, when its window ends, give the first output="point_end"'
    )
