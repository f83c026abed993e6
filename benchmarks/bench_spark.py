"""The engine on Spark beside Spark by hand, and beside Flink: the queries and rows of bench_engine.py.

python benchmarks/bench_spark.py batch  [--events 1000000] [--query Q2] [--rounds 3] [--warm 10] beside Spark by hand
python benchmarks/bench_spark.py stream [--events 1000000] [--batches 10] [--query Q2] [--peer spark] [--peer flink]
python benchmarks/bench_spark.py naive  [--events 200000]                              beside a join of every pair
python benchmarks/bench_spark.py growth [--events 1000000] [--query Q5g]               with twice as many events
python benchmarks/bench_spark.py floor                                                 a micro-batch of 50 rows

Figures are CPU seconds of the whole process tree (Python, Java, Python workers) after runs to warm up. In batch the
ratio is ours by theirs, so below 1 we are faster; in streams theirs by ours, so above 1 we are. Results are compared.
Ours also gives corrections, which the others do not; their sums of floats depend on the order of rows, ours do not.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from engine.data import Shape
from engine.field import FIELD, Entry
from engine.match import PATIENCE, Round, disagreements
from engine.queries import QUERIES
from engine.report import save

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HOSTED = Entry("hosted", "streamproof on Spark", "streamproof", streaming=True, forms=("marked",))
STREAMED = ("Q2", "Q3", "Q4", "Q6")
BATCH = ("Q1", "Q2", "Q3", "Q6")
GROWING = ("Q4", "Q5g", "Q5k")
FEW, MANY, WARM = 1_000, 1_000_000, 500_000
LIVE = (10_000, 1_000_000)  # keys
DEFAULT = {"naive": 200_000}
PEERS = ("spark", "flink")
ENOUGH = 45.0  # CPU seconds of runs after which a contestant has no further one
FAST = 12_500  # events per CPU second: slower contestants are stopped


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder in memory, where there is one: disks are not what is measured. A signal clears it away too."""
    memory = Path("/dev/shm")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _leave(number: int, _: object) -> None:
    """End by a signal as by Ctrl-C, so that folders and other processes are cleared away; a second one is too late."""
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(each, signal.SIG_IGN)
    sys.exit(128 + number)


def batch(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """At most 1.3 times the CPU of the best that is written by hand; with few events the fixed part shows."""
    from spark.batch import compare  # noqa: PLC0415 - Spark is started by those who need it

    spark, found = _session(), []
    for name in options.query or BATCH:
        for events in dict.fromkeys((FEW, options.events)):
            found.append(compare(spark, name, events, folder, rounds=options.rounds, warm=options.warm))
            aim = f" ({_judged(found[-1].ratio, at_most=1.3)})" if events >= MANY and name in BATCH else ""
            print(f"{found[-1]}{aim}", flush=True)
    return {"batch": [asdict(each) for each in found]}


def naive(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """The join of lifetimes beside one that compares every pair."""
    from spark.batch import beside_naive  # noqa: PLC0415

    found = beside_naive(_session(), options.events, folder)
    times = f"{'at least ' if found.stopped else ''}{1 / found.ratio:.1f} times as fast"
    print(f"{found}; {times} ({_judged(1 / found.ratio, at_least=5)})", flush=True)
    return {"naive": asdict(found)}


def growth(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Near-linear: twice the events cost at most 2.4 times as much."""
    from spark.batch import OURS, cost, frames  # noqa: PLC0415

    spark, found = _session(), {}
    for name in options.query or GROWING:
        job, spent = OURS[name].on("spark", session=spark), []
        sizes = (min(WARM, options.events), options.events, 2 * options.events)
        for events in sizes:  # the first one warms Java up
            given = frames(spark, name, events, folder)
            spent += cost(lambda job=job, given=given: job.batch(given), rounds=options.rounds, warm=0)
        spent = spent[1:]
        found[name] = spent
        print(f"{name:4} {options.events:,} events {spent[0]:.2f} CPU-s, twice as many {spent[1]:.2f}: "
              f"{spent[1] / spent[0]:.2f} times ({_judged(spent[1] / spent[0], at_most=2.4)})", flush=True)  # fmt: skip
    return {"growth": found, "events": options.events}


def _session() -> SparkSession:
    from streamproof.engines.spark.session import session  # noqa: PLC0415

    return session(**{"spark.master": "local[2]", "spark.driver.memory": "3g"})


def _judged(ratio: float, *, at_most: float | None = None, at_least: float | None = None) -> str:
    """The aim, and whether it was met."""
    if at_most is not None:
        return f"aim at most {at_most}: {'met' if ratio <= at_most else 'MISSED'}"
    return f"aim at least {at_least}: {'met' if at_least is None or ratio >= at_least else 'MISSED'}"


def stream(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Contestants in processes of their own, as in bench_engine.py; ours first."""
    entries = [HOSTED, *(FIELD[name] for name in options.peer or PEERS)]
    batch, patience = options.events // options.batches, max(PATIENCE, options.events / FAST)
    rounds = Round(folder, Shape(options.events), batch, entries, enough=ENOUGH, patience=patience)
    found: dict[str, object] = {}
    for query, scores in rounds.play([QUERIES[name] for name in options.query or STREAMED]):
        ours = scores["hosted"]
        others = {name: score for name, score in scores.items() if name != "hosted"}
        said = [
            f"{FIELD[name].title} {score.cpu:.2f} ({score.cpu / ours.cpu:.2f}×)" if score.cpu and ours.cpu
            else f"{FIELD[name].title}: {score.note}"
            for name, score in others.items()
        ]  # fmt: skip
        mine = f"{ours.cpu:.2f} CPU-s" if ours.cpu else ours.note
        wrong = disagreements(scores)
        print(f"{query.title}, {options.events:,} events in {options.batches} micro-batches: ours {mine}; "
              f"{', '.join(said)}{'  DIFFERENT: ' + '; '.join(wrong) if wrong else ''}", flush=True)  # fmt: skip
        found[query.id] = {name: asdict(score) for name, score in scores.items()} | {"disagreements": wrong}
    return {"stream": found, "events": options.events, "batches": options.batches}


def floor(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """What a micro-batch costs however small it is, and how that depends on the state."""
    from spark.micro import floor as measure  # noqa: PLC0415
    from spark.micro import lively  # noqa: PLC0415

    from streamproof.engines.spark.session import session  # noqa: PLC0415

    spark = session(**{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "1"})
    ours, nothing = measure(spark, folder, options.rounds)
    print(f"a micro-batch of 50 rows: ours {ours:.3f} CPU-s, one that does nothing {nothing:.3f}, "
          f"ratio {ours / nothing:.2f} ({_judged(ours / nothing, at_most=1.5)})", flush=True)  # fmt: skip
    few, many = lively(spark, folder, LIVE)
    print(f"1 % of {LIVE[1]:,} live keys {many:.3f} CPU-s, of {LIVE[0]:,} {few:.3f}, "
          f"ratio {many / few:.2f} ({_judged(many / few, at_most=3)})", flush=True)  # fmt: skip
    return {"floor": {"ours": ours, "nothing": nothing}, "live": dict(zip(map(str, LIVE), (few, many), strict=True))}


WHATS = {"batch": batch, "naive": naive, "stream": stream, "growth": growth, "floor": floor}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=list(WHATS), nargs="?", default="batch")
    parser.add_argument("--events", type=int, help="1,000,000; for naive 200,000")
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--warm", type=int, default=10, help="runs before those that count in batch (default: 10)")
    parser.add_argument("--query", action="append")
    parser.add_argument("--peer", action="append", choices=list(FIELD))
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/spark-….json")
    options = parser.parse_args()
    options.events = options.events or DEFAULT.get(options.what, MANY)
    with workplace() as folder:
        found = WHATS[options.what](options, folder)
    if options.save:
        save(f"spark-{options.what}-{options.events}", found)


if __name__ == "__main__":
    main()
