"""What was pushed is let go at once: no kernel holds on to columns, not even until garbage is collected."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.local.graph import Graph
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.kernels.base import Context
from streamproof.kernels.delta import Delta
from streamproof.plan.check import check

SCHEMA = Schema.of({"k": "int64", "v": "float64", "s": "string"})
S = sp.source("S", SCHEMA)
STREAMS = {
    "select": S.select(k="k", x="v * 2 + 1", s="upper(s)"),
    "where": S.where("v > 10 and s = 'a'"),
    "case": S.select(x="case when v > 10 then v else 0.0 end"),
    "panes": S.group_by("k").tumbling(100).aggregate(n=sp.count(), a=sp.avg("v")),
    "members": S.group_by("s").tumbling(100).aggregate(m=sp.median("v * 2")),
    "top": S.tumbling(100).top(2, by=sp.desc("v")),
    "snapshots": S.group_by("k").snapshot().aggregate(m=sp.max("v")),
    "join": S.join(S.select(k="k", y="v"), "l.k = r.k and l.v < r.y", select={"k": "l.k", "s": "l.s", "y": "r.y"}),
}


@pytest.fixture
def uncollected() -> Iterator[None]:
    """No garbage collection meanwhile."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def pushed(number: int) -> Delta:
    le = np.arange(1000 * number, 1000 * number + 500)
    rows = [
        pa.array(le), pa.array(le + 50), pa.array(np.ones(500, np.int64)),
        pa.array(le % 7), pa.array(le / 8), pa.array(np.where(le % 3, "a", "b")),
    ]  # fmt: skip
    return Delta.from_batch(Batch(SCHEMA, pa.Table.from_arrays(rows, schema=SCHEMA.arrow_rows), 1000 * number))


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("stream", STREAMS.values(), ids=STREAMS.keys())
def test_columns_go_with_the_push(stream: sp.Stream) -> None:
    graph = Graph(check(stream.plan, {"S": SCHEMA}), Context(Settings().registry))
    for number in range(3):
        delta = pushed(number)
        held = [sys.getrefcount(part) for part in (delta.le, delta.re, delta.w, *delta.columns)]
        graph.push("S", delta)
        assert [sys.getrefcount(part) for part in (delta.le, delta.re, delta.w, *delta.columns)] == held
