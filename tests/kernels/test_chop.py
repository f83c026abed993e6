"""chop: pieces of lifetimes that have no end, or have none any more."""

from __future__ import annotations

from dataclasses import replace

from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.chop import ChopKernel
from streamproof.kernels.delta import Delta
from streamproof.plan.check import check
from streamproof.plan.library import installed
from streamproof.plan.nodes import Chop, Source
from streamproof.workbench.promises import broken_promise

SCHEMA = Schema.of({"v": "int64"})
ROW = {"v": 1}


def test_a_lifetime_that_loses_its_end_keeps_the_piece_that_has_begun() -> None:
    kernel = ChopKernel(check(Chop(Source("S"), 7), {"S": SCHEMA}), Context(installed()))
    pushes = [
        Batch.from_rows(SCHEMA, [(0, 3, 1, ROW)], frontier=1),
        Batch.from_rows(SCHEMA, [(0, 3, -1, ROW), (0, FOREVER, 1, ROW)], frontier=1),
        Batch.from_rows(SCHEMA, [], frontier=8),
        Batch.from_rows(SCHEMA, [(0, FOREVER, -1, ROW), (0, 9, 1, ROW)], frontier=8),
    ]
    made = [kernel.on_batch(0, Delta.from_batch(push)).to_batch(SCHEMA) for push in pushes]
    output = [replace(batch, rows=consolidate(batch.rows)) for batch in made]
    rows = [[tuple(row[name] for name in ("le", "re", "w")) for row in batch.rows.to_pylist()] for batch in output]
    assert [batch.frontier for batch in output] == [1, 1, 8, 8]
    assert sorted(rows[1]) == [(0, 3, -1), (0, 7, 1)]
    assert rows[2] == [(7, 14, 1)]
    assert not broken_promise(output, complete=False)


def test_nothing_is_kept_once_all_input_is_complete() -> None:
    kernel = ChopKernel(check(Chop(Source("S"), 7), {"S": SCHEMA}), Context(installed(), horizon=10))
    output = kernel.on_batch(0, Delta.from_batch(Batch.from_rows(SCHEMA, [(0, FOREVER, 1, ROW)], frontier=FOREVER)))
    assert output.le.tolist() == [0]
    assert kernel.live_rows() == 0
