"""join and followed_by: pairs of matching events, incrementally.

Both are bilinear: the output is a sum over pairs of rows, and the weight of a pair is the product of both weights. So a
change of one input meets the state of the other, and only then becomes state itself.

Cleanup: a left event goes once ``re <= cR``, where cR is the right input's frontier, and the other way round. After cR
the right input can only change history from cR on. A new right event does not reach back to such a left event. A
changed one brings a −row and a +row with the same start and both ends at or after cR, in one delta; both meet a left
event with ``re <= cR`` in the same interval, so their pairs with it cancel. The left event itself may still change if
its own input lags behind, and its −row then finds nothing to take off: that row has the same end, so it is past the
same frontier and goes as well.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamproof.events.time import BEGINNING
from streamproof.kernels.antijoin import Fragments, Uncovered
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Cells, Layout
from streamproof.kernels.delta import Delta, concat, without_cancelling
from streamproof.kernels.expressions.columns import Columns
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.kernels.pairs import SIDES, Keys, Pairs, SideReader, names_read, null_columns, residual_of, split
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Found, Store
from streamproof.kernels.store_loops import KEY, LE, RE
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_START, Col, columns_of
from streamproof.plan.labels import label
from streamproof.plan.typing import Scope


class JoinKernel(Declared):
    """Matching pairs over the intersection of their lifetimes; for followed_by, rights that start inside the left."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.Join)
        assert node.select is not None, "a typed plan names all columns"
        schemas = typed.inputs[0].schema, typed.inputs[1].schema
        scope = Scope.two(*schemas, registry=context.registry)
        condition = split(node.on, scope)
        exprs = [expr for _, expr in node.select]
        self.keys = Keys([pair.type for pair in condition.equalities], context)
        left, right = (
            SideReader(side, schema, names_read([*exprs, condition.residual], side), condition, scope, self.keys)
            for side, schema in zip(SIDES, schemas, strict=True)
        )
        self.readers = left, right
        self.stores = tuple(
            Store(reader.layout.width, most=context.limits.events_listed) for reader in self.readers
        )  # live events of each side
        self.frontiers = [BEGINNING, BEGINNING]
        self._follows = isinstance(node, nodes.FollowedBy)
        self._residual = residual_of(condition, scope)
        self._select = [compile_expression(expr, scope) for expr in exprs]
        self._read = frozenset(column for expr in exprs for column in columns_of(expr))
        self._output = Layout.of(typed.schema)
        self._label = label(node)
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return without_cancelling(self.change(port, delta), self._output, self._context.strings)

    def change(self, port: int, delta: Delta) -> Delta:
        """The change of the output; some of its rows may cancel."""
        rows, _ = self.readers[port].read(delta)
        pairs = Pairs(self.readers, port, rows, self._meet(port, rows)).where(self._residual)
        output = self._result(pairs)
        self.stores[port].put(rows)
        self._advance(port, delta.frontier)
        return output.at(min(self.frontiers))

    def _meet(self, port: int, rows: Cells) -> Found:
        """Which stored events of the other side the rows meet."""
        key, le, re = (np.ascontiguousarray(rows[:, n]) for n in (KEY, LE, RE))
        others = self.stores[1 - port]
        if not self._follows:
            return others.overlapping(key, le, re)
        if port == 0:  # rights that start strictly inside
            return others.overlapping(key, le, re, low=le + 1)
        return others.overlapping(key, le, le)  # lefts that live on both sides of the start

    def _result(self, pairs: Pairs) -> Delta:
        key, le, re, w = pairs.meetings(self._label)  # for followed_by the later start is the right one
        columns = pairs.columns(self._read)
        made = Delta(self.keys.group(key), le, re, w, tuple(make(columns) for make in self._select))
        return made if columns.lost is None else made.take(columns.lost.kept)

    def _advance(self, port: int, frontier: int) -> None:
        if frontier > self.frontiers[port]:
            self.frontiers[port] = frontier
            self.stores[1 - port].drop(frontier + 1)
        if self.keys.wants_collection():
            self.collect()

    def collect(self) -> None:
        self.keys.collect(np.union1d(*(store.keys() for store in self.stores)))

    def parts(self) -> dict[str, Part]:
        sides = zip(("left", "right"), self.stores, self.readers, strict=True)
        stored = {name: StoredRows(store, reader.layout) for name, store, reader in sides}
        return {"keys": self.keys, **stored, "time": Fields(self, "frontiers")}

    def restored(self) -> None:
        for port in (0, 1):
            self.stores[1 - port].drop(self.frontiers[port] + 1)


class OuterJoinKernel(Declared):
    """A join and one anti join (left_outer) or two (full_outer) over the same inputs."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = typed.node
        assert isinstance(node, nodes.LeftOuter | nodes.FullOuter)
        assert node.select is not None, "a typed plan names all columns"
        exprs = [expr for _, expr in node.select]
        kept = (0, 1) if isinstance(node, nodes.FullOuter) else (0,)
        self._joined = JoinKernel(typed, context)
        self._alone = [Uncovered(typed, context, kept=side, needed=names_read(exprs, SIDES[side])) for side in kept]
        self._schemas = typed.inputs[0].schema, typed.inputs[1].schema
        scope = Scope.two(*self._schemas, registry=context.registry)
        self._select = [compile_expression(expr, scope) for expr in exprs]
        self._output = Layout.of(typed.schema)
        self._context = context
        self._nothing = Delta.empty(typed.schema)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        both = self._joined.change(port, delta)
        alone = [self._with_nulls(part, part.on_batch(port, delta)) for part in self._alone]
        change = concat([both, *alone], frontier=both.frontier)
        return without_cancelling(change, self._output, self._context.strings)

    def _with_nulls(self, part: Uncovered, found: Fragments) -> Delta:
        """Fragments of one side with the columns that select makes of them; the other side is null."""
        delta, rows = found.delta, len(found.start)
        if not rows:
            return self._nothing
        side, missing = SIDES[part.kept], SIDES[1 - part.kept]
        known = {Col(n, side): c for n, c in zip(part.stored, delta.columns, strict=True)}
        nulls = null_columns(self._schemas[1 - part.kept], missing, rows)
        lost = self._context.lost_rows(rows)
        columns = Columns({**known, Col(LIFE_START, side): pa.array(found.start), **nulls}, rows, lost=lost)
        made = Delta(delta.group, delta.le, delta.re, delta.w, tuple(make(columns) for make in self._select))
        return made if lost is None else made.take(lost.kept)

    def parts(self) -> dict[str, Part]:
        return {"join": self._joined, **{f"alone{part.kept}": part for part in self._alone}}
