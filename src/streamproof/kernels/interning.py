"""Dense numbers for rows of cells: group keys and join keys become small integers once, at the door.

>>> keys = Interner(2)
>>> keys.intern(np.array([[7, 0], [9, 0], [7, 0]])).tolist()
[0, 1, 0]
>>> keys.keep_only(np.array([1])); keys.intern(np.array([[5, 0], [9, 0]])).tolist()
[0, 1]
"""

from __future__ import annotations

import numpy as np

from streamproof.kernels.cells import Cells, Ints
from streamproof.kernels.columns_loops import EMPTY, column, fill, intern, intern_plain, plain_columns
from streamproof.thresholds import INTERNED, PLAIN_NUMBERS


class Interner:
    """A hash table from rows of cells to dense numbers. Numbers of forgotten rows are handed out again.

    The capacity is a power of two, and so is the table's size.
    """

    def __init__(self, width: int, capacity: int | None = None) -> None:
        self.width, capacity = width, capacity or INTERNED.now
        self._table = np.full(2 * capacity, EMPTY, np.int64)  # open addressing: numbers by hash
        self._rows = np.zeros((capacity, width), np.int64)  # the row of each number
        self._used = np.zeros(capacity, np.bool_)
        self._free = np.arange(capacity - 1, -1, -1, dtype=np.int64)  # numbers to hand out, the next one last
        self._spare = capacity  # how many of them
        self._small = np.empty(0, np.int32)  # the numbers of rows (0, n, 0) by n, where they are known

    def __len__(self) -> int:
        return len(self._rows) - self._spare

    def intern(self, rows: Cells) -> Ints:
        """The number of every row; rows not seen before get new ones."""
        codes = np.empty(len(rows), np.int64)
        done = 0
        while True:
            done, self._spare = intern(rows, done, codes, self._table, self._rows, self._used, self._free, self._spare)
            if done == len(rows):
                return codes
            self._grow()  # numbers ran out: twice the room, and go on where we stopped

    def intern_plain(self, first: Ints, second: Ints) -> Ints:
        """The same for rows of three cells of which the last is 0, given in columns."""
        codes = np.empty(len(second), np.int64)
        done = 0
        if not len(self._small):
            self._small = np.full(PLAIN_NUMBERS.now, EMPTY, np.int32)
        while True:
            state = self._table, self._rows, self._used, self._free, self._spare, self._small
            done, self._spare = intern_plain(first, second, done, codes, *state)
            if done == len(second):
                return codes
            self._grow()

    def rows(self, codes: Ints) -> Cells:
        """The rows of numbers: the inverse of `intern`."""
        return self._rows[codes]

    def column(self, codes: Ints, number: int) -> Ints:
        """One cell of the rows of numbers."""
        cells: Ints = column(self._rows, number, codes)
        return cells

    def plain_columns(self, codes: Ints) -> tuple[Ints, Ints, bool]:
        """The first two cells of the rows of numbers, and whether the third is 0 in all."""
        found: tuple[Ints, Ints, bool] = plain_columns(self._rows, codes)
        return found

    def keep_only(self, live: Ints) -> None:
        """Forget every row whose number is not in ``live``."""
        keep = np.zeros(len(self._rows), np.bool_)
        keep[live] = True
        keep &= self._used
        gone = np.flatnonzero(self._used & ~keep)[::-1]
        self._free[self._spare : self._spare + len(gone)] = gone
        self._spare += len(gone)
        self._used = keep
        self._small[:] = EMPTY
        self._rehash(len(self._table))

    def _grow(self) -> None:
        """Twice the numbers, and a table at most half full; only called when none is spare."""
        capacity = len(self._rows)
        self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)])
        self._used = np.concatenate([self._used, np.zeros_like(self._used)])
        self._free = np.concatenate([np.arange(2 * capacity - 1, capacity - 1, -1), np.zeros(capacity, np.int64)])
        self._spare = capacity
        self._rehash(2 * len(self._table))

    def _rehash(self, size: int) -> None:
        self._table = np.full(size, EMPTY, np.int64)
        fill(self._table, self._rows, np.flatnonzero(self._used))

    def export(self) -> tuple[Ints, Cells]:
        """The numbers in use and their rows, to be saved."""
        codes = np.flatnonzero(self._used)
        return codes, self._rows[codes]

    @staticmethod
    def restore(width: int, codes: Ints, rows: Cells) -> Interner:
        """An interner that knows these rows by these numbers: the inverse of `export`."""
        largest = int(codes.max()) if len(codes) else 0
        made = Interner(width, max(INTERNED.now, 1 << largest.bit_length()))
        made._rows[codes] = rows
        made._used[codes] = True
        free = np.flatnonzero(~made._used)[::-1]
        made._free[: len(free)] = free
        made._spare = len(free)
        made._rehash(len(made._table))
        return made
