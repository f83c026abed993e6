"""stitch, coalesce and distinct: what becomes of the lifetimes of equal payloads, incrementally.

Each group and payload is a key, and every key's output is a function of its lifetimes alone. A change concerns its keys
only: their output is computed before and after, and the difference goes out.

State. Up to the *base*, an instant at or before the frontier, starts are settled, and so are ends before it. Lifetimes
with ``re < base`` go. What they leave behind for a lifetime that started before the base is its *origin*:

- coalesce: where the run that reaches the base began; one per key, since all such lifetimes cover ``base − 1``;
- distinct: the last boundary before the base; one per key, for the same reason;
- stitch: where each chain that reaches the base began. Chains and lifetimes with one start pair up in order, the
  earliest begun with the earliest end. Those with ends before the base had the earliest, so the others keep theirs;
  when ends change, they pair up anew.

The output changes only from the frontier c on, as the input does. A run, snapshot or chain that begins before c keeps
its beginning; its end moves from one place at or after c to another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels import lifetimes
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells
from streamproof.kernels.delta import Delta
from streamproof.kernels.pairs import Keys, cells_of
from streamproof.kernels.state import Settling, StoredRows
from streamproof.kernels.store import Store, merged, ordered
from streamproof.kernels.store_loops import KEY, LE, RE, W
from streamproof.plan.check import Typed


class Definition(NamedTuple):
    """What each of them means."""

    output: Callable[[Cells, Cells, int], Cells]  # from rows of some keys, their origins and the base
    origins: Callable[[Cells, Cells, int, int], Cells]  # the same with the new base: what to remember


class _EqualPayloadsKernel(Settling):
    """What the three have in common; they differ in their definition."""

    definition: ClassVar[Definition]

    def __init__(self, typed: Typed, context: Context) -> None:
        self.keys = Keys([kind for _, kind in typed.schema], context)
        self.live = Store(0)  # lifetimes by key
        self.origins = Store(1)  # where what reaches the base began, by key (and start)
        self.base = BEGINNING  # starts before it are settled
        self.frontiers = [BEGINNING]

    def on_batch(self, port: int, delta: Delta) -> Delta:
        output = self._change(self._read(delta))
        self.frontiers = [max(*self.frontiers, delta.frontier)]
        self.settle_now_and_then()
        return output.at(*self.frontiers)

    def _read(self, delta: Delta) -> Cells:
        cells = cells_of(self.keys.layout, delta.columns, len(delta), self.keys.context)
        key = self.keys.number(delta.group, cells)
        return ordered(key, delta.le, delta.re, delta.w, np.empty((len(delta), 0), np.int64))

    def _change(self, rows: Cells) -> Delta:
        touched = np.unique(rows[:, KEY])
        old, origins = self.live.of_keys(touched), self.origins.of_keys(touched)
        new = merged(old, rows, before=BEGINNING)
        self.live.put(rows)
        before, after = (self.definition.output(rows, origins, self.base) for rows in (old, new))
        before[:, W] *= -1
        change = merged(before, after, before=BEGINNING)
        key, le, re, w = (np.ascontiguousarray(change[:, n]) for n in (KEY, LE, RE, W))
        return Delta(self.keys.group(key), le, re, w, self.keys.columns(key))

    def stores(self) -> dict[str, StoredRows]:
        return {"live": StoredRows(self.live), "origins": StoredRows(self.origins)}

    def move_base(self, frontier: int) -> None:
        origins = self.definition.origins(self.live.all_rows(), self.origins.all_rows(), self.base, frontier)
        self.live.drop(frontier if frontier < FOREVER else FOREVER + 1)  # at ∞ all is settled
        self.origins.replace(origins if frontier < FOREVER else origins[:0])


class CoalesceKernel(_EqualPayloadsKernel):
    """Overlapping or touching lifetimes of equal payload merge: the maximal runs with at least one event."""

    definition = Definition(lifetimes.runs, lifetimes.run_origins)


class DistinctKernel(_EqualPayloadsKernel):
    """Per payload each snapshot with at least one event, once."""

    definition = Definition(lifetimes.snapshots, lifetimes.last_boundaries)


class StitchKernel(_EqualPayloadsKernel):
    """Touching lifetimes of equal payload become one; where several could go on, the earliest begun does."""

    definition = Definition(lifetimes.stitched, lifetimes.chain_origins)
