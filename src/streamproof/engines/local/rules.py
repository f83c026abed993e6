"""Which kernel runs which node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.antijoin import AntiJoinKernel
from streamproof.kernels.base import Context, Kernel, Part
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.chop import ChopKernel
from streamproof.kernels.clip import ClipKernel
from streamproof.kernels.delta import Delta
from streamproof.kernels.equal_payloads import CoalesceKernel, DistinctKernel, StitchKernel
from streamproof.kernels.event_driven.during import DuringKernel
from streamproof.kernels.event_driven.firing import DriftKernel, TransitionKernel
from streamproof.kernels.event_driven.pairing import PairingKernel
from streamproof.kernels.join import JoinKernel, OuterJoinKernel
from streamproof.kernels.linear import (
    AlterDurationKernel,
    EndDependentDurationKernel,
    ExtendKernel,
    PointAtEndKernel,
    SelectKernel,
    ShiftKernel,
    ToPointKernel,
    UnionKernel,
    WhereKernel,
)
from streamproof.kernels.session import SessionKernel
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import LIFE_END, Col, columns_of
from streamproof.plan.rules import Rules


class PassKernel(Declared):
    """Rows as they come: sources, and advance_time, whose work is done where events still have an order."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.typed = typed

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return delta


def _alter_duration(typed: Typed, context: Context) -> Kernel:
    node = typed.node
    assert isinstance(node, nodes.AlterDuration)
    constant = node.dur is None or isinstance(node.dur, int | str) or hasattr(node.dur, "days")
    reads_end = not constant and Col(LIFE_END) in columns_of(node.dur)  # type: ignore[arg-type]  # an expression then
    return EndDependentDurationKernel(typed, context) if reads_end else AlterDurationKernel(typed, context)


MakeKernel: TypeAlias = Callable[[Typed, Context], Kernel]
KERNELS: Rules[MakeKernel] = Rules(
    "the local engine",
    {
        nodes.Source: PassKernel,
        nodes.AdvanceTime: PassKernel,
        nodes.Where: WhereKernel,
        nodes.Select: SelectKernel,
        nodes.Shift: ShiftKernel,
        nodes.Extend: ExtendKernel,
        nodes.AlterDuration: _alter_duration,
        nodes.ToPoint: ToPointKernel,
        nodes.PointAtEnd: PointAtEndKernel,
        nodes.Chop: ChopKernel,
        nodes.Stitch: StitchKernel,
        nodes.Coalesce: CoalesceKernel,
        nodes.Distinct: DistinctKernel,
        nodes.Union: UnionKernel,
        nodes.Join: JoinKernel,
        nodes.FollowedBy: JoinKernel,
        nodes.LeftOuter: OuterJoinKernel,
        nodes.FullOuter: OuterJoinKernel,
        nodes.AntiJoin: AntiJoinKernel,
        nodes.Clip: ClipKernel,
        nodes.Session: SessionKernel,
        nodes.Aggregation: WindowKernel,
        nodes.TopK: WindowKernel,
        nodes.Uda: WindowKernel,
        nodes.Udo: WindowKernel,
        Transition: TransitionKernel,
        Drift: DriftKernel,
        Pairing: PairingKernel,
        During: DuringKernel,
    },
)


def is_settled(typed: Typed) -> bool:
    """Whether a plan's kernels by themselves emit only what never changes, if windows emit only what is final.

    A source may retract.
    """
    seen: set[int] = set()  # parts may be shared, level upon level
    waiting = [typed]
    while waiting:
        part = waiting.pop()
        if id(part) in seen or isinstance(part.node, nodes.WindowNode):
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
