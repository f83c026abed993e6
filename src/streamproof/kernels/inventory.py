"""The rows of a source that may still change, by what they say: which batches of signed rows are legal.

Rows need no names for that. A batch is legal if it takes away only rows that are there, and changes nothing before the
last CTI: what starts earlier may only get another end, and that at or after the CTI.

>>> from streamproof.events.batch import Batch
>>> schema = Schema.of({"v": "int64"})
>>> inventory = Inventory(schema)
>>> def post(*rows, cti=BEGINNING):
...     posted = inventory.post(Delta.from_batch(Batch.from_rows(schema, rows, frontier=cti)))
...     return posted and posted.events
>>> post((1, 9, 1, {"v": 7}), (2, 9, 1, {"v": 7}), cti=5)
2
>>> post((1, 9, -1, {"v": 7}), (1, 6, 1, {"v": 7}))
1
>>> post((1, 9, -1, {"v": 7})) is None, post((3, 8, 1, {"v": 7})) is None
(True, True)
>>> len(inventory.live())
2

What comes is only put aside, until something is taken away: many sources never do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from streamproof.events import weights
from streamproof.events.order import Flags
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING
from streamproof.kernels.cells import MAX_COLUMNS, Cells, Ints, Layout, Strings
from streamproof.kernels.delta import Delta, concat, consolidate
from streamproof.kernels.interning import Interner
from streamproof.kernels.store_loops import IN_DOUBT, add, events_loop, insertions_loop
from streamproof.thresholds import INVENTORY


class Posted(NamedTuple):
    """A batch that was taken in."""

    delta: Delta  # the same, or its sum
    events: int  # how many inserts and retractions it is


class Inventory:
    """Rows with how often they are there, and the last CTI.

    Law: what it holds is the sum of what was posted, without rows that ended before the CTI.
    """

    def __init__(self, schema: Schema) -> None:
        assert self.can_hold(schema)
        self.schema, self.frontier = schema, BEGINNING
        self._layout, self._strings = Layout.of(schema), Strings()
        self._rows = Interner(2 + self._layout.width)  # the rows that were looked at: le, re, payload
        self._counts = np.zeros(INVENTORY.now, np.int64)  # how often each is there
        self._aside: list[Delta] = []  # what came since
        self._more = 0  # how many rows these are
        self._forget_at = INVENTORY.now  # how many rows there may be before those that ended are looked for

    @staticmethod
    def can_hold(schema: Schema) -> bool:
        """Whether the rows of a schema can be looked up."""
        return len(schema.columns) <= MAX_COLUMNS

    def post(self, delta: Delta) -> Posted | None:
        """Take a batch in if it is legal beyond doubt; if not, nothing has changed."""
        events = insertions_loop(delta.le, delta.re, delta.w, self.frontier)
        if events == IN_DOUBT:
            delta = consolidate(delta, self._layout, self._strings)
            events = self._changes(delta)
        if events == IN_DOUBT:
            return None
        self.put(delta)
        return Posted(delta, events)

    def put(self, delta: Delta) -> None:
        """Take in what is known to be legal."""
        self.frontier = max(self.frontier, delta.frontier)
        self._aside += [delta] if len(delta) else []
        self._more += len(delta)
        if len(self._rows) + self._more >= self._forget_at:
            self._forget()

    def live(self) -> Delta:
        """The rows that may still change, each as often as it is there."""
        self._look()
        codes, rows, here = self._table()
        codes, rows = codes[here], rows[here]
        none = np.zeros(len(rows), np.int64)
        columns = tuple(self._layout.decode(rows[:, 2:], self._strings))
        return Delta(none, rows[:, 0].copy(), rows[:, 1].copy(), self._counts[codes], columns, self.frontier)

    def events(self) -> int:
        """The number of events that may still change."""
        self._look()
        codes, _, here = self._table()
        return weights.total(self._counts[codes[here]])

    def _changes(self, delta: Delta) -> int:
        """Returns the number of events that a net change is; `IN_DOUBT` if it may not be legal."""
        self._look()
        cells = self._cells(delta)
        codes = self._rows.intern(cells)
        self._make_room(codes)
        if np.any(self._counts[codes] + delta.w < 0):
            return IN_DOUBT
        cells[:, 1] = 0
        same_but_end = Interner(cells.shape[1], 1 << len(cells).bit_length()).intern(cells)
        events: int = events_loop(same_but_end, delta.le, delta.re, delta.w, self.frontier)
        return events

    def _look(self) -> None:
        """Count what was put aside."""
        if self._aside:
            delta = concat(self._aside, frontier=self.frontier)
            self._aside, self._more = [], 0
            codes = self._rows.intern(self._cells(delta))
            self._make_room(codes)
            add(self._counts, codes, delta.w)

    def _table(self) -> tuple[Ints, Cells, Flags]:
        """The rows that were looked at, by their numbers, and which of them may still change."""
        codes, rows = self._rows.export()
        return codes, rows, (self._counts[codes] > 0) & (rows[:, 1] >= self.frontier)

    def _cells(self, delta: Delta) -> Cells:
        cells = np.zeros((len(delta), self._rows.width), np.int64)
        cells[:, 0], cells[:, 1] = delta.le, delta.re
        if delta.columns:
            cells[:, 2:] = self._layout.encode(delta.columns, self._strings)
        return cells

    def _make_room(self, codes: Ints) -> None:
        most = int(codes.max(initial=-1)) + 1
        if most > len(self._counts):
            self._counts = np.concatenate([self._counts, np.zeros(max(most, len(self._counts)), np.int64)])

    def _forget(self) -> None:
        """Let go of rows that ended before the CTI, and of those that were taken away."""
        self._aside = [part for part in self._aside if part.extent.greatest_re >= self.frontier]
        if 2 * sum(map(len, self._aside)) > self._forget_at:  # not worth a copy before
            aside = concat(self._aside, frontier=self.frontier)
            self._aside = [aside.take(aside.re >= self.frontier)]
        self._more = sum(map(len, self._aside))
        if len(self._rows):
            codes, rows, here = self._table()
            self._counts[codes[~here]] = 0
            self._rows.keep_only(codes[here])
            self._strings.keep_only(self._layout.string_codes(rows[here, 2:]))
        self._forget_at = max(INVENTORY.now, 2 * (len(self._rows) + self._more))
