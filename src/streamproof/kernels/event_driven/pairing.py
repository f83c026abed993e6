"""pairing: each end closes one open begin of its key, the first or the last to begin, incrementally.

Of both sides only starts matter. A change concerns its keys only: their pairs are computed before and after, and the
difference goes out.

State. Up to the *base*, an instant at or before both frontiers, begins and ends are settled: ends before it are gone,
and so are the begins that they closed, or that lasted for ``max``. What is left are open begins. An end at or after the
frontier moves ends from there on, so changes concern history from there on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamproof.events.schema import Schema, Type
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.event_driven import refuse_late, refuse_times
from streamproof.kernels.event_driven.event_loops import simulated
from streamproof.kernels.pairs import Keys, cells_of
from streamproof.kernels.state import Settling, StoredRows
from streamproof.kernels.store import Store, merged, ordered
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Pairing
from streamproof.plan.functions import common_type

NO_MAX = 0


def key_types(key: tuple[str, ...], left: Schema, right: Schema) -> list[Type]:
    """The types in which the keys of two sides are compared."""
    kinds = [common_type([left[name], right[name]]) for name in key]
    assert None not in kinds, "the check refuses to compare other types"
    return [kind for kind in kinds if kind is not None]


def key_columns(delta: Delta, places: list[int], kinds: list[Type]) -> list[pa.Array]:
    """The key of rows, brought to the types in which it is compared."""
    columns = [delta.columns[n] for n in places]
    return [
        column if column.type == kind.arrow else column.cast(kind.arrow)
        for column, kind in zip(columns, kinds, strict=True)
    ]


class PairingKernel(Settling):
    """``[begin, the end that closes it)``."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, Pairing)
        assert node.max is None or isinstance(node.max, int)
        schemas = [part.schema for part in typed.inputs]
        self.kinds = key_types(node.key, schemas[0], schemas[1])
        self.keys = Keys(self.kinds, context)
        self.layout = Layout.of(schemas[0])
        self.begins = Store(self.layout.width)  # those that no end before the base closed, as points
        self.ends = Store(0)  # from the base on, as points
        self.base = BEGINNING
        self.frontiers = [BEGINNING, BEGINNING]
        self._max, self._last = node.max or NO_MAX, node.policy == "lifo"
        self._places = [[schema.names.index(name) for name in node.key] for schema in schemas]
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        output = self._change(port, self._read(port, delta))
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        self.settle_now_and_then()
        return output.at(min(self.frontiers))

    def _read(self, port: int, delta: Delta) -> Cells:
        refuse_late(delta)
        columns = key_columns(delta, self._places[port], self.kinds)
        number = self.keys.number(delta.group, cells_of(self.keys.layout, columns, len(delta), self._context))
        if port == 0:
            cells = cells_of(self.layout, delta.columns, len(delta), self._context)
        else:
            cells = np.empty((len(delta), 0), np.int64)
        rows = ordered(number, delta.le, delta.le + 1, delta.w, cells)
        return rows[rows[:, LE] >= self.base]

    def _change(self, port: int, rows: Cells) -> Delta:
        touched = np.unique(rows[:, KEY])
        begins, ends = self.begins.of_keys(touched), self.ends.of_keys(touched)
        before = self._paired(begins, ends)
        if port == 0:
            begins = merged(begins, rows, before=BEGINNING)
        else:
            ends = merged(ends, rows, before=BEGINNING)
        (self.begins if port == 0 else self.ends).put(rows)
        after = self._paired(begins, ends)
        before[:, W] *= -1
        change = merged(before, after, before=BEGINNING)
        key, le, re, w = (np.ascontiguousarray(change[:, n]) for n in (KEY, LE, RE, W))
        columns = self.layout.decode(change[:, PAYLOAD:], self._context.strings)
        return Delta(self.keys.group(key), le, re, w, tuple(columns))

    def _paired(self, begins: Cells, ends: Cells) -> Cells:
        """All lifetimes, in the order of a run."""
        which, closed, w = self._pairs(begins, ends)
        rows = begins[which]
        rows[:, RE], rows[:, W] = closed, w
        finite = closed[closed < FOREVER]
        if self._max != NO_MAX:
            refuse_times(finite - 1)
        key, le, re, weight = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE, W))
        return ordered(key, le, re, weight, np.ascontiguousarray(rows[:, PAYLOAD:]))

    def _pairs(self, begins: Cells, ends: Cells) -> tuple[Ints, Ints, Ints]:
        """Which begin is closed when, and how often."""
        ties = self.layout.order_keys(begins[:, PAYLOAD:], self._context.strings)
        order = np.lexsort((*ties[::-1], begins[:, LE], begins[:, KEY]))
        found: tuple[Ints, Ints, Ints] = simulated(begins, order, ends, self._max, self._last)
        return found

    def stores(self) -> dict[str, StoredRows]:
        return {"begins": StoredRows(self.begins, self.layout), "ends": StoredRows(self.ends)}

    def move_base(self, frontier: int) -> None:
        begins, ends = self.begins.all_rows(), self.ends.all_rows()
        if frontier >= FOREVER:
            self.begins.replace(begins[:0])
            self.ends.replace(ends[:0])
            return
        past = begins[:, LE] < frontier
        which, closed, w = self._pairs(begins[past], ends[ends[:, LE] < frontier])
        is_open = closed > frontier  # nothing before the frontier ended it
        kept = begins[past][which[is_open]]
        kept[:, W] = w[is_open]
        key, le, re, weight = (np.ascontiguousarray(kept[:, n]) for n in (KEY, LE, RE, W))
        still_open = ordered(key, le, re, weight, np.ascontiguousarray(kept[:, PAYLOAD:]))
        self.begins.replace(merged(still_open, begins[~past], before=BEGINNING))
        self.ends.replace(ends[ends[:, LE] >= frontier])
