"""A stream divided by key: what `Stream.group_by` gives.

>>> source("S").group_by("k").tumbling(10).aggregate(n=count())
source(S) → group_apply(k)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from streamproof.arguments import Knows
from streamproof.errors import PlanError
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import Window
from streamproof.query.calls import names_the_call
from streamproof.query.windowed import Windowed, Windows

if TYPE_CHECKING:
    from streamproof.query.stream import Stream


@dataclass(frozen=True, slots=True)
class Grouped(Windows, Knows):
    """The groups of a stream. Everything computed on them is per group; null is a key of its own."""

    stream: Stream
    key: tuple[str, ...]

    @names_the_call
    def apply(self, apply: Callable[[Stream], Stream]) -> Stream:
        """What ``apply`` makes of each group's events, with the key in front.

        >>> source("S").group_by("k").apply(lambda group: group.where("v > 1").coalesce())
        source(S) → group_apply(k)

        A key that ``apply`` passes on is simply there; it may not compute another column of its name.
        Law: the result is the union over all keys.
        """
        branch = apply(type(self.stream)(nodes.GroupInput()))
        if not isinstance(branch, type(self.stream)):
            raise PlanError(f"apply must give a stream, got {branch!r}", fix="return the stream that the lambda makes")
        return self._around(branch.plan)

    @property
    def results(self) -> Plan:
        """The events of all groups."""
        return self.stream.plan

    def in_windows(self, window: Window) -> Windowed:
        """Each group in windows of its own."""
        return Windowed(nodes.GroupInput(), window, self._around)

    def _around(self, branch: Plan) -> Stream:
        return type(self.stream)(nodes.GroupApply(self.stream.plan, self.key, branch))
