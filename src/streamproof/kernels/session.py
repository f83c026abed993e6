"""session: each event lasts until ``timeout`` after the last start of its session, incrementally.

Only starts matter, so events are stored as points, and one whose end changes cancels before it gets here. A change
concerns its keys only: the ends of their events are computed before and after, and the difference goes out.

Up to the frontier c starts are settled, and so is which of them make a session. A session that ends at or before c is
over: its last start plus ``timeout`` (or its first plus ``max``) is at most c, and a start at exactly that instant
begins a new one. Its events go. A session that a change prolongs or cuts short ends after c both before and after the
change: in one of the two it has a start x at or after c and ends after x, and in the other it would have taken x in. So
changes concern history from c on.
"""

from __future__ import annotations

import numpy as np

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.lifetimes_loops import NO_MAX, changes_loop, session_ends
from streamproof.kernels.pairs import Keys, cells_of
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store, merged, ordered, pick
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD
from streamproof.plan import nodes
from streamproof.plan.check import Typed


class SessionKernel(Declared):
    """``[le, last start of the session + timeout)``, and with a max at most its first start + max."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Session)
        assert isinstance(node.timeout, int), "a typed plan holds ticks"
        assert node.max is None or isinstance(node.max, int)
        names = typed.schema.names
        self.timeout, self.max = node.timeout, node.max or NO_MAX
        self.keys = Keys([typed.schema[name] for name in node.key], context)
        self.layout = Layout.of(typed.schema)
        self.events = Store(self.layout.width)  # events of sessions that are not over, as points
        self.frontier = BEGINNING
        self._key = [names.index(name) for name in node.key]
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        output = self._change(self._read(delta))
        self.frontier = max(self.frontier, delta.frontier)
        if self.events.wants_tidying() or self.keys.wants_collection():
            self.settle()
        return output.at(self.frontier)

    def _read(self, delta: Delta) -> Cells:
        key = cells_of(self.keys.layout, [delta.columns[n] for n in self._key], len(delta), self._context)
        cells = cells_of(self.layout, delta.columns, len(delta), self._context)
        return ordered(self.keys.number(delta.group, key), delta.le, delta.le + 1, delta.w, cells)

    def _change(self, rows: Cells) -> Delta:
        touched = np.unique(rows[:, KEY])
        old = self.events.of_keys(touched)
        new = merged(old, rows, before=BEGINNING)
        self.events.put(rows)
        changes = changes_loop(old, self._ends(old), new, self._ends(new))
        parts = [self._delta(pick(rows, at), end, w) for rows, (at, end, w) in zip((old, new), changes, strict=True)]
        return concat(parts, frontier=BEGINNING)

    def _ends(self, rows: Cells) -> Ints:
        ends: Ints = session_ends(rows, self.timeout, self.max)
        if len(ends) and ends.max() > FOREVER:
            raise RunError(
                f"a session ends after 2^62 ticks: at {ends.max()}",
                fix="use a shorter timeout or a coarser time unit",
                name="overflow",
            )
        return ends

    def _delta(self, rows: Cells, ends: Ints, w: Ints) -> Delta:
        columns = self.layout.decode(rows[:, PAYLOAD:], self._context.strings)
        group = self.keys.group(np.ascontiguousarray(rows[:, KEY]))
        return Delta(group, np.ascontiguousarray(rows[:, LE]), ends, w, tuple(columns))

    def settle(self) -> None:
        """Forget the sessions that are over."""
        rows = self.events.all_rows()
        self.events.replace(rows[self._ends(rows) > self.frontier] if self.frontier < FOREVER else rows[:0])
        self.keys.collect(self.events.keys())

    def parts(self) -> dict[str, Part]:
        return {"keys": self.keys, "events": StoredRows(self.events, self.layout), "time": Fields(self, "frontier")}
