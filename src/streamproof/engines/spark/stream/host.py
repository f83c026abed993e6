"""Hosting buckets on Spark's workers: what Spark calls with what a micro-batch has for a bucket.

With every start of a query Spark starts a process that only asks which state there is. So the kernels, and all that
knows plans, are loaded where a bucket is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamproof.engines.spark.stream.failures import WorkerError
from streamproof.engines.spark.stream.journal import Journal
from streamproof.engines.spark.stream.wire import ANSWER, LINK, TO_SINK, Part
from streamproof.engines.spark.stream.workers import settle
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from streamproof.engines.spark.stream.bucket import Answer
    from streamproof.engines.spark.stream.ship import Shipment, Stage

_PART: Final = ("source", "order", "cti", "events", "dropped", "dead", "all", "rows")


class Host(StatefulProcessor):
    """Every bucket of every query in a shipment; what is for others passes by.

    ``last``: what comes out goes to the sink, and not to another stage. With ``keep`` off, every call starts from the
    state store.
    """

    def __init__(self, shipment: Shipment, *, keep: bool = True, last: bool = True) -> None:
        self._queries, self._digests = dict(shipment.queries), dict(shipment.digests)
        self._keep, self._last = keep, last

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._journal = Journal(handle)

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd  # noqa: PLC0415  # Spark's, on workers

        from streamproof.engines.spark.stream.ship import opened  # noqa: PLC0415

        query, number = int(key[0]), int(key[1])
        names = ANSWER.names if self._last else list(LINK)
        if query not in self._digests:
            yield from (self._passing(frame).reindex(columns=names, fill_value=0) for frame in rows)
            return
        parts = [part for frame in rows for part in _parts(frame)]
        place = (self._digests[query], query, number)
        stage = opened(self._queries[query], self._digests[query])
        try:
            answer, size = self._journal.answer(place, stage, parts, keep=self._keep)
        except StreamproofError as error:
            raise WorkerError(error) from None
        place_of = (query, number, 0, 0) if self._last else (TO_SINK, 0, query, number)
        found = [_told(place_of, answer, size, stage), *_links(stage, answer, number)]
        yield pd.DataFrame([[row[name] for name in names] for row in found], columns=names)
        settle()

    def _passing(self, frame: pd.DataFrame) -> pd.DataFrame:
        """What is for a later stage, or for the sink: before that, answers know again whose they are."""
        return frame.assign(query=frame["source"], bucket=frame["order"]) if self._last else frame

    def close(self) -> None:
        """Nothing is open: what is kept, the worker keeps."""


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
    from streamproof.engines.spark.stream.links import forwarded  # noqa: PLC0415

    for query, bucket, part in forwarded(stage, answer, number):
        yield {
            **dict.fromkeys(LINK, 0), **{name: getattr(part, name) for name in _PART}, "query": query, "bucket": bucket,
        }  # fmt: skip
