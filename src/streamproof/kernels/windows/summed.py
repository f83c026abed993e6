"""From sums to rows: results in columns, and only those that changed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
from numba import njit

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.events.time import FOREVER
from streamproof.kernels.cells import Cells, Ints, Layout, Strings
from streamproof.kernels.compiled import loop
from streamproof.kernels.delta import Delta
from streamproof.kernels.interning import same_row
from streamproof.kernels.windows.accumulators import Accumulators, Result
from streamproof.kernels.windows.aggregates import sum_overflow
from streamproof.kernels.windows.exact import too_many_terms
from streamproof.kernels.windows.liveliness import Liveliness
from streamproof.kernels.windows.segments import Bools
from streamproof.kernels.windows.sums import Scratch
from streamproof.plan import nodes
from streamproof.plan.check import Typed


def written(write: Callable[[Cells, Cells], int], guess: int, width: int, out: Scratch) -> tuple[Cells, Cells]:
    """The rows (group, le, re, w) and sums that ``write`` puts into two matrices; it says −1 where they are too small.

    A matrix that grows inside of a compiled loop makes the loop several times slower, so it starts over instead. Both
    are in scratch memory.
    """
    room = guess + 64
    while True:
        emitted, rows = out.matrix("emitted", room, 4), out.matrix("sums", room, width)
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
    if (crowded := sums.crowded(rows)) is not None:
        raise too_many_terms(int(emitted[crowded, 1]), int(emitted[crowded, 2]), int(rows[crowded, 0]))
    columns, lost = sums.columns(rows)
    if lost is not None and lost.any():
        raise _overflow(emitted, lost, typed)
    replaces = len(emitted) > 0 and emitted[:, 3].min() < 0
    same = _unchanged(_pairs(emitted), columns) if replaces else emitted[:0, 0]
    if len(same):
        needed = np.ones(len(emitted), np.bool_)
        needed[same] = needed[same + 1] = False
        emitted = emitted[needed]
        columns = [(cells[needed], None if nulls is None else nulls[needed]) for cells, nulls in columns]
    group, le, re, w = (emitted[:, n].copy() for n in range(4))
    if lively.stamp == "point_end":
        le, re = re, re + 1
    arrays = (_array(column, kind) for column, (_, kind) in zip(columns, typed.schema, strict=True))
    return Delta(group, le, re, w, tuple(arrays))


def _unchanged(pairs: Ints, columns: list[Result]) -> Ints:
    """The pairs of rows whose results are the same."""
    for cells, nulls in columns:
        equal = cells[pairs] == cells[pairs + 1]
        if cells.ndim > 1:
            equal = equal.all(axis=1)
        if nulls is not None:
            first, second = nulls[pairs], nulls[pairs + 1]
            equal = (first & second) | ((first == second) & equal)
        pairs = pairs[equal]
    return pairs


def changed_pairs(emitted: Cells, cells: Cells) -> Bools | None:
    """The rows without those that the next one replaces with the same lifetime and the same cells; None for all."""
    needed = np.ones(len(emitted), np.bool_)
    return needed if _leave_out(emitted, cells, needed) else None


@loop
def _leave_out(emitted, cells, needed):  # type: ignore[no-untyped-def]
    """Mark rows that the next one replaces with the same lifetime and the same cells, and that one; how many pairs."""
    count = 0
    for n in range(len(emitted) - 1):
        if emitted[n, 3] < 0 < emitted[n + 1, 3] and _same_lifetime(emitted, n) and same_row(cells, n, cells, n + 1):
            needed[n] = needed[n + 1] = False
            count += 1
    return count


@loop
def _same_lifetime(emitted, n):  # type: ignore[no-untyped-def]
    """Whether a row and the next one are of the same group and lifetime."""
    same = emitted[n, 0] == emitted[n + 1, 0] and emitted[n, 1] == emitted[n + 1, 1]
    return same and emitted[n, 2] == emitted[n + 1, 2]


@njit(cache=True)
def _pairs(emitted):  # type: ignore[no-untyped-def]
    """Rows that the next one replaces with the same lifetime."""
    found = np.empty(len(emitted), np.int64)
    count = 0
    for n in range(len(emitted) - 1):
        if emitted[n, 3] < 0 < emitted[n + 1, 3]:
            found[count] = n
            count += _same_lifetime(emitted, n)
    return found[:count]


def _array(column: Result, kind: Type) -> pa.Array:
    cells, nulls = column
    if kind.kind == "decimal":
        nulls = np.zeros(len(cells), np.bool_) if nulls is None else nulls
        whole = np.column_stack([cells, nulls.astype(np.int64)])
        return Layout.of([kind]).column(whole, 0, Strings())
    return pa.array(cells.view(np.float64) if kind == FLOAT64 else cells, mask=nulls)


def _overflow(emitted: Cells, lost: Bools, typed: Typed) -> RunError:
    at = int(lost.argmax())
    node = typed.node
    assert isinstance(node, nodes.Aggregation)
    kinds = [typed.schema[name] for name, agg in node.aggs if agg.fn == "sum" and typed.schema[name] != FLOAT64]
    return sum_overflow(int(emitted[at, 1]), int(emitted[at, 2]), kinds[0])
