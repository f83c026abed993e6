"""Between Arrow and NumPy: values without their nulls, and back.

A `Datum` is an array, or a scalar that stands for every row.

>>> vector(np.array([1, 2]), pa.int64(), np.array([False, True])).to_pylist()
[1, None]
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.order import Flags
from streamproof.plan.expr import Col
from streamproof.plan.failures import DeadLetter

Datum: TypeAlias = "pa.Array | pa.Scalar"
Values: TypeAlias = "npt.NDArray[Any]"
_WIDTHS: Final[dict[int, type]] = {8: np.int64, 4: np.int32}


def raw(datum: Datum) -> Values:
    """The values of a fixed-width column as they lie in memory; those under nulls mean nothing.

    >>> raw(pa.array([1.5, 2.5])[1:]), raw(pa.scalar(7))
    (array([2.5]), array(7))
    """
    if isinstance(datum, pa.Scalar):
        return np.asarray(datum.as_py())
    kind = np.float64 if pa.types.is_floating(datum.type) else _WIDTHS[datum.type.byte_width]
    start = datum.offset
    return np.frombuffer(datum.buffers()[1] or b"", kind)[start : start + len(datum)]


def null_flags(*data: Datum) -> Flags | None:
    """Where any of these is null; None if nowhere. Scalars are known not to be."""
    flags: Flags | None = None
    for datum in data:
        if isinstance(datum, pa.Array) and datum.null_count:
            these = datum.is_null().to_numpy(zero_copy_only=False)
            flags = these if flags is None else flags | these
    return flags


def vector(values: Values, kind: pa.DataType, nulls: Flags | None = None) -> pa.Array:
    """An array of a fixed-width type over NumPy values, null where the flags say so."""
    rows, validity = len(values), None
    if nulls is not None and nulls.any():
        validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    if pa.types.is_boolean(kind):
        values = np.packbits(values, bitorder="little")
    return pa.Array.from_buffers(kind, rows, [validity, pa.py_buffer(values)])


def without_nulls(datum: Datum) -> Datum:
    """The same values with whatever lies under the nulls."""
    if isinstance(datum, pa.Scalar) or not datum.null_count:
        return datum
    return pa.Array.from_buffers(datum.type, len(datum), [None, datum.buffers()[1]], offset=datum.offset)


def with_nulls(array: pa.Array, nulls: Flags) -> pa.Array:
    """A fixed-width array that begins its buffers, null where the flags say so."""
    validity = pa.py_buffer(np.packbits(~nulls, bitorder="little"))
    return pa.Array.from_buffers(array.type, len(array), [validity, array.buffers()[1]])


def relabel(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The same bytes as another type of the same width."""
    return pa.Array.from_buffers(kind, len(array), array.buffers(), offset=array.offset)


def spread(datum: Datum, rows: int) -> pa.Array:
    """A scalar on every row; an array is one already."""
    return datum if isinstance(datum, pa.Array) else pa.repeat(datum, rows)


def blank(array: pa.Array, where: Datum) -> pa.Array:
    """Null where the condition holds; elsewhere, and where it is null, as it was."""
    return pc.if_else(pc.fill_null(where, False), pa.scalar(None, array.type), array)


def either(a: Flags | None, b: Flags | None) -> Flags | None:
    """Where one of two sets of flags is set."""
    if a is None or b is None:
        return b if a is None else a
    return a | b


def rows_of(data: Iterable[Datum]) -> int:
    """The number of rows that the arrays among these have; 1 if all are scalars."""
    return next((len(datum) for datum in data if isinstance(datum, pa.Array)), 1)


def row_at(data: Sequence[Datum], index: int) -> list[Any]:
    """One row as Python values, for the text of an error."""
    return [(datum if isinstance(datum, pa.Scalar) else datum[index]).as_py() for datum in data]


def lost(result: pa.Array, data: Sequence[Datum]) -> int | None:
    """The first row that is null although no argument is; None if there is none."""
    if not result.null_count:
        return None
    given = null_flags(*data)
    missing: Flags = result.is_null().to_numpy(zero_copy_only=False)
    rows = np.flatnonzero(missing if given is None else missing & ~given)
    return int(rows[0]) if len(rows) else None


class LostRows:
    """The rows of a batch that a function failed on. They are left out, and a dead letter says so.

    >>> lost = LostRows(3, [])
    >>> lost.note(np.array([False, True, False]), []); lost.kept.tolist()
    [True, False, True]
    """

    def __init__(self, rows: int, letters: list[DeadLetter]) -> None:
        self.kept: Flags = np.ones(rows, np.bool_)
        self._letters = letters

    def note(self, failed: Flags, letters: Iterable[DeadLetter]) -> None:
        """Some rows are lost."""
        self.kept &= ~failed
        self._letters.extend(letters)


class Columns:
    """Columns by name and side, each one array of ``rows`` values. ``le`` and ``re`` are int64 columns among them.

    Where rows may get lost, a function that fails on some gives null and notes them; else its error is raised.
    """

    def __init__(self, arrays: Mapping[Col, pa.Array], rows: int, *, lost: LostRows | None = None) -> None:
        self.rows = rows
        self.lost = lost
        self._arrays: dict[Col, pa.Array] = dict(arrays)
        self._missing: Callable[[Col], pa.Array] | None = None  # no method of its own: in a cycle, arrays live too long

    def __getitem__(self, column: Col) -> pa.Array:
        if column not in self._arrays:
            self._arrays[column] = self._unknown(column) if self._missing is None else self._missing(column)
        return self._arrays[column]

    def where(self, condition: pa.BooleanArray) -> Columns:
        """The rows where a condition holds. A column is filtered when it is first read."""
        if condition.true_count == self.rows:
            return self
        part = Columns({}, condition.true_count, lost=self._part_of_lost(condition))
        part._missing = lambda column: pc.filter(self[column], condition)
        return part

    def _part_of_lost(self, condition: pa.BooleanArray) -> LostRows | None:
        """What notes the rows of a part, which it counts by itself, as those of the whole."""
        return None if self.lost is None else _PartLost(self.lost, keep(condition))

    def _unknown(self, column: Col) -> pa.Array:
        names = [known.name for known in self._arrays]
        raise PlanError(f'the batch has no column "{column.name}"', fix=did_you_mean(column.name, names))


class _PartLost(LostRows):
    """The lost rows of a part of a batch."""

    def __init__(self, whole: LostRows, part: Flags) -> None:
        self._whole, self._part = whole, part

    def note(self, failed: Flags, letters: Iterable[DeadLetter]) -> None:
        rows = np.zeros(len(self._part), np.bool_)
        rows[np.flatnonzero(self._part)[failed]] = True
        self._whole.note(rows, letters)


def keep(condition: pa.Array) -> Flags:
    """The rows where a condition holds: null is false.

    >>> keep(pa.array([True, None, False])).tolist()
    [True, False, False]
    """
    known = pc.fill_null(condition, False) if condition.null_count else condition
    mask: Flags = known.to_numpy(zero_copy_only=False)
    return mask
