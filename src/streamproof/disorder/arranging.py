"""Streams in another order: by an arrival column, or because outages and wrong clocks move arrivals.

Each piece is sorted by itself; then the stream is cut at exact ranks, and each cut is merged from the runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from streamproof.disorder.config import Experiment, Outage, skew_ticks
from streamproof.disorder.hashing import draws, hash_slices
from streamproof.disorder.ranks import cut_at_ranks
from streamproof.disorder.rows import LIMIT
from streamproof.disorder.runner import Runner
from streamproof.disorder.scanning import GOOD, times_of
from streamproof.disorder.shelf import Shelf
from streamproof.disorder.units import TICKS, TimeUnit
from streamproof.errors import InputError
from streamproof.events.order import Flags, Ints
from streamproof.kernels.sorting import order_by

COLUMNS = ("t", "id", "length", "key", "arrival", "g", "row")


def sort_piece(shelf: Shelf, target: str, piece: int, key: str) -> None:
    """Sort one piece by a column of its own; equal ones stay as they stand."""
    by: Ints = np.asarray(shelf.get(f"{key}/{piece}"))
    order = order_by(by, np.zeros_like(by))
    for name in COLUMNS:
        if shelf.has(f"{name}/{piece}"):
            shelf.put(f"{target}/runs/{name}/{piece}", np.asarray(shelf.get(f"{name}/{piece}"))[order])


def merge_slice(shelf: Shelf, target: str, number: int, key: str, starts: Sequence[int], ends: Sequence[int]) -> int:  # noqa: PLR0917
    """Merge one stretch of all runs into a piece; the highest time in it."""
    parts = [piece for piece, (a, b) in enumerate(zip(starts, ends, strict=True)) if b > a]

    def column(name: str) -> Any:
        return np.concatenate([shelf.get(f"{target}/runs/{name}/{p}")[starts[p] : ends[p]] for p in parts])

    by = column(key)
    order = order_by(by, np.zeros_like(by))
    for name in COLUMNS:
        if shelf.has(f"{target}/runs/{name}/{parts[0]}"):
            shelf.put(f"{target}/{name}/{number}", column(name)[order])
    return int(np.max(shelf.get(f"{target}/t/{number}")))


def arrange(shelf: Shelf, runner: Runner, pieces: int, key: str, target: str) -> list[int]:
    """The stream sorted by a column, stably, as new pieces under ``target``; the highest time of each."""
    runner.each(sort_piece, [(shelf, target, piece, key) for piece in range(pieces)])
    runs = [shelf.get(f"{target}/runs/{key}/{piece}") for piece in range(pieces)]
    total = sum(len(run) for run in runs)
    ranks = [total * n // pieces for n in range(pieces + 1)]
    cuts = cut_at_ranks(runs, ranks)
    calls = [
        (shelf, target, n, key, cuts[n].tolist(), cuts[n + 1].tolist())
        for n in range(pieces)
        if ranks[n + 1] > ranks[n]
    ]
    calls = [(shelf, target, number, *call[3:]) for number, call in enumerate(calls)]
    found = runner.each(merge_slice, calls)
    shelf.drop(f"{target}/runs")
    return found


def text_hash(text: str) -> int:
    """The hash of a key's text."""
    data = np.frombuffer(text.encode() + b" ", np.uint8)
    return int(hash_slices(data, np.zeros(1, np.int64), np.array([len(data) - 1]))[0])


def moment(value: int | str, unit: TimeUnit, at: str) -> int:
    """A moment of a configuration in ticks: a number in the source's unit, or an ISO instant."""
    data = np.frombuffer(str(value).encode() + b" ", np.uint8)
    status = np.zeros(1, np.uint8)
    ticks, _ = times_of(data, status, np.zeros(1, np.int64), np.array([len(data) - 1]), TICKS[unit])
    if status[0] != GOOD or abs(int(ticks[0])) > LIMIT:
        raise InputError(
            f"{value!r} is not a time", at=at, fix=f"a whole number of {unit}, or an instant like 2024-05-01T12:00:00Z"
        )
    return int(ticks[0])


def move_piece(  # noqa: PLR0917
    shelf: Shelf, piece: int, carry: int, outages: Sequence[tuple[int, int, Sequence[int]]], skews: Any, seed: int
) -> None:
    """When the events of a piece arrive: at the running maximum, moved by clocks, then held up by outages."""
    times: Ints = np.asarray(shelf.get(f"t/{piece}"))
    arrivals = np.maximum(np.maximum.accumulate(times), carry) if len(times) else times
    keys = np.asarray(shelf.get(f"key/{piece}")) if shelf.has(f"key/{piece}") else None
    if skews is not None and keys is not None:
        arrivals = arrivals + _skew(keys, skews, seed)
    for start, end, wanted in outages:
        down: Flags = (times >= start) & (times < end)
        if wanted and keys is not None:
            down &= np.isin(keys, np.array(wanted, np.uint64))
        arrivals = np.where(down, np.maximum(arrivals, end), arrivals)
    shelf.put(f"g/{piece}", arrivals)


def _skew(keys: Any, skews: Mapping[int, int] | int, seed: int) -> Ints:
    """How many ticks each event arrives later than its clock says; a clock that is ahead gives a negative number."""
    if isinstance(skews, int):
        drawn = draws(seed, "skew", keys.astype(np.int64))
        return (drawn % np.uint64(2 * skews + 1)).astype(np.int64) - skews
    found = np.zeros(len(keys), np.int64)
    for key, ticks in skews.items():
        found[keys == np.uint64(key)] = ticks
    return found


def moves_of(experiment: Experiment, unit: TimeUnit, at: str) -> tuple[list[tuple[int, int, list[int]]], Any]:
    """Outages and clocks of an experiment in ticks, keys by their hash."""
    outages = [_outage(outage, unit, at) for outage in experiment.outages]
    skews: Any = experiment.skews
    if isinstance(skews, Mapping):
        return outages, {text_hash(name): skew_ticks(ms, unit, at) for name, ms in skews.items()}
    return outages, None if skews is None else skew_ticks(skews, unit, at)


def _outage(outage: Outage, unit: TimeUnit, at: str) -> tuple[int, int, list[int]]:
    start, end = moment(outage.start, unit, at), moment(outage.end, unit, at)
    if end < start:
        raise InputError(f"an outage ends at {outage.end}, before it starts", at=at, fix="give from <= to")
    return start, end, [text_hash(name) for name in outage.keys]
