"""From the members of windows to their rows: aggregates, rankings or modules, with the lifetime the node asks for."""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.windows.aggregates import Aggregates
from streamproof.kernels.windows.changes import Events
from streamproof.kernels.windows.frames import Frames
from streamproof.kernels.windows.grid import Grid
from streamproof.kernels.windows.kept import Kept
from streamproof.kernels.windows.liveliness import Liveliness
from streamproof.kernels.windows.modules import Modules
from streamproof.kernels.windows.outputs import Memory
from streamproof.kernels.windows.passing import without_passing
from streamproof.kernels.windows.segments import Members, Rows, Windows, largest
from streamproof.kernels.windows.topk import Ranking
from streamproof.plan import nodes
from streamproof.plan.check import Typed


class Evaluator:
    """The results of one node's windows."""

    def __init__(self, typed: Typed, context: Context, lively: Liveliness) -> None:
        node = typed.node
        assert isinstance(node, nodes.Windowed)
        plain = isinstance(node, nodes.Aggregation) and lively.watch == "members"
        self.kept = Kept(typed.inputs[0].schema, context, payload=not plain)
        self.layout = Layout.of(typed.schema)
        self._lively, self._strings = lively, context.strings
        match node:
            case nodes.Aggregation():
                self._how: Aggregates | Ranking | Modules = Aggregates(node.aggs, self.kept, self.layout)
            case nodes.TopK():
                self._how = Ranking(node, self.kept, self.layout)
            case _:
                self._how = Modules(typed, self.kept, self.layout, context)

    @property
    def stateful(self) -> bool:
        """Whether it keeps a state per window, and is told what changed since the last time."""
        return isinstance(self._how, Modules) and self._how.module.incremental

    @property
    def lost(self) -> set[int]:
        """The windows that the last call failed for, and that have no rows therefore."""
        return self._how.lost if isinstance(self._how, Modules) else set()

    def without_passing(self, events: Events, frames: Frames, frontier: int) -> Events:
        """The events that may matter: of those that only pass by, a ranking needs few."""
        if not isinstance(self._how, Ranking) or not isinstance(frames, Grid):
            return events
        return without_passing(events, frames, frontier, self._how, self.kept.layout, self._strings)

    def rows(self, members: Members, change: Members | None = None, memory: Memory | None = None) -> Rows:
        """The rows of all windows. What is remembered of before becomes what is remembered of now."""
        match self._how:
            case Aggregates():
                window = np.arange(len(members))
                once = np.ones(len(window), np.int64)
                rows = Rows(window, members.windows.le, members.windows.re, once, self._how.cells(members))
            case Ranking():
                at, cells = self._how.best(members)
                window = members.window[at]
                rows = Rows(window, members.windows.le[window], members.windows.re[window], members.w[at], cells)
            case Modules():
                rows = self._how.rows(members, change, Memory.none(len(members)) if memory is None else memory)
        return self._lifetimes(rows, members.windows)

    def holds(self, members: Members) -> Ints:
        """Per window the latest end whose change would still change its rows."""
        if self._lively.watch == "ends":
            held: Ints = largest(members.window, members.re, len(members), BEGINNING)
            return held
        if isinstance(self._how, Aggregates):
            return self._how.holds(members)
        return np.full(len(members), BEGINNING)

    def _lifetimes(self, rows: Rows, windows: Windows) -> Rows:
        """Rows at the end of their windows, where the node asks for that; the end of time is no such point."""
        if self._lively.stamp != "point_end":
            return rows
        ends = windows.re[rows.window]
        at = np.flatnonzero(ends < FOREVER)
        return Rows(rows.window[at], ends[at], ends[at] + 1, rows.w[at], rows.cells[at])
