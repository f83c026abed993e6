"""The event store: live events by key and start, for finding those whose lifetimes meet an interval.

Events lie in a few sorted *runs*, each at least twice as long as the next, so that a small batch rewrites little (as in
an LSM tree). A retraction is taken off the row it retracts, in place.

A run is one matrix. A row is key, le, re, w and the payload's cells; rows are sorted by key, le, payload and re, and
equal events are one row with a weight. Above it lie the latest ends of every 16, 256 and 4,096 rows, so a search steps
over stretches of the past at once. However mixed lifetimes are, it looks at about 16 rows per event found.

    latest end of 4,096 rows   ┌───────────────── 97 ─────────────────┐   who looks for re > 98 skips all of it
                  256 rows     ┌── 41 ──┐┌── 97 ──┐ …
                   16 rows     ┌12┐┌41┐…
    rows by (key, le)          · · · · · · · · · ·

>>> ordered(ints(1, 1, 1), ints(5, 0, 5), ints(7, 10, 7), ints(1, 1, 1), np.array([[43], [42], [43]])).tolist()
[[1, 0, 10, 1, 42], [1, 5, 7, 2, 43]]
>>> store = Store(width=1)
>>> store.add(ints(1, 1), ints(0, 5), ints(10, 7), ints(1, 1), np.array([[42], [43]]))
>>> found = store.overlapping(ints(1), ints(8), ints(9))
>>> found.query.tolist(), found.le.tolist(), found.cells.tolist()
([0], [0], [[42]])
>>> store.drop(11); len(store)
0
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from streamproof.events.time import BEGINNING
from streamproof.events.weights import MOST_LISTED
from streamproof.kernels import store_loops
from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.sorting import order_by
from streamproof.kernels.store_loops import (
    KEY,
    LE,
    LEAST,
    PAYLOAD,
    RE,
    W,
    arranged_loop,
    cancel,
    compare_all,
    copy_lasting,
    gather_loop,
    how_many_last,
    is_stretch,
    latest_ends,
    merge_loop,
    pick_loop,
    settle_loop,
)
from streamproof.plan.limits import too_many_rows
from streamproof.thresholds import STORE_NEW, TIES


class StoredEvents(NamedTuple):
    """Columns of stored events."""

    key: Ints
    le: Ints
    re: Ints
    w: Ints
    cells: Cells


@dataclass(frozen=True, slots=True)
class Found:
    """Pairs of a query and an event that answers it, run by run. Good until the store changes."""

    query: Ints
    parts: tuple[tuple[Cells, Ints], ...]  # the rows of a run, and which of them were found

    def __len__(self) -> int:
        return len(self.query)

    def column(self, number: int) -> Ints:
        """One column of the events found."""
        pieces = [gather(rows, at, number) for rows, at in self.parts]
        return pieces[0] if len(pieces) == 1 else np.concatenate([ints(), *pieces])

    @property
    def le(self) -> Ints:
        return self.column(LE)

    @property
    def re(self) -> Ints:
        return self.column(RE)

    @property
    def w(self) -> Ints:
        return self.column(W)

    @property
    def rows(self) -> Cells:
        """The events found, each a whole row; to be read only."""
        pieces = [look(rows, at) for rows, at in self.parts]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    @property
    def cells(self) -> Cells:
        return self.rows[:, PAYLOAD:]

    def where(self, mask: npt.NDArray[np.bool_]) -> Found:
        """The pairs that a mask keeps."""
        parts, done = [], 0
        for rows, at in self.parts:
            parts.append((rows, at[mask[done : done + len(at)]]))
            done += len(at)
        return Found(self.query[mask], tuple(parts))


class Store:
    """Live events of one input."""

    def __init__(self, width: int, *, most: int = MOST_LISTED) -> None:
        """``most``: so many pairs may be found at once."""
        self.width, self._most = width, most
        self._runs: list[Run] = []  # the longest first
        self._before = BEGINNING  # events that ended before this instant are gone, though they may still lie here
        self._new = 0  # rows since the last tidying
        self._is_tidy = True  # one run at most, and nothing in it that is gone

    def add(self, key: Ints, le: Ints, re: Ints, w: Ints, cells: Cells) -> None:
        """Add signed events; equal ones merge, and those that cancel vanish."""
        self.put(ordered(key, le, re, w, cells))

    def put(self, rows: Cells) -> None:
        """Add the rows of a run, as `ordered` makes them. They belong to the store from now on."""
        if not len(rows):
            return
        added = Run.of(rows)
        if added.earliest < self._before:
            rows = rows[rows[:, RE] >= self._before]
        if not len(rows):
            return
        self._new += len(rows)
        self._is_tidy = False
        if self._runs and added.least_weight < 0:
            for run in self._runs:
                cancel(run.rows, rows)
            rows = rows[rows[:, W] != 0]
        if len(rows):
            self._runs.append(added if rows is added.rows else Run.of(rows))
        while (at := self._crowded()) is not None:
            self._merge(at)

    def _crowded(self) -> int | None:
        """The last run that is not at least twice as long as the next."""
        sizes = [len(run.rows) for run in self._runs]
        return next((n for n in range(len(sizes) - 2, -1, -1) if 2 * sizes[n + 1] > sizes[n]), None)

    def _merge(self, at: int) -> None:
        """Make one run of two. If most of the first is gone, what is left of it comes after the second instead."""
        first, second = self._runs[at : at + 2]
        left = how_many_last(first.rows, self._before)
        if left < len(first.rows) and 2 * left <= len(second.rows):
            kept = [second, Run.of(lasting(first.rows, before=self._before))]
        else:
            kept = [Run.of(merged(first.rows, second.rows, before=self._before))]
        self._runs[at : at + 2] = [run for run in kept if len(run.rows)]
        self._runs.sort(key=lambda run: -len(run.rows))

    def drop(self, before: int) -> None:
        """Forget every event that ended before this instant."""
        if before <= self._before:
            return
        self._before, self._is_tidy = before, not self._runs
        self._runs = [run for run in self._runs if run.latest >= self._before]
        if self.wants_tidying():
            self.tidy()

    def overlapping(self, key: Ints, start: Ints, end: Ints, *, low: Ints | None = None) -> Found:
        """For each query the events of its key with ``le < end`` and ``re > start`` (and ``le >= low``).

        Fast where the queries come in the order of their keys.
        """
        found = self.few(key, start, end, low=low, at_once=self._most)
        assert found is not None  # more are refused
        return found

    def few(self, key: Ints, start: Ints, end: Ints, *, low: Ints | None = None, at_once: int) -> Found | None:
        """The same, unless that is more pairs than should be listed at once; too many altogether are refused."""
        if not len(key):
            return Found(ints(), ((self._none(), ints()),))
        lowest = np.full(len(key), LEAST, np.int64) if low is None else low
        earliest = start.min()
        queries, parts, pairs = [], [], 0
        for run in self._runs:
            if run.latest > earliest:
                room, listed = self._most - pairs, at_once - pairs
                query, at, size = store_loops.probe(*run.searched, key, lowest, start, end, self._before, room, listed)
                pairs += size
                if pairs > self._most:
                    raise too_many_rows(self._most, at="")
                queries.append(query)
                parts.append((run.rows, at))
        if pairs > at_once:
            return None
        query = queries[0] if len(queries) == 1 else np.concatenate([ints(), *queries])
        return Found(query, tuple(parts) or ((self._none(), ints()),))

    def meeting(self, start: int, end: int) -> tuple[Ints, Ints, Ints]:
        """Key, le and re of the events of all keys with ``le < end`` and ``re > start``, run by run."""
        met = [run for run in self._runs if run.latest > start]
        found = [(run.rows, store_loops.meeting(*run.searched, start, end, self._before)) for run in met]
        if len(found) == 1:
            rows, at = found[0]
            return gather(rows, at, KEY), gather(rows, at, LE), gather(rows, at, RE)
        key, le, re = (
            np.concatenate([ints(), *(gather(rows, at, column) for rows, at in found)]) for column in (KEY, LE, RE)
        )
        return key, le, re

    @property
    def longest(self) -> int:
        """No lifetime of an event is longer."""
        return max((run.longest for run in self._runs), default=0)

    def only_key(self) -> int | None:
        """The key of all events, if they have one in common; what was dropped but still lies here counts."""
        ends = {int(run.rows[n, KEY]) for run in self._runs for n in (0, -1)}
        return ends.pop() if len(ends) == 1 else None

    def first_starts(self, key: Ints, start: Ints, end: Ints) -> Ints:
        """For each query the first ``le`` of its key in ``[start, end)``; ``end`` if there is none."""
        best = end.copy()
        for run in self._runs:
            store_loops.first_starts(run.rows, key, start, end, self._before, best)
        return best

    def same_start(self, rows: Cells, depth: int) -> Found:
        """Events with the key, le and first ``depth`` payload cells of given rows, at most one for each of them."""
        answers, offset = np.full(len(rows), -1, np.int64), 0
        for run in self._runs:
            store_loops.same_start(run.rows, rows, depth, self._before, answers, offset)
            offset += len(run.rows)
        return self._numbered(answers)

    def _numbered(self, answers: Ints) -> Found:
        queries, parts, offset = [ints()], [], 0
        for run in self._runs:
            here = np.flatnonzero((answers >= offset) & (answers < offset + len(run.rows)))
            queries.append(here)
            parts.append((run.rows, answers[here] - offset))
            offset += len(run.rows)
        return Found(np.concatenate(queries), tuple(parts) or ((self._none(), ints()),))

    def of_keys(self, keys: Ints) -> Cells:
        """Every event of some keys, which come in order and without repetition, as the rows of a run."""
        found = self._none()
        for run in reversed(self._runs):
            part = pick(run.rows, store_loops.key_rows(run.rows, keys, self._before))
            found = merged(part, found, before=self._before) if len(found) else part
        return found

    def all_rows(self) -> Cells:
        """Every event, as the rows of a run. They still belong to the store."""
        self.tidy()
        return self._runs[0].rows if self._runs else self._none()

    def tidy(self) -> None:
        """One run, without what was dropped."""
        if self._is_tidy:
            return
        rows = self._none()
        for run in reversed(self._runs):
            if len(rows):
                rows = merged(run.rows, rows, before=self._before)
            else:
                rows = lasting(run.rows, before=self._before, copy=False)
        self.replace(rows)

    def replace(self, rows: Cells) -> None:
        """These rows, in the order of a run, instead of all others."""
        self._runs = [Run.of(rows)] if len(rows) else []
        self._new, self._is_tidy = 0, True

    def wants_tidying(self) -> bool:
        """Whether as much was added since the last tidying as was left then."""
        return self._new > max(STORE_NEW.now, self.room // 2)

    @property
    def room(self) -> int:
        """The number of rows that lie here, also of events that are gone."""
        return sum(len(run.rows) for run in self._runs)

    def events(self) -> StoredEvents:
        """The columns of every event."""
        return columns_of(self.all_rows())

    def keys(self) -> Ints:
        """The keys of all events, each once."""
        return np.unique(self.all_rows()[:, KEY])

    def _none(self) -> Cells:
        return np.empty((0, PAYLOAD + self.width), np.int64)

    def __len__(self) -> int:
        return len(self.all_rows())

    @property
    def nbytes(self) -> int:
        return sum(column.nbytes for run in self._runs for column in run.searched)


def columns_of(rows: Cells) -> StoredEvents:
    """The columns of rows."""
    key, le, re, w = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE, W))
    return StoredEvents(key, le, re, w, rows[:, PAYLOAD:])


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def ordered(key: Ints, le: Ints, re: Ints, w: Ints, cells: Cells, *, spare: int = 0) -> Cells:
    """Signed events as the rows of a run: equal ones merge, and those that cancel vanish.

    ``spare`` cells after the payload are 0.
    """
    if not len(key):
        return np.empty((0, PAYLOAD + cells.shape[1] + spare), np.int64)
    # for columns that may not be written to, all that is compiled would be compiled once more
    key, le, re, w = (column if column.flags.writeable else column.copy() for column in (key, le, re, w))
    rows: Cells = arranged_loop(order_by(key, le), key, le, re, w, cells, spare)
    return rows[: settle_loop(rows, TIES.now)]


def merged(first: Cells, second: Cells, *, before: int) -> Cells:
    """Two runs as one, without the events that ended before an instant."""
    if not len(first) or not len(second):
        return lasting(second if not len(first) else first, before=before)
    rows = np.empty((len(first) + len(second), first.shape[1]), np.int64)
    if compare_all(first, len(first) - 1, second, 0) < 0:  # one follows the other, as in a stream of one key
        size = copy_lasting(second, before, rows, copy_lasting(first, before, rows, 0))
    else:
        size = merge_loop(first, second, before, rows)
    kept = rows[:size]
    return kept if 2 * size > len(rows) else kept.copy()  # a small rest must not hold on to a large matrix


def lasting(rows: Cells, *, before: int, copy: bool = True) -> Cells:
    """A run without the events that ended before an instant; a copy, unless that is not needed."""
    size = how_many_last(rows, before)
    if size == len(rows):
        return rows.copy() if copy else rows
    kept = np.empty((size, rows.shape[1]), np.int64)
    copy_lasting(rows, before, kept, 0)
    return kept


def where(rows: Cells, mask: npt.NDArray[np.bool_]) -> Cells:
    """The rows that a mask keeps; the rows themselves if it keeps all."""
    return rows if mask.all() else pick(rows, np.flatnonzero(mask))


class Run(NamedTuple):
    """A sorted matrix of events and the latest ends above it."""

    rows: Cells
    by_16: Ints
    by_256: Ints
    by_4096: Ints
    latest: int  # the latest end of all
    longest: int  # the longest lifetime; infinite where one has no start
    earliest: int  # the earliest end of all
    least_weight: int

    @staticmethod
    def of(rows: Cells) -> Run:
        return Run(rows, *latest_ends(rows))

    @property
    def searched(self) -> tuple[Cells, Ints, Ints, Ints]:
        """What a search looks at."""
        return self[:4]


def gather(rows: Cells, at: Ints, column: int) -> Ints:
    """One column of the rows at these positions."""
    found: Ints = gather_loop(rows, at, column)
    return found


def pick(rows: Cells, at: Ints) -> Cells:
    """The rows at these positions."""
    found: Cells = pick_loop(rows, at)
    return found


def look(rows: Cells, at: Ints) -> Cells:
    """The rows at these positions, for the time of one batch: where they lie together, they are not copied."""
    return rows[at[0] : at[-1] + 1] if len(at) and is_stretch(at) else pick(rows, at)
