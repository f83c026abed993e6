"""Random draws that are a pure function of a key and an index: the same on every machine, in any order, for any part.

The generator is splitmix64 used as a counter: word number ``i`` of a key is a mix of ``key + (i + 1)·γ``, in 64-bit
integer arithmetic. No state, no floating point, nothing of a library that may change between versions.

>>> key = key_of(7, "start")
>>> [hex(word) for word in words(key, np.arange(2)).tolist()]
['0xc3fb8651eba4c152', '0xfac280df1e1c30dd']
>>> below(words(key, np.arange(8)), 10).tolist()
[7, 9, 9, 2, 7, 8, 5, 9]

Law: ``words(key, i)[n] == words(key, i[n:n + 1])[0]``.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Final

import numpy as np

from streamproof.events.order import Flags, Ints, Words

GAMMA: Final = 0x9E3779B97F4A7C15
_MIX: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_MASK: Final = (1 << 64) - 1
_FNV: Final = (0xCBF29CE484222325, 0x100000001B3)
MOST: Final = 2**31 - 1  # indices stay below it, so that index · count fits into 62 bits

_BITS: Final = 8  # a quota is kept in every block of 256 indices
_SIZE: Final = 1 << _BITS
_BITS_OF: Final = np.array([0, *((size - 1).bit_length() for size in range(1, _SIZE + 1))], np.uint64)
"""How many bits the places of a block need, by its size."""


def key_of(seed: int, *purpose: str | int) -> int:
    """A key of its own for every purpose of a seed.

    >>> key_of(7, "nulls", "v") != key_of(7, "nulls", "w") != key_of(8, "nulls", "w")
    True
    """
    state = _mix(seed & _MASK)
    for part in purpose:
        text = _FNV[0]
        for byte in str(part).encode():
            text = (text ^ byte) * _FNV[1] & _MASK
        state = _mix((state + text) & _MASK)
    return state


def _mix(word: int) -> int:
    word = (word ^ word >> 30) * _MIX[0] & _MASK
    word = (word ^ word >> 27) * _MIX[1] & _MASK
    return word ^ word >> 31


def words(key: int, index: Ints) -> Words:
    """The word of each index: 64 bits that look random."""
    word = index.astype(np.uint64)
    word += np.uint64(1)
    word *= np.uint64(GAMMA)
    word += np.uint64(key)
    word ^= word >> np.uint64(30)
    word *= np.uint64(_MIX[0])
    word ^= word >> np.uint64(27)
    word *= np.uint64(_MIX[1])
    word ^= word >> np.uint64(31)
    return word


def below(word: Words, limit: int | Ints) -> Ints:
    """Numbers in ``[0, limit)``, evenly spread; the limit is at least 1 and may differ from word to word."""
    if isinstance(limit, int) and limit == 1:
        return np.zeros(len(word), np.int64)
    if np.max(limit, initial=1) < 2**31:
        numbers = (word >> np.uint64(32)) * np.asarray(limit, np.uint64) >> np.uint64(32)
    else:
        numbers = word % np.asarray(limit, np.uint64)
    return numbers.astype(np.int64)


def part_of(count: int, share: Fraction) -> int:
    """A share of a count as a whole number, halves up.

    >>> part_of(50, Fraction(1, 100)), part_of(1000, Fraction(1, 3))
    (1, 333)
    """
    return int(share * count + Fraction(1, 2))


def exactly(key: int, index: Ints, total: int, wanted: int) -> Flags:
    """Which of the indices are chosen, if exactly ``wanted`` of ``total`` are; spread evenly, each told on its own.

    Every block of 256 indices has a quota, and a shuffle of its own that says which members fill it.

    >>> exactly(key_of(7, "late"), np.arange(1000), 1000, 123).sum()
    np.int64(123)
    """
    if not wanted or not len(index):
        return np.zeros(len(index), np.bool_)
    inside = index < total
    index = np.minimum(index, total - 1)
    block = index >> _BITS
    first = block << _BITS
    last = np.minimum(first + _SIZE, total)
    quota = last * wanted // total - first * wanted // total
    flags: Flags = (_shuffled(key, block, index - first, last - first) < quota) & inside
    return flags


def _shuffled(key: int, block: Ints, place: Ints, size: Ints) -> Ints:
    """The places of each block in another order: a permutation of the block's places."""
    word = words(key, block)
    bits = _BITS_OF[size]
    moved = _permuted(word, place, bits)
    outside = np.flatnonzero(moved >= size)  # the last block is shorter: go on until inside, still a permutation
    while len(outside):
        moved[outside] = _permuted(word[outside], moved[outside], bits[outside])
        outside = outside[moved[outside] >= size[outside]]
    return moved


def _permuted(word: Words, place: Ints, bits: Words) -> Ints:
    """A permutation of 0…2^bits − 1 that the word chooses: odd factors, sums and shifts are all invertible there."""
    moved, mask, half = (
        place.astype(np.uint64),
        (np.uint64(1) << bits) - np.uint64(1),
        bits + np.uint64(1) >> np.uint64(1),
    )
    for shift in (0, 16, 32, 48):
        moved = moved * (word >> np.uint64(shift) | np.uint64(1)) + (word >> np.uint64(shift + 8)) & mask
        moved ^= moved >> half
    return moved.astype(np.int64)
