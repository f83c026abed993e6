"""Exact sums: numbers as limbs of 32 bits in int64, added without carry, rounded once.

The upper half of each limb is room for carries, so a limb takes 2^31 terms before it has to hand them on.

A sum in limbs does not depend on the order of its terms, takes back what was added without a trace, and its rounding
is that of the true sum. Floats use the limbs of one fixed ladder whose unit is the least subnormal, 2^-1074; `Scale` is
the part of it that the values at hand need.

>>> from streamproof.kernels.cells import float_bits
>>> values = float_bits(np.array([1e16, 1.0, -1e16]))
>>> sums = FloatSums.of(values, rows=1)
>>> sums.add(np.zeros(3, np.int64), values, np.ones(3, np.int64))
>>> sums.totals().tolist()
[1.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt
from numba import njit

from streamproof.errors import RunError
from streamproof.events.time import show_tick
from streamproof.kernels.cells import Ints
from streamproof.kernels.compiled import loop

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
BITS: Final = 32
MASK: Final = (1 << BITS) - 1
LOWEST: Final = -1074  # the exponent of a float's least bit
FRACTION: Final = (1 << 52) - 1
INT_LIMBS: Final = 2
DECIMAL_LIMBS: Final = 4
MOST_TERMS: Final = (1 << 31) - 1  # how many numbers one sum may have: limbs overflow beyond


def too_many_terms(le: int, re: int, count: int, *, most: int = MOST_TERMS) -> RunError:
    """The error of a window with more events than its result can be exact for."""
    return RunError(
        f"a window has {count:,} events; this result is exact for {most:,} of them at most",
        at=f"window [{show_tick(le)}, {show_tick(re)})",
        fix="aggregate per group or in shorter windows first, or only count",
        name="overflow",
    )


@dataclass(frozen=True, slots=True)
class Scale:
    """Which limbs of the fixed ladder are held: ``count`` of them from number ``base`` on."""

    base: int
    count: int

    @staticmethod
    def of(bits: Ints) -> Scale:
        """The limbs that sums of these floats need; NaN and infinities need none."""
        low, high = _positions(bits)
        if high < 0:
            return Scale(LOWEST // -BITS, 1)
        return Scale(low // BITS, high // BITS - low // BITS + 1)

    def joined(self, other: Scale) -> Scale:
        """The least scale that holds both."""
        base = min(self.base, other.base)
        return Scale(base, max(self.base + self.count, other.base + other.count) - base)

    @property
    def unit(self) -> int:
        """The exponent of the first limb's least bit."""
        return LOWEST + BITS * self.base

    def spread(self, limbs: Ints, to: Scale) -> Ints:
        """Limbs of this scale as those of a larger one."""
        if to == self:
            return limbs
        wide = np.zeros((len(limbs), to.count), np.int64)
        wide[:, self.base - to.base : self.base - to.base + self.count] = limbs
        return wide


@dataclass(slots=True)
class FloatSums:
    """Sums of floats by row. What has no limbs is counted beside."""

    scale: Scale
    rows: Ints  # the counts of NaN, +∞ and −∞, then the limbs

    @staticmethod
    def of(bits: Ints, *, rows: int) -> FloatSums:
        scale = Scale.of(bits)
        return FloatSums(scale, np.zeros((rows, 3 + scale.count), np.int64))

    def add(self, row: Ints, bits: Ints, w: Ints) -> None:
        """Add floats, each ``w`` times, to the sums of their rows."""
        add_floats(self.rows, 3, 0, self.scale.base, bits, row, np.arange(len(row)), w)

    def totals(self) -> Floats:
        """Every sum as the nearest float."""
        mantissa, exponent = rounded(self.rows[:, 3:], self.scale.unit)
        return with_special(scaled(mantissa, exponent), self.rows)

    def means(self, count: Ints) -> Floats:
        """Every sum divided by a count; finite even where the sum itself is too large for a float."""
        mantissa, exponent = rounded(self.rows[:, 3:], self.scale.unit)
        return with_special(scaled(mantissa / np.maximum(count, 1), exponent), self.rows)


def with_special(finite: Floats, special: Ints) -> Floats:
    """Sums where NaN or infinities were among the terms."""
    nan, up, down = special[:, 0] > 0, special[:, 1] > 0, special[:, 2] > 0
    found = np.where(up, np.inf, np.where(down, -np.inf, finite))
    return np.where(nan | (up & down), np.nan, found)


def scaled(values: Floats, exponent: Ints) -> Floats:
    """``values · 2^exponent``, rounded once; what is too large becomes infinite.

    >>> scaled(np.array([3.0, 1.5]), np.array([-1074, 1024])).tolist()
    [1.5e-323, inf]
    """
    found: Floats = _scaled(values, exponent)
    return found


@njit(cache=True)
def _scaled(values, exponents):  # type: ignore[no-untyped-def]
    out = np.empty(len(values), np.float64)
    for n in range(len(values)):
        exponent = exponents[n]
        over = max(exponent - 1023, 0)
        out[n] = values[n] * _power(exponent - over)
        if over:
            out[n] *= _power(min(over, 1023))
    return out


@njit(cache=True, inline="always")
def _power(exponent):  # type: ignore[no-untyped-def]
    """2^exponent from −1074 to 1023, which a float always is."""
    bits = (exponent + 1023) << 52 if exponent >= -1022 else 1 << (exponent + 1074)
    return np.int64(bits).view(np.float64)


@loop
def _positions(bits):  # type: ignore[no-untyped-def]
    """The positions (0 is 2^-1074) of the lowest and the highest bit that floats have; −1 where there is none."""
    low, high = 4096, -1
    for value in bits:
        exponent = (value >> 52) & 0x7FF
        if exponent == 0x7FF or value << 1 == 0:
            continue
        position = max(exponent - 1, 0)
        high = max(high, position + 52)
        if position < low:
            mantissa = (value & FRACTION) | (0 if exponent == 0 else FRACTION + 1)
            low = min(low, position + bit_length(mantissa & -mantissa) - 1)
    return low, high


# One sum is the limbs of a row of a matrix, from a column on: a view of them would cost more than the sum.


@njit(cache=True, inline="always")
def add_float(rows, row, at, special, base, value, w):  # type: ignore[no-untyped-def]
    """Add a float ``w`` times to the limbs from column ``at`` on, or count it from column ``special`` on."""
    exponent = (value >> 52) & 0x7FF
    mantissa = value & FRACTION
    if exponent == 0x7FF:
        rows[row, special + (0 if mantissa else (1 if value > 0 else 2))] += w
        return
    if exponent:
        mantissa |= FRACTION + 1
        exponent -= 1
    if mantissa == 0:
        return
    signed = -w if value < 0 else w
    position = exponent - base * BITS
    if position < 0:  # the lowest bits are zero
        mantissa >>= -position
        position = 0
    at += position >> 5
    shift = position & 31
    rows[row, at] += signed * ((mantissa & (MASK >> shift)) << shift)
    rest = mantissa >> (BITS - shift)
    if rest:
        rows[row, at + 1] += signed * (rest & MASK)
        if rest > MASK:
            rows[row, at + 2] += signed * (rest >> BITS)


@loop
def add_floats(rows, at, special, base, bits, row, event, w):  # type: ignore[no-untyped-def]
    """Add the floats of events, each ``w`` times, to the sums of their rows."""
    for i in range(len(row)):
        add_float(rows, row[i], at, special, base, bits[event[i]], w[i])


@loop
def add_ints(rows, at, values, row, event, w):  # type: ignore[no-untyped-def]
    """Add the integers of events, each ``w`` times, to sums of two limbs."""
    for i in range(len(row)):
        rows[row[i], at] += w[i] * (values[event[i]] & MASK)
        rows[row[i], at + 1] += w[i] * (values[event[i]] >> BITS)


@loop
def add_decimals(rows, at, low, high, row, event, w):  # type: ignore[no-untyped-def]
    """Add the 128-bit integers of events, each ``w`` times, to sums of four limbs."""
    for i in range(len(row)):
        rows[row[i], at] += w[i] * (low[event[i]] & MASK)
        rows[row[i], at + 1] += w[i] * ((low[event[i]] >> BITS) & MASK)
        rows[row[i], at + 2] += w[i] * (high[event[i]] & MASK)
        rows[row[i], at + 3] += w[i] * (high[event[i]] >> BITS)


@njit(cache=True, inline="always")
def carry(rows, row, at, count):  # type: ignore[no-untyped-def]
    """Bring all limbs but the last into 0 … 2^32 − 1; the last keeps the sign."""
    for n in range(at, at + count - 1):
        rows[row, n + 1] += rows[row, n] >> BITS
        rows[row, n] &= MASK


@njit(cache=True, inline="always")
def magnitude(limbs, row, spare):  # type: ignore[no-untyped-def]
    """The sum without its sign as limbs of 32 bits in ``spare``, one limb more; whether it was negative."""
    count = limbs.shape[1]
    over = np.int64(0)
    for n in range(count):
        limb = limbs[row, n] + over
        spare[n] = limb & MASK
        over = limb >> BITS
    spare[count] = over
    if over >= 0:
        return False
    over = np.int64(0)
    for n in range(count + 1):
        limb = over - spare[n]
        spare[n] = limb & MASK
        over = limb >> BITS
    return True


@njit(cache=True, inline="always")
def round_one(limbs, row, unit, spare):  # type: ignore[no-untyped-def]
    """One sum as ``mantissa · 2^exponent``, the mantissa of at most 53 bits, halves to even."""
    negative = magnitude(limbs, row, spare)
    top = limbs.shape[1]
    while top >= 0 and spare[top] == 0:
        top -= 1
    if top < 0:
        return np.int64(0), np.int64(0)
    width = bit_length(spare[top])
    drop = top * BITS + width - 53  # how many low bits do not fit
    mantissa = np.int64(0)
    if drop <= 0:
        for n in range(top, -1, -1):
            mantissa = (mantissa << BITS) | spare[n]
        return (-mantissa if negative else mantissa), np.int64(unit)
    first, shift = drop >> 5, drop & 31
    for n in range(top, first, -1):  # the limbs above the one that is cut
        mantissa |= spare[n] << (BITS * (n - first) - shift)
    mantissa |= spare[first] >> shift
    if shift:
        half = (spare[first] >> (shift - 1)) & 1
        below = spare[first] & ((1 << (shift - 1)) - 1)
        rest = first
    else:
        half = spare[first - 1] >> (BITS - 1)
        below = spare[first - 1] & (MASK >> 1)
        rest = first - 1
    for n in range(rest):
        below |= spare[n]
    if half and (below or mantissa & 1):
        mantissa += 1
    return (-mantissa if negative else mantissa), np.int64(unit + drop)


@njit(cache=True, inline="always")
def bit_length(value):  # type: ignore[no-untyped-def]
    """How many bits a positive number below 2^53 has."""
    return (np.float64(value).view(np.int64) >> 52) - 1022


@njit(cache=True)
def rounded(limbs, unit):  # type: ignore[no-untyped-def]
    """Every sum as a float and an exponent: ``float · 2^exponent`` is the sum, rounded once."""
    mantissas, exponents = np.empty(len(limbs), np.float64), np.empty(len(limbs), np.int64)
    spare = np.empty(limbs.shape[1] + 1, np.int64)
    count = limbs.shape[1]
    for row in range(len(limbs)):
        if count == 1:
            mantissas[row], exponents[row] = np.float64(limbs[row, 0]), unit
            continue
        carried = limbs[row, 1] + (limbs[row, 0] >> BITS)
        high = carried >> BITS
        if count == 3:
            high += limbs[row, 2]
        if count > 3 or not -FRACTION < high < FRACTION:
            mantissa, exponents[row] = round_one(limbs, row, unit, spare)
            mantissas[row] = np.float64(mantissa)
            continue
        low = (np.uint64(carried & MASK) << np.uint64(BITS)) | np.uint64(limbs[row, 0] & MASK)
        mantissas[row], shift = _round_wide(high, low)
        exponents[row] = unit + shift
    return mantissas, exponents


@njit(cache=True, inline="always")
def _round_wide(high, low):  # type: ignore[no-untyped-def]
    """``high · 2^64 + low`` as a float and an exponent; ``high`` has at most 53 bits."""
    negative = high < 0
    if negative:
        high = ~high if low else -high
        low = np.uint64(0) - low
    shift = np.int64(0)
    if high:
        shift = bit_length(high)
        lost = (low << np.uint64(64 - shift)) != 0  # one bit stands for all that do not fit
        low = (np.uint64(high) << np.uint64(64 - shift)) | (low >> np.uint64(shift)) | np.uint64(lost)
    found = np.float64(low)  # the processor rounds halves to even
    return (-found if negative else found), shift


@njit(cache=True)
def quotients(limbs, unit, divisors):  # type: ignore[no-untyped-def]
    """Every sum as the nearest float, or divided by a number first; zero has no sign. No divisors divide nothing."""
    mantissas, exponents = rounded(limbs, unit)
    for n in range(len(divisors)):
        mantissas[n] /= max(divisors[n], 1)
    found = _scaled(mantissas, exponents)
    for n in range(len(found)):
        if found[n] == 0.0:
            found[n] = 0.0
    return found


@loop
def fits(bits, base, count):  # type: ignore[no-untyped-def]
    """Whether sums of floats need no other limbs than these, and none of them is NaN or infinite."""
    low, high = base * BITS, (base + count) * BITS - 52
    for value in bits:
        exponent = (value >> 52) & 0x7FF
        position = max(exponent - 1, 0)
        if exponent == 0x7FF or position >= high:
            return False
        if position < low and value << 1 != 0:
            mantissa = (value & FRACTION) | (0 if exponent == 0 else FRACTION + 1)
            if position + bit_length(mantissa & -mantissa) - 1 < low:
                return False
    return True


@njit(cache=True)
def whole(limbs):  # type: ignore[no-untyped-def]
    """Sums of two limbs as int64, and which of them do not fit."""
    values, lost = np.empty(len(limbs), np.int64), np.zeros(len(limbs), np.bool_)
    for row in range(len(limbs)):
        high = limbs[row, 1] + (limbs[row, 0] >> BITS)
        values[row] = (high << BITS) | (limbs[row, 0] & MASK)
        lost[row] = not -(1 << 31) <= high < 1 << 31
    return values, lost


LIMIT_HIGH: Final = 10**38 >> 64
LIMIT_LOW: Final = 10**38 & ((1 << 64) - 1)


@njit(cache=True, inline="always")
def decimal_one(limbs, row, spare):  # type: ignore[no-untyped-def]
    """A sum of four limbs as 128-bit halves, and whether it has at most 38 digits."""
    negative = magnitude(limbs, row, spare)
    high = (np.uint64(spare[3]) << np.uint64(BITS)) | np.uint64(spare[2])
    low = (np.uint64(spare[1]) << np.uint64(BITS)) | np.uint64(spare[0])
    above = high > np.uint64(LIMIT_HIGH) or (high == np.uint64(LIMIT_HIGH) and low >= np.uint64(LIMIT_LOW))
    fits = spare[4] == 0 and not above
    if negative:
        low = np.uint64(0) - low
        high = ~high if low else np.uint64(0) - high
    return np.int64(low), np.int64(high), fits


@njit(cache=True)
def decimals(limbs):  # type: ignore[no-untyped-def]
    """Sums of four limbs as 128-bit halves, and which of them have more than 38 digits."""
    halves, lost = np.empty((len(limbs), 2), np.int64), np.zeros(len(limbs), np.bool_)
    spare = np.empty(DECIMAL_LIMBS + 1, np.int64)
    for row in range(len(limbs)):
        halves[row, 0], halves[row, 1], fits = decimal_one(limbs, row, spare)
        lost[row] = not fits
    return halves, lost


@loop
def any_special(bits):  # type: ignore[no-untyped-def]
    """Whether NaN or an infinity is among floats."""
    found = False
    for value in bits:
        found |= (value >> 52) & 0x7FF == 0x7FF
    return found
