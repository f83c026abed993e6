"""clip: every lifetime ends at the first strictly later start of a matching event, incrementally.

Of the right side only starts matter, so rights are stored as points, and a right event whose end changes cancels before
it gets here. Linear in left events; a change of starts concerns the left events that live on both sides of one.

State. Up to the *base*, an instant at or before both frontiers, starts are settled. A left event with a start before
the base in its lifetime is clipped there for good: it goes, and later changes of its end, which come at or after the
base, find no such event and are left out: −row and +row are both clipped at the same place. Left events with
``re < base`` go too, and so do starts before the base.
"""

from __future__ import annotations

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta, concat, without_cancelling
from streamproof.kernels.lifetimes import apart
from streamproof.kernels.pairs import SIDES, Keys, Pairs, SideReader, names_read, residual_of, split
from streamproof.kernels.state import Settling, StoredRows
from streamproof.kernels.store import Store, gather, where
from streamproof.kernels.store_loops import KEY, LE, RE, W
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.typing import Scope


class ClipKernel(Settling):
    """``[le, min(re, first later matching start))``."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Clip)
        schemas = typed.inputs[0].schema, typed.inputs[1].schema
        scope = Scope.two(*schemas, registry=context.registry)
        condition = split(node.on, scope)
        self.keys = Keys([pair.type for pair in condition.equalities], context)
        wanted = set(schemas[0].names), names_read([condition.residual], "r")
        left, right = (
            SideReader(side, schema, names, condition, scope, self.keys)
            for side, schema, names in zip(SIDES, schemas, wanted, strict=True)
        )
        self.readers = left, right
        self.lefts = Store(left.layout.width, most=context.limits.events_listed)  # events that are not clipped for good
        self.starts = Store(right.layout.width, most=context.limits.events_listed)  # starts from the base on, as points
        self.base = BEGINNING  # up to here all is settled
        self.frontiers = [BEGINNING, BEGINNING]
        self._residual = residual_of(condition, scope)
        self._output = Layout.of(typed.schema)
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        change = self._left(delta) if port == 0 else self._right(delta)
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        self.settle_now_and_then()
        output = without_cancelling(change, self._output, self._context.strings)
        return output.at(min(self.frontiers))

    def _left(self, delta: Delta) -> Delta:
        rows, able = self.readers[0].read(delta)
        rows = self._unclipped(rows)
        output = self._delta(rows, self._ends(rows, np.ascontiguousarray(rows[:, RE])), 1)
        self.lefts.put(rows)
        # what nothing can match stays whole
        return output if able.all() else concat([output, delta.take(~able)], frontier=BEGINNING)

    def _unclipped(self, rows: Cells) -> Cells:
        """Without the rows of events that are clipped for good."""
        early = np.flatnonzero(rows[:, LE] < self.base)
        if not len(early):
            return rows
        known = self.lefts.same_start(rows[early], self.lefts.width)
        kept = np.ones(len(rows), np.bool_)
        kept[early] = False
        kept[early[known.query]] = True
        return rows[kept]

    def _right(self, delta: Delta) -> Delta:
        points = Delta(delta.group, delta.le, delta.le + 1, delta.w, delta.columns)
        rows, _ = self.readers[1].read(points)
        rows = where(rows, rows[:, LE] >= self.base)
        start = np.ascontiguousarray(rows[:, LE])
        key, low, first, last = apart(np.ascontiguousarray(rows[:, KEY]), start, start)
        touched = self.lefts.overlapping(key, first, last, low=low).rows
        ends = np.ascontiguousarray(touched[:, RE])
        old = self._ends(touched, ends)
        self.starts.put(rows)
        new = self._ends(touched, ends)
        changed = np.flatnonzero(old != new)
        parts = [self._delta(touched[changed], end[changed], sign) for end, sign in ((old, -1), (new, 1))]
        return concat(parts, frontier=BEGINNING)

    def _ends(self, lefts: Cells, limit: Ints) -> Ints:
        """Where left rows end, by the starts that are there now."""
        key, le = np.ascontiguousarray(lefts[:, KEY]), np.ascontiguousarray(lefts[:, LE])
        later = np.maximum(le + 1, self.base)
        if self._residual is None:
            return self.starts.first_starts(key, later, limit)
        found = self.starts.overlapping(key, le, limit, low=later)
        pairs = Pairs(self.readers, 0, lefts, found).where(self._residual)
        ends = limit.copy()
        np.minimum.at(ends, pairs.found.query, pairs.found.le)
        return ends

    def _delta(self, lefts: Cells, ends: Ints, sign: int) -> Delta:
        every = np.arange(len(lefts))
        columns = self.readers[0].columns(lefts, every)
        group = self.keys.group(gather(lefts, every, KEY))
        return Delta(group, gather(lefts, every, LE), ends, sign * gather(lefts, every, W), columns)

    def stores(self) -> dict[str, StoredRows]:
        left, right = (reader.layout for reader in self.readers)
        return {"lefts": StoredRows(self.lefts, left), "starts": StoredRows(self.starts, right)}

    def move_base(self, frontier: int) -> None:
        self.lefts.drop(frontier if frontier < FOREVER else FOREVER + 1)  # at ∞ nothing can change any more
        rows = self.lefts.all_rows()
        limit = np.minimum(rows[:, RE], frontier)
        self.lefts.replace(where(rows, self._ends(rows, limit) >= limit))
        self.starts.drop(frontier + 1)  # a point ends one tick after its start
