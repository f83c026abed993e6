"""A streaming query that runs: waiting, stopping, its metrics, and its errors as ours."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from streamproof.engines.spark.failures import failure_of
from streamproof.engines.spark.metrics import StreamMetrics
from streamproof.engines.spark.origins import LOSSLESS
from streamproof.engines.spark.session import FILE_MANAGER, settings
from streamproof.engines.spark.sinks import OutputBatch, Receiver, Sink, SinkContext
from streamproof.engines.spark.stream.checkpoint import Lock
from streamproof.errors import StreamproofError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_RUNNING: Final[dict[Path, Running]] = {}
"""The queries of this process, by their checkpoints."""
_OFTEN: Final = 50  # micro-batches; Spark remembers how long a hundred took
Watcher = Callable[[OutputBatch, StreamMetrics], None]


class Running:
    """A handle on a running query. As a context manager it stops the query at the end."""

    def __init__(
        self, query: StreamingQuery, metrics: StreamMetrics, lock: Lock, failures: list[Exception], checkpoint: Path
    ) -> None:
        self.query, self.metrics, self._checkpoint = query, metrics, checkpoint
        self._lock, self._failures = lock, failures
        metrics.follow = lambda: query.recentProgress

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends, at most so long; whether it ended. An error of it is raised here."""
        try:
            ended = self.query.awaitTermination() if seconds is None else self.query.awaitTermination(seconds)  # type: ignore[arg-type]
        except Exception as error:
            self._lock.close()
            raise self._reported(error) from None
        if ended is not False:
            self._rest()
        return ended is not False

    def process_all(self) -> None:
        """Wait until everything that is there now is processed."""
        try:
            self.query.processAllAvailable()
        except Exception as error:
            raise self._reported(error) from None

    def _reported(self, error: Exception) -> StreamproofError:
        """The error of a query: the one that the sink met, or what Spark says."""
        return failure_of(self._failures[0] if self._failures else error, place=self._checkpoint)

    def stop(self) -> None:
        """Stop after the running micro-batch; what it did not finish comes again at the next start."""
        self.query.stop()
        self._rest()

    def release(self) -> None:
        """Let another query go on from the checkpoint."""
        self._lock.close()

    @property
    def active(self) -> bool:
        return bool(self.query.isActive)

    def _rest(self) -> None:
        """Nothing more will come; what Spark knows it may forget with its session."""
        self.metrics.catch_up()
        self.metrics.follow = tuple
        self._lock.close()

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *error: object) -> None:
        if self.active:
            self.stop()


STATE_STORE: Final = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}
"""The only store that holds more than one value per key; it commits what changed, not everything."""

EVEN_ROWS: Final = {"spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1)}
"""Spark hands rows to Python in batches of a number of rows and of a number of bytes, and measures all that it has with
every row. Where rows are of one size, their number is enough, and a sixth of the whole work is saved."""


@contextmanager
def state_store(
    spark: SparkSession, *, partitions: int | None = None, checkpoint: str | None = None, even: bool = False
) -> Iterator[None]:
    """While a query starts, the settings that its stateful stage needs; Spark fixes them in the checkpoint then.

    ``even``: the rows of all sources are of one size.
    """
    name = "spark.sql.shuffle.partitions"
    wanted = STATE_STORE | LOSSLESS | (EVEN_ROWS if even else {})
    if checkpoint is not None and _is_here(spark):
        forget_checksums(Path(checkpoint))
        wanted |= FILE_MANAGER
    if partitions is not None:
        wanted[name] = str(min(partitions, int(spark.conf.get(name) or 1)))
    with settings(spark, wanted):
        yield


def _is_here(spark: SparkSession) -> bool:
    """Whether everything runs on this machine, and a path is one of its own disk."""
    if not (spark.conf.get("spark.master", None) or "").startswith("local"):
        return False
    files = spark.sparkContext._jsc.hadoopConfiguration().get("fs.defaultFS")
    manager = spark.conf.get(next(iter(FILE_MANAGER)), None)
    return files.startswith("file:") and manager in (None, *FILE_MANAGER.values())


def forget_checksums(checkpoint: Path) -> None:
    """Remove the checksums beside the files of a checkpoint that nobody writes to now.

    A file that is written again, and then its checksum, are renamed one after the other. A process that is killed
    in between leaves a whole file with the checksum of the one before it, and whoever reads that refuses it. Without a
    checksum it is read as it is.
    """
    for file in checkpoint.rglob(".*.crc") if checkpoint.is_dir() else ():
        file.unlink(missing_ok=True)


def locked(checkpoint: Path) -> Lock:
    """The right to go on from a checkpoint. Whoever had it in this process and has ended gives it back."""
    for place, held in list(_RUNNING.items()):
        if not held.active:
            held.release()
            del _RUNNING[place]
    return Lock(checkpoint)


def start(
    spark: SparkSession,
    answers: DataFrame,
    sink: Sink,
    context: SinkContext,
    *,
    checkpoint: Path,
    lock: Lock,
    trigger: dict[str, Any],
    name: str | None = None,
    partitions: int | None = None,
    even: bool = False,
    watcher: Watcher | None = None,
    metrics: StreamMetrics | None = None,
) -> Running:
    """Run answers into a sink. ``even``: the rows of all sources are of one size."""
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)  # else it prints errors that we raise
    counted = metrics if metrics is not None else StreamMetrics(name or "streamproof")
    receiver = Receiver(sink, context)
    failures: list[Exception] = []

    def take(frame: DataFrame, number: int) -> None:
        answers = frame.toArrow()
        try:
            batch = receiver.take(number, answers)
        except Exception as error:
            failures.append(error)
            raise
        counted.add_batch(batch.counts, cti=batch.cti, latest=batch.counts["latest"], stages=batch.stages)
        if number % _OFTEN == 0:
            counted.catch_up()
        if watcher is not None:
            watcher(batch, counted)

    writer = answers.writeStream.outputMode("append").option("checkpointLocation", str(checkpoint)).foreachBatch(take)
    writer = writer.trigger(**trigger)
    if name is not None:
        writer = writer.queryName(name)
    try:
        with state_store(spark, partitions=partitions, checkpoint=str(checkpoint), even=even):
            query = writer.start()
    except Exception as error:
        raise failure_of(error, place=checkpoint) from None
    _RUNNING[checkpoint] = Running(query, counted, lock, failures, checkpoint)
    return _RUNNING[checkpoint]
