"""Other measures of disorder, from the literature on adaptive sorting: each sees what others miss.

>>> order_measures([np.array([2, 1, 3])])["inversions"]
1
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numba import njit

from streamproof.errors import InputError

MOST: Final = 200_000_000
"""More events than this would not fit into memory; the other figures have no such limit."""


def order_measures(pieces: Sequence[Any]) -> dict[str, Any]:
    """Inversions, Kendall's τ_b, the buffer a sort needs, the farthest displacement, and events to take out (REM)."""
    total = sum(len(piece) for piece in pieces)
    if total > MOST:
        raise InputError(
            f"{total:,} events are too many for --more", fix=f"the most is {MOST:,}", name="limit_exceeded"
        )
    times = np.concatenate([np.asarray(piece) for piece in pieces])
    _, ranks, sizes = np.unique(times, return_inverse=True, return_counts=True)
    inversions, buffer = _inversions(ranks.astype(np.int64), len(sizes))
    pairs = total * (total - 1) // 2
    ties = int(sum(int(size) * (int(size) - 1) // 2 for size in sizes[sizes > 1]))
    order = np.argsort(times, kind="stable")
    return {
        "inversions": int(inversions),
        "kendall_tau_b": _tau(pairs, ties, int(inversions)),
        "buffer": int(buffer),
        "max_displacement": int(np.max(np.abs(order - np.arange(total)))) if total else 0,
        "rem": total - int(_longest(ranks.astype(np.int64))),
    }


def _tau(pairs: int, ties: int, inversions: int) -> float | None:
    """Kendall's τ_b between arrival, which has no ties, and event time."""
    if pairs in (0, ties):
        return None
    return float((pairs - ties - 2 * inversions) / (pairs * (pairs - ties)) ** 0.5)


@njit(cache=True)
def _inversions(ranks, kinds):  # type: ignore[no-untyped-def]
    """How many pairs are in the wrong order, and the most events that one event should have come before."""
    tree = np.zeros(kinds + 1, np.int64)
    total, most = 0, 0
    for seen in range(len(ranks)):
        place, not_later = ranks[seen] + 1, 0
        while place > 0:
            not_later += tree[place]
            place -= place & -place
        total += seen - not_later
        most = max(most, seen - not_later)
        place = ranks[seen] + 1
        while place <= kinds:
            tree[place] += 1
            place += place & -place
    return total, most


@njit(cache=True)
def _longest(ranks):  # type: ignore[no-untyped-def]
    """The length of the longest subsequence that never falls."""
    tops = np.empty(len(ranks), np.int64)
    size = 0
    for value in ranks:
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if tops[middle] <= value:
                low = middle + 1
            else:
                high = middle
        tops[low] = value
        size = max(size, low + 1)
    return size
