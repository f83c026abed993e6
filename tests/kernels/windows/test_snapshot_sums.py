"""Sums over snapshots at the speed and in the room that is due: changes stay local, and what cancels goes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context, Emission
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.kernels.windows.snapshot_sums.strategy import SnapshotSums
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import Snapshot
from tests.kernels.windows.running import bag

SCHEMA = Schema.of({"v": "float64"})
NODE = nodes.Aggregation(nodes.Source("S"), Snapshot(), (("n", Aggregate("count")), ("s", Aggregate("sum", Col("v")))))


def kernel_of(emission: Emission = "speculative") -> WindowKernel:
    return WindowKernel(check(NODE, {"S": SCHEMA}), Context(installed(), emission=emission))


def stream(events: int, *, longest: int, keys: int, late: int, seed: int) -> Delta:
    """Events in rough order of their starts, one in ten of them taken back at once."""
    rng = np.random.default_rng(seed)
    le = np.maximum(np.arange(events) - rng.integers(0, late + 1, events) * (rng.random(events) < 0.1), 0)
    re = le + rng.integers(1, longest + 1, events)
    group, w = rng.integers(0, keys, events), np.ones(events, np.int64)
    values = rng.integers(-1000, 1000, events) * 2.0 ** rng.integers(-30, 30, events)
    back = np.flatnonzero(rng.random(events) < 0.1)
    place = np.argsort(np.concatenate([np.arange(events), back + 0.5]), kind="stable")
    at = np.concatenate([np.arange(events), back])[place]
    signs = np.concatenate([w, -w[back]])[place]
    return Delta(group[at], le[at], re[at], signs, (pa.array(values[at]),))


def run(delta: Delta, size: int, *, lag: int, emission: Emission = "speculative") -> tuple[list[Delta], list[int]]:
    """Batches of a size, each with a frontier that trails behind; what comes out, and how large the state is."""
    kernel, latest = kernel_of(emission), -lag
    outputs: list[Delta] = []
    sizes: list[int] = []
    assert isinstance(kernel.strategy, SnapshotSums)
    for start in range(0, len(delta), size):
        part = delta.take(np.arange(start, min(start + size, len(delta))))
        latest = max(latest, int(part.le.max()))
        outputs.append(kernel.on_batch(0, part.at(latest - lag)))
        sizes.append(kernel.live_rows())
    outputs.append(kernel.on_batch(0, Delta.empty(SCHEMA, frontier=FOREVER)))
    return outputs, sizes


@pytest.mark.parametrize("emission", ["speculative", "eager", "final"])
@pytest.mark.parametrize(("longest", "keys"), [(20, 1), (900, 1), (900, 40)])
def test_batches_of_any_size_sum_up_to_the_same(longest: int, keys: int, emission: Emission) -> None:
    delta = stream(3000, longest=longest, keys=keys, late=300, seed=longest + keys)
    whole, _ = run(delta, 100_000, lag=400, emission=emission)
    for size in (700, 41):
        assert bag(run(delta, size, lag=400, emission=emission)[0]) == bag(whole)


def test_state_is_what_is_live() -> None:
    """Boundaries from the frontier's snapshot on: as many late as early, whatever the stream's length."""
    delta = stream(20_000, longest=50, keys=10, late=30, seed=4)
    _, sizes = run(delta, 500, lag=40)
    assert max(sizes[-10:]) <= 1.3 * max(sizes[2:12])
    assert max(sizes) < 10 * 2 * (50 + 40)


def test_ends_that_are_moved_again_and_again_leave_nothing_behind() -> None:
    """An event far ahead that is extended by every batch holds one end, not all it ever had."""
    kernel = kernel_of()

    def one(re: int, w: int) -> Delta:
        zero = np.zeros(1, np.int64)
        return Delta(zero, zero, np.array([re]), np.array([w]), (pa.array([1.5]),))

    kernel.on_batch(0, one(10**6, 1))
    for n in range(20_000 // 100):
        moves = [one(10**6 + 100 * n + i // 2 + i % 2, 1 if i % 2 else -1) for i in range(200)]
        kernel.on_batch(0, concat(moves, frontier=n))
    assert kernel.live_rows() <= 3
    assert isinstance(kernel.strategy, SnapshotSums)
    assert len(kernel.strategy.future) < 10_000
