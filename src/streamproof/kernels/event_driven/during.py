"""during: what observing events see of the data, incrementally.

A result is a function of one observing event, the data, and how far time has come: results are *due* up to the latest
start of the data, or its frontier. So a change of observing events changes their own results. A change of the data
changes the results that see it, and if time moves on, the results that become due are added.

State. Let c be the lesser of both frontiers. Results before c are final. Observing events go that have none from c on,
and data that no observing event can see any more: those before all that still last (of the same key), or, where only
the recent past is seen, before that.

Everything at t depends on what comes up to t, so the output's frontier is c. But where results tell the end of an event
that may still change, they are only final when it cannot: then the frontier is held at the least begin of such events,
and what they saw is kept.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.event_driven import refuse_late, refuse_times
from streamproof.kernels.event_driven.answers import Answers, Slices
from streamproof.kernels.event_driven.pairing import key_columns, key_types
from streamproof.kernels.event_driven.scopes import NO_REACH, Scopes, Stretch, keys_of, last_from, places_of
from streamproof.kernels.pairs import Keys, cells_of
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store, gather, ordered
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import During
from streamproof.thresholds import STORE_NEW

LEAST = -(2**63)


class DuringKernel(Declared):
    """Observing events on the left, data on the right."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, During)
        left, right = (part.schema for part in typed.inputs)
        self.node, self.typed, self.context = node, typed, context
        self.scopes = Scopes.of(node, context.horizon, context.limits.windows_per_event)
        kinds = key_types(node.key, left, right)
        self.keys = Keys(kinds, context)  # of observing events
        self.subs = Keys([*kinds, *(right[name] for name in node.group)], context)  # subgroups of the data
        ordered_by = node.latest or any(agg.function.ordered for _, agg in node.aggs)
        self.stored = StoredColumns(right, context, payload=ordered_by)
        self.answers = Answers(node, self.stored, [kind for _, kind in typed.schema][-len(node.aggs) :], context)
        self.layout = Layout.of(left)
        self.output = Layout.of(typed.schema)
        self.lefts = Store(self.layout.width)  # observing events that may still have results
        self.data = Store(self.stored.layout.width)  # data that may still be seen, as points, by subgroup
        # settled data in slices, where every observing event sees all from its begin on and the aggregates combine
        shares = node.trigger == "end" and self.answers.parts is not None
        self.slices = Slices.none(self.answers.parts or []) if shares else None
        self.frontiers = [BEGINNING, BEGINNING]
        self.seen = BEGINNING  # the latest start of the data
        self._settled = BEGINNING  # the frontier when something was last forgotten
        self._fresh = self._left = 0  # rows that came since then, and that were left then
        self._tells_end = node.end is not None and node.trigger != "end"
        self._kinds = kinds
        self._left_key = [left.names.index(name) for name in node.key]
        self._sub_key = [right.names.index(name) for name in (*node.key, *node.group)]

    # --- one batch ----------------------------------------------------------------------------------------------------

    def on_batch(self, port: int, delta: Delta) -> Delta:
        due = self._due()
        parts = self._observed(delta, due) if port == 0 else self._fed(delta, due)
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        if port == 1 and len(delta):
            self.seen = max(self.seen, int(delta.le.max()))
        self._fresh += len(delta)
        parts += self._newly_due(due, self._due())
        output = concat(parts or [Delta.empty(self.typed.schema)], frontier=BEGINNING)
        if len(parts) > 1 or (len(output) and output.w.min() < 0):
            output = consolidate(output, self.output, self.context.strings)
        self._settle_now_and_then()
        return output.at(self._held())

    def _held(self) -> int:
        """Results before it are final."""
        frontier = min(self.frontiers)
        if not self._tells_end or self.frontiers[0] >= FOREVER:
            return frontier
        lefts = self.lefts.all_rows()
        begins = lefts[lefts[:, RE] >= self.frontiers[0], LE]
        return min(frontier, int(begins.min())) if len(begins) else frontier

    def _due(self) -> int:
        """Up to here results are given."""
        return max(self.frontiers[1], self.seen)

    def _observed(self, delta: Delta, due: int) -> list[Delta]:
        """A change of observing events: their own results, as often as they are."""
        if not len(delta):
            return []
        columns = key_columns(delta, self._left_key, self._kinds)
        key = self.keys.number(delta.group, cells_of(self.keys.layout, columns, len(delta), self.context))
        cells = cells_of(self.layout, delta.columns, len(delta), self.context)
        rows = ordered(key, delta.le, delta.re, delta.w, cells)
        asking = rows[rows[:, RE if self.scopes.trigger == "end" else LE] <= due]
        answers = self._answers(asking, self._stretch(asking), LEAST, due) if len(asking) else []
        self.lefts.put(rows)
        return answers

    def _fed(self, delta: Delta, due: int) -> list[Delta]:
        """A change of the data: the results that see it, before and after."""
        if not len(delta):
            return []
        refuse_late(delta)
        delta = self.stored.usable(delta)
        kinds = [*self._kinds, *(kind for kind, _ in self.subs.layout.columns[len(self._kinds) :])]
        columns = key_columns(delta, self._sub_key, kinds)
        sub = self.subs.number(delta.group, cells_of(self.subs.layout, columns, len(delta), self.context))
        rows = ordered(sub, delta.le, delta.le + 1, delta.w, self.stored.encode(delta))
        late = rows[rows[:, LE] <= due]
        if not len(late):
            self.data.put(rows)
            return []
        lefts, since, until = self._concerned(late, due)
        before = self._answers(lefts, self._stretch(lefts), since, until)
        self.data.put(rows)
        after = self._answers(lefts, self._stretch(lefts), since, until)
        return [Delta(d.group, d.le, d.re, -d.w, d.columns) for d in before] + after

    def _concerned(self, late: Cells, due: int) -> tuple[Cells, Ints, Ints]:
        """The observing events that may see some changed data, and the instants at which they may."""
        owner = self._owners(np.ascontiguousarray(late[:, KEY]))
        keys, place = np.unique(owner, return_inverse=True)
        earliest, latest = np.full(len(keys), FOREVER), np.full(len(keys), LEAST)
        np.minimum.at(earliest, place, late[:, LE])
        np.maximum.at(latest, place, late[:, LE])
        lefts = self.lefts.of_keys(keys)
        at = np.searchsorted(keys, lefts[:, KEY])
        since, until = earliest[at], np.full(len(lefts), due)
        if self.scopes.reach != NO_REACH:
            until = np.minimum(until, latest[at] + self.scopes.reach - 1)
        if self.scopes.trigger == "start":
            some = (lefts[:, LE] >= since) & (lefts[:, LE] <= until)
        elif self.scopes.trigger == "end":
            some = (lefts[:, LE] <= latest[at]) & (lefts[:, RE] > since) & (lefts[:, RE] <= until)
        else:
            some = (lefts[:, LE] <= latest[at]) & (lefts[:, RE] > since)
        return lefts[some], since[some], until[some]

    def _newly_due(self, before: int, now: int) -> list[Delta]:
        if now <= before:
            return []
        lefts = self.lefts.all_rows()
        if self.scopes.trigger == "start":
            some = (lefts[:, LE] > before) & (lefts[:, LE] <= now)
        elif self.scopes.trigger == "end":
            some = (lefts[:, RE] > before) & (lefts[:, RE] <= now)
        else:
            some = (lefts[:, RE] > before) & (lefts[:, LE] <= now)
        if not some.any():
            return []
        chosen = lefts[some]
        return self._answers(chosen, self._stretch(chosen), before + 1, now)

    # --- questions and answers ----------------------------------------------------------------------------------------

    def _owners(self, subs: Ints) -> Ints:
        """The key of observing events that subgroups belong to."""
        rows = self.subs.known.rows(subs)
        width = self.keys.layout.width - 1
        nulls = rows[:, -1] & ((1 << len(self._kinds)) - 1)
        return self.keys.number(rows[:, 0], np.column_stack([rows[:, 1 : 1 + width], nulls]))

    def _stretch(self, lefts: Cells) -> Stretch:
        """The data that observing events of some keys could see."""
        rows = self.data.all_rows()
        subs = self._subs(rows)
        owners = self._owners(subs) if len(subs) else subs
        wanted = np.isin(owners, keys_of(lefts))
        if wanted.all() or self.slices is not None:
            return Stretch.of(rows, subs, owners, self.slices if self.slices is not None and len(self.slices) else None)
        return Stretch.of(self.data.of_keys(subs[wanted]), subs[wanted], owners[wanted])

    def _subs(self, rows: Cells) -> Ints:
        """The subgroups that have data."""
        subs = keys_of(rows)
        return subs if self.slices is None or not len(self.slices) else np.union1d(subs, self.slices.sub)

    def _answers(self, lefts: Cells, data: Stretch, since: Ints | int, until: Ints | int) -> list[Delta]:
        """The results of observing events at the instants of a range."""
        if not len(lefts):
            return []
        low, high = (np.broadcast_to(np.asarray(bound, np.int64), len(lefts)) for bound in (since, until))
        asked = self.scopes.questions(lefts, data, low, high)
        if not len(asked.t):
            return []
        refuse_times(asked.t)
        cells = self.answers.cells(asked, data)
        columns = (*self._group_columns(asked.sub), *self._left_columns(lefts, asked.left))
        found = self.answers.layout.decode(cells, self.context.strings)
        key = self.keys.group(gather(lefts, asked.left, KEY))
        return [Delta(key, asked.t, asked.t + 1, np.ascontiguousarray(asked.w), (*columns, *found))]

    def _group_columns(self, sub: Ints) -> list[pa.Array]:
        known = self.subs.known
        return [
            self.subs.layout.read(lambda cell: known.column(sub, 1 + cell), n, self.context.strings)
            for n in range(len(self._kinds), len(self._sub_key))
        ]

    def _left_columns(self, lefts: Cells, at: Ints) -> list[pa.Array]:
        strings = self.context.strings
        columns = [
            self.layout.read(lambda cell: gather(lefts, at, PAYLOAD + cell), n, strings)
            for n in range(len(self.layout.columns))
        ]
        if self.node.begin is not None:
            columns.append(pa.array(gather(lefts, at, LE)))
        if self.node.end is not None:
            ends = gather(lefts, at, RE)
            columns.append(pa.array(ends, mask=ends >= FOREVER))
        return columns

    # --- cleanup ------------------------------------------------------------------------------------------------------

    def _settle_now_and_then(self) -> None:
        if min(self.frontiers) > self._settled and self._fresh > max(STORE_NEW.now, self._left):
            self.settle()
            self._left, self._fresh = self.live_rows(), 0
            if self.keys.wants_collection() or self.subs.wants_collection():
                self.collect()

    def settle(self) -> None:
        """Forget what no result can need any more."""
        frontier = min(self.frontiers)
        if frontier <= BEGINNING:
            return
        self._settled = frontier
        if frontier >= FOREVER:
            self.lefts.replace(self.lefts.all_rows()[:0])
            self.data.replace(self.data.all_rows()[:0])
            self.slices = None if self.slices is None else Slices.none(self.answers.parts or [])
            return
        lefts = self.lefts.all_rows()
        over = LE if self.scopes.trigger == "start" and not self._tells_end else RE
        live = lefts[:, over] >= frontier
        lefts = lefts[live]
        self.lefts.replace(lefts)
        rows = self.data.all_rows()
        if self.slices is not None:
            self.slices = self._sliced(self.slices, rows[rows[:, LE] < frontier], lefts)
            self.data.replace(rows[rows[:, LE] >= frontier])
        elif len(rows):
            self.data.replace(rows[rows[:, LE] >= self._needed(rows, lefts, frontier)])

    def _sliced(self, slices: Slices, rows: Cells, lefts: Cells) -> Slices:
        """Settled rows in slices that begin where observing events begin."""
        assert self.answers.parts is not None
        sub, le = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE))
        subs, starts = np.concatenate([slices.sub, sub]), np.concatenate([slices.le, le])
        known, place = np.unique(subs, return_inverse=True) if len(slices) else (keys_of(rows), places_of(rows))
        owner = self._owners(known)[place] if len(known) else subs
        key, begin = (np.ascontiguousarray(lefts[:, n]) for n in (KEY, LE))
        at = last_from(key, begin, owner, starts)
        cut = np.where((at >= 0) & (key[at] == owner), at, -1) if len(key) else np.full(len(subs), -1)
        return slices.combined(sub, le, self.answers.contributions(rows), cut, self.answers.parts)

    def _needed(self, rows: Cells, lefts: Cells, frontier: int) -> Ints:
        """For each row the start from which data of its key are needed."""
        if self.scopes.trigger == "start":
            return self._recent(rows, self._held())
        subs, place = keys_of(rows), places_of(rows)
        keys = keys_of(lefts)
        least = np.full(len(keys) + 1, frontier)
        np.minimum.at(least, np.searchsorted(keys, lefts[:, KEY]), lefts[:, LE])
        owners = self._owners(subs)
        at = np.searchsorted(keys, owners)
        known = (at < len(keys)) & (keys[np.minimum(at, len(keys) - 1)] == owners if len(keys) else False)
        needed = np.where(known, least[np.minimum(at, len(keys))], frontier)
        if self.scopes.reach != NO_REACH and not self._tells_end:
            needed = np.maximum(needed, frontier - self.scopes.reach + 1)
        return needed[place]

    def _recent(self, rows: Cells, frontier: int) -> Ints:
        if self.scopes.reach != NO_REACH:
            return np.full(len(rows), frontier - self.scopes.reach + 1)
        if not self.node.latest:
            return np.full(len(rows), LEAST)
        subs, place = keys_of(rows), places_of(rows)
        last = np.full(len(subs), LEAST)
        past = rows[:, LE] < frontier
        np.maximum.at(last, place[past], rows[past, LE])
        return last[place]

    def collect(self) -> None:
        subs = self._subs(self.data.all_rows())
        owners = self._owners(subs) if len(subs) else subs
        self.keys.collect(np.unique(np.concatenate([self.lefts.keys(), owners])))
        self.subs.collect(subs)

    def parts(self) -> dict[str, Part]:
        return {
            "left_keys": self.keys,
            "data_keys": self.subs,
            "lefts": StoredRows(self.lefts, self.layout),
            "data": StoredRows(self.data, self.stored.layout),
            **({} if self.slices is None else {"slices": self.slices}),
            "time": Fields(self, "frontiers", "seen"),
        }

    # --- state --------------------------------------------------------------------------------------------------------
