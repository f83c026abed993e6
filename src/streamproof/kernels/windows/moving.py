"""How far one windowed node has come: what all ways of running it know of time."""

from __future__ import annotations

from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.liveliness import Step, liveliness_of
from streamproof.plan.check import Typed


class Moving:
    """One node over all groups, at some time."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.typed, self.context = typed, context
        self.lively = liveliness_of(typed, context.emission)
        self.frontier = BEGINNING
        self.seen = BEGINNING  # the latest start
        self.sealed = BEGINNING  # the output's frontier

    def _advance(self, delta: Delta) -> Step:
        """Move time on."""
        before, due_before = self.frontier, self.lively.due(self.frontier, self.seen)
        self.frontier = max(self.frontier, delta.frontier)
        if len(delta):
            self.seen = max(self.seen, delta.extent.greatest_le)
        return Step(before, self.frontier, due_before, self.lively.due(self.frontier, self.seen))
