"""The EDF gate: several streaming queries in one Spark application, one micro-batch at a time, earliest deadline first.

Every query's ``foreachBatch`` asks the arbiter for a grant before its lazy DataFrame runs. Period and batch size come
from admission, so that a query that floods fills its own source and nobody else's time. Spark's FAIR pools keep what a
query does beside its batches from waiting behind the batches of another.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from time import time as wall_time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from streamproof.errors import InputError, did_you_mean
from streamproof.qos.costs import QUANTILE, PushCost, fit_cost
from streamproof.qos.observed import Fault, Observed
from streamproof.qos.spark_admission import MicroBatches

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

POOL: Final = "spark.scheduler.pool"
Process = Callable[["DataFrame", int], float | None]
"""Handles a micro-batch; may tell when its oldest row came, in ms since 1970."""


class Arbiter:
    """Grants one micro-batch at a time; of those that wait, the one with the earliest deadline.

    >>> arbiter = Arbiter()
    >>> with arbiter.grant(5.0):
    ...     arbiter.waiting
    0
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: list[tuple[float, int]] = []
        self._number = 0
        self._busy = False
        self.granted: list[float] = []  # the deadlines in the order of their grants

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @contextmanager
    def grant(self, deadline: float) -> Iterator[float]:
        """Wait for one's turn; gives the seconds that it took."""
        start = wall_time()
        with self._changed:
            self._number += 1
            place = (deadline, self._number)
            heappush(self._waiting, place)
            self._changed.wait_for(lambda: not self._busy and self._waiting[0] == place)
            heappop(self._waiting)
            self._busy = True
            self.granted.append(deadline)
        try:
            yield wall_time() - start
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()


@dataclass
class Turn:
    """What one query has got: its observation, when its rows were fixed, how long each batch waited."""

    flow: MicroBatches
    observed: Observed
    fixed: list[float] = field(default_factory=list)  # ms; when the rows of the last two batches were fixed
    waits: dict[int, float] = field(default_factory=dict)  # ms at the gate, by batch


class EdfGate:
    """The gate of one application. ``flows`` are the queries that were admitted together."""

    def __init__(self, flows: Sequence[MicroBatches], *, share: float = 1.0) -> None:
        self.arbiter, self.share = Arbiter(), share
        self.turns = {flow.name: Turn(flow, Observed(flow.name, float(flow.latency), _backlog(flow))) for flow in flows}
        self._overrun = False

    def turn(self, name: str) -> Turn:
        if name not in self.turns:
            raise InputError(f'no query "{name}" was admitted', fix=did_you_mean(name, self.turns))
        return self.turns[name]

    def guard(self, name: str, process: Process, *, split_by: str | None = None, pieces: int = 1) -> Process:
        """A function for ``foreachBatch``. With ``pieces``, a batch is cut into hash buckets of a column and asks again
        between them: that is how a long batch lets others in.
        """
        turn = self.turn(name)

        def take(frame: DataFrame, number: int) -> float | None:
            asked = wall_time() * 1000
            deadline = (turn.fixed[-1] if turn.fixed else asked - float(turn.flow.period)) + float(turn.flow.latency)
            left_behind, turn.fixed = turn.fixed[:-1], [*turn.fixed[-1:], asked]
            waited, oldest = 0.0, None
            for part in _parts(frame, split_by, pieces):
                with self.arbiter.grant(deadline) as wait:
                    waited += wait * 1000
                    begun = wall_time()
                    found = process(part, number)
                    self._account(turn, (wall_time() - begun) * 1000)
                oldest = found if oldest is None else min(oldest, found if found is not None else oldest)
            turn.waits[number] = waited
            self._finish(turn, oldest, late=bool(left_behind) and oldest is not None and oldest < left_behind[0])
            return oldest

        return take

    def _account(self, turn: Turn, spent: float) -> None:
        turn.observed.pushes += 1
        turn.observed.worst_push = max(turn.observed.worst_push, spent)
        if spent > float(turn.flow.longest) / self.share:
            turn.observed.overruns += 1
            self._overrun = True

    def _finish(self, turn: Turn, oldest: float | None, *, late: bool) -> None:
        """Count the delay of the oldest row; ``late`` says that an earlier batch had no room for it."""
        if oldest is None:
            return
        fault: Fault = "input" if late else "cost" if self._overrun else "scheduler"
        turn.observed.held_back += late
        if self.arbiter.waiting == 0:
            self._overrun = False
        turn.observed.done(np.array([wall_time() * 1000 - oldest]), fault)

    def start(
        self, spark: SparkSession, frame: DataFrame, name: str, process: Process, *, checkpoint: str, **cut: Any
    ) -> StreamingQuery:
        """Start a query behind the gate: its own FAIR pool, its trigger from the plan."""
        turn = self.turn(name)
        spark.sparkContext.setLocalProperty(POOL, name)  # the thread of the query inherits it
        try:
            writer = frame.writeStream.queryName(name).option("checkpointLocation", checkpoint)
            writer = writer.trigger(processingTime=f"{int(turn.flow.period)} milliseconds")
            return writer.foreachBatch(self.guard(name, process, **cut)).start()  # type: ignore[arg-type]  # see guard
        finally:
            spark.sparkContext.setLocalProperty(POOL, None)  # type: ignore[arg-type]  # back to the default pool


def _parts(frame: DataFrame, split_by: str | None, pieces: int) -> Iterator[DataFrame]:
    if pieces <= 1 or split_by is None:
        yield frame
        return
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    kept = frame.persist()  # the source is read once
    try:
        for number in range(pieces):
            yield kept.where(F.pmod(F.xxhash64(split_by), F.lit(pieces)) == number)
    finally:
        kept.unpersist()


def _backlog(flow: MicroBatches) -> float:
    return float(flow.arrival.burst + flow.arrival.rate * flow.latency)


def fit_progress(
    progress: Sequence[Mapping[str, Any]], waits: Mapping[int, float] | None = None, *, quantile: float = QUANTILE
) -> PushCost:
    """What batches cost, from the progress events of a query; what they waited at the gate is not their cost."""
    rows, times = [], []
    for event in progress:
        spent = float(event["durationMs"].get("triggerExecution", 0)) - (waits or {}).get(int(event["batchId"]), 0.0)
        if int(event["numInputRows"]) > 0:
            rows.append(int(event["numInputRows"]))
            times.append(max(spent, 1.0))
    if not rows:
        raise InputError("no progress event tells of a batch with rows", fix="let the query run over a few batches")
    return fit_cost(rows, times, quantile=quantile)
