"""The bucket of a row by its values, columnar: where rows are spread without Spark's own hash.

>>> numbers = bucket_numbers([pa.chunked_array([["a", "b", "a", None]])], 4, 3)
>>> bool(numbers[0] == numbers[2]), set(numbers.tolist()) <= {0, 1, 2}
(True, True)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from streamproof.events.order import Ints, Words, ints, one_array

_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_NULL: Final = np.uint64(0x2545F4914F6CDD1D)
_PRIME: Final = 0x100000001B3
_INVERSE: Final = pow(_PRIME, -1, 1 << 64)


def bucket_numbers(columns: Sequence[pa.ChunkedArray], rows: int, count: int) -> Ints:
    """For each row one of so many buckets.

    Law: rows whose values are equal (0.0 and −0.0 are, and NaN and NaN) get the same one, in every process.
    """
    mixed = np.zeros(rows, np.uint64)
    for column in columns:
        mixed = _stirred(mixed * _STEP + _words(one_array(column)))
    numbers: Ints = (mixed % np.uint64(count)).astype(np.int64)
    return numbers


def _stirred(words: Words) -> Words:
    """Every bit of the result depends on every bit."""
    words = (words ^ (words >> np.uint64(30))) * _FIRST
    words = (words ^ (words >> np.uint64(27))) * _SECOND
    return words ^ (words >> np.uint64(31))


def _words(array: pa.Array) -> Words:
    """A word per value, equal for equal values."""
    if pa.types.is_null(array.type):
        return np.full(len(array), _NULL)
    words = _value_words(array)
    if array.null_count:
        words = np.where(array.is_null().to_numpy(zero_copy_only=False), _NULL, words)
    return words


def _value_words(array: pa.Array) -> Words:
    kind = array.type
    if pa.types.is_string(kind):
        coded = array.dictionary_encode()
        words = _text_words(coded.dictionary)
        return words[ints(coded.indices)] if len(words) else np.zeros(len(array), np.uint64)
    if pa.types.is_decimal(kind):
        raw = np.frombuffer(array.buffers()[1], np.uint64).reshape(-1, 2)[array.offset : array.offset + len(array)]
        return raw[:, 0] + _stirred(np.ascontiguousarray(raw[:, 1]))
    if pa.types.is_floating(kind):
        values = array.fill_null(0.0).to_numpy(zero_copy_only=False) + 0.0  # −0.0 + 0.0 is 0.0
        values[np.isnan(values)] = np.nan
        bits: Words = values.view(np.uint64)
        return bits
    if pa.types.is_boolean(kind):
        flags: Words = array.fill_null(False).to_numpy(zero_copy_only=False).astype(np.uint64)
        return flags
    if pa.types.is_date(kind):
        array = array.cast(pa.int32())
    return ints(array.cast(pa.int64())).view(np.uint64)


def _text_words(texts: pa.Array) -> Words:
    """A word per text: its bytes as the digits of a number, and its length.

    The numbers of all texts come from one running sum over all bytes, which dividing by a power moves to its own start.
    """
    if not len(texts):
        return np.zeros(0, np.uint64)
    _, offsets, data = texts.buffers()
    edges = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    first, last = int(edges[0]), int(edges[-1])
    digits = np.zeros(0, np.uint64) if data is None else np.frombuffer(data, np.uint8)[first:last].astype(np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum((digits + np.uint64(1)) * _powers(_PRIME, len(digits)))])
    starts, ends = edges[:-1] - first, edges[1:] - first
    moved = (sums[ends] - sums[starts]) * _powers(_INVERSE, len(digits) + 1)[starts]
    return _stirred(moved + (ends - starts).astype(np.uint64))


def _powers(base: int, count: int) -> Words:
    factors = np.full(max(count, 1), np.uint64(base))
    factors[0] = 1
    powers: Words = np.multiply.accumulate(factors)
    return powers[:count]
