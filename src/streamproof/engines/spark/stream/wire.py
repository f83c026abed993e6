"""What travels between the parts of a streaming query: records, each a row of Spark's, with rows of events as blobs.

    sources ──pack──► INPUT ──► buckets of a stage ──► EDGE ──► buckets of the next ──► OUTPUT ──► sink
                        │                                │                                │
                   BucketInput               a BucketInput for a later stage,        BucketOutput
                                             or a BucketOutput on its way to the sink

`BucketInput` and `BucketOutput` declare each column once, with its type: the schemas of Arrow, the DDL of Spark and the
order of values all come from there.

A *blob* is an Arrow record batch without its schema, which both ends know. On its way through Java it is copied again
and again, so whole numbers are written as what they are above the least of their column, in as few bytes as that takes:
times of one micro-batch are close to each other, keys are small, and weights are all 1, which takes none.

    head, filled up to 64 bytes: rows, and per column its least number and its width  │  Arrow buffers of the columns
    [3, [[1000, 1], [1010, 1], [1, 0], null]]\n                                       │  le − 1000   re − 1010   v
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, TypeAlias, get_type_hints

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from streamproof.events.order import Ints
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream

Emit: TypeAlias = Literal["rows", "events"]

# --- records ----------------------------------------------------------------------------------------------------------

Int: TypeAlias = Annotated[int, pa.int32()]
Long: TypeAlias = Annotated[int, pa.int64()]
Blob: TypeAlias = Annotated[bytes | None, pa.binary()]
Rows: TypeAlias = Annotated[pa.Table | None, pa.binary()]  # a table in the worker, a blob in the record
_SPARK_TYPES: Final = {pa.int32(): "int", pa.int64(): "bigint", pa.binary(): "binary"}


@dataclass(frozen=True, slots=True)
class BucketInput:
    """What one Arrow batch of a source, or one bucket of an earlier stage, has for a bucket."""

    source: Int  # the number of the port that it comes in by
    order: Long  # of arrival, within one micro-batch; from an earlier stage: the bucket that it comes from
    cti: Long
    events: Long
    dropped: Long = 0
    dead: Blob = None  # dead letters
    arrivals: Blob = None  # see `ARRIVALS`; only where CTIs are made from the order of arrival
    rows: Blob = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketOutput:
    """What a bucket puts out in a micro-batch."""

    cti: Long  # up to which this bucket's output is complete
    input_cti: Long  # the least CTI of the inputs
    latest: Long  # the greatest start that came in
    events: Long  # that came in
    outputs: Long  # signed rows that went out
    corrections: Long  # of them, those that take something back
    dropped: Long  # events that broke a rule
    live: Long  # rows that the kernels hold
    state: Long = 0  # bytes of state written
    micros: Long  # time in the kernels
    dead: Blob = None  # dead letters
    rows: Rows = None
    advanced: bool = False  # whether the CTI is a new one; not on the wire

    def without_rows(self) -> BucketOutput:
        """The numbers and the dead letters alone."""
        return replace(self, rows=None)


def _columns(record: type) -> list[pa.Field]:
    """The annotated fields of a record, as columns."""
    hints = get_type_hints(record, include_extras=True)
    annotated = ((field.name, getattr(hints[field.name], "__metadata__", ())) for field in fields(record))
    return [pa.field(name, kind[0]) for name, kind in annotated if kind]


_KEY: Final = [pa.field("query", pa.int32()), pa.field("bucket", pa.int32())]
KEY: Final = tuple(field.name for field in _KEY)
"""Which bucket of which of the queries that run together: the key by which Spark groups, shuffles and keeps state."""
_INPUT: Final = _columns(BucketInput)
_OUTPUT: Final = _columns(BucketOutput)
INPUT: Final = pa.schema([*_KEY, *_INPUT])
OUTPUT: Final = pa.schema([*_KEY, *_OUTPUT])
EDGE: Final = pa.schema([*INPUT, *(field for field in _OUTPUT if field.name not in INPUT.names)])
"""What goes from stage to stage: inputs of later ones, and outputs on their way to the sink."""
TO_SINK: Final = -1
"""In the place of a query: it is an output, and its query and bucket stand where source and order do. So all outputs of
a stage pass the next ones together, and not bucket by bucket."""
JOURNALED: Final = pa.schema([field for field in _INPUT if field.name not in ("events", "dropped", "dead")])
"""What of an input a bucket's state depends on."""
ARRIVALS: Final = pa.schema([("bucket", pa.int16()), ("kind", pa.int8()), ("le", pa.int64())])
"""Bucket, kind and start of all rows of an Arrow batch, in order of arrival."""


def ddl(columns: pa.Schema) -> str:
    """The columns as Spark declares them.

    >>> ddl(INPUT)[:50]
    'query int, bucket int, source int, order bigint, c'
    """
    return ", ".join(f"{field.name} {_SPARK_TYPES[field.type]}" for field in columns)


def record(query: int, bucket: int, content: BucketInput | BucketOutput) -> dict[str, Any]:
    """What goes to, or comes from, a bucket as a row of `INPUT` or `OUTPUT`."""
    columns = _INPUT if isinstance(content, BucketInput) else _OUTPUT
    values = {field.name: getattr(content, field.name) for field in columns}
    rows = to_blob(values["rows"]) if isinstance(values["rows"], pa.Table) else values["rows"]
    return {"query": query, "bucket": bucket, **values, "rows": rows}


def inputs_in(columns: Mapping[str, Iterable[Any]]) -> Iterator[BucketInput]:
    """The inputs in records that stand column by column: the inverse of `record`."""
    for values in zip(*(columns[field.name] for field in _INPUT), strict=True):
        yield BucketInput(*values)


def output_schema(schema: Schema, emit: Emit) -> pa.Schema:
    """The columns of the rows that a query puts out."""
    return schema.arrow_rows if emit == "rows" else PhysicalStream.arrow_schema(schema)


# --- blobs ------------------------------------------------------------------------------------------------------------

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
