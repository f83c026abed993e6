"""Stable orders by one or two int64 columns, by radix where their ranges allow it.

>>> order_by(np.array([2, 1, 2]), np.array([5, 9, 3])).tolist()
[1, 2, 0]
"""

from __future__ import annotations

import numpy as np
from numba import njit

from streamproof.kernels.cells import Ints
from streamproof.thresholds import DIGIT, PACKED_BITS


def order_by(first: Ints, second: Ints) -> Ints:
    """The positions of rows in the order of ``first``, then ``second``, then as they stand."""
    if len(first) < 2:
        return np.arange(len(first))
    low_first, high_first, low_second, high_second, rising = _ranges(first, second)
    if rising:  # as times mostly come: a stable order by the first alone is one by both
        second, low_second, high_second = first, low_first, low_first
    bits_first, bits_second = (high_first - low_first).bit_length(), (high_second - low_second).bit_length()
    bits_index = (len(first) - 1).bit_length()
    if bits_first + bits_second + bits_index > PACKED_BITS.now:
        if max(bits_first, bits_second) + bits_index > PACKED_BITS.now:
            return np.lexsort((second, first))
        nothing = np.zeros_like(first)
        later = order_by(nothing, second)  # stable orders one after the other: the last one decides
        return later[order_by(nothing, first[later])]
    packed = _pack(first, second, low_first, low_second, bits_second, bits_index, rising)
    order: Ints = _radix(packed, np.empty_like(packed), bits_index, bits_index + bits_first + bits_second, DIGIT.now)
    return order & ((1 << bits_index) - 1)


@njit(cache=True)
def _ranges(first, second):  # type: ignore[no-untyped-def]
    """The least and the greatest value of both, and whether the second never falls."""
    rising = True
    low_first, high_first, low_second, high_second = first[0], first[0], second[0], second[0]
    for n in range(1, len(first)):
        low_first, high_first = min(low_first, first[n]), max(high_first, first[n])
        low_second, high_second = min(low_second, second[n]), max(high_second, second[n])
        rising &= second[n] >= second[n - 1]
    return low_first, high_first, low_second, high_second, rising


@njit(cache=True)
def _pack(first, second, low_first, low_second, bits_second, bits_index, alone):  # type: ignore[no-untyped-def]
    """Both columns and the number of the row in one number each; or the first column alone."""
    out = np.empty(len(first), np.int64)
    for i in range(len(first)):
        key = ((first[i] - low_first) << bits_second) | (0 if alone else second[i] - low_second)
        out[i] = (key << bits_index) | i
    return out


@njit(cache=True)
def _radix(source, spare, low, high, digit_bits):  # type: ignore[no-untyped-def]
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
