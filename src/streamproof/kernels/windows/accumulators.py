"""Sums of events as rows of int64: what count, sum and avg need, so that events can be added and taken away exactly.

A row begins with the number of events; per argument follow, where they are needed, the number of values that are not
null, the numbers of NaN, +∞ and −∞, and the limbs of the exact sum. Rows grow when values come that need more.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from numba import njit

from streamproof.kernels.base import State
from streamproof.kernels.cells import Cells, Ints, Layout
from streamproof.kernels.delta import Delta
from streamproof.kernels.windows import exact
from streamproof.kernels.windows.exact import Scale
from streamproof.kernels.windows.kept import Kept
from streamproof.plan.aggregates import Aggregate

SUMMED: Final = ("count", "sum", "avg")
INT, FLOAT, DECIMAL = 0, 1, 2
KINDS: Final = {"int64": INT, "float64": FLOAT, "decimal": DECIMAL}
# what is written down of each argument
KIND, LIMBS, COUNT, BASE, KNOWN, SPECIAL, VALUE = range(7)
# what is written down of each result: function, argument, first cell, null bit
FN, ARG, CELL, BIT = range(4)


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
        self.width = width
        self._cells = value

    def read(self, delta: Delta) -> Values:
        """The arguments of a batch; the layout is made to fit them first, so hold `spec` from before to convert."""
        cells = np.empty((self._cells, len(delta)), np.int64)
        nulls = np.zeros(0, np.int64)
        arrays = self._kept.arrays(delta)
        if any(array.null_count for array in arrays):
            nulls = np.zeros(len(delta), np.int64)
        for n, (argument, array) in enumerate(zip(self._arguments, arrays, strict=True)):
            if array.null_count:
                nulls |= array.is_null().to_numpy(zero_copy_only=False).astype(np.int64) << n
                argument.has_nulls = True
            at = int(self.spec[n, VALUE])
            _write(argument.kind, array, cells, at)
            if argument.kind == FLOAT and len(delta):
                argument.scale = argument.scale.joined(Scale.of(cells[at]))
                argument.has_special = argument.has_special or bool(exact.any_special(cells[at]))
        self._lay_out()
        return Values(cells, nulls)

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
    if agg.fn != "count":
        assert agg.arg is not None
        return kept.column(agg.arg)
    if agg.arg is not None:
        kept.check(agg.arg)
    return 0


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


@njit(cache=True)
def add_event(rows, row, lead, spec, cells, nulls, event, w):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Add an event ``w`` times to the sums that begin at column ``lead`` of a row."""
    rows[row, lead] += w
    for n in range(len(spec)):
        if len(nulls) and (nulls[event] >> n) & 1:
            continue
        if spec[n, KNOWN]:
            rows[row, lead + spec[n, KNOWN]] += w
        at = lead + spec[n, LIMBS]
        value = cells[spec[n, VALUE], event]
        if spec[n, KIND] == FLOAT:
            exact.add_float(rows, row, at, lead + spec[n, SPECIAL], spec[n, BASE], value, w)
        elif spec[n, KIND] == INT:
            exact.add_int(rows, row, at, value, w)
        else:
            exact.add_decimal(rows, row, at, value, cells[spec[n, VALUE] + 1, event], w)


@njit(cache=True)
def carry_row(rows, row, lead, spec):  # type: ignore[no-untyped-def]
    """Hand carries on, so that a row has one form: the sum of nothing is all zeros."""
    for n in range(len(spec)):
        exact.carry(rows, row, lead + spec[n, LIMBS], spec[n, COUNT])


@njit(cache=True)
def write_results(rows, row, lead, spec, results, factors, out, at, spare):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """The results of a row of sums as the cells of row ``at``; the result that its type cannot hold, or −1."""
    last = out.shape[1] - 1
    out[at, last] = 0
    for n in range(len(results)):
        cell = results[n, CELL]
        if results[n, FN] == 0:
            out[at, cell] = rows[row, lead]
            continue
        argument = results[n, ARG]
        kind = spec[argument, KIND]
        known = rows[row, lead + spec[argument, KNOWN]]  # where there never was a null: the count, which comes first
        if known == 0:
            out[at, last] |= 1 << results[n, BIT]
            out[at, cell] = 0
            if kind == DECIMAL and results[n, FN] == 1:
                out[at, cell + 1] = 0
            continue
        limbs = lead + spec[argument, LIMBS]
        fits = True
        if results[n, FN] == 1 and kind == INT:
            out[at, cell], fits = exact.whole_one(rows, row, limbs)
        elif results[n, FN] == 1 and kind == DECIMAL:
            out[at, cell], out[at, cell + 1], fits = exact.decimal_one(rows, row, limbs, spare)
        else:
            unit = exact.LOWEST + exact.BITS * spec[argument, BASE] if kind == FLOAT else 0
            mantissa, exponent = exact.round_one(rows, row, limbs, spec[argument, COUNT], unit, spare)
            value = float(mantissa) if results[n, FN] == 1 else mantissa / known
            value = math.ldexp(value, exponent)
            if kind == DECIMAL:
                value /= factors[argument]
            if spec[argument, SPECIAL]:
                value = _special(rows, row, lead + spec[argument, SPECIAL], value)
            out[at, cell] = _bits(value)
        if not fits:
            return n
    return -1


@njit(cache=True)
def _special(rows, row, at, value):  # type: ignore[no-untyped-def]
    """A sum where NaN or infinities were among the terms."""
    nan, up, down = rows[row, at] > 0, rows[row, at + 1] > 0, rows[row, at + 2] > 0
    if nan or (up and down):
        return np.nan
    if up:
        return np.inf
    return -np.inf if down else value


@njit(cache=True)
def _bits(value):  # type: ignore[no-untyped-def]
    if math.isnan(value):
        return np.int64(0x7FF8000000000000)
    return np.float64(value + 0.0).view(np.int64)


@njit(cache=True)
def add_rows(rows, row, lead, others, other, other_lead, sign):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Add the sums of another row, or take them away."""
    for n in range(rows.shape[1] - lead):
        rows[row, lead + n] += sign * others[other, other_lead + n]
