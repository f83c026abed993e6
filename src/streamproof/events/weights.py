"""Weights: how often rows count. Their sums and products are exact, or they are the error ``overflow``.

All rows of a stream or of an operator's output together stand for at most `MOST` events. With this room to spare, sums
of some of them cannot leave int64 either, however a loop adds them up.

>>> total(np.array([2**62, 2**62, -1])) == 2**63 - 1
True
>>> sums(np.array([2**62, 2**62, 5]), np.array([0, 2]))[1].tolist()
[True, False]
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from streamproof.errors import RunError
from streamproof.thresholds import SMALL_SUMS

Ints = npt.NDArray[np.int64]
MOST: Final = 1 << 62
"""How many events the rows of one stream may stand for."""

MOST_LISTED: Final = 50_000_000
"""How many events may be listed, each as a row of its own, unless a run says otherwise."""

_HALF: Final = 32
_LOW: Final = (1 << _HALF) - 1


def total(w: Ints) -> int:
    """The exact sum."""
    if not len(w):
        return 0
    if _are_small(w):
        return int(w.sum())
    return (int((w >> _HALF).sum()) << _HALF) + int((w & _LOW).sum())


def magnitude(w: Ints) -> int:
    """The exact sum of the weights without their signs."""
    if not len(w) or w.min() >= 0:
        return total(w)
    negative = w < 0
    return total(w[~negative]) - total(w[negative])


def sums(w: Ints, starts: Ints) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """The sum of each stretch of rows, and which of them do not fit into int64."""
    if _are_small(w):
        return np.add.reduceat(w, starts), np.zeros(len(starts), np.bool_)
    low = np.add.reduceat(w & _LOW, starts)
    high = np.add.reduceat(w >> _HALF, starts) + (low >> _HALF)
    return (high << _HALF) | (low & _LOW), (high >= 1 << 31) | (high < -(1 << 31))


def products(a: Ints, b: Ints) -> npt.NDArray[np.bool_]:
    """Which products of two weights stand for more than `MOST` events.

    >>> products(np.array([2**31, 2**31, 0]), np.array([2**31, 2**31 + 1, 2**62])).tolist()
    [False, True, False]
    """
    found: npt.NDArray[np.bool_] = np.abs(a.astype(np.float64)) * np.abs(b.astype(np.float64)) > MOST / 2
    for n in np.flatnonzero(found).tolist():  # so large that a float cannot tell
        found[n] = abs(int(a[n]) * int(b[n])) > MOST
    return found


def _are_small(w: Ints) -> bool:
    """Whether no sum of these can leave int64."""
    return max(int(w.max(initial=0)), -int(w.min(initial=0))) * len(w) < 1 << SMALL_SUMS.now


def too_many(count: int, *, at: str) -> RunError:
    """The error of rows that stand for more events than can be counted."""
    return RunError(
        f"there are {count:,} events here; at most 2^62 can be counted",
        at=at,
        fix="count or group equal events before they are joined or added up",
        name="overflow",
    )


def too_long(count: int, most: int, *, at: str) -> RunError:
    """The error of equal events that would have to be listed one by one."""
    return RunError(
        f"{count:,} events would have to be listed one by one; the limit events_listed is {most:,}",
        at=at,
        fix="count or group equal events before, or raise the limit",
        name="limit_exceeded",
    )
