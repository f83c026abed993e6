"""From one stage to the next: the output of a bucket, spread over the buckets of the fragments that read it.

A CTI goes to every bucket, with the number of the bucket that says it; the reader works with the least of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from streamproof.engines.spark.stream.blobs import from_blobs, to_blob
from streamproof.engines.spark.stream.doors import by_bucket
from streamproof.engines.spark.stream.hashing import bucket_numbers
from streamproof.engines.spark.stream.wire import Part

if TYPE_CHECKING:
    from streamproof.engines.spark.stream.bucket import Answer
    from streamproof.engines.spark.stream.ship import Stage


def forwarded(stage: Stage, answer: Answer, bucket: int) -> Iterator[tuple[int, int, Part]]:
    """What an answer has for later stages: query, bucket and part."""
    if not stage.links:
        return
    rows = None if answer.rows is None else from_blobs([answer.rows], stage.typed.schema.arrow_rows)
    for link in stage.links:
        numbers = None
        if rows is not None and link.buckets > 1:
            numbers = bucket_numbers([rows[name] for name in link.keys], rows.num_rows, link.buckets)
        parts = {} if rows is None else dict(by_bucket(rows, numbers, link.buckets))
        for number in range(link.buckets) if answer.advanced else parts:
            table = parts.get(number)
            blob = None if table is None else to_blob(table)
            yield link.query, number, Part(link.source, bucket, answer.cti, 0, rows=blob)
