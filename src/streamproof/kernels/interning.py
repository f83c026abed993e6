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
from streamproof.kernels.compiled import loop
from streamproof.thresholds import INTERNED, PLAIN_NUMBERS

EMPTY = -1
SEED = np.uint64(0x9E3779B97F4A7C15)


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
            done, self._spare = _intern(rows, done, codes, self._table, self._rows, self._used, self._free, self._spare)
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
            done, self._spare = _intern_plain(first, second, done, codes, *state)
            if done == len(second):
                return codes
            self._grow()

    def rows(self, codes: Ints) -> Cells:
        """The rows of numbers: the inverse of `intern`."""
        return self._rows[codes]

    def column(self, codes: Ints, number: int) -> Ints:
        """One cell of the rows of numbers."""
        cells: Ints = _column(self._rows, number, codes)
        return cells

    def plain_columns(self, codes: Ints) -> tuple[Ints, Ints, bool]:
        """The first two cells of the rows of numbers, and whether the third is 0 in all."""
        found: tuple[Ints, Ints, bool] = _plain_columns(self._rows, codes)
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
        _fill(self._table, self._rows, np.flatnonzero(self._used))

    def export(self) -> tuple[Ints, Cells]:
        """The numbers in use and their rows, for a snapshot."""
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


@njit(cache=True, inline="always")
def _mixed(h, cell):  # type: ignore[no-untyped-def]
    """A hash with one more cell in it (multiply and xor-shift, as splitmix does)."""
    h ^= np.uint64(cell)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@loop
def hash_row(rows, row):  # type: ignore[no-untyped-def]
    """A well-mixed 64-bit hash of a row of cells."""
    h = SEED
    for n in range(rows.shape[1]):
        h = _mixed(h, rows[row, n])
    return h


@loop
def same_row(a, i, b, j):  # type: ignore[no-untyped-def]
    """Whether two rows have the same cells."""
    for n in range(a.shape[1]):
        if a[i, n] != b[j, n]:
            return False
    return True


@loop
def _intern(rows, start, codes, table, known, used, free, spare):  # type: ignore[no-untyped-def]
    """Intern from ``start`` on; stops early where no number is left."""
    mask = np.uint64(len(table) - 1)
    for i in range(start, len(rows)):
        at = hash_row(rows, i) & mask
        while True:
            code = table[at]
            if code == EMPTY:
                if spare == 0:
                    return i, spare
                spare -= 1
                code = free[spare]
                table[at] = code
                for n in range(rows.shape[1]):
                    known[code, n] = rows[i, n]
                used[code] = True
                break
            if same_row(known, code, rows, i):
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
    return len(rows), spare


@loop
def _intern_plain(first, second, start, codes, table, known, used, free, spare, small):  # type: ignore[no-untyped-def]
    """As `_intern`, for rows (first, second, 0)."""
    mask = np.uint64(len(table) - 1)
    for i in range(start, len(second)):
        is_small = first[i] == 0 and 0 <= second[i] < len(small)
        if is_small and small[second[i]] != EMPTY:
            codes[i] = small[second[i]]
            continue
        at = _mixed(_mixed(_mixed(SEED, first[i]), second[i]), 0) & mask
        while True:
            code = table[at]
            if code == EMPTY:
                if spare == 0:
                    return i, spare
                spare -= 1
                code = free[spare]
                table[at] = code
                known[code, 0], known[code, 1], known[code, 2] = first[i], second[i], 0
                used[code] = True
                break
            if known[code, 1] == second[i] and known[code, 0] == first[i] and known[code, 2] == 0:
                break
            at = (at + np.uint64(1)) & mask
        codes[i] = code
        if is_small:
            small[second[i]] = code
    return len(second), spare


@njit(cache=True)
def _column(rows, number, codes):  # type: ignore[no-untyped-def]
    out = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        out[i] = rows[codes[i], number]
    return out


@njit(cache=True)
def _plain_columns(rows, codes):  # type: ignore[no-untyped-def]
    first, second = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    rest = np.int64(0)
    for i in range(len(codes)):
        first[i], second[i] = rows[codes[i], 0], rows[codes[i], 1]
        rest |= rows[codes[i], 2]
    return first, second, rest == 0


@loop
def _fill(table, known, codes):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(table) - 1)
    for code in codes:
        at = hash_row(known, code) & mask
        while table[at] != EMPTY:
            at = (at + np.uint64(1)) & mask
        table[at] = code
