"""Exact ranks in a stream that lies in sorted runs: nothing is merged, counts alone find the value.

>>> runs = [np.array([1, 5, 9]), np.array([2, 5])]
>>> at_ranks(runs, [0, 2, 4]).tolist(), not_above(runs, np.array([0, 5])).tolist()
([1, 5, 9], [0, 4])
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from streamproof.events.order import Ints


def not_above(runs: Sequence[Any], values: Ints) -> Ints:
    """How many elements of all runs are at most each value."""
    total = np.zeros(len(values), np.int64)
    for run in runs:
        total += np.searchsorted(run, values, side="right")
    return total


def at_ranks(runs: Sequence[Any], ranks: Sequence[int]) -> Ints:
    """The elements with these ranks, counted from 0, among all runs."""
    wanted = np.array(ranks, np.int64)
    filled = [run for run in runs if len(run)]
    low = np.full(len(wanted), min(int(run[0]) for run in filled), np.int64)
    high = np.full(len(wanted), max(int(run[-1]) for run in filled), np.int64)
    while np.any(low < high):
        middle = (low & high) + ((low ^ high) >> 1)  # the mean, without overflow
        enough = not_above(filled, middle) > wanted
        high = np.where(enough, middle, high)
        low = np.where(enough, low, middle + 1)
    return low


def cut_at_ranks(runs: Sequence[Any], ranks: Sequence[int]) -> Ints:
    """For each rank and run, how many elements of the run come before it; equal elements go in the order of runs."""
    cuts = np.zeros((len(ranks), len(runs)), np.int64)
    inside = [n for n, rank in enumerate(ranks) if rank < sum(len(run) for run in runs)]
    values = at_ranks(runs, [ranks[n] for n in inside]) if inside else np.zeros(0, np.int64)
    for n, rank in enumerate(ranks):
        if n not in inside:
            cuts[n] = [len(run) for run in runs]
            continue
        value = values[inside.index(n)]
        below = np.array([np.searchsorted(run, value, side="left") for run in runs])
        equal = np.array([np.searchsorted(run, value, side="right") for run in runs]) - below
        left = rank - int(below.sum())
        taken = np.clip(left - np.concatenate([[0], np.cumsum(equal)[:-1]]), 0, equal)
        cuts[n] = below + taken
    return cuts
