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

from streamproof.errors import RunError
from streamproof.events.time import show_tick
from streamproof.kernels.cells import Ints
from streamproof.kernels.windows.shared.sums_loops import BITS, add_floats, positions, rounded, scaled_loop

Floats = npt.NDArray[np.float64]
LOWEST: Final = -1074  # the exponent of a float's least bit
INT_LIMBS: Final = 2
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
        low, high = positions(bits)
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
    found: Floats = scaled_loop(values, exponent)
    return found
