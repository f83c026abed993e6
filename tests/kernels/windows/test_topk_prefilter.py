"""Events that pass by a ranking: leaving them out changes nothing that comes out, batch for batch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.kernel import WindowKernel
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.expr import Col
from streamproof.plan.library import installed
from streamproof.plan.windows import Tumbling
from tests.kernels.windows.running import EMISSIONS, bag

SCHEMA = Schema.of({"v": "int64"})


def kernel(seed: int, *, fast: bool) -> WindowKernel:
    node = nodes.TopK(nodes.Source("S"), Tumbling(2 + seed % 7, seed % 3), 1 + seed % 3, ((Col("v"), "desc"),))
    return WindowKernel(check(node, {"S": SCHEMA}), Context(installed(), emission=EMISSIONS[seed % 3]), fast=fast)


def batches(seed: int) -> Iterator[Delta]:
    """Events nearly in order, some longer than windows are; now and then one that the next batch takes back."""
    random, now = np.random.default_rng(seed), 0
    back = np.empty((0, 4), np.int64)
    for _ in range(8):
        rows, step = int(random.integers(1, 40)), int(random.integers(1, 30))
        le = np.sort(now + random.integers(0, step, rows))
        if seed % 4 == 0:
            random.shuffle(le)
        group, v = np.sort(random.integers(0, 1 + seed % 3, rows)), random.integers(0, 6, rows)
        re = le + random.integers(1, 5, rows)
        new = np.column_stack([group, le, re, v])
        frontier = now + int(random.integers(0, step + 1))
        may_go = np.flatnonzero(le >= frontier)[: seed % 2]
        group, le, re, v = np.concatenate([new, back]).T.copy()
        w = np.repeat([1, -1], [rows, len(back)])
        yield Delta(group, le, re, w, (pa.array(v),), frontier)
        back, now = new[may_go], frontier
    yield Delta.empty(SCHEMA, frontier=FOREVER)


@pytest.mark.parametrize("seed", range(60))
def test_leaving_them_out_changes_nothing(seed: int) -> None:
    fast, general = kernel(seed, fast=True), kernel(seed, fast=False)
    for batch in batches(seed):
        found, wanted = fast.on_batch(0, batch), general.on_batch(0, batch)
        assert bag([found]) == bag([wanted])
        assert found.frontier == wanted.frontier


def test_they_are_not_kept() -> None:
    """Of a batch whose windows all close, nothing is kept; of an open window everything is."""
    le = np.arange(100)
    rows = Delta(np.zeros(100, np.int64), le, le + 1, np.ones(100, np.int64), (pa.array(le % 7),), 95)
    ranking = WindowKernel(
        check(nodes.TopK(nodes.Source("S"), Tumbling(10), 2, ((Col("v"), "desc"),)), {"S": SCHEMA}),
        Context(installed()),
    )
    ranking.on_batch(0, rows)
    assert [view.le for view in ranking.inspect().events] == list(range(90, 100))
