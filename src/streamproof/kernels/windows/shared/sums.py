"""Rows of sums: what count, sum and avg need, so that events can be added and taken away exactly; and their results.

A row of sums begins with the number of events; per argument follow, where they are needed, the number of values that
are not null, the numbers of NaN, +∞ and −∞, and the limbs of the exact sum. Rows grow when values come that need more.

    group place │ events │ known NaN +∞ −∞ limb limb limb │ limb limb │ …
                         └ argument 0, a float ───────────┘└ 1, an int
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from streamproof.errors import RunError
from streamproof.events.schema import FLOAT64, Type
from streamproof.events.time import FOREVER
from streamproof.kernels.base import Part
from streamproof.kernels.cells import Bools, Cells, Ints, Layout, Strings, float_bits
from streamproof.kernels.delta import Delta
from streamproof.kernels.sorting import order_by
from streamproof.kernels.state import Declared, Matrix
from streamproof.kernels.windows.recompute.aggregates import sum_overflow
from streamproof.kernels.windows.shared import exact, sums_loops
from streamproof.kernels.windows.shared.exact import Floats, Scale, too_many_terms
from streamproof.kernels.windows.shared.progress import Liveliness
from streamproof.kernels.windows.shared.stored_columns import StoredColumns
from streamproof.kernels.windows.shared.sums_loops import (
    BASE,
    COUNT,
    KIND,
    KNOWN,
    LIMBS,
    SPECIAL,
    SUMS,
    VALUE,
    count,
    known,
    lay_out,
    leave_out,
    merged_loop,
    numbered,
    pairs,
)
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.typing import Scope, type_of

SUMMED: Final = ("count", "sum", "avg")
INT, FLOAT, DECIMAL = 0, 1, 2
KINDS: Final = {"int64": INT, "float64": FLOAT, "decimal": DECIMAL}
# what is written down of each result: function, argument, first cell, null bit
FN, ARG, CELL, BIT = range(4)
Result: TypeAlias = "tuple[Ints, Bools | None]"
"""The cells of a result, two columns of a decimal; and where it is null, if anywhere."""


class Values(NamedTuple):
    """The arguments of a batch: one row per cell of an argument, and the null bits of each event if there are any."""

    cells: Ints
    nulls: Ints


@dataclass(slots=True)
class _Argument:
    kind: int
    scale: Scale
    has_nulls: bool = False
    has_special: bool = False

    def widened(self, bits: Ints) -> bool:
        """Make room for floats; whether there was none."""
        if sums_loops.fits(bits, self.scale.base, self.scale.count):
            return False
        before = self.scale, self.has_special
        self.scale = self.scale.joined(Scale.of(bits))
        self.has_special = self.has_special or bool(sums_loops.any_special(bits))
        return before != (self.scale, self.has_special)


def are_sums(aggs: tuple[tuple[str, Aggregate], ...], scope: Scope) -> bool:
    """Whether all aggregates of a node are functions of sums."""
    return all(
        agg.fn == "count" or (agg.fn in SUMMED and agg.arg is not None and type_of(agg.arg, scope).kind in KINDS)
        for _, agg in aggs
    )


class Accumulators(Declared):
    """How the sums of one node lie in a row."""

    def __init__(self, aggs: tuple[tuple[str, Aggregate], ...], stored: StoredColumns, layout: Layout) -> None:
        self._stored = stored
        columns = [_column(agg, stored) for _, agg in aggs]
        self._arguments = [_Argument(KINDS[kind.kind], _scale(KINDS[kind.kind])) for kind in stored.types]
        self.factors = np.array([10.0**kind.scale for kind in stored.types])
        self.results = np.array(
            [(SUMMED.index(agg.fn), column, layout.columns[n][1], n) for n, ((_, agg), column) in
             enumerate(zip(aggs, columns, strict=True))], np.int64,
        ).reshape(-1, 4)  # fmt: skip
        self._functions = [(fn, argument) for fn, argument, _, _ in self.results.tolist()]
        self._lay_out()

    def _lay_out(self) -> None:
        spec, width, value = [], 1, 0
        for argument in self._arguments:
            known = special = 0
            if argument.has_nulls:
                known, width = width, width + 1
            if argument.has_special:
                special, width = width, width + 3
            spec.append((argument.kind, width, argument.scale.count, argument.scale.base, known, special, value))
            width += argument.scale.count
            value += 2 if argument.kind == DECIMAL else 1
        self.spec = np.array(spec, np.int64).reshape(-1, 7)
        self._specs = [list(row) for row in spec]
        self.width = width
        self._cells = value

    def read(self, delta: Delta) -> Values:
        """The arguments of a batch; the layout is made to fit them first, so hold `spec` from before to convert."""
        cells = np.empty((self._cells, len(delta)), np.int64)
        nulls = np.zeros(0, np.int64)
        arrays = self._stored.arrays(delta)
        if any(array.null_count for array in arrays):
            nulls = np.zeros(len(delta), np.int64)
        at, changed = 0, False
        for n, (argument, array) in enumerate(zip(self._arguments, arrays, strict=True)):
            if array.null_count:
                nulls |= array.is_null().to_numpy(zero_copy_only=False).astype(np.int64) << n
                changed |= not argument.has_nulls
                argument.has_nulls = True
            _write(argument.kind, array, cells, at)
            changed |= argument.kind == FLOAT and argument.widened(cells[at])
            at += 2 if argument.kind == DECIMAL else 1
        if changed:
            self._lay_out()
        return Values(cells, nulls)

    def add(self, rows: Cells, lead: int, row: Ints, event: Ints, w: Ints, values: Values) -> None:
        """Add events, each ``w`` times, to the sums that begin at column ``lead`` of their rows."""
        count(rows, lead, row, event, w, values.nulls[:0], 0)
        for n, spec in enumerate(self._specs):
            some = (row, event, w)
            if spec[KNOWN]:
                count(rows, lead + spec[KNOWN], row, event, w, values.nulls, n)
                some = known(*some, values.nulls, n) if len(values.nulls) else some
            at, column = lead + spec[LIMBS], values.cells[spec[VALUE]]
            if spec[KIND] == FLOAT:
                sums_loops.add_floats(rows, at, lead + spec[SPECIAL], spec[BASE], column, *some)
            elif spec[KIND] == INT:
                sums_loops.add_ints(rows, at, column, *some)
            else:
                sums_loops.add_decimals(rows, at, column, values.cells[spec[VALUE] + 1], *some)

    def columns(self, rows: Cells) -> tuple[list[Result], Bools | None]:
        """The results of rows of sums, and which rows have one that its type cannot hold, if one may.

        There are events in each row, so where no argument was ever null, no result is.
        """
        lost = None
        found: list[Result] = []
        for fn, argument in self._functions:
            if fn == 0:
                found.append((rows[:, 0].copy(), None))
                continue
            spec = self._specs[argument]
            known = rows[:, spec[KNOWN]]
            nulls = known == 0 if spec[KNOWN] else None
            if fn == 2 or spec[KIND] == FLOAT:
                found.append((self._floats(rows, spec, argument, known if fn == 2 else known[:0]), nulls))
                continue
            limbs = rows[:, spec[LIMBS] : spec[LIMBS] + spec[COUNT]]
            values, too_large = sums_loops.whole(limbs) if spec[KIND] == INT else sums_loops.decimals(limbs)
            lost = too_large if lost is None else lost | too_large
            found.append((values, nulls))
        return found, lost

    def crowded(self, rows: Cells) -> int | None:
        """The first row of more events than its sums can hold, if there is one. Counts hold any number."""
        if not self._specs or not len(rows) or int(rows[:, 0].max()) <= exact.MOST_TERMS:
            return None
        return int((rows[:, 0] > exact.MOST_TERMS).argmax())

    def _floats(self, rows: Cells, spec: list[int], argument: int, divisors: Ints) -> Ints:
        """Sums as floats, or what they are divided by something."""
        limbs = rows[:, spec[LIMBS] : spec[LIMBS] + spec[COUNT]]
        unit = exact.LOWEST + sums_loops.BITS * spec[BASE] if spec[KIND] == FLOAT else 0
        found: Floats = sums_loops.quotients(limbs, unit, divisors)
        if spec[KIND] == DECIMAL:
            found = found / self.factors[argument]
        if spec[SPECIAL]:
            return float_bits(exact.with_special(found, rows[:, spec[SPECIAL] :]))
        return found.view(np.int64)

    def converted(self, rows: Cells, spec: Ints) -> Cells:
        """Rows whose last columns are sums laid out by another ``spec``, with these laid out as now."""
        if np.array_equal(spec, self.spec):
            return rows
        old_width = int(spec[-1, LIMBS] + spec[-1, COUNT])
        lead = rows.shape[1] - old_width
        out = np.zeros((len(rows), lead + self.width), np.int64)
        out[:, : lead + 1] = rows[:, : lead + 1]
        for old, new in zip(spec, self.spec, strict=True):
            if new[KNOWN]:
                out[:, lead + new[KNOWN]] = rows[:, lead + old[KNOWN]]  # where there were no nulls: the count
            if new[SPECIAL] and old[SPECIAL]:
                out[:, lead + new[SPECIAL] :][:, :3] = rows[:, lead + old[SPECIAL] :][:, :3]
            first = lead + new[LIMBS] + old[BASE] - new[BASE]
            out[:, first : first + old[COUNT]] = rows[:, lead + old[LIMBS] : lead + old[LIMBS] + old[COUNT]]
        return out

    def parts(self) -> dict[str, Part]:
        return {"spec": Matrix(lambda: self.spec, self._lay_out_as, counted=False)}

    def _lay_out_as(self, spec: Ints) -> None:
        for argument, row in zip(self._arguments, spec.reshape(-1, 7), strict=True):
            argument.scale = Scale(int(row[BASE]), int(row[COUNT]))
            argument.has_nulls, argument.has_special = bool(row[KNOWN]), bool(row[SPECIAL])
        self._lay_out()


def _column(agg: Aggregate, stored: StoredColumns) -> int:
    return 0 if agg.reads is None else stored.column(agg.reads)


def _scale(kind: int) -> Scale:
    counts = {INT: exact.INT_LIMBS, DECIMAL: sums_loops.DECIMAL_LIMBS, FLOAT: 1}
    return Scale(exact.LOWEST // -sums_loops.BITS if kind == FLOAT else 0, counts[kind])


def _write(kind: int, array: pa.Array, cells: Ints, at: int) -> None:
    """The values of a column as cells; what stands where it is null does not matter."""
    if kind == DECIMAL:
        halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
        cells[at : at + 2] = halves.T
        return
    values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    cells[at] = values.view(np.int64) if kind == FLOAT else values


class Entries(NamedTuple):
    """Signed events at places of groups."""

    group: Ints
    place: Ints
    event: Ints  # which event of the batch
    w: Ints


class Scratch:
    """Matrices for the time of one batch, in memory that is used again: asking the system for pages costs as much as
    filling them."""

    def __init__(self) -> None:
        self._memory: dict[str, Ints] = {}

    def matrix(self, name: str, rows: int, columns: int) -> Cells:
        """A matrix with anything in it, good until the next one of that name."""
        size = rows * columns
        if name not in self._memory or len(self._memory[name]) < size:
            self._memory[name] = np.empty(size + size // 4, np.int64)
        return self._memory[name][:size].reshape(rows, columns)


def gathered(
    entries: Entries, values: Values, sums: Accumulators, out: Scratch, *, lead: int = SUMS
) -> tuple[Cells, Ints, Ints]:
    """Events as rows of sums from column ``lead`` on; in which order the events came in, and the row of each then.

    The rows are in scratch memory.
    """
    order = order_by(entries.group, entries.place)
    group, place = entries.group[order], entries.place[order]
    row = numbered(group, place)
    rows = out.matrix("gathered", int(row[-1]) + 1 if len(row) else 0, lead + sums.width)
    lay_out(rows, row, group, place)
    sums.add(rows, lead, row, entries.event[order], entries.w[order], values)
    return rows, order, row


def merged(first: Cells, second: Cells, spec: Ints, out: Cells, *, lead: int = SUMS) -> Cells:
    """Two sorted sets of rows as one, in ``out``; what cancels is gone."""
    count = merged_loop(first, second, spec, lead, out)
    return out[:count]


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
    same = _unchanged(pairs(emitted), columns) if replaces else emitted[:0, 0]
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
    return needed if leave_out(emitted, cells, needed) else None


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
