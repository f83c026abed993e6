"""Engines × factor × delay: events per second of CPU, and events lost to the watermark.

python benchmarks/disorder/out_of_order.py [--rows 300000] [--watermark 5000] [--save]

One stream, made worse in known steps. Every engine counts events in tumbling windows of ten seconds of event time, with
the same watermark delay, so that what it leaves out is a choice of the engine, not of the query. A lost event is one
that is in no window at the end. CPU is that of all processes of an engine, the least of some runs after one to
warm up. What Spark would lose with small micro-batches is simulated, by the rule that a test compares with Spark.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil

BENCHMARKS = Path(__file__).parent.parent
sys.path.insert(0, str(BENCHMARKS))

from engine.arena import cpu_of  # noqa: E402

import streamproof as sp  # noqa: E402
from streamproof.engines.spark.session import session  # noqa: E402

FLINK = BENCHMARKS.parent / ".venv-peers/flink/bin/python"
FACTORS = (1, 20, 50)
DELAYS = (2_000, 20_000, 120_000)  # ms
FILES = 12  # micro-batches of Spark
COLUMNS = "ingestion_time BIGINT, event_time BIGINT, t BIGINT, v BIGINT"
Counter = Callable[[Path, int], int]


def make_streams(folder: Path, rows: int) -> dict[tuple[int, int], Path]:
    """One data set for each factor and longest delay; events come every 10 ms on average."""
    numbers = np.random.default_rng(1)
    times = 1_700_000_000_000 + np.cumsum(numbers.integers(0, 21, rows))
    (folder / "source.csv").write_text("".join(f"{t},{n % 7}\n" for n, t in enumerate(times.tolist())))
    entries = [(factor, delay) for factor in FACTORS for delay in DELAYS]
    document = {
        "dataSource": {"file": str(folder / "source.csv"), "time": {"timeIndex": 0, "sourceTimeUnit": "ms"}},
        "experimentDataConfigurations": [
            {"targetOutOfOrderFactor": factor, "minDelay": 0, "maxDelay": delay, "delaySeed": 1}
            for factor, delay in entries
        ],
    }
    made = sp.make_disorder(document, out=folder, on="here")
    assert all(outcome.exact for outcome in made)
    return {entry: outcome.path for entry, outcome in zip(entries, made, strict=True)}


def ours(path: Path, delay: int | None) -> int:
    """The local engine: with a watermark, or without one, where late events correct their windows."""
    named = path.with_suffix(".named.csv")
    if not named.exists():
        named.write_text("ingestion_time,event_time,t,v\n" + path.read_text())
    mapping = sp.ColumnMapping(start="event_time", duration=1, unit="ms", payload=["v"])
    events = sp.source("S")
    if delay is not None:
        events = events.advance_time(every=1000, delay=delay, late="drop")
    run = events.tumbling("10s").aggregate(n=sp.count()).on("local").run({"S": sp.read(named, mapping=mapping)})
    return int(np.sum(run.history.rows["n"].to_numpy()))


def spark_native(path: Path, delay: int) -> int:
    """Structured Streaming over files in their order, one per micro-batch."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415

    folder = path.with_suffix(".files")
    if not folder.exists():
        split(path, folder)
    spark, work = session(), Path(tempfile.mkdtemp())
    stream = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).csv(str(folder))
    counts = (
        stream.withColumn("at", F.timestamp_millis("event_time"))
        .withWatermark("at", f"{delay} milliseconds")
        .groupBy(F.window("at", "10 seconds"))
        .count()
    )
    kept: dict[Any, int] = {}  # the last count of each window

    def take(batch: Any, number: int) -> None:
        kept.update((row[0], row[1]) for row in batch.collect())

    query = (
        counts.select("window.start", "count")
        .writeStream.foreachBatch(take)
        .outputMode("update")
        .option("checkpointLocation", str(work))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    shutil.rmtree(work, ignore_errors=True)
    return sum(kept.values())


def spark_in_small_batches(path: Path, delay: int) -> int:
    """What Spark would keep with micro-batches of 100 rows, a second of events, by the rule of its watermark."""
    found = sp.analyze(path, 1, unit="ms", batch_rows=100, delay=delay, window=10_000, duplicates=False, header=False)
    return int(found["events"] - found["spark"]["dropped"])


def split(path: Path, folder: Path) -> None:
    """A file as several, whose times of change keep their order."""
    import os  # noqa: PLC0415

    folder.mkdir()
    lines = path.read_bytes().splitlines(keepends=True)
    size = -(-len(lines) // FILES)
    for number in range(FILES):
        place = folder / f"part-{number:03d}.csv"
        place.write_bytes(b"".join(lines[number * size : (number + 1) * size]))
        os.utime(place, (1_600_000_000 + number, 1_600_000_000 + number))


@contextmanager
def flink() -> Iterator[Counter]:
    """Flink in a process of its own."""
    process = subprocess.Popen(
        [FLINK, "-m", "disorder.flink_job"], cwd=BENCHMARKS, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdin is not None
    assert process.stdout is not None

    def count(path: Path, delay: int) -> int:
        print(json.dumps({"path": str(path), "columns": COLUMNS, "delay": delay}), file=process.stdin, flush=True)
        for line in process.stdout or ():
            if line.startswith("answer "):
                return int(line.removeprefix("answer "))
        raise RuntimeError("Flink went away")

    try:
        yield count
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()


def race(
    engines: dict[str, Counter], streams: dict[tuple[int, int], Path], rows: int, delay: int, rounds: int
) -> list[dict[str, Any]]:
    found = []
    for name, count in engines.items():
        count(next(iter(streams.values())), delay)  # to warm up
        for (factor, longest), path in streams.items():
            least, kept = float("inf"), 0
            for _ in range(rounds):
                before = cpu_of(psutil.Process())
                kept = count(path, delay)
                least = min(least, cpu_of(psutil.Process()) - before)
            speed = round(rows / least)
            row = {"engine": name, "factor": factor, "max_delay_ms": longest, "per_cpu_second": speed}
            row["lost"] = rows - kept
            print(
                f"{name:<28} {factor:>3} %  {longest / 1000:>6.0f} s  {speed:>10,}/s  {row['lost']:>8,} lost",
                flush=True,
            )
            found.append(row)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--watermark", type=int, default=5000, help="ms")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--engine", action="append", help="one of them; may be repeated")
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        streams = make_streams(Path(folder), options.rows)
        engines: dict[str, Counter] = {
            "streamproof, corrections": lambda path, delay: ours(path, None),
            "streamproof, watermark": ours,
            "Spark, native": spark_native,
            "Spark, 1 s batches, simulated": spark_in_small_batches,
        }
        chosen = {name: count for name, count in engines.items() if not options.engine or name in options.engine}
        found = race(chosen, streams, options.rows, options.watermark, options.rounds)
        if options.engine and "Flink" not in options.engine:
            pass
        elif FLINK.exists():
            with flink() as count:
                found += race({"Flink": count}, streams, options.rows, options.watermark, options.rounds)
        else:
            print("Flink is not set up; make bench-peers does it")
    if options.save:
        name = f"out-of-order-{datetime.date.today().isoformat()}.json"
        text = json.dumps({"rows": options.rows, "watermark_ms": options.watermark, "runs": found}, indent=1)
        (BENCHMARKS / "results" / name).write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
