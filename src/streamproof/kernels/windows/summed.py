"""From sums to rows: results in columns, and only those that changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Layout, Strings
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows.accumulators import Accumulators
from streamproof.kernels.windows.aggregates import sum_overflow
from streamproof.kernels.windows.liveliness import Liveliness
from streamproof.kernels.windows.ordered import Column
from streamproof.kernels.windows.segments import Bools
from streamproof.plan import nodes
from streamproof.plan.check import Typed


def written(write: Callable[[Cells, Cells], int], guess: int, width: int) -> tuple[Cells, Cells]:
    """The rows (group, le, re, w) and sums that ``write`` puts into two matrices; it says −1 where they are too small.

    A matrix that grows inside of a compiled loop makes the loop several times slower, so it starts over instead.
    """
    room = guess + 64
    while True:
        emitted, rows = np.empty((room, 4), np.int64), np.empty((room, width), np.int64)
        size = write(emitted, rows)
        if size >= 0:
            return emitted[:size], rows[:size]
        room *= 2


def summed(emitted: Cells, rows: Cells, sums: Accumulators, typed: Typed, lively: Liveliness) -> Delta:
    """Rows (group, le, re, w) with sums as a delta of results. Where a row follows the one it replaces with the same
    lifetime and the same results, both are left out; so is the end of time as a point."""
    if lively.stamp == "point_end" and len(emitted) and emitted[:, 2].max() >= FOREVER:
        finite = emitted[:, 2] < FOREVER
        emitted, rows = emitted[finite], rows[finite]
    columns, lost = sums.columns(rows)
    if lost.any():
        raise _overflow(emitted, lost, typed)
    needed = ~_unchanged(emitted, columns)
    if not needed.all():
        emitted, columns = emitted[needed], [(cells[needed], nulls[needed]) for cells, nulls in columns]
    group, le, re, w = (np.ascontiguousarray(emitted[:, n]) for n in range(4))
    if lively.stamp == "point_end":
        le, re = re, re + 1
    arrays = (_array(column, kind) for column, (_, kind) in zip(columns, typed.schema, strict=True))
    return Delta(group, le, re, w, tuple(arrays))


def _unchanged(emitted: Cells, columns: list[Column]) -> Bools:
    """Rows that the next one replaces, or that replace the one before, with nothing changed."""
    same = np.zeros(len(emitted), np.bool_)
    if not len(emitted) or emitted[:, 3].min() > 0:
        return same
    pairs = (emitted[1:, 3] > 0) & (emitted[:-1, 3] < 0)
    for n in range(3):
        pairs &= emitted[1:, n] == emitted[:-1, n]
    for cells, nulls in columns:
        pairs &= (nulls[1:] & nulls[:-1]) | ((nulls[1:] == nulls[:-1]) & (cells[1:] == cells[:-1]).all(axis=1))
    same[:-1] |= pairs
    same[1:] |= pairs
    return same


def _array(column: Column, kind: Type) -> pa.Array:
    cells, nulls = column
    values = np.ascontiguousarray(cells[:, 0])
    if kind.kind == "decimal":
        whole = np.column_stack([cells, nulls.astype(np.int64)])
        return Layout.of([kind]).column(whole, 0, Strings())
    return pa.array(values.view(np.float64) if kind == FLOAT64 else values, mask=nulls if nulls.any() else None)


def _overflow(emitted: Cells, lost: Bools, typed: Typed) -> RunError:
    at = int(lost.argmax())
    node = typed.node
    assert isinstance(node, nodes.Aggregation)
    kinds = [typed.schema[name] for name, agg in node.aggs if agg.fn == "sum" and typed.schema[name] != FLOAT64]
    return sum_overflow(int(emitted[at, 1]), int(emitted[at, 2]), kinds[0])
