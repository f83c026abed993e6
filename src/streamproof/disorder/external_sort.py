"""Sorting a stream that is larger than memory, and exact ranks in what is sorted.

Each piece is sorted by itself, into a *run*; the stream is cut at exact ranks, and each cut is merged from the runs.
Ranks are found by counting in the runs: nothing is merged for them.

    run 0   ────┃──────┃───        the cuts of one rank are as many
    run 1   ─┃─────┃───────        places as there are runs: before
    run 2   ──────┃──┃─────        them lie exactly so many rows
              cut 1  cut 2

>>> runs = [np.array([1, 5, 9]), np.array([2, 5])]
>>> at_ranks(runs, [0, 2, 4]).tolist(), not_above(runs, np.array([0, 5])).tolist()
([1, 5, 9], [0, 4])
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.runner import Runner
from streamproof.events.order import Ints
from streamproof.kernels.sorting import order_by


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


Cuts: TypeAlias = "tuple[Sequence[int], Sequence[int]]"
"""One stretch of all runs: of each run from where to where."""
Parts: TypeAlias = "Sequence[tuple[int, int, int]]"
"""The same without runs that have nothing in it: the run, from where, to where."""
COLUMNS = ("t", "id", "length", "key", "arrival", "g", "row")


def parts_of(cuts: Cuts) -> Parts:
    """The parts of the runs that lie between two cuts."""
    return [(run, a, b) for run, (a, b) in enumerate(zip(*cuts, strict=True)) if b > a]


def parts_in(store: ArrayStore, name: str, parts: Parts) -> Any:
    """One column of some parts, run after run."""
    return np.concatenate([store.get(f"{name}/{run}")[a:b] for run, a, b in parts])


def merged_order(store: ArrayStore, name: str, parts: Parts) -> Ints:
    """The order that merges some parts by a column: what is equal stays in the order of runs."""
    return in_order(parts_in(store, name, parts))


def in_order(values: Ints) -> Ints:
    """The order that sorts values; equal ones stay as they stand."""
    found: Ints = order_by(values, np.zeros_like(values))
    return found


def sort_piece(store: ArrayStore, target: str, piece: int, key: str) -> None:
    """Sort one piece by a column of its own; equal ones stay as they stand."""
    order = in_order(np.asarray(store.get(f"{key}/{piece}")))
    for name in COLUMNS:
        if store.has(f"{name}/{piece}"):
            store.put(f"{target}/runs/{name}/{piece}", np.asarray(store.get(f"{name}/{piece}"))[order])


def merge_slice(store: ArrayStore, target: str, number: int, key: str, cuts: Cuts) -> int:
    """Merge one stretch of all runs into a piece; returns the highest time in it."""
    parts = parts_of(cuts)
    order = merged_order(store, f"{target}/runs/{key}", parts)
    for name in COLUMNS:
        if store.has(f"{target}/runs/{name}/{parts[0][0]}"):
            store.put(f"{target}/{name}/{number}", parts_in(store, f"{target}/runs/{name}", parts)[order])
    return int(np.max(store.get(f"{target}/t/{number}")))


def sort_stream(store: ArrayStore, runner: Runner, pieces: int, key: str, target: str) -> list[int]:
    """Sort the stream by a column, stably, into new pieces under ``target``; returns the highest time of each."""
    runner.each(sort_piece, [(store, target, piece, key) for piece in range(pieces)])
    runs = [store.get(f"{target}/runs/{key}/{piece}") for piece in range(pieces)]
    total = sum(len(run) for run in runs)
    cuts = cut_at_ranks(runs, sorted({total * n // pieces for n in range(pieces + 1)}))
    stretches = pairwise(cuts.tolist())
    found = runner.each(merge_slice, [(store, target, n, key, stretch) for n, stretch in enumerate(stretches)])
    store.drop(f"{target}/runs")
    return found
