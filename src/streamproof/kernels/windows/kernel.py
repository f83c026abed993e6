"""The kernel of a windowed node: aggregates, rankings and modules over any window, for all groups at once."""

from __future__ import annotations

from dataclasses import replace

from streamproof.events.time import BEGINNING
from streamproof.kernels.base import Context, State
from streamproof.kernels.cells import Ints
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.hopping_sums.strategy import HoppingSums
from streamproof.kernels.windows.inspect import Inspection
from streamproof.kernels.windows.recompute.strategy import Recompute
from streamproof.kernels.windows.snapshot_extremes.strategy import SnapshotExtremes
from streamproof.kernels.windows.snapshot_sums.strategy import SnapshotSums
from streamproof.plan.check import Typed


class WindowKernel:
    """One windowed node, run incrementally."""

    def __init__(self, typed: Typed, context: Context, *, fast: bool = True) -> None:
        """``fast`` False keeps every event, also where sums would do: slower, but with more to look at."""
        general = Recompute(typed, context, keeps_all=not fast)
        self._how: Recompute | HoppingSums | SnapshotSums | SnapshotExtremes = general
        self._usable = general.evaluator.kept.usable
        if fast and HoppingSums.can(typed, context):
            self._how = HoppingSums(typed, context)
        elif fast and SnapshotSums.can(typed, context):
            self._how = SnapshotSums(typed, context)
        elif fast and SnapshotExtremes.can(typed, context):
            self._how = SnapshotExtremes(typed, context)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return self._how.on_batch(self._usable(delta))

    def inspect(self, change: Delta | None = None) -> Inspection:
        """The windows with their members, what is retained, how far the output is sealed, and what a change would do.

        Nothing is changed by asking. Where only sums are kept, windows have sizes instead of members.
        """
        how = self._how
        sealed = None if how.sealed <= BEGINNING else how.sealed
        shown = Inspection(how.frontier, sealed, how.windows(), how.events())
        if change is None:
            return shown
        twin = type(how)(how.typed, how.context)
        twin.restore(how.snapshot())
        return replace(shown, affected=twin.affected(change))

    def snapshot(self) -> State:
        return self._how.snapshot()

    def restore(self, state: State) -> None:
        self._how.restore(state)

    def live_strings(self) -> Ints:
        return self._how.live_strings()

    def live_groups(self) -> Ints:
        return self._how.live_groups()

    def live_rows(self) -> int:
        return self._how.live_rows()
