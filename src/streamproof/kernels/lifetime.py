"""alter_duration where it reads re: linear in rows, but a live event's new end may lie anywhere after its start.

So output can only be sealed up to the least start of an event whose end is still open, and those are remembered.
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, State, Stateless, array, number
from streamproof.kernels.delta import Delta
from streamproof.kernels.linear import duration_of
from streamproof.kernels.store import Store
from streamproof.plan import nodes
from streamproof.plan.check import Typed


class EndDependentDurationKernel(Stateless):
    """``[le, le + dur)`` with a dur that reads re."""

    def __init__(self, typed: Typed, context: Context) -> None:
        assert isinstance(typed.node, nodes.AlterDuration)
        self._duration = duration_of(typed.node, typed, context)
        self.live = Store(width=1)  # lifetimes that reach to the frontier or past it; payloads do not matter
        self.frontier = BEGINNING

    def on_batch(self, port: int, delta: Delta) -> Delta:
        nothing = np.zeros((len(delta), 1), np.int64)
        self.live.add(np.zeros(len(delta), np.int64), delta.le, delta.re, delta.w, nothing)
        self.frontier = max(self.frontier, delta.frontier)
        self.live.drop(self.frontier)
        return self._duration(delta).at(self._sealed())

    def _sealed(self) -> int:
        starts = self.live.events().le
        if self.frontier >= FOREVER or not len(starts):
            return self.frontier
        return min(self.frontier, int(starts.min()))

    def snapshot(self) -> State:
        events = self.live.events()
        return {"frontier": self.frontier, "le": events.le, "re": events.re, "w": events.w}

    def restore(self, state: State) -> None:
        le, re, w = (array(state, name) for name in ("le", "re", "w"))
        self.live.add(np.zeros(len(le), np.int64), le, re, w, np.zeros((len(le), 1), np.int64))
        self.frontier = number(state, "frontier")

    def live_rows(self) -> int:
        return len(self.live)
