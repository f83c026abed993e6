"""Which kernel runs which node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from streamproof.kernels.antijoin import AntiJoinKernel
from streamproof.kernels.base import Context, Kernel
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
from streamproof.kernels.state import Declared
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
