"""Stable orders by one or two int64 columns, by radix where their ranges allow it.

>>> order_by(np.array([2, 1, 2]), np.array([5, 9, 3])).tolist()
[1, 2, 0]
"""

from __future__ import annotations

import numpy as np

from streamproof.kernels.cells import Ints
from streamproof.kernels.columns_loops import pack, radix, ranges
from streamproof.thresholds import DIGIT, PACKED_BITS


def order_by(first: Ints, second: Ints) -> Ints:
    """The positions of rows in the order of ``first``, then ``second``, then as they stand."""
    if len(first) < 2:
        return np.arange(len(first))
    low_first, high_first, low_second, high_second, rising = ranges(first, second)
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
    packed = pack(first, second, low_first, low_second, bits_second, bits_index, rising)
    order: Ints = radix(packed, np.empty_like(packed), bits_index, bits_index + bits_first + bits_second, DIGIT.now)
    return order & ((1 << bits_index) - 1)
