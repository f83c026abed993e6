"""Compiled loops over rows of exact sums: add, carry, merge and round.

A limb has 32 bits of a number and as many for carries, so it takes 2^31 terms before it has to hand them on.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numba import njit

from streamproof.kernels.columns_loops import same_row
from streamproof.kernels.compiled import loop

BITS: Final = 32
MASK: Final = (1 << BITS) - 1
FRACTION: Final = (1 << 52) - 1
DECIMAL_LIMBS: Final = 4


@njit(cache=True)
def scaled_loop(values, exponents):
    out = np.empty(len(values), np.float64)
    for n in range(len(values)):
        exponent = exponents[n]
        over = max(exponent - 1023, 0)
        out[n] = values[n] * _power(exponent - over)
        if over:
            out[n] *= _power(min(over, 1023))
    return out


@njit(cache=True, inline="always")
def _power(exponent):
    """2^exponent from −1074 to 1023, which a float always is."""
    bits = (exponent + 1023) << 52 if exponent >= -1022 else 1 << (exponent + 1074)
    return np.int64(bits).view(np.float64)


@loop
def positions(bits):
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
def add_float(rows, row, at, special, base, value, w):
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
def add_floats(rows, at, special, base, bits, row, event, w):
    """Add the floats of events, each ``w`` times, to the sums of their rows."""
    for i in range(len(row)):
        add_float(rows, row[i], at, special, base, bits[event[i]], w[i])


@loop
def add_ints(rows, at, values, row, event, w):
    """Add the integers of events, each ``w`` times, to sums of two limbs."""
    for i in range(len(row)):
        rows[row[i], at] += w[i] * (values[event[i]] & MASK)
        rows[row[i], at + 1] += w[i] * (values[event[i]] >> BITS)


@loop
def add_decimals(rows, at, low, high, row, event, w):
    """Add the 128-bit integers of events, each ``w`` times, to sums of four limbs."""
    for i in range(len(row)):
        rows[row[i], at] += w[i] * (low[event[i]] & MASK)
        rows[row[i], at + 1] += w[i] * ((low[event[i]] >> BITS) & MASK)
        rows[row[i], at + 2] += w[i] * (high[event[i]] & MASK)
        rows[row[i], at + 3] += w[i] * (high[event[i]] >> BITS)


@njit(cache=True, inline="always")
def carry(rows, row, at, count):
    """Bring all limbs but the last into 0 … 2^32 − 1; the last keeps the sign."""
    for n in range(at, at + count - 1):
        rows[row, n + 1] += rows[row, n] >> BITS
        rows[row, n] &= MASK


@njit(cache=True, inline="always")
def magnitude(limbs, row, spare):
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
def round_one(limbs, row, unit, spare):
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
def bit_length(value):
    """Returns the number of bits of a positive number below 2^53."""
    return (np.float64(value).view(np.int64) >> 52) - 1022


@njit(cache=True)
def rounded(limbs, unit):
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
def _round_wide(high, low):
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
def quotients(limbs, unit, divisors):
    """Every sum as the nearest float, or divided by a number first; zero has no sign. No divisors divide nothing."""
    mantissas, exponents = rounded(limbs, unit)
    for n in range(len(divisors)):
        mantissas[n] /= max(divisors[n], 1)
    found = scaled_loop(mantissas, exponents)
    for n in range(len(found)):
        if found[n] == 0.0:
            found[n] = 0.0
    return found


@loop
def fits(bits, base, count):
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
def whole(limbs):
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
def decimal_one(limbs, row, spare):
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
def decimals(limbs):
    """Sums of four limbs as 128-bit halves, and which of them have more than 38 digits."""
    halves, lost = np.empty((len(limbs), 2), np.int64), np.zeros(len(limbs), np.bool_)
    spare = np.empty(DECIMAL_LIMBS + 1, np.int64)
    for row in range(len(limbs)):
        halves[row, 0], halves[row, 1], fits = decimal_one(limbs, row, spare)
        lost[row] = not fits
    return halves, lost


@loop
def any_special(bits):
    """Whether NaN or an infinity is among floats."""
    found = False
    for value in bits:
        found |= (value >> 52) & 0x7FF == 0x7FF
    return found


# what is written down of each argument
KIND, LIMBS, COUNT, BASE, KNOWN, SPECIAL, VALUE = range(7)


@njit(cache=True, inline="always")
def carry_row(rows, row, lead, spec):
    """Hand carries on, so that a row has one form: the sum of nothing is all zeros."""
    for n in range(len(spec)):
        carry(rows, row, lead + spec[n, LIMBS], spec[n, COUNT])


@njit(cache=True, inline="always")
def add_rows(rows, row, lead, others, other, other_lead, sign):
    """Add the sums of another row, or take them away."""
    for n in range(rows.shape[1] - lead):
        rows[row, lead + n] += sign * others[other, other_lead + n]


@loop
def count(rows, at, row, event, w, nulls, bit):
    """Count events, without those that have a null bit."""
    for i in range(len(row)):
        if len(nulls) == 0 or not (nulls[event[i]] >> bit) & 1:
            rows[row[i], at] += w[i]


@njit(cache=True)
def known(row, event, w, nulls, bit):
    """The events that do not have a null bit."""
    kept = np.empty(len(row), np.int64)
    count = 0
    for i in range(len(row)):
        kept[count] = i
        count += not (nulls[event[i]] >> bit) & 1
    kept = kept[:count]
    return row[kept], event[kept], w[kept]


GROUP: Final = 0
PLACE: Final = 1
SUMS: Final = 2  # the first column of the sums


@njit(cache=True)
def numbered(group, place):
    """The number of each pair of group and place, which are in order."""
    row = np.empty(len(group), np.int64)
    count = 0
    for n in range(len(group)):
        count += n == 0 or group[n] != group[n - 1] or place[n] != place[n - 1]
        row[n] = count - 1
    return row


@loop
def lay_out(rows, row, group, place):
    """Rows of groups and places, with all sums zero."""
    last = -1
    for n in range(len(row)):
        if row[n] != last:
            last = row[n]
            for m in range(rows.shape[1]):
                rows[last, m] = 0
            rows[last, GROUP], rows[last, PLACE] = group[n], place[n]


@loop
def merged_loop(first, second, spec, lead, rows):
    width = first.shape[1]
    i = j = count = 0
    while i < len(first) or j < len(second):
        if j == len(second) or (i < len(first) and before(first, i, second, j)):
            for n in range(width):
                rows[count, n] = first[i, n]
            i += 1
            count += 1
            continue
        for n in range(width):
            rows[count, n] = second[j, n]
        meets = i < len(first) and not before(second, j, first, i)
        if meets:
            add_rows(rows, count, SUMS, first, i, SUMS, 1)
            i += 1
        j += 1
        if meets or rows[count, SUMS] == 0:  # carries must not pile up, nor hide that nothing is left
            carry_row(rows, count, lead, spec)
        count += not is_nothing(rows, count, SUMS)
    return count


@njit(cache=True, inline="always")
def is_nothing(rows, row, lead):
    """Whether all sums of a row are zero, which begin at column ``lead``."""
    anything = np.int64(0)
    for n in range(lead, rows.shape[1]):
        anything |= rows[row, n]
    return anything == 0


@njit(cache=True, inline="always")
def before(a, i, b, j):
    """Whether a row comes strictly before another."""
    return a[i, GROUP] < b[j, GROUP] or (a[i, GROUP] == b[j, GROUP] and a[i, PLACE] < b[j, PLACE])


@loop
def until(rows, start, group):
    """Where a group's rows end that begin at ``start``; there, if it has none."""
    end = start
    while end < len(rows) and rows[end, GROUP] == group:
        end += 1
    return end


@loop
def leave_out(emitted, cells, needed):
    """Mark pairs of rows of which one replaces the other with the same lifetime and cells; returns their number."""
    count = 0
    for n in range(len(emitted) - 1):
        if emitted[n, 3] < 0 < emitted[n + 1, 3] and _same_lifetime(emitted, n) and same_row(cells, n, cells, n + 1):
            needed[n] = needed[n + 1] = False
            count += 1
    return count


@loop
def _same_lifetime(emitted, n):
    """Whether a row and the next one are of the same group and lifetime."""
    same = emitted[n, 0] == emitted[n + 1, 0] and emitted[n, 1] == emitted[n + 1, 1]
    return same and emitted[n, 2] == emitted[n + 1, 2]


@njit(cache=True)
def pairs(emitted):
    """Rows that the next one replaces with the same lifetime."""
    found = np.empty(len(emitted), np.int64)
    count = 0
    for n in range(len(emitted) - 1):
        if emitted[n, 3] < 0 < emitted[n + 1, 3]:
            found[count] = n
            count += _same_lifetime(emitted, n)
    return found[:count]
