"""anti join: per left event the maximal fragments of its lifetime that no matching right event covers, incrementally.

Linear in left events: a change of the left input is cut by the rights that are there. A change of the right input
concerns the left events it overlaps; their fragments are computed before and after, and the difference goes out.

State. Up to the *base*, an instant at or before both frontiers, everything is settled: no left event starts there any
more, and what covers whom does not change. Of an older left event only one thing before the base still matters: where
its fragment that reaches the base began. So every left event has a cell ``since``:

- its own start, if it starts at or after the base,
- else the start of its uncovered stretch that reaches the base,
- or the base itself, if it is covered just before the base.

Then its fragments that can still change are ``[since, re)`` without the rights from the base on. All events with one
key, start and payload share one ``since``, so a changed end finds it by them. A left event goes when ``re < base`` (one
that ends at the base may still be extended, and its open fragment with it); a right one when ``re <= base``: all it
covered is in ``since``, and if it is extended, its −row covers nothing after the base and is left out. A left event
that lives forever thus keeps one number, however many rights come and go, and a fragment that heals is one row again.

Without a residual condition all events of a key meet the same covers. They are fetched once and united, so the cost is
that of events and fragments, not of pairs.

The base follows the frontiers whenever as many rows have come as there are, so small batches cost little.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta, concat, without_cancelling
from streamproof.kernels.lifetimes import Change, Lifetimes, Spans, apart, difference, gaps, gaps_by_key, last_ends
from streamproof.kernels.pairs import SIDES, Keys, Pairs, SideReader, names_read, residual_of, split
from streamproof.kernels.sorting import order_by
from streamproof.kernels.state import Declared, Settling, StoredRows
from streamproof.kernels.store import Found, Store, gather, pick, where
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.typing import Scope

SINCE = -1  # the last cell of a left row


@dataclass(frozen=True, slots=True, eq=False)
class Fragments:
    """Rows of uncovered fragments with the columns of the whole event, and where that event starts."""

    delta: Delta
    start: Ints


class Uncovered(Settling):
    """The fragments of one side's events that matching events of the other do not cover.

    ``kept`` is the side (0 or 1) whose events are cut; in words it is the left one.
    """

    def __init__(self, typed: Typed, context: Context, *, kept: int, needed: set[str]) -> None:
        node = typed.node
        assert isinstance(node, nodes.AntiJoin | nodes.Join)
        schemas = typed.inputs[0].schema, typed.inputs[1].schema
        scope = Scope.two(*schemas, registry=context.registry)
        condition = split(node.on, scope)
        self.kept = kept
        self.keys = Keys([pair.type for pair in condition.equalities], context)
        wanted = [names_read([condition.residual], side) for side in SIDES]
        wanted[kept] |= needed
        first, second = (
            SideReader(side, schema, names, condition, scope, self.keys)
            for side, schema, names in zip(SIDES, schemas, wanted, strict=True)
        )
        self.readers = first, second
        self._reader, other = self.readers[kept], self.readers[1 - kept]
        self.stored = self._reader.stored  # the columns that fragments have
        self.lefts = Store(
            self._reader.layout.width + 1, most=context.limits.events_listed
        )  # events to cut, each with its ``since``
        self.rights = Store(other.layout.width, most=context.limits.events_listed)  # events that cover
        self.base = BEGINNING  # up to here all is settled
        self.frontiers = [BEGINNING, BEGINNING]
        self._residual = residual_of(condition, scope)

    def on_batch(self, port: int, delta: Delta) -> Fragments:
        """The change of the fragments that a change of one input makes."""
        output = self._left(delta) if port == self.kept else self._right(delta)
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        self.settle_now_and_then()
        return output

    def _left(self, delta: Delta) -> Fragments:
        rows, able = self._reader.read(delta, spare=1)
        self._remember(rows)
        free = self._gaps(rows)
        output = self._fragments(rows, Change(*free, np.ones(len(free.row), np.int64)))
        self.lefts.put(rows)
        if able.all():
            return output
        rest = delta.take(~able)  # nothing can match these: they stay whole
        names = [self._reader.names.index(name) for name in self._reader.stored]
        whole = Delta(rest.group, rest.le, rest.re, rest.w, tuple(rest.columns[n] for n in names))
        return Fragments(concat([output.delta, whole], frontier=BEGINNING), np.concatenate([output.start, rest.le]))

    def _remember(self, rows: Cells) -> None:
        """Give rows their ``since``: that of the same event in the state, if it started before the base."""
        rows[:, SINCE] = rows[:, LE]
        early = np.flatnonzero(rows[:, LE] < self.base)
        if len(early):
            known = self.lefts.same_start(rows[early], self._reader.layout.width)
            rows[early, SINCE] = self.base
            rows[early[known.query], SINCE] = known.column(PAYLOAD + self.lefts.width - 1)

    def _right(self, delta: Delta) -> Fragments:
        rows, _ = self.readers[1 - self.kept].read(delta)
        rows = where(rows, rows[:, RE] > self.base)
        key, le, re = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE))
        keys, low, first, last = apart(key, np.maximum(le, self.base), re)
        touched = in_order(self.lefts.overlapping(keys, first, last, low=low))
        old = self._gaps(touched)
        self.rights.put(rows)
        return self._fragments(touched, difference(old, self._gaps(touched)))

    def _gaps(self, lefts: Cells) -> Spans:
        """The fragments of left rows that reach the base or lie after it, by the rights that are there now."""
        key, le, re, since = (np.ascontiguousarray(lefts[:, n]) for n in (KEY, LE, RE, SINCE))
        start = np.maximum(le, self.base)
        if self._residual is None:
            return gaps_by_key(Lifetimes(key, start, re), since, self._covers(key, start, re))
        cover = self._pairs(lefts, key, start, re).found
        row, cover_le, cover_re = cover.query, np.maximum(cover.le, self.base), cover.re
        if len(cover.parts) > 1:
            order = order_by(row, cover_le)
            row, cover_le, cover_re = row[order], cover_le[order], cover_re[order]
        return gaps(since, re, row, cover_le, cover_re)

    def _covers(self, key: Ints, start: Ints, end: Ints) -> Lifetimes:
        """Every right, once, that meets one of these intervals of its key, from the base on."""
        keys, low, first, last = apart(key, start, end)
        rows = in_order(self.rights.overlapping(keys, first, last, low=low))
        found, le, re = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE))
        return Lifetimes(found, np.maximum(le, self.base), re)

    def _pairs(self, lefts: Cells, key: Ints, start: Ints, end: Ints) -> Pairs:
        """Left rows and the rights that match them and meet an interval."""
        found = self.rights.overlapping(key, start, end)
        return Pairs(self.readers, self.kept, lefts, found).where(self._residual)

    def _fragments(self, lefts: Cells, change: Change) -> Fragments:
        row, le, re, sign = change
        group = self.keys.group(gather(lefts, row, KEY))
        columns = self._reader.columns(lefts, row)
        return Fragments(Delta(group, le, re, sign * gather(lefts, row, W), columns), gather(lefts, row, LE))

    def stores(self) -> dict[str, StoredRows]:
        other = self.readers[1 - self.kept].layout
        return {"lefts": StoredRows(self.lefts, self._reader.layout), "rights": StoredRows(self.rights, other)}

    def move_base(self, frontier: int) -> None:
        self.lefts.drop(frontier if frontier < FOREVER else FOREVER + 1)  # at ∞ nothing can change any more
        self._renew_since(frontier)
        self.rights.drop(frontier + 1)

    def _renew_since(self, base: int) -> None:
        """Give every left event that started before the new base its new ``since``."""
        rows = self.lefts.all_rows()
        early = np.flatnonzero(rows[:, LE] < base)
        lefts = rows[early]
        key, since = np.ascontiguousarray(lefts[:, KEY]), np.ascontiguousarray(lefts[:, SINCE])
        start, end = np.maximum(lefts[:, LE], self.base), np.full(len(lefts), base)
        # the stretch that reaches the base begins where the last cover before it ended
        if self._residual is None:
            rows[early, SINCE] = last_ends(key, since, base, self._covers(key, start, end))
        else:
            found = self._pairs(lefts, key, start, end).found
            np.maximum.at(since, found.query, np.minimum(found.re, base))
            rows[early, SINCE] = since


def in_order(found: Found) -> Cells:
    """The rows found, in the order of keys and starts; within one run they are."""
    rows = found.rows
    if len(found.parts) == 1:
        return rows
    return pick(rows, order_by(np.ascontiguousarray(rows[:, KEY]), np.ascontiguousarray(rows[:, LE])))


class AntiJoinKernel(Declared):
    """Per left event, the maximal fragments of its lifetime that no matching right event covers."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self._uncovered = Uncovered(typed, context, kept=0, needed=set(typed.schema.names))
        self._output = Layout.of(typed.schema)
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        change = self._uncovered.on_batch(port, delta).delta
        output = without_cancelling(change, self._output, self._context.strings)
        return output.at(min(self._uncovered.frontiers))

    def parts(self) -> dict[str, Part]:
        return {"uncovered": self._uncovered}
