"""Serving a bucket on one of Spark's workers: rows of a micro-batch in, its answer out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from streamproof.engines.spark.failures import WorkerError
from streamproof.engines.spark.stream.bucket import Answer
from streamproof.engines.spark.stream.journal import Journal, Place
from streamproof.engines.spark.stream.links import forwarded
from streamproof.engines.spark.stream.ship import Stage, opened
from streamproof.engines.spark.stream.wire import ANSWER, LINK, TO_SINK, Part
from streamproof.engines.spark.workers import settle
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import MapState

_PART: Final = ("source", "order", "cti", "events", "dropped", "dead", "all", "rows")


def served(
    blobs: MapState, place: Place, packed: bytes, rows: Iterator[pd.DataFrame], *, keep: bool, last: bool
) -> pd.DataFrame:
    """What the bucket at a place says to a micro-batch. Its state is in ``blobs``, its query in ``packed``."""
    digest, query, number = place
    stage = opened(packed, digest)
    parts = [part for frame in rows for part in _parts(frame)]
    try:
        answer, size = Journal(blobs).answer(place, stage, parts, keep=keep)
    except StreamproofError as error:
        raise WorkerError(error) from None
    settle()
    place_of = (query, number, 0, 0) if last else (TO_SINK, 0, query, number)
    found = [_told(place_of, answer, size, stage), *_links(stage, answer, number)]
    names = _names(last=last)
    return pd.DataFrame([[row[name] for name in names] for row in found], columns=names)


def passed_on(rows: Iterator[pd.DataFrame], *, last: bool) -> Iterator[pd.DataFrame]:
    """What is for a later stage, or for the sink: before that, answers know again whose they are."""
    for frame in rows:
        known = frame.assign(query=frame["source"], bucket=frame["order"]) if last else frame
        yield known.reindex(columns=_names(last=last), fill_value=0)


def _names(*, last: bool) -> list[str]:
    return list(ANSWER.names) if last else list(LINK)


def _parts(frame: pd.DataFrame) -> Iterator[Part]:
    for row in zip(*(frame[name] for name in _PART), strict=True):
        source, order, cti, events, dropped = (int(number) for number in row[:5])
        yield Part(source, order, cti, events, dropped, *row[5:])


def _told(place: tuple[int, int, int, int], answer: Answer, size: int, stage: Stage) -> dict[str, Any]:
    """An answer for the sink: of a fragment that others read, the numbers alone."""
    return {
        **dict(zip(("query", "bucket", "source", "order"), place, strict=True)), "cti": answer.cti,
        "input_cti": answer.input_cti, "latest": answer.latest, "events": answer.events, "outputs": answer.outputs,
        "corrections": answer.corrections, "dropped": answer.dropped, "live": answer.live, "state": size,
        "micros": answer.micros, "dead": answer.dead, "all": None, "rows": None if stage.links else answer.rows,
    }  # fmt: skip


def _links(stage: Stage, answer: Answer, number: int) -> Iterator[dict[str, Any]]:
    for query, bucket, part in forwarded(stage, answer, number):
        yield {
            **dict.fromkeys(LINK, 0), **{name: getattr(part, name) for name in _PART}, "query": query, "bucket": bucket,
        }  # fmt: skip
