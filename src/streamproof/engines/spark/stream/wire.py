"""What travels between the parts of a streaming query: rows of Arrow blobs, and their columns in Spark.

Before the shuffle, the rows of a source that go to one bucket are one blob; after it, so is the answer of a bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import pyarrow as pa

from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream

Emit: TypeAlias = Literal["rows", "events"]
PACKED: Final = pa.schema(
    [
        ("query", pa.int32()),  # which of the queries that run together
        ("bucket", pa.int32()),
        ("source", pa.int32()),
        ("order", pa.int64()),  # of arrival, within one micro-batch; from an earlier stage: its bucket
        ("cti", pa.int64()),
        ("events", pa.int64()),
        ("dropped", pa.int64()),
        ("dead", pa.binary()),
        ("all", pa.binary()),  # bucket, kind and start of all rows, where the order of arrival counts
        ("rows", pa.binary()),
    ]
)
PACKED_DDL: Final = (
    "query int, bucket int, source int, order bigint, cti bigint, events bigint, dropped bigint, "
    "dead binary, all binary, rows binary"
)
PARTS: Final = pa.schema([PACKED.field(name) for name in ("source", "order", "cti", "all", "rows")])
"""What a bucket's state depends on."""
ALL: Final = pa.schema([("bucket", pa.int16()), ("kind", pa.int8()), ("le", pa.int64())])
ANSWER: Final = pa.schema(
    [
        ("query", pa.int32()),
        ("bucket", pa.int32()),
        ("cti", pa.int64()),  # up to which this bucket's output is complete
        ("input_cti", pa.int64()),  # the least CTI of the inputs
        ("latest", pa.int64()),  # the greatest start that came in
        ("events", pa.int64()),  # that came in
        ("outputs", pa.int64()),  # signed rows that went out
        ("corrections", pa.int64()),  # of them, those that take something back
        ("dropped", pa.int64()),  # events that broke a rule and were let go
        ("live", pa.int64()),  # rows that the kernels hold
        ("state", pa.int64()),  # bytes of state written
        ("micros", pa.int64()),  # time in the kernels
        ("dead", pa.binary()),
        ("rows", pa.binary()),
    ]
)
ANSWER_DDL: Final = (
    "query int, bucket int, cti bigint, input_cti bigint, latest bigint, events bigint, outputs bigint, "
    "corrections bigint, dropped bigint, live bigint, state bigint, micros bigint, dead binary, rows binary"
)
LINK_DDL: Final = (
    f"{PACKED_DDL}, input_cti bigint, latest bigint, outputs bigint, corrections bigint, live bigint, state bigint, "
    "micros bigint"
)
LINK: Final = tuple(column.split()[0] for column in LINK_DDL.split(", "))
"""What goes from stage to stage: packed rows for a later one, and answers for the sink."""
TO_SINK: Final = -1
"""In the place of a query: it is an answer, and its query and bucket stand where source and order do. So all answers of
a stage pass the next ones together, and not bucket by bucket."""


@dataclass(frozen=True, slots=True)
class Part:
    """What one Arrow batch of a source has for one bucket."""

    source: int
    order: int
    cti: int
    events: int
    dropped: int = 0
    dead: bytes | None = None
    all: bytes | None = None
    rows: bytes | None = None


def answer_schema(schema: Schema, emit: Emit) -> pa.Schema:
    """The columns of the rows that a query puts out."""
    return schema.arrow_rows if emit == "rows" else PhysicalStream.arrow_schema(schema)
