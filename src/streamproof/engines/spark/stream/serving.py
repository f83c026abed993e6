"""Serving a bucket on one of Spark's workers: records of a micro-batch in, its output out, to the sink or later stages.

Rows for later stages are spread over the buckets of the fragments that read them. A CTI goes to every bucket, with the
number of the bucket that says it; the reader works with the least of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pandas as pd
import pyarrow as pa

from streamproof.engines.spark.failures import WorkerError
from streamproof.engines.spark.stream.hashing import bucket_numbers
from streamproof.engines.spark.stream.journal import BucketId, Journal
from streamproof.engines.spark.stream.ports import by_bucket
from streamproof.engines.spark.stream.stage import StageSpec, opened
from streamproof.engines.spark.stream.wire import (
    EDGE,
    OUTPUT,
    TO_SINK,
    BucketInput,
    BucketOutput,
    inputs_in,
    record,
    to_blob,
)
from streamproof.engines.spark.workers import settle
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

_NOTHING: Final = {field.name: None if pa.types.is_binary(field.type) else 0 for field in EDGE}


def serve(
    blobs: MapState, place: BucketId, packed: bytes, frames: Iterator[pd.DataFrame], *, keep: bool, last: bool
) -> pd.DataFrame:
    """The records that a bucket puts out in a micro-batch. Its state is in ``blobs``, its query in ``packed``."""
    digest, query, number = place
    stage = opened(packed, digest)
    inputs = [one for frame in frames for one in inputs_in(frame)]
    try:
        output = Journal(blobs).process(place, stage, inputs, keep=keep)
    except StreamproofError as error:
        raise WorkerError(error) from None
    settle()
    forwarded = [record(*sent) for sent in forward(stage, output, number)]
    return _frame([_for_sink(query, number, stage, output, last=last), *forwarded], last=last)


def pass_on(frames: Iterator[pd.DataFrame], *, last: bool) -> Iterator[pd.DataFrame]:
    """What is for a later stage, or for the sink: before that, outputs know again whose they are."""
    for frame in frames:
        known = frame.assign(query=frame["source"], bucket=frame["order"]) if last else frame
        yield known.reindex(columns=_names(last=last), fill_value=0)


def forward(stage: StageSpec, output: BucketOutput, bucket: int) -> Iterator[tuple[int, int, BucketInput]]:
    """What an output has for later stages: query, bucket and input."""
    for edge in stage.edges:
        parts: dict[int, pa.Table | None] = {}
        if (rows := output.rows) is not None:
            several = edge.buckets > 1
            keys = [rows[name] for name in edge.keys]
            numbers = bucket_numbers(keys, rows.num_rows, edge.buckets) if several else None
            parts = dict(by_bucket(rows, numbers, edge.buckets))
        for number in range(edge.buckets) if output.advanced else parts:
            part = parts.get(number)
            blob = None if part is None else to_blob(part)
            yield edge.query, number, BucketInput(edge.source, bucket, output.cti, 0, rows=blob)


def _for_sink(query: int, number: int, stage: StageSpec, output: BucketOutput, *, last: bool) -> dict[str, Any]:
    """An output for the sink; of a fragment that others read, the numbers alone."""
    found = record(query, number, output.without_rows() if stage.edges else output)
    return found if last else {**found, "query": TO_SINK, "bucket": 0, "source": query, "order": number}


def _frame(records: list[dict[str, Any]], *, last: bool) -> pd.DataFrame:
    names = _names(last=last)
    return pd.DataFrame([[one.get(name, _NOTHING[name]) for name in names] for one in records], columns=names)


def _names(*, last: bool) -> list[str]:
    return list((OUTPUT if last else EDGE).names)
