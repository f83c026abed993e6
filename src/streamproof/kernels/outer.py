"""left_outer and full_outer: the join, and with nulls the fragments of events that nothing on the other side covers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from streamproof.kernels.antijoin import Fragments, Uncovered
from streamproof.kernels.base import Context, State
from streamproof.kernels.cancelling import without_cancelling
from streamproof.kernels.cells import Ints, Layout
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.expressions import Columns, compile_expression
from streamproof.kernels.join import JoinKernel
from streamproof.kernels.pairs import SIDES, names_read, null_columns
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_START, Col
from streamproof.plan.typing import Scope


class OuterJoinKernel:
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

    def snapshot(self) -> State:
        state: State = {f"join.{name}": value for name, value in self._joined.snapshot().items()}
        for part in self._alone:
            state.update({f"alone{part.kept}.{name}": value for name, value in part.snapshot().items()})
        return state

    def restore(self, state: State) -> None:
        self._joined.restore(_part(state, "join."))
        for part in self._alone:
            part.restore(_part(state, f"alone{part.kept}."))

    def live_strings(self) -> Ints:
        return np.concatenate([self._joined.live_strings(), *(part.live_strings() for part in self._alone)])

    def live_groups(self) -> Ints:
        return np.concatenate([self._joined.live_groups(), *(part.live_groups() for part in self._alone)])

    def live_rows(self) -> int:
        return self._joined.live_rows() + sum(part.live_rows() for part in self._alone)


def _part(state: State, prefix: str) -> State:
    return {name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)}
