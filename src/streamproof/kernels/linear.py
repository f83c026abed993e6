"""Linear operators: a function of one row at a time, so no state, and retractions pass like everything else.

where, select, shift, extend, to_point, point_at_end, union, and alter_duration. Where alter_duration reads re, a live
event's new end may lie anywhere after its start: then output is sealed up to the least start of an event whose end is
still open, and those are remembered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TypeVar

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER, Span, show_tick
from streamproof.kernels.base import Context, Part
from streamproof.kernels.cells import Ints
from streamproof.kernels.delta import Delta, concat
from streamproof.kernels.expressions.columns import Columns, LostRows, keep
from streamproof.kernels.expressions.compile import compile_expression
from streamproof.kernels.state import Declared, Fields, StoredRows
from streamproof.kernels.store import Store
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, LIFE_START, Col, Expr
from streamproof.plan.expr import columns_of as read_columns
from streamproof.plan.typing import Scope

N = TypeVar("N", bound=nodes.Node)


class WhereKernel(Declared):
    """The rows whose payload satisfies the condition; null is no."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = _node(typed, nodes.Where)
        self._condition, self._context = _compiled(node.expr, typed, context), context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        if not len(delta):
            return delta
        lost = self._context.lost_rows(len(delta))
        kept = keep(self._condition(delta, lost))
        return delta.take(kept if lost is None else kept & lost.kept)


class SelectKernel(Declared):
    """The same lifetimes with a new payload."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = _node(typed, nodes.Select)
        self._columns = [_compiled(expr, typed, context) for _, expr in node.exprs]
        self._context = context

    def on_batch(self, port: int, delta: Delta) -> Delta:
        lost = self._context.lost_rows(len(delta))
        made = replace(delta, columns=tuple(column(delta, lost) for column in self._columns))
        return made if lost is None or lost.kept.all() else made.take(lost.kept)


class ShiftKernel(Declared):
    """Every lifetime moved; infinite ends stay."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self._by = _ticks(_node(typed, nodes.Shift).by)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        le, re = moved(delta.le, self._by, delta), moved(delta.re, self._by, delta)
        return replace(delta, le=le, re=re, frontier=later(delta.frontier, self._by))


class ExtendKernel(Declared):
    """Every end moved; lifetimes that become empty vanish."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self._by = _ticks(_node(typed, nodes.Extend).by)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        re = moved(delta.re, self._by, delta) if self._by >= 0 else shortened(delta.re, -self._by)
        frontier = later(delta.frontier, min(self._by, 0))
        return alive(replace(delta, re=re, frontier=frontier))


class ToPointKernel(Declared):
    """``[le, le + 1)``."""

    def __init__(self, typed: Typed, context: Context) -> None:
        _node(typed, nodes.ToPoint)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        if not len(delta):
            return delta
        points, extent = delta.points(), delta.extent
        if extent.greatest_le >= FOREVER - 1 or extent.least_le <= BEGINNING:
            finite(points.re, delta)
        return points


class PointAtEndKernel(Declared):
    """``[re, re + 1)`` for every row that ends. An end at the frontier may still move, but only from there on."""

    def __init__(self, typed: Typed, context: Context) -> None:
        _node(typed, nodes.PointAtEnd)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        ended = delta.take(delta.re < FOREVER)
        return replace(ended, le=ended.re, re=finite(ended.re + 1, ended))


class AlterDurationKernel(Declared):
    """``[le, le + dur)`` where dur does not read re: a change of the end then changes nothing."""

    def __init__(self, typed: Typed, context: Context) -> None:
        node = _node(typed, nodes.AlterDuration)
        self._duration = duration_of(node, typed, context)

    def on_batch(self, port: int, delta: Delta) -> Delta:
        return self._duration(delta)


def duration_of(node: nodes.AlterDuration, typed: Typed, context: Context) -> Callable[[Delta], Delta]:
    """How alter_duration changes rows: new ends, and the rows that have none left out."""
    if node.dur is None:
        return lambda delta: replace(delta, re=np.full(len(delta), FOREVER))
    assert not isinstance(node.dur, int | str | timedelta), "a typed plan holds an expression"
    expr = node.dur
    reads_end = Col(LIFE_END) in read_columns(expr)
    compiled = _compiled(expr, typed, context, times=("le", "re"))

    def change(delta: Delta) -> Delta:
        no_end = delta.re >= FOREVER if reads_end else np.zeros(len(delta), np.bool_)
        kept, altered = delta.take(no_end), delta.take(~no_end)  # an infinite end that is read stays, unread
        lost = context.lost_rows(len(altered))
        lengths = np.asarray(compiled(altered, lost).fill_null(0).to_numpy(zero_copy_only=False))
        lengths = lengths if lost is None else np.where(lost.kept, lengths, 0)
        altered, lengths = altered.take(lengths > 0), lengths[lengths > 0]
        reach = np.where(altered.le < 0, lengths, np.minimum(lengths, FOREVER))  # so that no sum leaves int64
        ends = finite(altered.le + reach, altered)
        return concat([kept, replace(altered, re=ends)], frontier=delta.frontier)

    return change


def moved(times: Ints, by: int, delta: Delta) -> Ints:
    """Times moved by some ticks; the infinities stay, and a finite time stays finite."""
    infinite = (times >= FOREVER) | (times <= BEGINNING)
    return np.where(infinite, times, finite(np.where(infinite, 0, times) + by, delta))


def shortened(ends: Ints, by: int) -> Ints:
    """Ends some ticks earlier; an infinite one stays, and one that leaves the range is before every start."""
    return np.where(ends >= FOREVER, ends, np.maximum(ends, BEGINNING + by) - by)


def finite(times: Ints, delta: Delta) -> Ints:
    """Times that must lie strictly between the infinities, else the error ``overflow`` names the row."""
    if len(times) and (times.max() >= FOREVER or times.min() <= BEGINNING):
        bad = (times >= FOREVER) | (times <= BEGINNING)
        raise RunError(
            "a lifetime leaves the range of ±2^62 ticks",
            at=lifetime(delta, int(bad.argmax())),
            fix="use a coarser time unit",
            name="overflow",
        )
    return times


def later(frontier: int, by: int) -> int:
    """A frontier moved by some ticks; the infinities stay.

    >>> later(5, 3), later(FOREVER, -3) == FOREVER
    (8, True)
    """
    if frontier in (FOREVER, BEGINNING):
        return frontier
    return max(BEGINNING, min(FOREVER, frontier + by))


def alive(delta: Delta) -> Delta:
    """Without the rows whose lifetime is empty."""
    kept = delta.re > delta.le
    return delta if kept.all() else delta.take(kept)


def lifetime(delta: Delta, row: int) -> str:
    """A row in words, for errors."""
    values = ", ".join(str(column[row].as_py()) for column in delta.columns)
    return f"[{show_tick(int(delta.le[row]))}, {show_tick(int(delta.re[row]))}) {values}"


def _compiled(
    expr: Expr, typed: Typed, context: Context, times: tuple[str, ...] = ("le",)
) -> Callable[[Delta, LostRows | None], pa.Array]:
    schema = typed.inputs[0].schema
    evaluate = compile_expression(expr, Scope.one(schema, times=times, registry=context.registry))
    reads = {column: _reader(column.name, schema.names) for column in read_columns(evaluate.expr)}

    def run(delta: Delta, lost: LostRows | None) -> pa.Array:
        columns = {column: read(delta) for column, read in reads.items()}
        return evaluate(Columns(columns, len(delta), lost=lost))

    return run


def _reader(name: str, names: tuple[str, ...]) -> Callable[[Delta], pa.Array]:
    """How to read a column of the payload, or one of the times."""
    if name in names:
        position = names.index(name)
        return lambda delta: delta.columns[position]
    return lambda delta: pa.array(delta.le if name == LIFE_START else delta.re)


def _node(typed: Typed, kind: type[N]) -> N:
    assert isinstance(typed.node, kind)
    return typed.node


def _ticks(span: Span) -> int:
    assert isinstance(span, int), "a typed plan holds ticks"
    return span


class EndDependentDurationKernel(Declared):
    """``[le, le + dur)`` with a dur that reads re."""

    def __init__(self, typed: Typed, context: Context) -> None:
        assert isinstance(typed.node, nodes.AlterDuration)
        self._duration = duration_of(typed.node, typed, context)
        self.live = Store(width=1)  # lifetimes that reach to the frontier or past it; payloads do not matter
        self.frontier = BEGINNING

    def on_batch(self, port: int, delta: Delta) -> Delta:
        nothing = np.zeros((len(delta), 1), np.int64)
        self.live.add(np.zeros(len(delta), np.int64), delta.le, delta.re, delta.w, nothing)
        self.frontier = max(self.frontier, delta.frontier)
        self.live.drop(self.frontier)
        return self._duration(delta).at(self._sealed())

    def _sealed(self) -> int:
        starts = self.live.events().le
        if self.frontier >= FOREVER or not len(starts):
            return self.frontier
        return min(self.frontier, int(starts.min()))

    def parts(self) -> dict[str, Part]:
        return {"live": StoredRows(self.live), "time": Fields(self, "frontier")}


class UnionKernel(Declared):
    """Bag union. Its only state is how far each input has come."""

    def __init__(self, typed: Typed, context: Context) -> None:
        self.frontiers = [BEGINNING] * len(typed.inputs)
        names, self._types = typed.schema.names, [kind.arrow for _, kind in typed.schema]
        self._positions = [[part.schema.names.index(name) for name in names] for part in typed.inputs]

    def on_batch(self, port: int, delta: Delta) -> Delta:
        self.frontiers[port] = max(self.frontiers[port], delta.frontier)
        picked = (delta.columns[n] for n in self._positions[port])
        columns = tuple(c if c.type == kind else c.cast(kind) for c, kind in zip(picked, self._types, strict=True))
        return replace(delta, columns=columns, frontier=min(self.frontiers))

    def parts(self) -> dict[str, Part]:
        return {"time": Fields(self, "frontiers")}
