"""What Spark's own watermark would drop: it moves between micro-batches, so that batch sizes decide who is late.

After a micro-batch the watermark is the latest time so far minus the delay. A batch seals windows with the watermark
that the batch before it left, but it drops late rows with the one before that (Spark 3.4 and later): a row is dropped
if its window, or without windows its own time, ended at that watermark or before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from streamproof.disorder.measuring import batch_highs, dropped_in
from streamproof.disorder.records import LOWEST
from streamproof.disorder.rows import LIMIT
from streamproof.disorder.runner import Runner
from streamproof.disorder.shelf import Shelf
from streamproof.disorder.units import TimeUnit
from streamproof.errors import InputError

BEHIND: Final = 2
"""How many micro-batches the watermark that drops late rows lags behind."""


def simulate(  # noqa: PLR0917
    shelf: Shelf, runner: Runner, rows: Sequence[int], batch: int, delay: int, window: int | None, unit: TimeUnit
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
    parts = runner.each(batch_highs, [(shelf, piece, first, batch) for piece, first in enumerate(starts)])
    highs = np.full(-(-sum(rows) // batch), LOWEST, np.int64)
    for first, found in parts:
        highs[first : first + len(found)] = np.maximum(highs[first : first + len(found)], found)
    before = np.concatenate([np.full(BEHIND, LOWEST), np.maximum.accumulate(highs)])[: len(highs)]
    marks = np.where(before == LOWEST, LOWEST, before - delay)
    calls = [(shelf, piece, first, batch, marks, window or 0) for piece, first in enumerate(starts)]
    results = runner.each(dropped_in, calls)
    dropped = sum(count for count, _ in results)
    windows = np.unique(np.concatenate([ends for _, ends in results]))
    return {
        "batch_rows": batch, "batches": len(highs), "delay": delay, "window": window, "unit": unit, "dropped": dropped,
        "percent": 100 * dropped / sum(rows), "windows_hit": len(windows) if window else None,
    }  # fmt: skip
