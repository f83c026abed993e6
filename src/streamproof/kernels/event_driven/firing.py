"""transition and drift: which events fire depends on those before them, key by key, incrementally.

Every event is a tuple at its start. In the order of starts and payloads a key has a memory of one value: whether the
condition held, or the value at the last firing. A change concerns its keys only: which of their events fire is computed
before and after, and the difference goes out.

State. Up to the *base*, an instant at or before the frontier, all is settled: of it each key keeps its memory alone.
What fires at t depends on what comes up to t, so changes from the frontier on change the output from there on.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamproof.events.schema import INT64
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout, float_bits
from streamproof.kernels.delta import Delta
from streamproof.kernels.event_driven import refuse_late
from streamproof.kernels.event_driven.event_loops import run
from streamproof.kernels.expressions.columns import Columns, keep
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.kernels.pairs import Keys, cells_of
from streamproof.kernels.state import Settling, StoredRows
from streamproof.kernels.store import Store, merged, ordered
from streamproof.kernels.store_loops import KEY, LE, PAYLOAD, RE, W
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, Transition
from streamproof.plan.expr import LIFE_START, Col, Expr, Lit
from streamproof.plan.typing import Scope

OWN = 2  # so many cells stand before the payload's


class _FiringKernel(Settling):
    """What both have in common."""

    def __init__(self, typed: Typed, context: Context, key: tuple[str, ...], expr: Expr) -> None:
        schema = typed.schema
        self.keys = Keys([schema[name] for name in key], context)
        self.layout = Layout.of(schema)
        self.rows = Store(OWN + self.layout.width)  # tuples from the base on
        self.memory = Store(OWN)  # what each key remembers of before
        self.base = BEGINNING
        self.frontiers = [BEGINNING]
        self.settings = (0, 0, True)  # the step, the way, and whether it is about becoming true
        self._names = schema.names
        self._key = [schema.names.index(name) for name in key]
        self._value = compile_expression(expr, Scope.one(schema, registry=context.registry))
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        output = self._change(self._read(delta))
        self.frontiers = [max(*self.frontiers, delta.frontier)]
        self.settle_now_and_then()
        return output.at(*self.frontiers)

    def _read(self, delta: Delta) -> Cells:
        refuse_late(delta)
        lost = self._context.lost_rows(len(delta))
        columns = dict(zip(map(Col, self._names), delta.columns, strict=True))
        found = self._value(Columns({**columns, Col(LIFE_START): pa.array(delta.le)}, len(delta), lost=lost))
        value, known = self.measured(found)
        key = cells_of(self.keys.layout, [delta.columns[n] for n in self._key], len(delta), self._context)
        cells = cells_of(self.layout, delta.columns, len(delta), self._context)
        number = self.keys.number(delta.group, key)
        cells = np.column_stack([value, known, cells])
        if lost is not None and not lost.kept.all():
            some = lost.kept
            return ordered(number[some], delta.le[some], delta.le[some] + 1, delta.w[some], cells[some])
        return ordered(number, delta.le, delta.le + 1, delta.w, cells)

    def measured(self, found: pa.Array) -> tuple[Ints, Ints]:
        """The value of each row as a number, and whether there is one."""
        raise NotImplementedError

    def _change(self, rows: Cells) -> Delta:
        touched = np.unique(rows[:, KEY])
        old = self.rows.of_keys(touched)
        new = merged(old, rows, before=BEGINNING)
        self.rows.put(rows)
        memory = self.memory.of_keys(touched)
        before, after = (self._fired(part, memory)[0] for part in (old, new))
        before[:, W] = -1
        change = merged(before, after, before=BEGINNING)
        key, le, re, w = (np.ascontiguousarray(change[:, n]) for n in (KEY, LE, RE, W))
        columns = self.layout.decode(change[:, PAYLOAD + OWN :], self._context.strings)
        return Delta(self.keys.group(key), le, re, w, tuple(columns))

    def _fired(self, rows: Cells, memory: Cells) -> tuple[Cells, Cells]:
        """The rows that fire, each once, and what their keys remember then."""
        ties = self.layout.order_keys(rows[:, PAYLOAD + OWN :], self._context.strings)
        order = np.lexsort((*ties[::-1], rows[:, LE], rows[:, KEY]))
        fired, remembered = run(rows, order, memory, *self.settings)
        chosen = rows[np.sort(fired)]
        chosen[:, W] = 1
        return chosen, remembered

    def stores(self) -> dict[str, StoredRows]:
        return {"rows": StoredRows(self.rows, self.layout, first=OWN), "memory": StoredRows(self.memory)}

    def move_base(self, frontier: int) -> None:
        if frontier >= FOREVER:  # all is settled
            self.rows.replace(self.rows.all_rows()[:0])
            self.memory.replace(self.memory.all_rows()[:0])
            return
        rows = self.rows.all_rows()
        past = rows[:, LE] < frontier
        _, remembered = self._fired(rows[past], self.memory.all_rows())
        self.rows.replace(rows[~past])
        self.memory.replace(remembered)


class TransitionKernel(_FiringKernel):
    """Where a condition becomes true."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, Transition)
        super().__init__(typed, context, node.key, node.expr)

    def measured(self, found: pa.Array) -> tuple[Ints, Ints]:
        holds = keep(found).astype(np.int64)
        return holds, np.ones(len(holds), np.int64)


class DriftKernel(_FiringKernel):
    """Where a value has moved far enough."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, Drift)
        assert isinstance(node.step, Lit)
        super().__init__(typed, context, node.key, node.expr)
        self._whole = self._value.type == INT64
        step = node.step.value
        assert step is not None
        assert not isinstance(step, str)
        bits = int(step) if self._whole else int(float_bits(np.array([float(step)]))[0])  # type: ignore[arg-type]
        way = {"any": 0, "up": 1, "down": 2}[node.way]
        self.settings = (bits, way if self._whole else way + 3, False)

    def measured(self, found: pa.Array) -> tuple[Ints, Ints]:
        known = found.is_valid().to_numpy(zero_copy_only=False)
        values = found.fill_null(0).to_numpy(zero_copy_only=False)
        if self._whole:
            return values.astype(np.int64), known.astype(np.int64)
        return float_bits(values), (known & ~np.isnan(values)).astype(np.int64)
