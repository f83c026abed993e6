"""Small and capital letters, one letter for one letter: ß has no single capital and stays.

>>> change(pa.array(["Straße É", None, "abc"]), small=False).to_pylist()
['STRAßE É', None, 'ABC']
"""

from __future__ import annotations

import sys
from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Codes = npt.NDArray[np.uint32]


def change(array: pa.Array, *, small: bool) -> pa.Array:
    """All letters of a column of text as small ones, or as capitals."""
    if pc.all(pc.string_is_ascii(array), min_count=0).as_py():
        return (pc.ascii_lower if small else pc.ascii_upper)(array)
    whole = pc.fill_null(array, "")
    offsets = np.frombuffer(whole.buffers()[1], np.int32)[whole.offset :][: len(whole) + 1]
    data = np.frombuffer(whole.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    codes = np.frombuffer(data.tobytes().decode().encode("utf-32-le"), np.uint32)
    changed = _table(small=small)[codes]
    text = changed.tobytes().decode("utf-32-le").encode()
    letters = _running((data & 0xC0) != 0x80)[offsets - offsets[0]]  # the number of each row's first letter
    ends = _running(_widths(changed))[letters]
    buffers = [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(text)]
    result = pa.Array.from_buffers(pa.string(), len(array), buffers)
    return pc.if_else(array.is_valid(), result, pa.scalar(None, pa.string())) if array.null_count else result


def _widths(codes: Codes) -> npt.NDArray[np.uint8]:
    """The bytes that characters take in UTF-8."""
    widths: npt.NDArray[np.uint8] = 1 + (codes >= 0x80).astype(np.uint8) + (codes >= 0x800) + (codes >= 0x10000)
    return widths


def _running(counts: npt.NDArray[np.uint8] | npt.NDArray[np.bool_]) -> npt.NDArray[np.int64]:
    """The sum of all before each place."""
    sums = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=sums[1:])
    return sums


@cache
def _table(*, small: bool) -> Codes:
    table = np.arange(sys.maxunicode + 1, dtype=np.uint32)
    for code in range(sys.maxunicode + 1):
        letter = chr(code)
        other = letter.lower() if small else letter.upper()
        if len(other) == 1:
            table[code] = ord(other)
    return table
