"""Hosting buckets on Spark's workers: the function that Spark calls with what a micro-batch has for a bucket.

State lives in Spark's state store. A worker also keeps the buckets that it served last in
memory. Whether what it keeps is what the store holds is told by a token, drawn anew at each write: a number that counts
up would not do, because a task that failed may have counted to it too.
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from streamproof.engines.spark.stream.bucket import Answer, Bucket, bucket_from
from streamproof.engines.spark.stream.failures import WorkerError
from streamproof.engines.spark.stream.ship import Shipment
from streamproof.engines.spark.stream.wire import ANSWER, Part
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

STATE_DDL: Final = "token string, lengths string, body binary"
MOST_KEPT: Final = 512  # buckets in a worker's memory
_Place: TypeAlias = "tuple[str, int, int]"
_kept: OrderedDict[_Place, tuple[str, Bucket]] = OrderedDict()


def hosting(shipment: Shipment, *, keep: bool = True) -> Any:
    """The function for ``applyInPandasWithState``. With ``keep`` off, every call starts from the state store."""
    return partial(_host, shipment, keep)


def _host(
    shipment: Shipment, keep: bool, key: tuple[Any, ...], frames: Iterator[pd.DataFrame], state: GroupState
) -> Iterator[pd.DataFrame]:
    import pandas as pd  # noqa: PLC0415  # Spark's, on workers

    query, number = int(key[0]), int(key[1])
    parts = [part for frame in frames for part in _parts(frame)]
    try:
        bucket = _bucket(shipment, query, number, state)
        answer = bucket.answer(parts)
        size = _write(shipment, query, number, bucket, state, keep=keep)
    except StreamproofError as error:
        raise WorkerError(error) from None
    yield pd.DataFrame([_row(query, number, answer, size)], columns=ANSWER.names)


def _parts(frame: pd.DataFrame) -> Iterator[Part]:
    names = ("source", "order", "cti", "events", "dropped", "dead", "all", "rows")
    for row in zip(*(frame[name] for name in names), strict=True):
        source, order, cti, events, dropped = (int(number) for number in row[:5])
        yield Part(source, order, cti, events, dropped, *row[5:])


def _bucket(shipment: Shipment, query: int, number: int, state: GroupState) -> Bucket:
    """The bucket as the state store has it; it leaves the worker's memory until its new state is written."""
    place = (shipment.digests[query], query, number)
    token, bucket = _kept.pop(place, (None, None))
    if not state.exists:
        return bucket_from(shipment.open(query), number, None)
    known, lengths, body = state.get
    if bucket is not None and token == known:
        return bucket
    return bucket_from(shipment.open(query), number, _cut(body, json.loads(lengths)))


def _write(shipment: Shipment, query: int, number: int, bucket: Bucket, state: GroupState, *, keep: bool) -> int:
    token = secrets.token_hex(12)
    saved = bucket.save()
    state.update((token, json.dumps([len(part) for part in saved]), b"".join(saved)))
    if keep:
        _kept[shipment.digests[query], query, number] = (token, bucket)
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return sum(len(part) for part in saved)


def _cut(body: bytes, lengths: list[int]) -> list[bytes]:
    """The parts that were joined.

    >>> _cut(b"abcd", [1, 0, 3])
    [b'a', b'', b'bcd']
    """
    ends = list(accumulate(lengths))
    return [bytes(body[end - length : end]) for end, length in zip(ends, lengths, strict=True)]


def _row(query: int, number: int, answer: Answer, size: int) -> tuple[Any, ...]:
    return (
        query, number, answer.cti, answer.input_cti, answer.latest, answer.events, answer.outputs, answer.corrections,
        answer.dropped, answer.live, size, answer.micros, answer.dead, answer.rows,
    )  # fmt: skip
