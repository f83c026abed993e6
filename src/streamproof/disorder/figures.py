"""Figures of a stream, all exact: quantiles by counting in sorted runs, drop curves, histograms, frequency, order.

>>> order_measures([np.array([2, 1, 3])])["inversions"]
1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, Final

import numpy as np
from numba import njit

from streamproof.disorder.external_sort import at_ranks, not_above
from streamproof.disorder.units import TICKS, TimeUnit
from streamproof.errors import InputError

QUANTILES: Final = {
    "p50": Fraction(1, 2), "p90": Fraction(9, 10), "p99": Fraction(99, 100), "p999": Fraction(999, 1000),
}  # fmt: skip
LOSSES: Final = {"1%": Fraction(1, 100), "0.1%": Fraction(1, 1000), "0": Fraction(0)}
BUCKETS: Final = 100
POINTS: Final = 120
_SECONDS: Final = (
    1, 2, 3, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400, 172_800, 259_200,
    604_800, 1_209_600, 2_592_000, 5_184_000, 7_776_000, 15_552_000, 31_536_000, 63_072_000, 157_680_000, 315_360_000,
)  # fmt: skip


def exact_sum(run: Any) -> int:
    """A sum of int64 that cannot overflow."""
    values = np.asarray(run)
    return (int(np.sum(values >> 32)) << 32) + int(np.sum(values & 0xFFFFFFFF))


def lateness_figures(runs: Sequence[Any], quantiles: Mapping[str, Fraction] = QUANTILES) -> dict[str, Any]:
    """Least, mean, quantiles and greatest; a quantile is the least number that at least that share does not exceed.

    >>> lateness_figures([np.array([1, 1, 3])], {"p50": Fraction(1, 2)})
    {'count': 3, 'min': 1, 'mean': 1.6667, 'p50': 1, 'max': 3}
    """
    count = sum(len(run) for run in runs)
    if not count:
        return {"count": 0, "min": None, "mean": None, **dict.fromkeys(quantiles), "max": None}
    ranks = [max(0, -int(-(share * count) // 1) - 1) for share in quantiles.values()]
    low, *middle, high = at_ranks(runs, [0, *ranks, count - 1]).tolist()
    mean = round(sum(exact_sum(run) for run in runs) / count, 4)
    return {"count": count, "min": low, "mean": mean, **dict(zip(quantiles, middle, strict=True)), "max": high}


def ladder(longest: int, unit: TimeUnit) -> list[int]:
    """Round delays from zero up to the longest lateness, which is the last one.

    >>> ladder(7, "s"), ladder(3, "ms")
    ([0, 1, 2, 3, 5, 7], [0, 1, 2, 3])
    """
    per_second = TICKS[unit]
    fine = [step * 10**power for power in range(len(str(per_second)) - 1) for step in (1, 2, 5)]
    steps = sorted({0, *fine, *(3 * f for f in fine[:1] if per_second > 1), *(s * per_second for s in _SECONDS)})
    return [*(step for step in steps if step < longest), longest] if longest else [0]


def drop_curve(runs: Sequence[Any], total: int, unit: TimeUnit) -> list[list[float]]:
    """How many per cent of all events are later than a delay, for round delays."""
    longest = max((int(run[-1]) for run in runs if len(run)), default=0)
    delays = np.array(ladder(longest, unit), np.int64)
    count = sum(len(run) for run in runs)
    lost = count - not_above(runs, delays)
    points = list(zip(delays.tolist(), lost.tolist(), strict=True))
    reported = [
        point
        for before, point in zip([(0, -1), *points], points, strict=False)
        if point[1] != before[1] or point[0] >= TICKS[unit]  # below a second, only what makes a difference
    ]
    return [[delay, 100 * loss / total] for delay, loss in reported]


def fine_curve(runs: Sequence[Any], total: int) -> list[list[float]]:
    """For a plot: how many per cent of ``total`` are not above a length of time, at many lengths from least to most."""
    filled = [run for run in runs if len(run)]
    if not filled:
        return []
    low = max(1, min(int(run[0]) for run in filled))
    high = max(low, *(int(run[-1]) for run in filled))
    lengths = np.unique(np.geomspace(low, high, POINTS).round().astype(np.int64).clip(low, high))
    lengths = np.concatenate([[0], lengths, [high]])
    below = not_above(filled, lengths)
    return [
        [length, round(100 * count / total, 4)] for length, count in zip(lengths.tolist(), below.tolist(), strict=True)
    ]


def delay_for_loss(runs: Sequence[Any], total: int) -> dict[str, int]:
    """The shortest delay at which at most a share of all events is later."""
    count = sum(len(run) for run in runs)
    found = {}
    for name, share in LOSSES.items():
        allowed = int(share * total // 1)
        found[name] = 0 if count <= allowed else int(at_ranks(runs, [count - allowed - 1])[0])
    return found


def histogram_of(runs: Sequence[Any]) -> list[list[int]]:
    """Counts in bins that double, ``[from, to)``; negative numbers are one bin."""
    filled = [run for run in runs if len(run)]
    if not filled:
        return []
    low, high = min(int(run[0]) for run in filled), max(int(run[-1]) for run in filled)
    edges = [low] if low < 0 else []
    edges += [0, 1]
    while edges[-1] <= high:
        edges.append(edges[-1] * 2)
    below = not_above(filled, np.array(edges, np.int64) - 1)
    counts = np.diff(below).tolist()
    return [[a, b, n] for a, b, n in zip(edges, edges[1:], counts, strict=False) if n]


def frequency_of(runs: Sequence[Any], total: int, unit: TimeUnit) -> dict[str, Any]:
    """Events per second and over time. The few earliest and latest events, perhaps wrong clocks, do not stretch it."""
    ranks = [0, total // 1000, total - 1 - total // 1000, total - 1]
    first, low, high, last = at_ranks(runs, ranks).tolist()
    width = max(1, _round_up(-(-(high - low + 1) // BUCKETS), unit))
    start = low // width * width
    edges = np.arange(start, high + width, width, dtype=np.int64)
    counts = np.diff(not_above(runs, np.append(edges, edges[-1] + width) - 1)).tolist()
    span = (last - first) / TICKS[unit]
    return {
        "first": first, "last": last, "per_second": total / span if span else None, "bucket": width,
        "series": [[int(edge), count] for edge, count in zip(edges.tolist(), counts, strict=True)],
        "outside": total - sum(counts),
    }  # fmt: skip


def _round_up(ticks: int, unit: TimeUnit) -> int:
    """The next round length of time."""
    per_second = TICKS[unit]
    steps = [step * 10**power for power in range(len(str(per_second)) - 1) for step in (1, 2, 5)]
    steps += [seconds * per_second for seconds in _SECONDS]
    return next((step for step in steps if step >= ticks), ticks)


def rows_held(runs: Sequence[Any], delays: Mapping[str, int]) -> dict[str, int]:
    """About how many rows a job holds that waits so long: the most events of any stretch of that length."""
    total = sum(len(run) for run in runs)
    points = at_ranks(runs, [total * n // 1000 for n in range(1000)] + [total - 1])
    upper = not_above(runs, points)
    return {name: int(np.max(upper - not_above(runs, points - delay - 1))) for name, delay in delays.items()}


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
