"""Emission ``final`` at the output of a plan: rows are held back until nothing can change them any more."""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.plan import nodes
from streamproof.plan.check import Typed


def is_settled(typed: Typed) -> bool:
    """Whether a plan's kernels by themselves emit only what never changes, if windows emit only what is final.

    A source may retract.
    """
    seen: set[int] = set()  # parts may be shared, level upon level
    waiting = [typed]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part.node, nodes.Windowed):
            continue
        seen.add(id(part))
        if isinstance(part.node, nodes.GroupApply):
            waiting.append(part.inputs[1])
        elif part.node.keeps_final:
            waiting += part.inputs
        else:
            return False
    return True


class SealKernel(Declared):
    """Emits a row when its end lies before the frontier: an end at the frontier may still move.

    The output's frontier stops at the least start of the rows that are held back.
    """

    def __init__(self, typed: Typed, context: Context) -> None:
        self.typed, self.context = typed, context
        self.layout = Layout.of(typed.schema)
        self.held = Store(self.layout.width)
        self.frontier = BEGINNING
        self.sealed = BEGINNING  # the output's frontier

    def on_batch(self, port: int, delta: Delta) -> Delta:
        if len(delta):
            self.held.add(delta.group, delta.le, delta.re, delta.w, self._cells(delta))
        if delta.frontier <= self.frontier:
            return Delta.empty(self.typed.schema, frontier=self.sealed)
        self.frontier = delta.frontier
        rows = self.held.all_rows()
        done = (rows[:, RE] < self.frontier) | (self.frontier >= FOREVER)
        kept, given = rows[~done], rows[done]
        self.held.replace(kept)
        self.sealed = max(self.sealed, min(self.frontier, int(kept[:, LE].min(initial=FOREVER))))
        return self._delta(given)

    def _cells(self, delta: Delta) -> Ints:
        if not delta.columns:
            return np.zeros((len(delta), 1), np.int64)
        return self.layout.encode(delta.columns, self.context.strings)

    def _delta(self, rows: Ints) -> Delta:
        group, le, re, w = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE, W))
        columns = tuple(self.layout.decode(rows[:, PAYLOAD:], self.context.strings))
        return Delta(group, le, re, w, columns, self.sealed)

    def parts(self) -> dict[str, Part]:
        return {"held": StoredRows(self.held, self.layout), "time": Fields(self, "frontier", "sealed")}
