"""Three streaming queries in one Spark application, one of which floods, with and without the EDF gate.

    python examples/qos/three_streams.py [--seconds 25] [--no-gate]

Every stream is a folder into which files of 50 rows are written. ``noisy`` is declared like the others and then sends
twenty times as much. Behind the gate its batches stay as large as declared, so it falls behind alone.
"""

from __future__ import annotations

import argparse
import tempfile
import threading
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from streamproof.engines.spark.session import session
from streamproof.qos.arrivals import TokenBucket
from streamproof.qos.costs import PushCost
from streamproof.qos.observed import Observed
from streamproof.qos.spark_admission import BatchVerdict, plan_triggers
from streamproof.qos.spark_gate import EdfGate, fit_progress

ROWS = 50  # in a file
DECLARED = TokenBucket(200, "1/25")  # rows: 200 at once, 40 per second
LATENCIES = {"alerts": 18, "totals": 20, "noisy": 22}  # times the cost of a batch, which is measured
QUICK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.driver.extraJavaOptions": "-Xss16m",  # Spark searches the list of a batch's files recursively
}
FLOOD = 20  # times the declared rate
SCHEMA = "k long, v long, at double"


class Feed(threading.Thread):
    """Writes files into a folder at a steady rate; ``at`` is when a row came, in ms since 1970."""

    def __init__(self, folder: Path, rows_per_ms: float) -> None:
        super().__init__(daemon=True)
        self.folder, self.gap = folder, ROWS / rows_per_ms / 1000
        self.stopped, self.files = threading.Event(), 0
        (folder / "in").mkdir(parents=True, exist_ok=True)

    def run(self) -> None:
        while not self.stopped.wait(self.gap):
            self.write()

    def write(self, files: int = 1) -> None:
        for _ in range(files):
            now = time.time() * 1000
            table = pa.table({"k": list(range(ROWS)), "v": [self.files] * ROWS, "at": [now] * ROWS})
            hidden = self.folder / f"{self.files}.tmp"
            pq.write_table(table, hidden)
            hidden.rename(self.folder / "in" / f"{self.files}.parquet")  # a file appears whole
            self.files += 1


def source(spark: SparkSession, folder: Path, files: int) -> DataFrame:
    """The growing folder as a stream that gives so many files at a time."""
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).parquet(str(folder / "in"))


def process(frame: DataFrame, number: int) -> float | None:
    """The query itself: a sum per key. Tells when its oldest row came."""
    rows = frame.groupBy("k").agg({"v": "sum", "at": "min"}).collect()
    return min((row["min(at)"] for row in rows), default=None)


def calibrate(spark: SparkSession, folder: Path) -> PushCost:
    """What batches cost here: a few of several sizes, and a line above their times."""
    feed, events = Feed(folder, 1.0), []
    query = source(spark, folder, 1000).writeStream.foreachBatch(process).trigger(processingTime="100 milliseconds")
    running = query.option("checkpointLocation", str(folder / "checkpoint")).start()
    try:
        for files in (1, 8, 1, 8, 1, 2, 4, 8, 1, 8, 4, 2, 8, 1):
            feed.write(files)
            running.processAllAvailable()
        events = [event for event in map(dict, running.recentProgress) if event["numInputRows"]]
    finally:
        running.stop()
    return fit_progress(events[4:], quantile=0.9)  # the first batches compile


def admission(cost: PushCost, *, share: float = 0.9) -> BatchVerdict:
    """All three, one after the other, with the declared rates."""
    verdict: BatchVerdict | None = None
    for name, latency in LATENCIES.items():
        others = () if verdict is None else verdict.flows
        wanted = f"{round(latency * cost.of(200))} ms"
        verdict = plan_triggers(name, DECLARED, wanted, cost, others=others, share=str(share))
        if not verdict.admitted:
            break
    assert verdict is not None
    return verdict


def run(spark: SparkSession, folder: Path, verdict: BatchVerdict, seconds: float, *, gated: bool) -> EdfGate:
    """Run the three for so long while ``noisy`` floods; what they observed is in the gate."""
    gate, feeds, running = EdfGate(verdict.flows, share=float(verdict.share)), [], []
    for flow in verdict.flows:
        rate = float(flow.arrival.rate) * (FLOOD if flow.name == "noisy" else 1)
        feeds.append(Feed(folder / flow.name, rate))
        files = (
            max(1, flow.rows_per_trigger // ROWS) if gated else 100
        )  # more file names overflow the stack of Spark's planner
        frame, checkpoint = source(spark, folder / flow.name, files), str(folder / flow.name / "checkpoint")
        if gated:
            running.append(gate.start(spark, frame, flow.name, process, checkpoint=checkpoint))
        else:
            running.append(ungated(frame, gate.turn(flow.name).observed, checkpoint))
    for feed in feeds:
        feed.start()
    time.sleep(seconds)
    for feed in feeds:
        feed.stopped.set()
    for query in running:
        query.stop()
    return gate


def ungated(frame: DataFrame, observed: Observed, checkpoint: str):  # type: ignore[no-untyped-def]  # Spark's query
    """The same query as Spark runs it by itself."""
    import numpy as np  # noqa: PLC0415

    def take(part: DataFrame, number: int) -> None:
        oldest = process(part, number)
        if oldest is not None:
            observed.pushes += 1
            observed.done(np.array([time.time() * 1000 - oldest]), "scheduler")

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", checkpoint)
    return writer.trigger(processingTime="100 milliseconds").start()


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=25)
    options.add_argument("--no-gate", action="store_true")
    asked = options.parse_args()
    spark = session(**QUICK, **{"spark.scheduler.mode": "FAIR"})
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cost = calibrate(spark, folder / "calibration")
        verdict = admission(cost)
        print(f"a batch costs {cost.text}\n{verdict.text}")
        for flow in verdict.flows:
            print(f"{flow.name}: trigger every {float(flow.period):.0f} ms, {flow.rows_per_trigger} rows")
        if not verdict.admitted:
            return
        gate = run(spark, folder, verdict, asked.seconds, gated=not asked.no_gate)
        for found in (turn.observed for turn in gate.turns.values()):
            bound = f"longest delay {found.max_delay:,.0f} ms of {found.delay_bound:,.0f} ms"
            print(f"{found.name}: {found.pushes} batches, {bound}, misses: {found.text_of_misses}")


if __name__ == "__main__":
    main()
