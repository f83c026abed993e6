"""Making and measuring disorder beside Spark's own sort: the same file, one Spark session, CPU of all its processes.

python benchmarks/bench_disorder.py [--rows 1000000 --rows 10000000] [--factor 20] [--save]

The yardstick is what Spark needs to read the CSV file, sort it by event time and write it again. A disordered stream
may cost three times as much, an analysis once as much. Memory is the most that all processes together held, shared
pages counted once.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.csv as pv
from engine.arena import cpu_of

from streamproof.disorder.analysis import analyze_file
from streamproof.disorder.config import configuration_of
from streamproof.disorder.generate import generate_disorder
from streamproof.disorder.replaying import Recording, Replay
from streamproof.disorder.targets import TcpTarget
from streamproof.engines.spark.session import session

CHUNK = 1_000_000
RESULTS = Path(__file__).parent / "results"


def write_trips(path: Path, rows: int, seed: int = 1) -> None:
    """Trips of taxis: about 60 bytes each, a rising pickup time with bursts, one in fifty a little late."""
    numbers = np.random.default_rng(seed)
    start = 1_700_000_000_000
    with path.open("wb") as file:
        file.write(b"pickup,taxi,zone_from,zone_to,distance,fare,payment\n")
        for first in range(0, rows, CHUNK):
            count = min(CHUNK, rows - first)
            times = start + np.cumsum(numbers.integers(0, 40, count))
            start = int(times[-1])
            times -= np.where(numbers.random(count) < 0.02, numbers.integers(0, 60_000, count), 0)
            columns = {
                "pickup": times,
                "taxi": np.char.add("taxi-", numbers.integers(10_000, 99_999, count).astype(str)),
                "from": numbers.integers(100, 265, count),
                "to": numbers.integers(100, 265, count),
                "distance": np.round(numbers.exponential(3, count), 2),
                "fare": np.round(numbers.exponential(20, count), 2),
                "payment": np.array(["card", "cash", "app"])[numbers.integers(0, 3, count)],
            }
            options = pv.WriteOptions(include_header=False, quoting_style="none")
            pv.write_csv(pa.table(columns), file, options)


class Memory(threading.Thread):
    """The most memory that this process and its descendants held together."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self._done = 0, threading.Event()

    def run(self) -> None:
        me = psutil.Process()
        while not self._done.wait(0.25):
            self.most = max(self.most, sum(map(held, [me, *me.children(recursive=True)])))

    def stop(self) -> int:
        self._done.set()
        self.join()
        return self.most


def held(process: psutil.Process) -> int:
    """Its proportional share of memory; what is mapped from files and clean is the page cache's, not its own."""
    try:
        info = process.memory_full_info()
    except psutil.Error:
        return 0
    return info.rss - info.shared


@contextmanager
def measured(found: dict[str, dict[str, float]], name: str) -> Iterator[None]:
    memory, me = Memory(), psutil.Process()
    memory.start()
    cpu, clock = cpu_of(me), time.perf_counter()
    yield
    found[name] = {
        "cpu": round(cpu_of(me) - cpu, 2),
        "clock": round(time.perf_counter() - clock, 2),
        "memory_mb": memory.stop() >> 20,
    }


def spark_sort(path: Path, out: Path) -> None:
    spark = session()
    frame = spark.read.csv(str(path), header=True, inferSchema=False)
    frame = frame.withColumn("pickup", frame.pickup.cast("long"))
    frame.orderBy("pickup").write.mode("overwrite").csv(str(out), header=True)


def disordered(path: Path, out: Path, factor: float) -> None:
    out.mkdir(exist_ok=True)
    source = {"file": str(path), "separator": ",", "time": {"timeIndex": "pickup", "sourceTimeUnit": "ms"}}
    experiment = {"targetOutOfOrderFactor": factor, "minDelay": 0, "maxDelay": 60_000, "delaySeed": 7}
    document = {"dataSource": source, "experimentDataConfigurations": [experiment]}
    (made,) = generate_disorder(configuration_of(document), out=out, overwrite=True, on="spark", work=out)
    assert made.exact


def analyzed(path: Path, out: Path) -> None:
    out.mkdir(exist_ok=True)
    analyze_file(path, "pickup", unit="ms", on="spark", work=out)


def replayed(folder: Path, seconds: int = 10, rate: int = 10_000) -> dict[str, float | None]:
    """How late rows are delivered over a socket, at so many events per second."""
    path = folder / "replay.csv"
    rows = "".join(f"{n * 1000 // rate},{n}\n" for n in range(seconds * rate))
    path.write_text("ingestion_time,n\n" + rows)
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = threading.Thread(target=lambda: server.accept()[0].makefile("rb").read(), daemon=True)
        reader.start()
        played = Replay(Recording(path, unit="ms"), TcpTarget("127.0.0.1", server.getsockname()[1])).run()
        reader.join(10)
    return {"per_second": rate, "p50_ms": played.lag(0.5), "p99_ms": played.lag(0.99), "max_ms": played.lag(1.0)}


def race(folder: Path, rows: int, factor: float) -> dict[str, dict[str, float]]:
    path = folder / f"trips-{rows}.csv"
    write_trips(path, rows)
    found: dict[str, dict[str, float]] = {}
    contestants: dict[str, Callable[[], None]] = {
        "spark read-sort-write": lambda: spark_sort(path, folder / "sorted"),
        "disorder": lambda: disordered(path, folder / "made", factor),
        "analyze": lambda: analyzed(path, folder / "analyzed"),
    }
    for name, run in contestants.items():
        with measured(found, name):
            run()
        for rest in ("sorted", "made", "analyzed"):
            shutil.rmtree(folder / rest, ignore_errors=True)
    path.unlink()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, action="append")
    parser.add_argument("--factor", type=float, default=20)
    parser.add_argument("--save", action="store_true")
    options = parser.parse_args()
    results: dict[str, object] = {}
    with tempfile.TemporaryDirectory(dir=os.environ.get("BENCH_FOLDER")) as text:
        folder = Path(text)
        replayed(folder, seconds=1)  # loads compiled code
        results["replay"] = replayed(folder)
        print("replay over a socket, lag:", results["replay"], flush=True)
        race(folder, 20_000, options.factor)  # starts the session and the workers, loads compiled code
        for rows in options.rows or [1_000_000, 10_000_000]:
            found = race(folder, rows, options.factor)
            yardstick = found["spark read-sort-write"]["cpu"]
            print(f"\n{rows:,} rows")
            for name, figures in found.items():
                ratio = figures["cpu"] / yardstick
                print(
                    f"  {name:<22} {figures['cpu']:8.1f} CPU s   {ratio:5.2f}×   {figures['clock']:7.1f} s"
                    f"   {figures['memory_mb']:6,} MB",
                    flush=True,
                )
            results[str(rows)] = found
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        name = f"disorder-{datetime.date.today().isoformat()}.json"
        (RESULTS / name).write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
