"""The aggregates of the rows that each question sees, and what of settled data they need.

What rows contribute to aggregates that combine (counts, sums, means, extremes of numbers) are columns that add up, or
have a greatest value; sums are exact, as limbs (see `windows.shared.exact`). These share work between overlapping
ranges, see `folds`. The other aggregates look at the members of each range.

Settled data are held as `Slices`: what came before the frontier, combined between the begins of events that still last.
Nothing before the frontier changes any more, and every event that looks back so far begins where a slice begins. So a
slice stands for all its tuples: there are never more slices than open events (and subgroups), however many tuples came.
When events end, their slices join those before them, or go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.kernels.base import Context, State, array
from streamproof.kernels.cells import Bools, Cells, Ints, Layout, float_bits
from streamproof.kernels.event_driven import event_loops, folds
from streamproof.kernels.event_driven.event_loops import carry
from streamproof.kernels.event_driven.scopes import Questions, Stretch
from streamproof.kernels.state import Plain
from streamproof.kernels.store_loops import LE, PAYLOAD, W
from streamproof.kernels.windows.recompute.aggregates import Aggregates, mean_of_limbs, sum_overflow
from streamproof.kernels.windows.shared import exact, sums_loops
from streamproof.kernels.windows.shared.exact import FloatSums, Scale
from streamproof.kernels.windows.shared.members import Members, Windows, spread
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.event_nodes import During

_SUMMED: Final = ("int64", "float64", "decimal")
_COMPARED: Final = ("int64", "float64", "date", "timestamp", "bool")


@dataclass(frozen=True, slots=True)
class Contribution:
    """What rows add to an aggregate: columns to combine, and for floats the scale of their limbs."""

    matrix: Cells
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class Combiner:
    """One aggregate that combines."""

    fn: str
    column: int
    kind: Type

    @property
    def greatest(self) -> bool:
        """Whether its columns have a greatest value; else they add up."""
        return self.fn in ("min", "max")

    def limbs(self, width: int) -> int | None:
        """Where the limbs of a sum begin among its columns."""
        if self.fn not in ("sum", "avg"):
            return None
        return 4 if self.kind == FLOAT64 else 1

    def nothing(self) -> Contribution:
        """The contribution of no rows."""
        if self.fn in ("count", "min", "max"):
            return Contribution(np.empty((0, 1), np.int64))
        if self.kind == FLOAT64:
            scale = Scale.of(np.empty(0, np.int64))
            return Contribution(np.empty((0, 4 + scale.count), np.int64), scale)
        count = exact.INT_LIMBS if self.kind == INT64 else sums_loops.DECIMAL_LIMBS
        return Contribution(np.empty((0, 1 + count), np.int64))

    def ops(self, given: Contribution) -> Ints:
        return np.array([folds.GREATEST if self.greatest else event_loops.ADD] * given.matrix.shape[1], np.int64)

    def columns(self, rows: Cells, layout: Layout) -> Contribution:
        """The columns of each row; a null adds nothing."""
        w = np.ascontiguousarray(rows[:, W])
        if self.fn == "count":
            return Contribution(w.reshape(-1, 1))
        cells = rows[:, PAYLOAD:]
        known = ~layout.nulls(cells, self.column)
        cell = layout.columns[self.column][1]
        values = np.ascontiguousarray(cells[:, cell])
        if self.fn in ("min", "max"):
            keys = _order_keys(values, self.kind)
            keys = ~keys if self.fn == "min" else keys
            return Contribution(np.where(known, keys, event_loops.NOTHING).reshape(-1, 1))
        return self._sums(values, cells, cell, known, w)

    def _sums(self, values: Ints, cells: Cells, cell: int, known: Bools, w: Ints) -> Contribution:
        """The count of known values, then the limbs of their sum."""
        event = np.flatnonzero(known)
        counted = np.where(known, w, 0).reshape(-1, 1)
        if self.kind == FLOAT64:
            scale = Scale.of(values[event])
            limbs = np.zeros((len(values), 3 + scale.count), np.int64)
            sums_loops.add_floats(limbs, 3, 0, scale.base, values, event, event, w[event])
            return Contribution(np.column_stack([counted, limbs]), scale)
        if self.kind == INT64:
            limbs = np.zeros((len(values), exact.INT_LIMBS), np.int64)
            sums_loops.add_ints(limbs, 0, values, event, event, w[event])
            return Contribution(np.column_stack([counted, limbs]))
        limbs = np.zeros((len(values), sums_loops.DECIMAL_LIMBS), np.int64)
        high = np.ascontiguousarray(cells[:, cell + 1])
        sums_loops.add_decimals(limbs, 0, values, high, event, event, w[event])
        return Contribution(np.column_stack([counted, limbs]))

    def result(self, found: Cells, given: Contribution, asked: Questions) -> tuple[Cells, Bools]:
        """The aggregate of each range, and where it is null."""
        if self.fn == "count":
            return found.copy(), np.zeros(len(found), np.bool_)
        if self.fn in ("min", "max"):
            keys = np.ascontiguousarray(found[:, 0])
            nulls = keys == event_loops.NOTHING
            keys = ~keys if self.fn == "min" else keys
            return _values(keys, self.kind).reshape(-1, 1), nulls
        count, limbs = np.ascontiguousarray(found[:, 0]), np.ascontiguousarray(found[:, 1:])
        if len(count) and int(count.max()) > exact.MOST_TERMS:
            t = int(asked.t[int(count.argmax())])
            raise exact.too_many_terms(t, t + 1, int(count.max()))
        return (self._sum if self.fn == "sum" else self._mean)(limbs, count, given, asked), count == 0

    def _sum(self, limbs: Cells, count: Ints, given: Contribution, asked: Questions) -> Cells:
        if self.kind == FLOAT64:
            assert given.scale is not None
            return float_bits(FloatSums(given.scale, limbs).totals()).reshape(-1, 1)
        values, lost = sums_loops.whole(limbs) if self.kind == INT64 else sums_loops.decimals(limbs)
        if lost.any():
            t = int(asked.t[int(lost.argmax())])
            raise sum_overflow(t, t + 1, self.kind)
        found: Cells = values.reshape(len(values), -1)
        return found

    def _mean(self, limbs: Cells, count: Ints, given: Contribution, asked: Questions) -> Cells:
        if self.kind == FLOAT64:
            assert given.scale is not None
            return float_bits(FloatSums(given.scale, limbs).means(count)).reshape(-1, 1)
        means = mean_of_limbs(limbs, count)
        return float_bits(means if self.kind == INT64 else means / 10.0**self.kind.scale).reshape(-1, 1)


def together(first: Contribution, second: Contribution) -> Contribution:
    """The rows of both, one after the other; limbs of floats on one scale."""
    if first.scale is None or second.scale is None:
        return Contribution(np.concatenate([first.matrix, second.matrix]))
    scale = first.scale.joined(second.scale)
    parts = [
        np.column_stack([given.matrix[:, :4], known.spread(given.matrix[:, 4:], scale)])
        for given, known in ((first, first.scale), (second, second.scale))
    ]
    return Contribution(np.concatenate(parts), scale)


def parts_of(aggs: tuple[tuple[str, Aggregate], ...], stored: StoredColumns) -> list[Combiner] | None:
    """The aggregates, if all of them combine."""
    found: list[Combiner] = []
    for _, agg in aggs:
        if agg.fn == "count":
            found.append(Combiner("count", 0, INT64))
            continue
        assert agg.arg is not None
        kind = stored.type_of(agg.arg)
        fits = agg.fn in ("sum", "avg") and kind.kind in _SUMMED
        if not fits and not (agg.fn in ("min", "max") and kind.kind in _COMPARED):
            return None
        found.append(Combiner(agg.fn, stored.column(agg.arg), kind))
    return found


def _order_keys(values: Ints, kind: Type) -> Ints:
    """Integers that sort as the values do."""
    if kind == FLOAT64:  # sign and magnitude become one order; the one NaN is the greatest
        return values ^ ((values >> 63) & np.int64(2**63 - 1))
    return values


def _values(keys: Ints, kind: Type) -> Ints:
    """The inverse of `_order_keys`."""
    return _order_keys(keys, kind)


class Answers:
    """The aggregates of one node."""

    def __init__(self, node: During, stored: StoredColumns, types: list[Type], context: Context) -> None:
        self.layout = Layout.of(types)
        self._context, self._stored, self._latest = context, stored, node.latest
        self._general = Aggregates(node.aggs, stored, self.layout)
        self.parts = None if node.latest else parts_of(node.aggs, stored)
        self._zero = _of_nothing(node.aggs, self.layout)

    def cells(self, asked: Questions, data: Stretch) -> Cells:
        """The results of questions, in their order."""
        out = np.repeat(self._zero, len(asked.t), axis=0)
        seen = np.flatnonzero(asked.last > asked.first)
        if len(seen):
            chosen = asked if len(seen) == len(asked.t) else asked.take(seen)
            out[seen] = self._of_members(chosen, data) if self.parts is None else self._combined(chosen, data)
        return out

    def _of_members(self, asked: Questions, data: Stretch) -> Cells:
        first, last, once = asked.first, asked.last, False
        if self._latest:
            first = self._last_rows(asked, data)
            last, once = first + 1, True
        window, row = spread(first, last - first)
        rows = data.rows[row]
        le, w = np.ascontiguousarray(rows[:, LE]), np.ascontiguousarray(rows[:, W])
        if once:
            w = np.ones_like(w)
        windows = Windows(asked.left, asked.t, asked.t + 1)
        layout, strings = self._stored.layout, self._context.strings
        return self._general.cells(Members(windows, window, le, le + 1, w, row, rows[:, PAYLOAD:], layout, strings))

    def _last_rows(self, asked: Questions, data: Stretch) -> Ints:
        """Of each range the last row in the order of start and payload."""
        cells = data.rows[:, PAYLOAD:]
        ties = Layout.of(self._stored.types[: self._stored.payload])
        nulls = cells[:, -1] & ((1 << len(ties.columns)) - 1)
        keys = ties.order_keys(np.column_stack([cells[:, : ties.width - 1], nulls]), self._context.strings)
        order = np.lexsort((*keys[::-1], data.le, data.sub))
        return order[asked.last - 1]  # subgroups and starts are where they were, so is the end of a range

    def _combined(self, asked: Questions, data: Stretch) -> Cells:
        """By folding. Only rows that some question sees are looked at."""
        assert self.parts is not None
        low, high = int(asked.first.min()), int(asked.last.max())
        columns = self._contributions(data, low, high)
        ops = np.concatenate(
            [np.zeros(0, np.int64), *(part.ops(c) for part, c in zip(self.parts, columns, strict=True))]
        )
        matrix = np.ascontiguousarray(np.column_stack([c.matrix for c in columns]))
        order = np.lexsort((asked.last, asked.first))
        first, last = asked.first[order] - low, asked.last[order] - low
        found = np.empty((len(order), matrix.shape[1]), np.int64)
        found[order] = folds.folded(matrix, ops, first, last)
        return self._finished(found, columns, asked)

    def contributions(self, rows: Cells) -> list[Contribution]:
        """What rows add to each aggregate."""
        assert self.parts is not None
        return [part.columns(rows, self._stored.layout) for part in self.parts]

    def _contributions(self, data: Stretch, low: int, high: int) -> list[Contribution]:
        """What the rows of a range add, slices among them."""
        if data.slices is None:
            return self.contributions(data.rows[low:high])
        own = self.contributions(data.rows)
        both = (together(a, b) for a, b in zip(data.slices.parts, own, strict=True))
        return [Contribution(given.matrix[data.order[low:high]], given.scale) for given in both]

    def _finished(self, found: Cells, columns: list[Contribution], asked: Questions) -> Cells:
        assert self.parts is not None
        out = np.zeros((len(found), self.layout.width), np.int64)
        at = 0
        for bit, (part, given) in enumerate(zip(self.parts, columns, strict=True)):
            width = given.matrix.shape[1]
            values, nulls = part.result(found[:, at : at + width], given, asked)
            at += width
            values[nulls] = 0
            cell = self.layout.columns[bit][1]
            out[:, cell : cell + values.shape[1]] = values
            out[:, -1] |= nulls.astype(np.int64) << bit
        return out


def _of_nothing(aggs: tuple[tuple[str, Aggregate], ...], layout: Layout) -> Cells:
    """The results where nothing is seen: counts are 0, all else is null."""
    cells = np.zeros((1, layout.width), np.int64)
    for bit, (_, agg) in enumerate(aggs):
        if agg.of_nothing is None:
            cells[0, -1] |= 1 << bit
    return cells


@dataclass(slots=True)
class Slices(Plain):
    """Slices in the order of subgroup and start."""

    sub: Ints
    le: Ints  # the start of its first tuple
    parts: list[Contribution]  # one for each aggregate

    @staticmethod
    def none(parts: list[Combiner]) -> Slices:
        empty = np.empty(0, np.int64)
        return Slices(empty, empty, [part.nothing() for part in parts])

    def __len__(self) -> int:
        return len(self.le)

    def combined(self, sub: Ints, le: Ints, more: list[Contribution], cut: Ints, parts: list[Combiner]) -> Slices:
        """These slices and more rows, one for each subgroup and place between cuts; ``cut`` says which of each."""
        both = [together(a, b) for a, b in zip(self.parts, more, strict=True)]
        all_subs, all_starts = np.concatenate([self.sub, sub]), np.concatenate([self.le, le])
        order = np.lexsort((all_starts, all_subs))
        order = order[cut[order] >= 0]  # what no event can see any more goes
        subs, starts, cuts = all_subs[order], all_starts[order], cut[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = (subs[1:] != subs[:-1]) | (cuts[1:] != cuts[:-1])
        first = np.flatnonzero(fresh)
        made = [
            Contribution(_reduced(given.matrix[order], first, part), given.scale)
            for part, given in zip(parts, both, strict=True)
        ]
        return Slices(subs[first], starts[first], made)

    def save(self) -> State:
        matrix = np.column_stack([self.sub, self.le, *(part.matrix for part in self.parts)])
        scales = [(0, 0) if part.scale is None else (part.scale.base, part.scale.count) for part in self.parts]
        widths = [part.matrix.shape[1] for part in self.parts]
        return {"rows": matrix, "scales": np.array(scales), "widths": np.array(widths)}

    def restore(self, state: State) -> None:
        matrix, at = array(state, "rows"), 2
        self.sub, self.le, self.parts = np.ascontiguousarray(matrix[:, 0]), np.ascontiguousarray(matrix[:, 1]), []
        for width, (base, count) in zip(array(state, "widths"), array(state, "scales"), strict=True):
            scale = exact.Scale(int(base), int(count)) if count else None
            self.parts.append(Contribution(np.ascontiguousarray(matrix[:, at : at + width]), scale))
            at += int(width)

    def live_rows(self) -> int:
        return len(self)


def _reduced(matrix: Cells, first: Ints, part: Combiner) -> Cells:
    """The combined columns of stretches of rows that begin at these places."""
    if not len(first):
        return matrix[:0]
    if part.greatest:
        return np.maximum.reduceat(matrix, first, axis=0)
    found = np.add.reduceat(matrix, first, axis=0)
    limbs = part.limbs(found.shape[1])
    if limbs is not None:
        carry(found, limbs, found.shape[1] - limbs)  # so that no limb ever runs over, however long a slice grows
    return found
