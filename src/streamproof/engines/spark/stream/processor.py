"""The stateful processor: what Spark calls with what a micro-batch has for a bucket.

With every start of a query Spark starts a process that only asks which state there is. So this much knows neither
Arrow nor plans nor kernels: `serving` does, where a bucket is served.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import StatefulProcessor

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

    from streamproof.engines.spark.stream.stage import QueryBytes


class BucketProcessor(StatefulProcessor):
    """Serves every bucket of these queries; what is for other stages passes by.

    ``last``: what comes out goes to the sink, and not to another stage. With ``keep`` off, every call starts from the
    state store.
    """

    def __init__(self, queries: QueryBytes, *, keep: bool = True, last: bool = True) -> None:
        self._queries, self._digests = dict(queries.queries), dict(queries.digests)
        self._keep, self._last = keep, last

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._blobs = handle.getMapState("blobs", "number bigint", "blob binary")

    def handleInputRows(  # noqa: N802  # Spark's name
        self,
        key: tuple[Any, ...],
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        from streamproof.engines.spark.stream.serving import pass_on, serve  # noqa: PLC0415

        query, number = int(key[0]), int(key[1])
        if query not in self._digests:
            return pass_on(rows, last=self._last)
        place, packed = (self._digests[query], query, number), self._queries[query]
        return iter([serve(self._blobs, place, packed, rows, keep=self._keep, last=self._last)])

    def close(self) -> None:
        """Nothing is open: what is kept, the worker keeps."""
