"""One order and one equality for payload values, as integers that NumPy sorts fast.

Nulls come last, NaN equals NaN and lies above all numbers, −0.0 equals 0.0, strings compare by code point.

A column becomes *pieces*: unsigned integers with a width in bits that sort as the values do. Neighbouring pieces are
packed into 64-bit words, so that most rows are sorted by one or two integer sorts.

>>> import pyarrow as pa
>>> table = pa.table({"le": [3, 1, 1], "k": ["b", None, "a"]})
>>> order, starts = sort_rows(pack(pieces_of(table)), table.num_rows)
>>> order.tolist(), starts.tolist()
([2, 1, 0], [0, 1, 2])
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Flags: TypeAlias = npt.NDArray[np.bool_]
Floats: TypeAlias = npt.NDArray[np.float64]
INTEGERS: Final = pa.int64()
FLOATS: Final = pa.float64()
Piece: TypeAlias = tuple[Words, int]
"""Codes that sort as the values do, and how many bits they need."""


def one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """The column as one contiguous array."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def ints(column: pa.ChunkedArray | pa.Array, *, null: int = 0) -> Ints:
    """A column of integers as NumPy, with ``null`` in the place of nulls."""
    array = one_array(column)
    if not array.null_count:
        found: Ints = array.to_numpy(zero_copy_only=False)
        return found.astype(np.int64, copy=False)
    whole = array if array.type == INTEGERS else array.cast(INTEGERS)
    values = np.frombuffer(whole.buffers()[1], np.int64, len(whole), 8 * whole.offset).copy()
    values[nulls_of(whole)] = null
    return values


def bits_of(buffer: pa.Buffer, column: pa.Array) -> npt.NDArray[np.uint8]:
    """A buffer with one bit per value of a column, as zeros and ones."""
    if not len(column):  # there may be no buffer
        return np.zeros(0, np.uint8)
    raw = np.frombuffer(buffer, np.uint8)
    bits: npt.NDArray[np.uint8] = np.unpackbits(raw, bitorder="little", count=int(column.offset) + len(column))
    return bits[column.offset :]


def nulls_of(column: pa.Array) -> Flags:
    """Where a column is null, at half of what Arrow's own function costs.

    >>> nulls_of(pa.array([None, 1, None])[1:]).tolist(), nulls_of(pa.array([7])).tolist()
    ([False, True], [False])
    """
    valid = column.buffers()[0] if column.null_count else None
    if valid is None:  # of the type null, or without any
        return np.full(len(column), bool(column.null_count))
    absent: Flags = bits_of(valid, column) == 0
    return absent


def plain_array(values: Ints | Floats) -> pa.Array:
    """A column of int64 or float64 without nulls, over the same memory, at a third of what ``pa.array`` costs.

    >>> plain_array(np.array([7, 9])).to_pylist(), plain_array(np.array([0.5])).to_pylist()
    ([7, 9], [0.5])
    """
    kind, stored = (FLOATS, np.float64) if values.dtype == np.float64 else (INTEGERS, np.int64)
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(np.ascontiguousarray(values, stored))], 0)


@lru_cache(maxsize=256)
def no_values(kind: pa.DataType) -> pa.Array:
    """A column without rows; there is one of each type, for making one costs as much as a short column.

    >>> no_values(pa.string()).to_pylist()
    []
    """
    return pa.array([], kind)


def canonical(table: pa.Table) -> pa.Table:
    """The table with 0.0 for −0.0 and one bit pattern for NaN.

    >>> canonical(pa.table({"v": [-0.0]}))["v"].to_pylist()
    [0.0]
    """
    for index, field in enumerate(table.schema):
        if pa.types.is_floating(field.type):
            table = table.set_column(index, field, _canonical_floats(one_array(table.column(index))))
    return table


def _canonical_floats(array: pa.Array) -> pa.Array:
    values = array.to_numpy(zero_copy_only=False) + 0.0  # −0.0 + 0.0 is 0.0; Arrow gives NaN for null
    values[np.isnan(values)] = np.nan
    return pa.array(values, array.type, mask=nulls_of(array) if array.null_count else None, from_pandas=False)


def pieces_of(table: pa.Table) -> list[Piece]:
    """The pieces of all columns, the most significant first."""
    return [piece for column in table.columns for piece in _pieces(one_array(column))]


def lifetime_pieces(le: Ints, re: Ints) -> list[Piece]:
    """The pieces of (le, re). The length sorts as the end does where starts are equal, and needs fewer bits.

    >>> [bits for _, bits in lifetime_pieces(np.array([100, 103]), np.array([2**62, 104]))]
    [2, 2]
    """
    if np.any(re < le):  # not a lifetime, but still to be told apart
        return [int_piece(le), int_piece(re)]
    lengths = (re - le).view(np.uint64)  # at most 2^63: fits unsigned
    forever = re >= 2**62
    usual = lengths[~forever]
    cap = np.uint64((int(usual.max()) if len(usual) else 0) + 1)
    return [int_piece(le), _width(np.where(forever, cap, lengths))]


def _pieces(array: pa.Array) -> list[Piece]:
    """The pieces of one column: a flag for null where there are any, then the values."""
    if pa.types.is_null(array.type):
        return []
    if not array.null_count:
        return _value_pieces(array)
    absent = nulls_of(array)
    values = [(np.where(absent, np.uint64(0), codes), bits) for codes, bits in _value_pieces(array)]
    return [(absent.astype(np.uint64), 1), *values]


def _value_pieces(array: pa.Array) -> list[Piece]:
    kind = array.type
    if pa.types.is_string(kind):
        return [_string_piece(array)]
    if pa.types.is_decimal(kind):
        return _decimal_pieces(array)
    if pa.types.is_floating(kind):
        values = array.to_numpy(zero_copy_only=False).astype(np.float64, copy=False) + 0.0  # as canonical ones
        values[np.isnan(values)] = np.nan
        bits = values.view(np.int64)
        top = np.uint64(1 << 63)
        return [(np.where(bits < 0, ~bits.view(np.uint64), bits.view(np.uint64) | top), 64)]
    if pa.types.is_boolean(kind):
        return [(bits_of(array.buffers()[1], array).astype(np.uint64), 1)]
    if pa.types.is_date(kind):
        array = array.cast(pa.int32())
    return [int_piece(ints(array if array.type == INTEGERS else array.cast(INTEGERS)))]


def _string_piece(array: pa.Array) -> Piece:
    coded = array.dictionary_encode()
    if not len(coded.dictionary):
        return np.zeros(len(array), np.uint64), 1
    ranks = np.empty(len(coded.dictionary), np.uint64)
    ranks[pc.sort_indices(coded.dictionary).to_numpy()] = np.arange(len(ranks), dtype=np.uint64)
    codes = ints(coded.indices)
    return ranks[codes], max(1, (len(ranks) - 1).bit_length())


def _decimal_pieces(array: pa.Array) -> list[Piece]:
    raw = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    low, high = np.ascontiguousarray(raw[:, 0]), np.ascontiguousarray(raw[:, 1])
    if array.null_count:
        absent = nulls_of(array)
        low, high = np.where(absent, 0, low), np.where(absent, 0, high)
    if np.array_equal(high, low >> 63):
        return [int_piece(low)]
    return [int_piece(high), (low.view(np.uint64), 64)]


def int_piece(values: Ints) -> Piece:
    """Signed values, counted from their least."""
    if not len(values):
        return np.zeros(0, np.uint64), 1
    return _width(values.view(np.uint64) - np.uint64(int(values.min()) & (2**64 - 1)))


def _width(codes: Words) -> Piece:
    return codes, max(1, int(codes.max()).bit_length()) if len(codes) else 1


def pack(pieces: Iterable[Piece]) -> list[Words]:
    """Neighbouring pieces side by side in 64-bit words, the most significant first."""
    words: list[Words] = []
    room = 0
    for codes, bits in pieces:
        if bits <= room:
            words[-1] = (words[-1] << np.uint64(bits)) | codes
            room -= bits
        else:
            words.append(codes)
            room = 64 - bits
    return words


def sort_rows(words: Sequence[Words], count: int) -> tuple[Ints, Ints]:
    """The order of the rows, and where in that order each group of equal rows starts.

    Law: ``words[order]`` never decreases.
    """
    order = np.arange(count, dtype=np.int64)
    starts = np.zeros(min(count, 1), np.int64)
    for word in words:
        order, starts = _refine(order, starts, word)
    return order, starts


def _refine(order: Ints, starts: Ints, word: Words) -> tuple[Ints, Ints]:
    """Sort within groups by one more word and split the groups by it."""
    if len(starts) == len(order):
        return order, starts
    sizes = np.diff(starts, append=len(order))
    tied = np.repeat(sizes > 1, sizes)  # rows alone in their group are in place
    where = np.flatnonzero(tied)
    rows = order[where]
    values = word[rows]
    if len(starts) == 1:
        moved = _argsort(values)
    else:
        group = np.repeat(np.arange(len(starts)), sizes)[where]
        moved = _argsort(values)
        moved = moved[_argsort(group[moved].view(np.uint64), stable=True)]
    order[where] = rows[moved]
    fresh = np.zeros(len(order), np.bool_)
    fresh[starts] = True
    values = values[moved]
    fresh[where[1:]] |= values[1:] != values[:-1]
    return order, np.flatnonzero(fresh)


def _argsort(values: Words, *, stable: bool = False) -> Ints:
    if np.all(values[1:] >= values[:-1]):
        return np.arange(len(values))
    bits = max(1, (len(values) - 1).bit_length())
    if int(values.max()).bit_length() + bits <= 64:  # value and position in one word: sorting is faster than argsort
        packed = (values << np.uint64(bits)) | np.arange(len(values), dtype=np.uint64)
        packed.sort()
        return (packed & np.uint64((1 << bits) - 1)).astype(np.int64)
    return np.argsort(values, kind="stable" if stable else None)


def group_numbers(order: Ints, starts: Ints) -> Ints:
    """For every row, in its own place, the number of its group of equal rows.

    >>> group_numbers(np.array([2, 0, 1]), np.array([0, 2])).tolist()
    [0, 1, 0]
    """
    numbers = np.empty(len(order), np.int64)
    numbers[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
    return numbers


def ordinals(groups: Ints) -> Ints:
    """For every row, how many rows of its group stand before it.

    >>> ordinals(np.array([5, 7, 5, 5])).tolist()
    [0, 0, 1, 2]
    """
    order = np.argsort(groups, kind="stable")
    ordered = groups[order]
    fresh = np.flatnonzero(np.diff(ordered, prepend=ordered[:1] - 1) != 0)
    counts = np.empty(len(groups), np.int64)
    counts[order] = np.arange(len(groups)) - np.repeat(fresh, np.diff(fresh, append=len(groups)))
    return counts
