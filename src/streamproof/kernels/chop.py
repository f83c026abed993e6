"""chop: every lifetime cut at ``offset + k·period``.

A finite lifetime is cut at once. An infinite one has no end of pieces, so they come as time moves on: a piece is due
when its beat begins before the latest CTI or start seen. So whatever is not yet out begins after the CTI, which the
output can therefore keep, even if a lifetime has no end yet when it comes, or none any more later.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from streamproof.errors import RunError
from streamproof.events import weights
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.linear import lifetime
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.limits import too_many_rows, too_many_windows


class ChopKernel(Declared):
    """Pieces of lifetimes, beat by beat."""

    def __init__(self, typed: Typed, context: Context) -> None:
        assert isinstance(typed.node, nodes.Chop)
        self._period, self._offset = int(typed.node.period), int(typed.node.offset)  # type: ignore[arg-type]  # ticks
        self._context = context
        self._layout = Layout.of(typed.schema)
        self.no_end = Store(self._layout.width)  # rows with an infinite end, by group
        self.due = BEGINNING  # the pieces of no_end rows are out that begin in a beat before then
        self.frontier = BEGINNING

    def on_batch(self, port: int, delta: Delta) -> Delta:
        no_end = (delta.re >= FOREVER) | (delta.le <= BEGINNING)
        bounded, changed = delta.take(~no_end), delta.take(no_end)
        parts = [self._pieces(bounded, BEGINNING, FOREVER)]
        if len(changed):
            cells = self._layout.encode(changed.columns, self._context.strings)
            self.no_end.add(changed.group, changed.le, changed.re, changed.w, cells)
            parts.append(self._pieces(changed, BEGINNING, self.due))
        self.frontier = max(self.frontier, delta.frontier)
        before, self.due = self.due, self._next_due(delta)
        if len(self.no_end) and self.due > before:
            parts.append(self._pieces(self._remembered(), before, self.due))
        if self.frontier >= FOREVER:  # nothing can change any more
            self.no_end = Store(self._layout.width)
        return concat(parts, frontier=self.frontier)

    def _next_due(self, delta: Delta) -> int:
        latest = int(delta.le.max()) if len(delta) else BEGINNING
        due = max(self.due, self.frontier, latest)
        if self.frontier > BEGINNING and len(self.no_end):
            self._refuse(self.no_end.events().le <= BEGINNING, "give lifetimes a start")  # no horizon helps there
        if due >= FOREVER and self._context.horizon is None and len(self.no_end):
            every = np.ones(len(self.no_end.events().le), np.bool_)
            self._refuse(every, "give a horizon (--horizon T), or end the lifetimes first")
        return due

    def _refuse(self, no_end: npt.NDArray[np.bool_], fix: str) -> None:
        if no_end.any():
            at = lifetime(self._remembered(), int(no_end.argmax()))
            raise RunError(
                "chop over an infinite lifetime has no end of pieces", at=at, fix=fix, name="unbounded_windows"
            )

    def _remembered(self) -> Delta:
        events = self.no_end.events()
        columns = tuple(self._layout.decode(events.cells, self._context.strings))
        return Delta(events.key, events.le, events.re, events.w, columns)

    def _pieces(self, rows: Delta, after: int, until: int) -> Delta:
        """The pieces of the beats that begin at one instant or after it, and before another."""
        rows = rows.take(rows.le > BEGINNING)  # nobody knows the first piece of the others
        first = np.maximum(self._beat(rows.le), self._beats_before(after))
        last = np.minimum(self._beat(rows.re - 1), self._beats_before(until) - 1)
        counts = np.maximum(last - first + 1, 0)
        self._refuse_many(rows, last - self._beat(rows.le) + 1 if self._context.horizon is not None else counts)
        if (pieces := weights.total(counts)) > (most := self._context.limits.events_listed):
            raise too_many_rows(most, at=f"{pieces:,} pieces of {len(rows):,} events")
        source = np.repeat(np.arange(len(rows)), counts)
        nth = np.arange(len(source)) - np.repeat(np.cumsum(counts) - counts, counts)
        start = self._offset + (first[source] + nth) * self._period
        cut = rows.take(source)
        return replace(cut, le=np.maximum(cut.le, start), re=np.minimum(cut.re, start + self._period))

    def _refuse_many(self, rows: Delta, counts: Ints) -> None:
        """Under a horizon, all pieces count; without one, those of an no_end row that are due at once.

        What goes was counted when it came.
        """
        limit, counts = self._context.limits.windows_per_event, np.where(rows.w > 0, counts, 0)
        if len(counts) and int(counts.max()) > limit:
            worst = int(counts.argmax())
            raise too_many_windows(int(counts[worst]), limit, at=lifetime(rows, worst))

    def _beat(self, times: Ints) -> Ints:
        """The number of the beat that each instant lies in."""
        return (times - self._offset) // self._period

    def _beats_before(self, instant: int) -> int:
        """Returns the number of beats from beat 0 on that begin before an instant; under a horizon, that end."""
        begun, horizon = -((self._offset - instant) // self._period), self._context.horizon
        return begun if horizon is None else min(begun, (horizon - self._offset) // self._period)

    def parts(self) -> dict[str, Part]:
        return {"no_end": StoredRows(self.no_end, self._layout, grouped=True), "time": Fields(self, "due", "frontier")}
