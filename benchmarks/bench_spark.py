"""The engine on Spark beside Spark by hand, and beside Flink: the queries and rows of bench_engine.py.

python benchmarks/bench_spark.py batch  [--events 1000000] [--query Q2] [--rounds 3]   beside Spark SQL by hand
python benchmarks/bench_spark.py stream [--events 1000000] [--batches 10] [--query Q2] [--peer spark] [--peer flink]
python benchmarks/bench_spark.py growth [--events 1000000] [--query Q5g]               with twice as many events
python benchmarks/bench_spark.py floor                                                 a micro-batch of 50 rows

Figures are CPU seconds of the whole process tree (Python, Java, Python workers) after a run to warm up. In batch the
ratio is ours by theirs, so below 1 we are faster; in streams theirs by ours, so above 1 we are. Results are compared.
Ours also gives corrections, which the others do not; their sums of floats depend on the order of rows, ours do not.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

from engine.data import Shape
from engine.field import FIELD, Entry
from engine.match import Round, disagreements
from engine.queries import QUERIES
from engine.report import save

HOSTED = Entry("hosted", "streamproof on Spark", "streamproof", streaming=True, forms=("marked",))
STREAMED = ("Q2", "Q3", "Q4", "Q6")
GROWING = ("Q4", "Q5g", "Q5k")
PEERS = ("spark", "flink")


@contextmanager
def workplace() -> Iterator[Path]:
    """A folder in memory, where there is one: disks are not what is measured."""
    memory = Path("/dev/shm")
    folder = Path(tempfile.mkdtemp(prefix="bench-", dir=memory if memory.is_dir() else None))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def batch(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    from spark.batch import OURS, THEIRS, compare  # noqa: PLC0415 - Spark is started by those who need it
    from streamproof.engines.spark.session import session  # noqa: PLC0415

    spark = session(**{"spark.master": "local[2]", "spark.driver.memory": "3g"})
    found = []
    for name in options.query or [name for name in OURS if name in THEIRS and name != "Q4n"]:
        found.append(compare(spark, name, options.events, options.rounds, folder))
        print(found[-1], flush=True)
    return {"batch": [asdict(each) for each in found]}


def growth(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Near-linear: twice the events cost at most 2.4 times as much."""
    from spark.batch import OURS, cost, frames  # noqa: PLC0415
    from streamproof.engines.spark.session import session  # noqa: PLC0415

    spark = session(**{"spark.master": "local[2]", "spark.driver.memory": "3g"})
    found = {}
    for name in options.query or GROWING:
        job, spent = OURS[name].on("spark", session=spark), []
        for events in (options.events, 2 * options.events):
            given = frames(spark, name, events, folder)
            spent += cost(lambda job=job, given=given: job.batch(given), rounds=options.rounds)
        found[name] = spent
        print(f"{name:4} {options.events:,} events {spent[0]:.2f} CPU-s, twice as many {spent[1]:.2f}: "
              f"{spent[1] / spent[0]:.2f} times", flush=True)  # fmt: skip
    return {"growth": found, "events": options.events}


def stream(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Contestants in processes of their own, as in bench_engine.py; ours first."""
    entries = [HOSTED, *(FIELD[name] for name in options.peer or PEERS)]
    rounds = Round(folder, Shape(options.events), options.events // options.batches, entries)
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
    from spark.micro import floor as measure  # noqa: PLC0415

    from streamproof.engines.spark.session import session  # noqa: PLC0415

    measure(session(**{"spark.master": "local[2]", "spark.sql.shuffle.partitions": "1"}), folder, options.rounds)
    return {}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["batch", "stream", "growth", "floor"])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--query", action="append")
    parser.add_argument("--peer", action="append", choices=list(FIELD))
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/spark-….json")
    options = parser.parse_args()
    with workplace() as folder:
        found = {"batch": batch, "stream": stream, "growth": growth, "floor": floor}[options.what](options, folder)
    if options.save:
        save(f"spark-{options.what}-{options.events}", found)


if __name__ == "__main__":
    main()
