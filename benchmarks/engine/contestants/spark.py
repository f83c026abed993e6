"""Spark's own structured streaming: micro-batches of Parquet files, append mode, a watermark of 5 s.

Spark has no windows over lifetimes, and streams that take events back are not its: Q5 and Q8 are not here.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - the name everyone uses
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.state import GroupState

from engine.protocol import Answer, Run, Task, serve

COLUMNS = "le LONG, re LONG, k LONG, v DOUBLE"
# Leaves out the last event, which only moves the watermark. A condition on a key would be moved to before the
# watermark, which then would not move; one on what was computed stays where it is.
REAL = {"Q1": "x > 0", "Q2": "s >= 0", "Q3": "a >= 0", "Q4": "x >= 0", "Q6": "v >= 0", "Q7": "a >= 0"}
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "2",  # one per core; the default of 200 is for clusters
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "false",  # streams with state do not use it
    "spark.sql.streaming.numRecentProgressUpdates": "100000",  # rows are counted from all of them, not the last 100
}


@cache
def session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers must have what we have
    builder = SparkSession.builder.master("local[2]").appName("bench")
    for name, value in SETTINGS.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def events(task: Task, kind: str) -> DataFrame:
    """The folder of parts as a stream, one part per micro-batch."""
    stream = session().readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(task.path(kind, "parts"))
    return stream.withColumn("ts", F.timestamp_millis("le")).withWatermark("ts", f"{task.delay} milliseconds")


def q1(task: Task) -> DataFrame:
    return events(task, "plain").where("v > 60").select("le", "re", "k", F.expr("v * 2 + 1").alias("x"))


def q2(task: Task) -> DataFrame:
    groups = events(task, "plain").groupBy("k", F.window("ts", "1 second"))
    return _started(groups.agg(F.count("*").alias("n"), F.sum("v").alias("s")), "k", "n", "s")


def q3(task: Task) -> DataFrame:
    groups = events(task, "plain").groupBy("k", F.window("ts", "10 seconds", "1 second"))
    return _started(groups.agg(F.avg("v").alias("a")), "k", "a")


def q4(task: Task) -> DataFrame:
    """No lifetime is longer than a second, so starts are at most a second apart: that bounds the state."""
    left = events(task, "plain").toDF("lle", "lre", "lk", "lv", "lts")
    right = events(task, "other").toDF("rle", "rre", "rk", "rv", "rts")
    near = "rts >= lts - INTERVAL 1 SECOND AND rts <= lts + INTERVAL 1 SECOND"
    pairs = left.join(right, F.expr(f"lk = rk AND {near} AND lle < rre AND rle < lre"))
    return pairs.selectExpr("greatest(lle, rle) le", "least(lre, rre) re", "lk k", "lv x", "rv y")


def q6(task: Task) -> DataFrame:
    groups = events(task, "plain").groupBy(F.window("ts", "1 second"))
    best = groups.agg(F.max_by(F.struct("k", "v"), "v", 3).alias("best"))
    return _started(best.select("window", F.inline("best")), "k", "v")


def q7(task: Task) -> DataFrame:
    """Spark has no aggregates in Python for streams: this is its stateful function per group, on Pandas frames."""
    seconds = events(task, "plain").withColumn("t", F.expr("le div 1000 * 1000")).groupBy("k", "t")
    return seconds.applyInPandasWithState(
        weigh, "t LONG, k LONG, a DOUBLE", "total DOUBLE", "append", "EventTimeTimeout"
    )


def weigh(key: tuple[int, int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    """Add to the sum while the second lasts; give the time-weighted average when it is over."""
    if state.hasTimedOut:
        (total,) = state.get
        state.remove()
        yield pd.DataFrame({"t": [key[1]], "k": [key[0]], "a": [total / 1000]})
    else:
        total = state.get[0] if state.exists else 0.0
        state.update((total + sum(float(frame["v"].sum()) for frame in frames),))
        state.setTimeoutTimestamp(int(key[1]) + 1000)


def _started(frame: DataFrame, *columns: str) -> DataFrame:
    return frame.select(F.unix_millis("window.start").alias("t"), *columns)


def run(make: Callable[[Task], DataFrame]) -> Run:
    """A run of the stream that ``make`` builds, to the end of its files; Spark counts what comes out."""

    def once(task: Task) -> Answer:
        frame = make(task).where(REAL[task.query]).observe("out", F.count("*").alias("rows"))
        with tempfile.TemporaryDirectory() as checkpoint:
            writer = frame.writeStream.outputMode("append").trigger(availableNow=True)
            writer = writer.option("checkpointLocation", checkpoint)
            query = writer.format("parquet").start(task.keep) if task.keep else writer.format("noop").start()
            query.awaitTermination()
            return Answer(_counted(query))

    return once


def _counted(query: StreamingQuery) -> int:
    seen = [progress.observedMetrics for progress in query.recentProgress]
    return sum(metrics["out"].asDict()["rows"] for metrics in seen if "out" in metrics)


RUNS: dict[str, Run] = {
    "Q1": run(q1),
    "Q2": run(q2),
    "Q3": run(q3),
    "Q4": run(q4),
    "Q6": run(q6),
    "Q7": run(q7),
}

if __name__ == "__main__":
    session()
    serve(RUNS)
