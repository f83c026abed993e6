"""Rows as blobs: what the parts of a streaming query hand to each other through Spark.

A blob is an Arrow record batch without its schema, which both ends know. On its way through Java it is copied again and
again, so whole numbers are written as what they are above the least of their column, in as few bytes as that takes:
times of one micro-batch are close to each other, keys are small, and weights are all 1, which takes none.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Ints: TypeAlias = npt.NDArray[np.int64]

_WIDTHS: Final = {1: pa.uint8(), 2: pa.uint16(), 4: pa.uint32()}
"""Bytes of a number, if they are fewer than 8."""
_PAGE: Final = 64
"""The head is filled up to a multiple of it, so that numbers lie where a processor reads them fast."""


@dataclass(frozen=True, slots=True)
class _Narrow:
    """How a column of numbers is written: above which least one, in how many bytes."""

    least: int
    width: int

    @staticmethod
    def of(column: pa.Array) -> _Narrow | None:
        """None if the column is written as it is.

        >>> [_Narrow.of(pa.array(values)) for values in ([7, 1000], [-1, -1], [0, 2**40], [1, None])]
        [_Narrow(least=7, width=2), _Narrow(least=-1, width=0), None, None]
        """
        if column.type != pa.int64() or column.null_count or not len(column):
            return None
        values = column.to_numpy()
        least, most = int(values.min()), int(values.max())
        widths = [width for width in (0, *_WIDTHS) if most - least < 1 << 8 * width]
        return _Narrow(least, widths[0]) if widths else None

    def written(self, column: pa.Array) -> pa.Array:
        return pa.array((column.to_numpy() - self.least).astype(f"u{self.width}"))


@dataclass(frozen=True, slots=True)
class _Written:
    """A column of numbers as it was written; without any bytes, all are the least."""

    least: int
    above: npt.NDArray[np.unsignedinteger] | None
    rows: int

    def read(self, out: Ints) -> None:
        if self.above is None:
            out[:] = self.least
        else:
            np.add(self.above, np.int64(self.least), out=out)


def to_blob(rows: pa.Table | pa.RecordBatch) -> bytes:
    """Rows as a blob.

    >>> rows = pa.table({"le": [5, 6], "w": [1, 1], "v": [None, 0.5]})
    >>> from_blobs([to_blob(rows), to_blob(rows[1:])], rows.schema).to_pydict()
    {'le': [5, 6, 6], 'w': [1, 1, 1], 'v': [None, 0.5, 0.5]}
    """
    if isinstance(rows, pa.Table):
        batches = rows.combine_chunks().to_batches()
        rows = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=rows.schema)
    ways = [_Narrow.of(column) for column in rows.columns]
    columns = [
        column if way is None else way.written(column)
        for column, way in zip(rows.columns, ways, strict=True)
        if way is None or way.width
    ]
    head = json.dumps([rows.num_rows, [way and (way.least, way.width) for way in ways]]).encode() + b"\n"
    body = pa.RecordBatch.from_arrays(columns, names=[str(n) for n in range(len(columns))]).serialize()
    return b"".join([head.rjust(-(-len(head) // _PAGE) * _PAGE), body])


def from_blobs(blobs: Iterable[bytes], schema: pa.Schema) -> pa.Table:
    """The rows of blobs, one after the other."""
    opened = [_opened(blob, schema) for blob in blobs]
    columns = [_column([columns[n] for columns in opened], field.type) for n, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _opened(blob: bytes, schema: pa.Schema) -> list[pa.Array | _Written]:
    """The columns of one blob."""
    end = blob.index(b"\n") + 1
    count, ways = json.loads(blob[:end])
    kinds = [(way, field.type if way is None else _WIDTHS.get(way[1])) for way, field in zip(ways, schema, strict=True)]
    fields = [pa.field(str(n), kind) for n, (_, kind) in enumerate(kinds) if kind is not None]
    arrays = iter(pa.ipc.read_record_batch(pa.py_buffer(blob).slice(end), pa.schema(fields)).columns)
    found: list[pa.Array | _Written] = []
    for way, kind in kinds:
        array = next(arrays) if kind is not None else None
        if way is None:
            found.append(array)
        else:
            found.append(_Written(way[0], None if array is None else array.to_numpy(), count))
    return found


def _column(pieces: list[pa.Array | _Written], kind: pa.DataType) -> pa.ChunkedArray:
    """One column of all blobs; numbers that were written narrow become one array at once."""
    written = [piece for piece in pieces if isinstance(piece, _Written)]
    values = np.empty(sum(piece.rows for piece in written), np.int64)
    places = np.cumsum([0, *(piece.rows for piece in written)])
    for piece, start in zip(written, places[:-1].tolist(), strict=True):
        piece.read(values[start : start + piece.rows])
    if len(written) == len(pieces):
        return pa.chunked_array([pa.array(values)] if pieces else [], kind)
    read = iter(np.split(values, places[1:-1]))
    return pa.chunked_array([pa.array(next(read)) if isinstance(p, _Written) else p for p in pieces], kind)
