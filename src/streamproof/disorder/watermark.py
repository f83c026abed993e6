"""What Spark's own watermark would drop: it moves between micro-batches, so that batch sizes decide who is late.

After a micro-batch the watermark is the latest time so far minus the delay. A batch seals windows with the watermark
that the batch before it left, but it drops late rows with the one before that (Spark 3.4 and later): a row is dropped
if its window, or without windows its own time, ended at that watermark or before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.records import LOWEST
from streamproof.disorder.rows import LIMIT
from streamproof.disorder.runner import Runner
from streamproof.disorder.units import TimeUnit
from streamproof.errors import InputError
from streamproof.events.order import Ints

BEHIND: Final = 2
"""How many micro-batches the watermark that drops late rows lags behind."""


def simulate(  # noqa: PLR0917
    store: ArrayStore, runner: Runner, rows: Sequence[int], batch: int, delay: int, window: int | None, unit: TimeUnit
) -> dict[str, Any]:
    """How many events micro-batches of ``batch`` rows would drop at a delay, and from how many windows."""
    if batch < 1 or delay < 0 or (window is not None and window < 1):
        raise InputError(
            "batches and windows are at least 1, delays at least 0",
            at="--batch-rows, --delay, --window",
            fix="give larger ones",
        )
    if max(batch, delay, window or 0) > LIMIT:
        raise InputError(
            f"at most {LIMIT:,} rows or ticks", at="--batch-rows, --delay, --window", fix="give smaller ones"
        )
    starts = np.concatenate([[0], np.cumsum(rows)[:-1]]).tolist()
    parts = runner.each(batch_highs, [(store, piece, first, batch) for piece, first in enumerate(starts)])
    highs = np.full(-(-sum(rows) // batch), LOWEST, np.int64)
    for first, found in parts:
        highs[first : first + len(found)] = np.maximum(highs[first : first + len(found)], found)
    before = np.concatenate([np.full(BEHIND, LOWEST), np.maximum.accumulate(highs)])[: len(highs)]
    marks = np.where(before == LOWEST, LOWEST, before - delay)
    calls = [(store, piece, first, batch, marks, window or 0) for piece, first in enumerate(starts)]
    results = runner.each(dropped_in, calls)
    dropped = sum(count for count, _ in results)
    windows = np.unique(np.concatenate([ends for _, ends in results]))
    return {
        "batch_rows": batch, "batches": len(highs), "delay": delay, "window": window, "unit": unit, "dropped": dropped,
        "percent": 100 * dropped / sum(rows), "windows_hit": len(windows) if window else None,
    }  # fmt: skip


def batch_highs(store: ArrayStore, piece: int, first: int, size: int) -> tuple[int, Ints]:
    """The highest time of each micro-batch, as far as it lies in this piece; the number of the first batch."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    if not len(times):
        return 0, np.zeros(0, np.int64)
    batches = (first + np.arange(len(times))) // size
    starts = np.flatnonzero(np.concatenate([[True], batches[1:] != batches[:-1]]))
    return int(batches[0]), np.maximum.reduceat(times, starts)


def dropped_in(store: ArrayStore, piece: int, first: int, size: int, marks: Ints, window: int) -> tuple[int, Ints]:  # noqa: PLR0917
    """How many events Spark would drop, those whose window ended at their batch's watermark, and from which windows."""
    times: Ints = np.asarray(store.get(f"t/{piece}"))
    batches = (first + np.arange(len(times))) // size
    ends = (times // window + 1) * window if window else times
    dropped = ends <= marks[batches]
    return int(dropped.sum()), np.unique(ends[dropped]) if window else np.zeros(0, np.int64)
