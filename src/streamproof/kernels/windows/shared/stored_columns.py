"""What is kept of an event: the values that the results of windows read, evaluated once, when the event arrives.

Events with equal lifetimes and equal kept values are one stored row with a weight, so what nobody reads is not kept.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from streamproof.events.schema import Schema, Type
from streamproof.kernels.base import Context
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.expressions.columns import Columns, LostRows
from streamproof.kernels.expressions.compile import Evaluation, compile_expression
from streamproof.kernels.windows.shared.members import Members
from streamproof.plan.expr import LIFE_START, Apply, Cast, Col, Expr, walk
from streamproof.plan.typing import Scope, type_of

Read = Callable[[Delta], pa.Array]


class StoredColumns:
    """The columns kept of each event. With ``payload`` they begin with the whole payload, which orders events."""

    def __init__(self, schema: Schema, context: Context, *, payload: bool) -> None:
        self._schema = schema
        self._context = context
        self._scope = Scope.one(schema, registry=context.registry)
        self._known: dict[Expr, int] = {}
        self._reads: list[Read] = []
        self._calling: list[Evaluation] = []  # those that call functions of users
        self.types: list[Type] = []
        self.payload = len(schema.names) if payload else 0  # how many columns are the payload
        for name in schema.names if payload else ():
            self.column(Col(name))
        self._layout: Layout | None = None

    def column(self, expr: Expr, *, to: Type | None = None) -> int:
        """The number of the column that holds an expression, cast to a type if one is given."""
        wanted = expr if to is None or type_of(expr, self._scope) == to else Cast(expr, to)
        if wanted not in self._known:
            self._known[wanted] = len(self._reads)
            self._reads.append(self._read(wanted))
            self.types.append(type_of(wanted, self._scope))
        return self._known[wanted]

    def type_of(self, expr: Expr) -> Type:
        return type_of(expr, self._scope)

    def _read(self, expr: Expr) -> Read:
        names = self._schema.names
        if isinstance(expr, Col) and expr.name in names:
            position = names.index(expr.name)
            return lambda delta: delta.columns[position]
        compiled = compile_expression(expr, self._scope)
        if any(isinstance(part, Apply) for part in walk(expr)):
            self._calling.append(compiled)
        return lambda delta: compiled(_columns(delta, names))

    @property
    def layout(self) -> Layout:
        """The cells of all columns; asked for when every column is known."""
        if self._layout is None:
            self._layout = Layout.of(self.types)
        return self._layout

    def usable(self, delta: Delta) -> Delta:
        """The rows on which no function fails, where failures do not end the run."""
        lost = self._context.lost_rows(len(delta))
        if lost is None or not self._calling:
            return delta
        columns = _columns(delta, self._schema.names, lost)
        for evaluate in self._calling:
            evaluate(columns)
        return delta if lost.kept.all() else delta.take(lost.kept)

    def encode(self, delta: Delta) -> Cells:
        """The cells to keep of every row."""
        if not self._reads:
            return np.zeros((len(delta), 1), np.int64)
        return self.layout.encode([read(delta) for read in self._reads], self._context.strings)

    def arrays(self, delta: Delta) -> list[pa.Array]:
        """The columns themselves, for those who need no cells."""
        return [read(delta) for read in self._reads]

    def ranks(self, members: Members) -> Ints:
        """For each member its place in the order of the payload; equal payloads have different places."""
        slots, firsts, inverse = np.unique(members.slot, return_index=True, return_inverse=True)
        layout = Layout.of(self.types[: self.payload])
        keys = layout.order_keys(_leading(members.cells[firsts], layout), self._context.strings)
        ranks = np.arange(len(slots))
        if keys:
            ranks[np.lexsort(keys[::-1])] = np.arange(len(slots))
        return ranks[inverse]


def _columns(delta: Delta, names: tuple[str, ...], lost: LostRows | None = None) -> Columns:
    found: dict[Col, pa.Array] = {Col(name): column for name, column in zip(names, delta.columns, strict=True)}
    found[Col(LIFE_START)] = pa.array(delta.le)
    return Columns(found, len(delta), lost=lost)


def _leading(cells: Cells, layout: Layout) -> Cells:
    """The cells of the leading columns with their null bits, as the layout of these columns alone has them."""
    nulls = cells[:, -1] & ((1 << len(layout.columns)) - 1)
    return np.column_stack([cells[:, : layout.width - 1], nulls])
