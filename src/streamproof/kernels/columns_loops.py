"""Compiled loops over plain columns: sorting by radix, hashing, interning, and weights of equal rows."""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.compiled import loop

NAN_BITS: Final = np.int64(0x7FF8000000000000)
MAGNITUDE: Final = np.int64(0x7FFFFFFFFFFFFFFF)  # all bits but the sign
INFINITE: Final = np.int64(0x7FF0000000000000)


@njit(cache=True)
def bits_loop(raw):
    out = np.empty(len(raw), np.int64)
    for n in range(len(raw)):
        value = raw[n] & MAGNITUDE
        out[n] = NAN_BITS if value > INFINITE else raw[n] if value else 0
    return out


EMPTY = -1
SEED = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, inline="always")
def _mixed(h, cell):
    """A hash with one more cell in it (multiply and xor-shift, as splitmix does)."""
    h ^= np.uint64(cell)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@loop
def hash_row(rows, row):
    """A well-mixed 64-bit hash of a row of cells."""
    h = SEED
    for n in range(rows.shape[1]):
        h = _mixed(h, rows[row, n])
    return h


@loop
def same_row(a, i, b, j):
    """Whether two rows have the same cells."""
    for n in range(a.shape[1]):
        if a[i, n] != b[j, n]:
            return False
    return True


@loop
def intern(rows, start, codes, table, known, used, free, spare):
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
def intern_plain(first, second, start, codes, table, known, used, free, spare, small):
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
def column(rows, number, codes):
    out = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        out[i] = rows[codes[i], number]
    return out


@njit(cache=True)
def plain_columns(rows, codes):
    first, second = np.empty(len(codes), np.int64), np.empty(len(codes), np.int64)
    rest = np.int64(0)
    for i in range(len(codes)):
        first[i], second[i] = rows[codes[i], 0], rows[codes[i], 1]
        rest |= rows[codes[i], 2]
    return first, second, rest == 0


@loop
def fill(table, known, codes):
    mask = np.uint64(len(table) - 1)
    for code in codes:
        at = hash_row(known, code) & mask
        while table[at] != EMPTY:
            at = (at + np.uint64(1)) & mask
        table[at] = code


@njit(cache=True)
def ranges(first, second):
    """The least and the greatest value of both, and whether the second never falls."""
    rising = True
    low_first, high_first, low_second, high_second = first[0], first[0], second[0], second[0]
    for n in range(1, len(first)):
        low_first, high_first = min(low_first, first[n]), max(high_first, first[n])
        low_second, high_second = min(low_second, second[n]), max(high_second, second[n])
        rising &= second[n] >= second[n - 1]
    return low_first, high_first, low_second, high_second, rising


@njit(cache=True)
def pack(first, second, low_first, low_second, bits_second, bits_index, alone):
    """Both columns and the number of the row in one number each; or the first column alone."""
    out = np.empty(len(first), np.int64)
    for i in range(len(first)):
        key = ((first[i] - low_first) << bits_second) | (0 if alone else second[i] - low_second)
        out[i] = (key << bits_index) | i
    return out


@njit(cache=True)
def radix(source, spare, low, high, digit_bits):
    """Sort by the bits from ``low`` up to ``high``, least significant digit first."""
    shift = low
    while shift < high:
        bits = min(digit_bits, high - shift)
        mask = (1 << bits) - 1
        starts = np.zeros((1 << bits) + 1, np.int64)
        for value in source:
            starts[((value >> shift) & mask) + 1] += 1
        for digit in range(1 << bits):
            starts[digit + 1] += starts[digit]
        for value in source:
            digit = (value >> shift) & mask
            spare[starts[digit]] = value
            starts[digit] += 1
        source, spare = spare, source
        shift += bits
    return source


@loop
def extent(le, re, w):
    least_le = greatest_le = le[0]
    greatest_re, least_w, greatest_w = re[0], w[0], w[0]
    longest = np.int64(0)
    for n in range(len(le)):
        least_le, greatest_le = min(least_le, le[n]), max(greatest_le, le[n])
        greatest_re = max(greatest_re, re[n])
        longest = max(longest, re[n] - le[n] if le[n] > BEGINNING else np.int64(FOREVER))
        least_w, greatest_w = min(least_w, w[n]), max(greatest_w, w[n])
    return least_le, greatest_le, greatest_re, longest, least_w, greatest_w


@loop
def total(w):
    """The sum of weights, and the bits that any of them has: none is greater than these."""
    found = bits = np.int64(0)
    for n in range(len(w)):
        found += w[n]
        bits |= w[n] ^ (w[n] >> 63)
    return found, bits


@loop
def mix(marks, column):
    """Bring a column into the hashes of rows."""
    for n in range(len(marks)):
        h = (marks[n] ^ np.uint64(column[n])) * np.uint64(0xBF58476D1CE4E5B9)
        marks[n] = (h ^ (h >> np.uint64(29))) + np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True)
def all_once(marks):
    """Whether all hashes are different; 0 counts as met before."""
    size = 64
    while size < 2 * len(marks):
        size *= 2
    table = np.zeros(size, np.uint64)
    for mark in marks:
        at = (mark * np.uint64(0x94D049BB133111EB)) >> np.uint64(32) & np.uint64(size - 1)
        while table[at] != 0 and table[at] != mark:
            at = (at + np.uint64(1)) & np.uint64(size - 1)
        if table[at] == mark:
            return False
        table[at] = mark
    return True


@njit(cache=True)
def totals(codes, w):
    """Per number the sum of the weights, and the first row that has it; numbers count up from 0."""
    count = codes.max() + 1
    totals = np.zeros(count, np.int64)
    firsts = np.full(count, -1, np.int64)
    for row in range(len(codes)):
        code = codes[row]
        totals[code] += w[row]
        if firsts[code] < 0:
            firsts[code] = row
    return totals, firsts


PLUS, MINUS, BOTH = 1, 2, 3


@loop
def _mark(group, le, re, mask):
    """The place of a group and lifetime in the table."""
    h = np.uint64(group) * np.uint64(0x9E3779B97F4A7C15)
    h = (h ^ np.uint64(le)) * np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(29)
    h = (h ^ np.uint64(re)) * np.uint64(0x94D049BB133111EB)
    return (h ^ (h >> np.uint64(32))) & mask


@njit(cache=True)
def suspects_loop(group, le, re, w):
    """Which rows share their mark with one of the other sign; rows of weight zero are always suspect."""
    size = 64
    while size < 8 * len(le):
        size *= 2
    mask = np.uint64(size - 1)
    marks = np.zeros(size, np.uint8)
    for n in range(len(le)):
        marks[_mark(group[n], le[n], re[n], mask)] |= PLUS if w[n] > 0 else MINUS
    out = np.empty(len(le), np.bool_)
    for n in range(len(le)):
        out[n] = w[n] == 0 or marks[_mark(group[n], le[n], re[n], mask)] == BOTH
    return out
