"""State is bounded by what is live: under steady frontiers it stays flat, however long the stream."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.schema import Schema
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

SCHEMA = Schema.of({"v": "int64", "s": "string"})
WINDOWS: tuple[Window, ...] = (Tumbling(10), Hopping(12, 5, 1), Hopping(3, 10), Snapshot(), CountStart(3), CountEnd(2))
AGGREGATES = {
    "sums": (("n", Aggregate("count")), ("s", Aggregate("sum", Col("v")))),
    "order": (("f", Aggregate("first", Col("s"))), ("m", Aggregate("max", Col("v")))),
}


def batch(now: int, rng: np.random.Generator, *, rows: int = 20) -> Delta:
    le = now + rng.integers(0, 10, rows)
    re = le + rng.integers(1, 15, rows)
    payload = (pa.array(rng.integers(0, 5, rows)), pa.array([f"s{now}-{n}" for n in range(rows)]))
    return Delta(rng.integers(0, 3, rows), le, re, np.ones(rows, np.int64), payload, now)


@pytest.mark.parametrize("emission", ["speculative", "eager", "final"])
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize("aggs", AGGREGATES)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_state_stays_flat(window: Window, aggs: str, fast: bool, emission: Emission) -> None:
    typed = check(nodes.Aggregation(nodes.Source("S"), window, AGGREGATES[aggs]), {"S": SCHEMA})
    context = Context(installed(), emission=emission)
    kernel = WindowKernel(typed, context, fast=fast)
    rng, sizes = np.random.default_rng(7), []
    for now in range(0, 600, 10):
        kernel.on_batch(0, batch(now, rng))
        context.strings.keep_only(kernel.live_strings())
        sizes.append((kernel.live_rows(), len(context.strings)))
    early, late = np.max(sizes[5:20], axis=0), np.max(sizes[-15:], axis=0)
    assert (late <= 1.5 * early + 10).all(), (early, late)


def test_a_long_event_does_not_hold_what_only_passed_it() -> None:
    """An event that never ends stays; the others go, and the snapshots behind the frontier with them."""
    for fast in (True, False):
        typed = check(nodes.Aggregation(nodes.Source("S"), Snapshot(), AGGREGATES["sums"]), {"S": SCHEMA})
        kernel = WindowKernel(typed, Context(installed()), fast=fast)
        rng = np.random.default_rng(3)
        endless = Delta(*(np.array([n]) for n in (0, 0, 2**62, 1)), (pa.array([1]), pa.array(["x"])))
        kernel.on_batch(0, endless)
        sizes = []
        for now in range(0, 400, 10):
            kernel.on_batch(0, batch(now, rng))
            sizes.append(kernel.live_rows())
        assert max(sizes[-10:]) <= 1.5 * max(sizes[3:13])
