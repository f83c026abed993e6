"""streamproof in stream mode on Spark: micro-batches of the same parts that Spark itself reads, with CTIs as rows.

A CTI at the end of each part trails behind by the same delay as Spark's watermark; the last one says that all is over.
"""

from __future__ import annotations

import tempfile
from functools import cache

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

import streamproof as sp
from engine.contestants.local import FILES, STREAMS
from engine.protocol import Answer, Run, Task, serve
from streamproof.engines.spark.session import STREAMING
from streamproof.engines.spark.session import session as start
from streamproof.engines.spark.sinks import CallSink, OutputBatch
from streamproof.events.batch import Batch
from streamproof.events.history import History

COLUMNS = "kind TINYINT, le LONG, re LONG, k LONG, v DOUBLE"
MAPPING = sp.ColumnMapping(start="le", end="re", kind="kind", unit="ms", payload=["k", "v"])
QUERIES = ("Q1", "Q2", "Q3", "Q4", "Q5g", "Q5k", "Q6")


@cache
def session() -> SparkSession:
    settings = {"spark.master": "local[2]", "spark.sql.shuffle.partitions": "2", "spark.driver.memory": "4g"}
    return start(**STREAMING, **settings)


def events(task: Task, kind: str) -> DataFrame:
    """The folder of parts as a stream, one part per micro-batch."""
    reader = session().readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1)
    return reader.parquet(task.path(kind, "marked"))


def run(task: Task) -> Answer:
    """The query from the files to the last micro-batch of output."""
    frames = {name: events(task, kind) for name, kind in FILES.get(task.query, {"S": "plain"}).items()}
    outputs: list[OutputBatch] = []
    counts = [0, 0]

    def take(output: OutputBatch) -> None:
        counts[0] += pc.sum(output.rows["w"]).as_py() or 0
        counts[1] += output.rows.num_rows
        if task.keep:
            outputs.append(output)

    with tempfile.TemporaryDirectory() as checkpoint:
        job = STREAMS[task.query].on("spark", session=session())
        query = job.stream(frames, time=MAPPING, checkpoint=checkpoint)
        query.start(CallSink(take, emit="rows"), trigger={"availableNow": True}).wait()
    if task.keep:
        schema = query.typed.schema
        history = History.from_batches(schema, (Batch(schema, output.rows) for output in outputs)).rows
        pq.write_table(history.append_column("t", history["le"]), task.keep)
    return Answer(counts[0], counts[1])


RUNS: dict[str, Run] = dict.fromkeys(QUERIES, run)

if __name__ == "__main__":
    session()
    serve(RUNS)
