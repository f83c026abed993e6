"""Batch mode beside hand-written Spark: the same files, one Spark session, results that are compared first.

python benchmarks/bench_spark_batch.py [--events 1000000] [--query Q2 --query Q4] [--rounds 3] [--growth]

Figures are CPU seconds of the whole process tree (Python, Java and Python workers), the least of some rounds after one
to warm up. The ratio is ours by the hand-written one: below 1 we are faster. The hand-written sums of floats depend on
the order of rows; ours do not.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  # what everybody calls it

import streamproof as sp
from streamproof.engines.spark.session import session

KEYS, LONGEST = 1_000, 1_000
S, R = sp.source("S"), sp.source("R")
POINTS = S.to_point()
OURS = {
    "Q1": S.where("v > 60").select(k="k", x="v * 2 + 1"),
    "Q2": POINTS.group_by("k").tumbling(1000).aggregate(n=sp.count(), s=sp.sum("v")),
    "Q3": POINTS.group_by("k").hopping(10_000, 1000).aggregate(a=sp.avg("v")),
    "Q4": S.join(R, "l.k = r.k", select={"k": "l.k", "x": "l.v", "y": "r.v"}),
    "Q4n": S.join(R, "true", select={"x": "l.v", "y": "r.v"}),
    "Q5g": S.snapshot().aggregate(n=sp.count()),
    "Q6": POINTS.tumbling(1000).top(3, by=sp.desc("v")),
}


def q1(s: DataFrame, r: DataFrame) -> DataFrame:
    return s.where("v > 60").select("le", "re", "k", F.expr("v * 2 + 1").alias("x"))


def q2(s: DataFrame, r: DataFrame) -> DataFrame:
    start = (F.col("le") - F.pmod("le", F.lit(1000))).alias("le")
    return s.groupBy(start, "k").agg(F.count("*").alias("n"), F.sum("v").alias("s"))


def q3(s: DataFrame, r: DataFrame) -> DataFrame:
    last = F.col("le") - F.pmod("le", F.lit(1000))
    starts = F.explode(F.sequence(last - 9000, last, F.lit(1000))).alias("le")
    return s.select(starts, "k", "v").groupBy("le", "k").agg(F.avg("v").alias("a"))


def q4(s: DataFrame, r: DataFrame) -> DataFrame:
    """With the equality of keys alone, as most would write it."""
    left, right = s.toDF("lle", "lre", "lk", "lv"), r.toDF("rle", "rre", "rk", "rv")
    pairs = left.join(right, F.expr("lk = rk AND lle < rre AND rle < lre"))
    return pairs.selectExpr("greatest(lle, rle) le", "least(lre, rre) re", "lk k", "lv x", "rv y")


def q4_naive(s: DataFrame, r: DataFrame) -> DataFrame:
    left, right = s.toDF("lle", "lre", "lk", "lv"), r.toDF("rle", "rre", "rk", "rv")
    pairs = left.join(right, F.expr("lle < rre AND rle < lre"))
    return pairs.selectExpr("greatest(lle, rle) le", "least(lre, rre) re", "lv x", "rv y")


def q6(s: DataFrame, r: DataFrame) -> DataFrame:
    start = (F.col("le") - F.pmod("le", F.lit(1000))).alias("le")
    from pyspark.sql import Window  # noqa: PLC0415

    rank = F.rank().over(Window.partitionBy("le").orderBy(F.desc("v")))
    return s.select(start, "k", "v").withColumn("rank", rank).where("rank <= 3").drop("rank")


THEIRS = {"Q1": q1, "Q2": q2, "Q3": q3, "Q4": q4, "Q4n": q4_naive, "Q6": q6}


def make_file(path: Path, events: int, seed: int) -> None:
    """One event per millisecond; lifetimes of up to a second; values that sum exactly in any order."""
    random = np.random.default_rng(seed)
    le = np.arange(events, dtype=np.int64)
    columns = {
        "le": le, "re": le + random.integers(1, LONGEST + 1, events), "k": random.integers(0, KEYS, events),
        "v": random.integers(0, 1000, events) / 8,
    }  # fmt: skip
    pq.write_table(pa.table(columns), path)


def tree_seconds() -> float:
    """CPU seconds of this process and all that it started, living or waited for."""
    ticks, children = os.sysconf("SC_CLK_TCK"), {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            children.setdefault(int(fields[1]), []).append((int(entry.name), sum(map(int, fields[11:15]))))
    pending, total = (
        [os.getpid()],
        sum(map(int, Path("/proc/self/stat").read_text().rpartition(") ")[2].split()[11:15])),
    )
    while pending:
        for child, spent in children.get(pending.pop(), []):
            total += spent
            pending.append(child)
    return total / ticks


def cost(work: Callable[[], DataFrame], rounds: int) -> float:
    """The least CPU seconds of some rounds; the rows go nowhere."""
    spent = []
    for _ in range(rounds + 1):
        before = tree_seconds()
        work().write.format("noop").mode("overwrite").save()
        spent.append(tree_seconds() - before)
    return min(spent[1:])


def compare(spark: SparkSession, name: str, events: int, rounds: int, folder: Path) -> None:
    frames = {}
    for number, source in enumerate("SR"):
        path = folder / f"{source}-{events}.parquet"
        if not path.exists():
            make_file(path, events, number)
        frames[source] = spark.read.parquet(str(path))
    given = {source: frames[source] for source in ("S", "R") if source == "S" or name.startswith("Q4")}
    ours = cost(lambda: OURS[name].on("spark", session=spark).batch(given), rounds)
    line = f"{name:4} {events:>9,} events: ours {ours:6.2f} s"
    if name in THEIRS:
        theirs = cost(lambda: THEIRS[name](frames["S"], frames["R"]), rounds)
        agree(OURS[name].on("spark", session=spark).batch(given), THEIRS[name](frames["S"], frames["R"]))
        line += f", hand-written {theirs:6.2f} s, ratio {ours / theirs:.2f}"
    print(line, flush=True)


def agree(ours: DataFrame, theirs: DataFrame) -> None:
    """Both have the same bag of rows, on the columns that both have."""
    columns = [name for name in theirs.columns if name in ours.columns]
    left, right = (frame.select(*columns).agg(F.count("*"), F.sum(F.xxhash64(*columns).cast("decimal(38,0)"))).first()
                   for frame in (ours, theirs))  # fmt: skip
    assert left == right, f"different results: {left} and {right}"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--query", action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--growth", action="store_true", help="also with twice as many events")
    given = parser.parse_args()
    spark = session(**{"spark.master": "local[2]", "spark.driver.memory": "3g"})
    with tempfile.TemporaryDirectory() as folder:
        for name in given.query or list(OURS):
            for factor in (1, 2) if given.growth else (1,):
                compare(spark, name, given.events * factor, given.rounds, Path(folder))


if __name__ == "__main__":
    main()
