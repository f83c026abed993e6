"""The kernel of a windowed node: aggregates, rankings and modules over any window, for all groups at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context, Part
from streamproof.kernels.delta import Delta
from streamproof.kernels.state import Declared
from streamproof.kernels.windows.hopping_sums.strategy import HoppingSums
from streamproof.kernels.windows.inspect import Inspection
from streamproof.kernels.windows.recompute.strategy import Recompute
from streamproof.kernels.windows.shared.sums import are_sums
from streamproof.kernels.windows.snapshot_extremes.strategy import SnapshotExtremes, are_extremes
from streamproof.kernels.windows.snapshot_sums.strategy import SnapshotSums
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.typing import Scope
from streamproof.plan.windows import Hopping, Snapshot, Tumbling

Strategy: TypeAlias = "HoppingSums | SnapshotSums | SnapshotExtremes | Recompute"


def strategy_of(typed: Typed, context: Context) -> Strategy:
    """The fastest way to run a node, by what its plan says; `Recompute` runs any."""
    node = typed.node
    if isinstance(node, nodes.Aggregation):
        scope = Scope.one(typed.inputs[0].schema, registry=context.registry)
        if isinstance(node.window, Tumbling | Hopping) and are_sums(node.aggs, scope):
            return HoppingSums(typed, context)
        if isinstance(node.window, Snapshot) and are_sums(node.aggs, scope):
            return SnapshotSums(typed, context)
        if isinstance(node.window, Snapshot) and are_extremes(node.aggs, scope):
            return SnapshotExtremes(typed, context)
    return Recompute(typed, context, keeps_all=False)


class WindowKernel(Declared):
    """One windowed node, run incrementally."""

    def __init__(self, typed: Typed, context: Context, *, fast: bool = True) -> None:
        """``fast`` False keeps every event, also where sums would do: slower, but with more to look at."""
        self.strategy = strategy_of(typed, context) if fast else Recompute(typed, context)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return self.strategy.on_batch(self.strategy.stored.usable(delta))

    def parts(self) -> dict[str, Part]:
        return {"strategy": self.strategy}

    def inspect(self, change: Delta | None = None) -> Inspection:
        """The windows with their members, what is retained, how far the output is sealed, and what a change would do.

        Nothing is changed by asking. Where only sums are kept, windows have sizes instead of members.
        """
        how = self.strategy
        sealed = None if how.sealed <= BEGINNING else how.sealed
        shown = Inspection(how.frontier, sealed, how.windows(), how.events())
        if change is None:
            return shown
        twin = type(how)(how.typed, how.context)
        twin.restore(how.save())
        return replace(shown, affected=twin.affected(change))
