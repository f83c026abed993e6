"""Dense numbers for rows of cells: group keys and join keys become small integers once, at the door.

>>> keys = Interner(2)
>>> keys.intern(np.array([[7, 0], [9, 0], [7, 0]])).tolist()
[0, 1, 0]
>>> keys.keep_only(np.array([1])); keys.intern(np.array([[5, 0], [9, 0]])).tolist()
[0, 1]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.cells import Cells, Ints

EMPTY = -1


class Interner:
    """A hash table from rows of cells to dense numbers. Numbers of forgotten rows are handed out again.

    The capacity is a power of two, and so is the table's size.
    """

    def __init__(self, width: int, capacity: int = 1024) -> None:
        self.width = width
        self._table = np.full(2 * capacity, EMPTY, np.int64)  # open addressing: numbers by hash
        self._rows = np.zeros((capacity, width), np.int64)  # the row of each number
        self._used = np.zeros(capacity, np.bool_)
        self._free = np.arange(capacity - 1, -1, -1, dtype=np.int64)  # numbers to hand out, the next one last
        self._spare = capacity  # how many of them

    def __len__(self) -> int:
        return len(self._rows) - self._spare

    def intern(self, rows: Cells) -> Ints:
        """The number of every row; rows not seen before get new ones."""
        codes = np.empty(len(rows), np.int64)
        done = 0
        while True:
            done, self._spare = _intern(rows, done, codes, self._table, self._rows, self._used, self._free, self._spare)
            if done == len(rows):
                return codes
            self._grow()  # numbers ran out: twice the room, and go on where we stopped

    def rows(self, codes: Ints) -> Cells:
        """The rows of numbers: the inverse of `intern`."""
        return self._rows[codes]

    def column(self, codes: Ints, number: int) -> Ints:
        """One cell of the rows of numbers."""
        cells: Ints = self._rows[:, number][codes]
        return cells

    def keep_only(self, live: Ints) -> None:
        """Forget every row whose number is not in ``live``."""
        keep = np.zeros(len(self._rows), np.bool_)
        keep[live] = True
        keep &= self._used
        gone = np.flatnonzero(self._used & ~keep)[::-1]
        self._free[self._spare : self._spare + len(gone)] = gone
        self._spare += len(gone)
        self._used = keep
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
        _fill(self._table, self._rows, np.flatnonzero(self._used))

    def export(self) -> tuple[Ints, Cells]:
        """The numbers in use and their rows, for a snapshot."""
        codes = np.flatnonzero(self._used)
        return codes, self._rows[codes]

    @staticmethod
    def restore(width: int, codes: Ints, rows: Cells) -> Interner:
        """An interner that knows these rows by these numbers: the inverse of `export`."""
        largest = int(codes.max()) if len(codes) else 0
        made = Interner(width, max(1024, 1 << largest.bit_length()))
        made._rows[codes] = rows
        made._used[codes] = True
        free = np.flatnonzero(~made._used)[::-1]
        made._free[: len(free)] = free
        made._spare = len(free)
        made._rehash(len(made._table))
        return made


@njit(cache=True)
def hash_row(row):  # type: ignore[no-untyped-def]
    """A well-mixed 64-bit hash of a row of cells (multiply and xor-shift, as splitmix does)."""
    h = np.uint64(0x9E3779B97F4A7C15)
    for cell in row:
        h ^= np.uint64(cell)
        h *= np.uint64(0xBF58476D1CE4E5B9)
        h ^= h >> np.uint64(27)
        h *= np.uint64(0x94D049BB133111EB)
        h ^= h >> np.uint64(31)
    return h


@njit(cache=True)
def hash_rows(rows):  # type: ignore[no-untyped-def]
    out = np.empty(len(rows), np.int64)
    for i in range(len(rows)):
        out[i] = np.int64(hash_row(rows[i]) >> np.uint64(1))  # without sign
    return out


@njit(cache=True)
def same_row(a, b):  # type: ignore[no-untyped-def]
    for k in range(len(a)):
        if a[k] != b[k]:
            return False
    return True


@njit(cache=True)
def _intern(rows, start, codes, table, known, used, free, spare):  # type: ignore[no-untyped-def]
    """Intern from ``start`` on; stops early where no number is left."""
    mask = np.uint64(len(table) - 1)
    for i in range(start, len(rows)):
        at = hash_row(rows[i]) & mask
        while True:
            code = table[at]
            if code == EMPTY:
                if spare == 0:
                    return i, spare
                spare -= 1
                code = free[spare]
                table[at] = code
                known[code] = rows[i]
                used[code] = True
                break
            if same_row(known[code], rows[i]):
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
    return len(rows), spare


@njit(cache=True)
def _fill(table, known, codes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    for code in codes:
        at = hash_row(known[code]) & mask
        while table[at] != EMPTY:
            at = (at + np.uint64(1)) & mask
        table[at] = code
