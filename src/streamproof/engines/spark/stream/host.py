"""Hosting buckets on Spark's workers: what Spark calls with what a micro-batch has for a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

from streamproof.engines.spark.stream.bucket import Answer
from streamproof.engines.spark.stream.failures import WorkerError
from streamproof.engines.spark.stream.journal import Journal
from streamproof.engines.spark.stream.ship import Shipment
from streamproof.engines.spark.stream.wire import ANSWER, Part
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle


class Host(StatefulProcessor):
    """Every bucket of every query in a shipment. With ``keep`` off, every call starts from the state store."""

    def __init__(self, shipment: Shipment, *, keep: bool = True) -> None:
        self._shipment, self._keep = shipment, keep

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._journal = Journal(handle)

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd  # noqa: PLC0415  # Spark's, on workers

        query, number = int(key[0]), int(key[1])
        parts = [part for frame in rows for part in _parts(frame)]
        place = (self._shipment.digests[query], query, number)
        try:
            answer, size = self._journal.answer(place, self._shipment.open(query), parts, keep=self._keep)
        except StreamproofError as error:
            raise WorkerError(error) from None
        yield pd.DataFrame([_row(query, number, answer, size)], columns=ANSWER.names)

    def close(self) -> None:
        """Nothing is open: what is kept, the worker keeps."""


def _parts(frame: pd.DataFrame) -> Iterator[Part]:
    names = ("source", "order", "cti", "events", "dropped", "dead", "all", "rows")
    for row in zip(*(frame[name] for name in names), strict=True):
        source, order, cti, events, dropped = (int(number) for number in row[:5])
        yield Part(source, order, cti, events, dropped, *row[5:])


def _row(query: int, number: int, answer: Answer, size: int) -> tuple[Any, ...]:
    return (
        query, number, answer.cti, answer.input_cti, answer.latest, answer.events, answer.outputs, answer.corrections,
        answer.dropped, answer.live, size, answer.micros, answer.dead, answer.rows,
    )  # fmt: skip
