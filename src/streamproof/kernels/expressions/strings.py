r"""Functions of text. Characters are code points.

>>> from streamproof.events.schema import BOOL, STRING
>>> substr([pa.array(["café", "x"]), pa.scalar(3), pa.scalar(2)], STRING).to_pylist()
['fé', '']
>>> like([pa.array(["50%", "505"]), pa.scalar("50\\%")], BOOL).to_pylist()
[True, False]
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.order import Flags, Ints
from streamproof.events.schema import Type
from streamproof.kernels.expressions import case_mapping
from streamproof.kernels.expressions.columns import Datum, null_flags, raw, rows_of, spread
from streamproof.kernels.expressions.udf import distinct
from streamproof.plan.expr import INT64_MIN
from streamproof.plan.limits import LARGEST_COLUMN, LONGEST_TEXT, too_large_column, too_long_text

Args = Sequence[Datum]
_WILD: Final = {"%": ".*", "_": "."}


def concat(args: Args, to: Type) -> Datum:
    _check_sizes(_sum_of_sizes, args)
    return pc.binary_join_element_wise(*args, "", null_handling="emit_null")


def _check_sizes(sizes_of: Callable[[Args], Datum], args: Args, factor: float = 1.0) -> None:
    """Refuse texts that are too long before they are made. A look at whole columns is enough for most batches.

    No text gets larger than ``factor`` times all that stands in its arguments.
    """
    arrays = sum(arg.nbytes for arg in args if not isinstance(arg, pa.Scalar))
    constants = sum(_size(arg) for arg in args if isinstance(arg, pa.Scalar))
    if factor * (arrays + constants) <= LONGEST_TEXT and factor * (arrays + rows_of(args) * constants) < LARGEST_COLUMN:
        return
    sizes = sizes_of(args)
    most, total = (pc.fill_null(found(sizes), 0).as_py() for found in (pc.max, pc.sum))
    if most > LONGEST_TEXT:
        raise too_long_text(most)
    if total > LARGEST_COLUMN:
        raise too_large_column(total)


def _size(text: pa.Scalar) -> int:
    return len(text.as_py().encode()) if text.is_valid else 0


def _sum_of_sizes(args: Args) -> Datum:
    return reduce(pc.add, (pc.cast(pc.binary_length(arg), pa.int64()) for arg in args))


def lower(args: Args, to: Type) -> Datum:
    return case_mapping.change(args[0], small=True)


def upper(args: Args, to: Type) -> Datum:
    return case_mapping.change(args[0], small=False)


def trim(args: Args, to: Type) -> Datum:
    return pc.ascii_trim(args[0], " ")


def ltrim(args: Args, to: Type) -> Datum:
    return pc.ascii_ltrim(args[0], " ")


def rtrim(args: Args, to: Type) -> Datum:
    return pc.ascii_rtrim(args[0], " ")


def length(args: Args, to: Type) -> Datum:
    return pc.cast(pc.utf8_length(args[0]), to.arrow)


# --- parts of text ----------------------------------------------------------------------------------------------------


def substr(args: Args, to: Type) -> Datum:
    """The characters at the positions p with start <= p < start + length; the first position is 1."""
    text, start, *length = args
    if isinstance(text, pa.Array) and all(isinstance(bound, pa.Scalar) for bound in args[1:]):
        first, last = _bounds(raw(start), raw(length[0]) if length else None)
        return pc.utf8_slice_codeunits(text, int(first), max(int(first), int(last)))
    rows = rows_of(args)
    nulls = null_flags(*args)
    first, last = _bounds(raw(start), raw(length[0]) if length else None)
    found = _slices(spread(text, rows), np.broadcast_to(first, rows), np.broadcast_to(last, rows))
    return found if nulls is None else pc.if_else(pa.array(nulls), pa.scalar(None, to.arrow), found)


def _bounds(start: Any, length: Any) -> tuple[Ints, Ints]:
    """Positions from 0, cut to what a text can have. Only sums of two positive numbers could leave int64."""
    far = 2**31
    begin = np.maximum(start, INT64_MIN + 2) - 1
    if length is None:
        return np.clip(begin, 0, far), np.asarray(far)
    reach = np.where(begin > 0, np.minimum(length, far), length)
    end = np.minimum(begin, far) + np.where(begin < 0, np.maximum(reach, 0), reach)
    return np.clip(begin, 0, far), np.clip(end, 0, far)


def _slices(array: pa.Array, first: Ints, last: Ints) -> pa.Array:
    """The characters ``first`` to ``last`` of each text, by the places where characters begin in the bytes."""
    offsets = np.frombuffer(array.buffers()[1], np.int32)[array.offset :][: len(array) + 1].astype(np.int64)
    data = np.frombuffer(array.buffers()[2] or b"", np.uint8)
    begins = np.flatnonzero((data & 0xC0) != 0x80)  # all bytes but the continuations of UTF-8
    at = np.searchsorted(begins, offsets)  # the number of each text's first character
    low = np.minimum(at[:-1] + first, at[1:])
    high = np.maximum(np.minimum(at[:-1] + last, at[1:]), low)
    begins = np.append(begins, len(data))
    low, high = begins[low], begins[high]
    sizes = high - low
    ends = np.concatenate([[0], np.cumsum(sizes)])
    picked = data[np.repeat(low - ends[:-1], sizes) + np.arange(ends[-1])]
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(picked)]
    return pa.Array.from_buffers(pa.string(), len(array), buffers)


# --- looking for text -------------------------------------------------------------------------------------------------


def _search(of_constant: Callable[..., Datum], of_values: Callable[..., Any]) -> Callable[[Args, Type], Datum]:
    """A function that Arrow has for constant patterns; with a column of patterns, one look per different row."""

    def run(args: Args, to: Type) -> Datum:
        text, *patterns = args
        if isinstance(text, pa.Array) and all(isinstance(pattern, pa.Scalar) for pattern in patterns):
            return of_constant(text, *(pattern.as_py() for pattern in patterns))
        rows = rows_of(args)
        different, codes = distinct([spread(arg, rows) for arg in args], rows)
        each = zip(*(column.to_pylist() for column in different), strict=True)
        found = [None if None in values else of_values(*values) for values in each]
        return pc.take(pa.array(found, to.arrow), pa.array(codes))

    return run


def _replace(text: pa.Array, old: str, new: str) -> pa.Array:
    if not old:
        return text
    was, becomes = len(old.encode()), len(new.encode())

    def sizes(args: Args) -> Datum:
        grown = pc.multiply(pc.cast(pc.count_substring(text, old), pa.int64()), becomes - was)
        return pc.add(pc.cast(pc.binary_length(text), pa.int64()), grown)

    _check_sizes(sizes, [text], max(1.0, becomes / was))
    return pc.replace_substring(text, old, new)


def _replaced(text: str, old: str, new: str) -> str:
    if not old:
        return text
    if len(text) * max(1, len(new)) > LONGEST_TEXT // 4:  # as many bytes has a character at most
        size = len(text.encode()) + text.count(old) * (len(new.encode()) - len(old.encode()))
        if size > LONGEST_TEXT:
            raise too_long_text(size)
    return text.replace(old, new)


contains = _search(pc.match_substring, lambda text, part: part in text)
starts_with = _search(pc.starts_with, str.startswith)
ends_with = _search(pc.ends_with, str.endswith)
replace = _search(_replace, _replaced)


def like(args: Args, to: Type) -> Datum:
    """% is any text, _ one character, a backslash takes the next one as it is. Each different pattern is read once."""
    rows = rows_of(args)
    if isinstance(args[1], pa.Scalar):
        return _matches(args[0], args[1].as_py())
    text, patterns = (spread(arg, rows) for arg in args)
    encoded = pc.dictionary_encode(patterns)
    result = pa.nulls(rows, to.arrow)
    for code, pattern in enumerate(encoded.dictionary.to_pylist()):
        these: Flags = pc.fill_null(pc.equal(encoded.indices, code), False)
        result = pc.replace_with_mask(result, these, _matches(pc.filter(text, these), pattern))
    return result


def _matches(text: pa.Array, pattern: str) -> pa.Array:
    """The patterns that most people write need no regular expression."""
    plain = pattern.strip("%")
    if any(char in plain for char in "%_\\"):
        return pc.match_substring_regex(text, regex(pattern))
    match pattern.startswith("%"), pattern.endswith("%"):
        case True, True:
            return pc.match_substring(text, plain)
        case True, False:
            return pc.ends_with(text, plain)
        case False, True:
            return pc.starts_with(text, plain)
    return pc.equal(text, plain)


def regex(pattern: str) -> str:
    r"""The regular expression (RE2) for a pattern of ``like``.

    >>> regex("a_\\%%")
    '\\A(?s:a.\\x{25}.*)\\z'
    """
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    inner = "".join(_WILD.get(part) or _literally(part[-1]) for part in parts)
    return rf"\A(?s:{inner})\z"


def _literally(char: str) -> str:
    return char if char.isalnum() and char.isascii() else f"\\x{{{ord(char):x}}}"
