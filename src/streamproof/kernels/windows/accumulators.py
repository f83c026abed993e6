"""Sums of events as rows of int64: what count, sum and avg need, so that events can be added and taken away exactly.

A row begins with the number of events; per argument follow, where they are needed, the number of values that are not
null, the numbers of NaN, +∞ and −∞, and the limbs of the exact sum. Rows grow when values come that need more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numba import njit

from streamproof.kernels.base import State
from streamproof.kernels.cells import Cells, Ints, Layout, float_bits
from streamproof.kernels.compiled import loop
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows import exact
from streamproof.kernels.windows.exact import Bools, Floats, Scale
from streamproof.kernels.windows.kept import Kept
from streamproof.plan.aggregates import Aggregate

SUMMED: Final = ("count", "sum", "avg")
INT, FLOAT, DECIMAL = 0, 1, 2
KINDS: Final = {"int64": INT, "float64": FLOAT, "decimal": DECIMAL}
# what is written down of each argument
KIND, LIMBS, COUNT, BASE, KNOWN, SPECIAL, VALUE = range(7)
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
        if exact.fits(bits, self.scale.base, self.scale.count):
            return False
        before = self.scale, self.has_special
        self.scale = self.scale.joined(Scale.of(bits))
        self.has_special = self.has_special or bool(exact.any_special(bits))
        return before != (self.scale, self.has_special)


class Accumulators:
    """How the sums of one node lie in a row."""

    def __init__(self, aggs: tuple[tuple[str, Aggregate], ...], kept: Kept, layout: Layout) -> None:
        self._kept = kept
        columns = [_column(agg, kept) for _, agg in aggs]
        self._arguments = [_Argument(KINDS[kind.kind], _scale(KINDS[kind.kind])) for kind in kept.types]
        self.factors = np.array([10.0**kind.scale for kind in kept.types])
        self.results = np.array(
            [(SUMMED.index(agg.fn), column, layout.columns[n][1], n) for n, ((_, agg), column) in
             enumerate(zip(aggs, columns, strict=True))], np.int64,
        ).reshape(-1, 4)  # fmt: skip
        self._functions = [(fn, argument) for fn, argument, _, _ in self.results.tolist()]
        self._lay_out()

    @staticmethod
    def can(aggs: tuple[tuple[str, Aggregate], ...], kept: Kept) -> bool:
        """Whether all aggregates are functions of such sums."""
        return all(
            agg.fn in SUMMED and (agg.fn == "count" or (agg.arg is not None and kept.type_of(agg.arg).kind in KINDS))
            for _, agg in aggs
        )

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
        arrays = self._kept.arrays(delta)
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
        _count(rows, lead, row, event, w, values.nulls[:0], 0)
        for n, spec in enumerate(self._specs):
            some = (row, event, w)
            if spec[KNOWN]:
                _count(rows, lead + spec[KNOWN], row, event, w, values.nulls, n)
                some = _known(*some, values.nulls, n) if len(values.nulls) else some
            at, column = lead + spec[LIMBS], values.cells[spec[VALUE]]
            if spec[KIND] == FLOAT:
                exact.add_floats(rows, at, lead + spec[SPECIAL], spec[BASE], column, *some)
            elif spec[KIND] == INT:
                exact.add_ints(rows, at, column, *some)
            else:
                exact.add_decimals(rows, at, column, values.cells[spec[VALUE] + 1], *some)

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
            values, too_large = exact.whole(limbs) if spec[KIND] == INT else exact.decimals(limbs)
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
        unit = exact.LOWEST + exact.BITS * spec[BASE] if spec[KIND] == FLOAT else 0
        found: Floats = exact.quotients(limbs, unit, divisors)
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

    def snapshot(self) -> State:
        return {"spec": self.spec}

    def restore(self, state: State) -> None:
        spec = state["spec"]
        assert isinstance(spec, np.ndarray)
        for argument, row in zip(self._arguments, spec.reshape(-1, 7), strict=True):
            argument.scale = Scale(int(row[BASE]), int(row[COUNT]))
            argument.has_nulls, argument.has_special = bool(row[KNOWN]), bool(row[SPECIAL])
        self._lay_out()


def _column(agg: Aggregate, kept: Kept) -> int:
    return 0 if agg.reads is None else kept.column(agg.reads)


def _scale(kind: int) -> Scale:
    counts = {INT: exact.INT_LIMBS, DECIMAL: exact.DECIMAL_LIMBS, FLOAT: 1}
    return Scale(exact.LOWEST // -exact.BITS if kind == FLOAT else 0, counts[kind])


def _write(kind: int, array: pa.Array, cells: Ints, at: int) -> None:
    """The values of a column as cells; what stands where it is null does not matter."""
    if kind == DECIMAL:
        halves = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
        cells[at : at + 2] = halves.T
        return
    values = (array.fill_null(0) if array.null_count else array).to_numpy(zero_copy_only=False)
    cells[at] = values.view(np.int64) if kind == FLOAT else values


@njit(cache=True, inline="always")
def carry_row(rows, row, lead, spec):  # type: ignore[no-untyped-def]
    """Hand carries on, so that a row has one form: the sum of nothing is all zeros."""
    for n in range(len(spec)):
        exact.carry(rows, row, lead + spec[n, LIMBS], spec[n, COUNT])


@njit(cache=True, inline="always")
def add_rows(rows, row, lead, others, other, other_lead, sign):  # type: ignore[no-untyped-def]
    """Add the sums of another row, or take them away."""
    for n in range(rows.shape[1] - lead):
        rows[row, lead + n] += sign * others[other, other_lead + n]


@loop
def _count(rows, at, row, event, w, nulls, bit):  # type: ignore[no-untyped-def]
    """Count events, without those that have a null bit."""
    for i in range(len(row)):
        if len(nulls) == 0 or not (nulls[event[i]] >> bit) & 1:
            rows[row[i], at] += w[i]


@njit(cache=True)
def _known(row, event, w, nulls, bit):  # type: ignore[no-untyped-def]
    """The events that do not have a null bit."""
    kept = np.empty(len(row), np.int64)
    count = 0
    for i in range(len(row)):
        kept[count] = i
        count += not (nulls[event[i]] >> bit) & 1
    kept = kept[:count]
    return row[kept], event[kept], w[kept]
