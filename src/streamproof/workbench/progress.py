"""How far the output must be sealed when the input is: the least CTI that an operator may give for a CTI.

Only what is the same for every input is demanded; where it depends on what is live, nothing is.

>>> from streamproof.plan.nodes import Shift, Source
>>> from streamproof.plan.check import check
>>> from streamproof.events.schema import Schema
>>> demanded(check(Shift(Source("S"), 3), {"S": Schema.of({"v": "int64"})}), {"S": 10}, "speculative")
13
"""

from __future__ import annotations

from collections.abc import Mapping

from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.kernels.base import Emission
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, Col, columns_of
from streamproof.plan.windows import Hopping, Snapshot, Tumbling
from streamproof.workbench.promises import Broken


def demanded(typed: Typed, frontiers: Mapping[str, int], emission: Emission) -> int:
    """The least CTI that the output must have; the beginning of time where nothing can be said.

    Under the policy ``final`` the output waits for whatever is not settled, so nothing is demanded of it.
    """
    return BEGINNING if emission == "final" else _visit(typed, frontiers, BEGINNING, {})


def _visit(typed: Typed, frontiers: Mapping[str, int], group: int, known: dict[tuple[int, int], int]) -> int:
    """What is read twice is looked at once; inside of groups, once for each CTI that a group has."""
    if (id(typed), group) not in known:
        known[id(typed), group] = _least(typed, frontiers, group, known)
    return known[id(typed), group]


def _least(typed: Typed, frontiers: Mapping[str, int], group: int, known: dict[tuple[int, int], int]) -> int:
    node = typed.node
    if isinstance(node, nodes.Source):
        return frontiers.get(node.name, BEGINNING)
    if isinstance(node, nodes.GroupInput):
        return group
    if isinstance(node, nodes.GroupApply):
        inner = _visit(typed.inputs[0], frontiers, group, known)
        return _visit(typed.inputs[1], frontiers, inner, known)
    least = min(_visit(part, frontiers, group, known) for part in typed.inputs)
    return least if least in (BEGINNING, FOREVER) else _after(node, least)


def _after(node: nodes.Node, cti: int) -> int:
    """What an operator must make of a finite CTI."""
    if node.keeps_ctis:
        return cti
    if isinstance(node, nodes.Shift | nodes.Extend) and isinstance(node.by, int):
        return cti + (node.by if isinstance(node, nodes.Shift) else min(node.by, 0))
    if isinstance(node, nodes.AlterDuration):
        dur = node.dur
        reads_end = not isinstance(dur, int | str | None) and Col(LIFE_END) in columns_of(dur)  # type: ignore[arg-type]
        return BEGINNING if reads_end else cti
    if isinstance(node, nodes.Aggregation | nodes.TopK):
        return _of_windows(node, cti)
    return BEGINNING


def _of_windows(node: nodes.Aggregation | nodes.TopK, cti: int) -> int:
    """Results carry the lifetime of their window: the first one that can still get members holds the output back."""
    if isinstance(node, nodes.Aggregation) and any(agg.function.ordered for _, agg in node.aggs):
        return BEGINNING  # an end that moves may change which event is the first
    window = node.window
    if isinstance(window, Snapshot):
        return cti
    if not isinstance(window, Tumbling | Hopping):
        return BEGINNING
    hop = window.hop if isinstance(window, Hopping) else window.size
    if not (isinstance(window.size, int) and isinstance(hop, int) and isinstance(window.offset, int)):
        return BEGINNING
    if node.output == "point_end":
        return cti
    first = window.offset + ((cti - window.offset - window.size) // hop + 1) * hop
    return min(cti, first)


class Progress:
    """Whether the output is sealed as far as it must be, push by push."""

    def __init__(self, typed: Typed, emission: Emission) -> None:
        self._typed, self._emission = typed, emission
        self._frontiers: dict[str, int] = {}
        self._sealed = BEGINNING
        self.broken = Broken()

    def check(self, frontiers: Mapping[str, int], output: int) -> None:
        """Take in how far sources have come, and the CTI that was given then."""
        for source, frontier in frontiers.items():
            self._frontiers[source] = max(frontier, self._frontiers.get(source, BEGINNING))
        self._sealed = max(self._sealed, output)
        wanted = demanded(self._typed, self._frontiers, self._emission)
        if self._sealed < wanted and not self.broken:
            shown = f"{show_tick(wanted)}, found {show_tick(self._sealed)}"
            self.broken = Broken("progress", f"the output should be sealed up to {shown}")
