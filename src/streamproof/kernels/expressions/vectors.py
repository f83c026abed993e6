"""Between Arrow and NumPy: values without their nulls, and back.

A `Datum` is an array, or a scalar that stands for every row.

>>> vector(np.array([1, 2]), pa.int64(), np.array([False, True])).to_pylist()
[1, None]
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.order import Flags

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
