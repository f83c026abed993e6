"""union: rows of all inputs, columns by name, each cast to the type they have in common."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context, State, Stateless, array
from streamproof.kernels.delta import Delta
from streamproof.plan.check import Typed


class UnionKernel(Stateless):
    """Bag union. Its only state is how far each input has come."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.frontiers = [BEGINNING] * len(typed.inputs)
        names, self._types = typed.schema.names, [kind.arrow for _, kind in typed.schema]
        self._positions = [[part.schema.names.index(name) for name in names] for part in typed.inputs]

    def on_batch(self, port: int, delta: Delta) -> Delta:
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        picked = (delta.columns[n] for n in self._positions[port])
        columns = tuple(c if c.type == kind else c.cast(kind) for c, kind in zip(picked, self._types, strict=True))
        return replace(delta, columns=columns, frontier=min(self.frontiers))

    def snapshot(self) -> State:
        return {"frontiers": np.array(self.frontiers, np.int64)}

    def restore(self, state: State) -> None:
        self.frontiers = array(state, "frontiers").tolist()
