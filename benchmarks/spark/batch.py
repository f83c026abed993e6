"""Batch mode beside hand-written Spark: the same files, one Spark session, results that are compared first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Event, Thread

from engine import data
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  # what everybody calls it

import streamproof as sp
from spark.cpu import tree_cpu

LONG = 30.0  # CPU seconds of all that is compared
PATIENCE = 120.0  # CPU seconds after which what compares every pair is stopped
SMALL = 20_000  # events whose results are compared where there is no patience for all
S, R = sp.source("S"), sp.source("R")
POINTS = S.to_point()
OURS = {
    "Q1": S.where("v > 60").select(k="k", x="v * 2 + 1"),
    "Q2": POINTS.group_by("k").tumbling(1000).aggregate(n=sp.count(), s=sp.sum("v")),
    "Q3": POINTS.group_by("k").hopping(10_000, 1000).aggregate(a=sp.avg("v")),
    "Q4": S.join(R, "l.k = r.k", select={"k": "l.k", "x": "l.v", "y": "r.v"}),
    "Q4n": S.join(R, "true", select={"x": "l.v", "y": "r.v"}),
    "Q5g": S.snapshot().aggregate(n=sp.count()),
    "Q5k": S.group_by("k").snapshot().aggregate(n=sp.count()),
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


def q3_panes(s: DataFrame, r: DataFrame) -> DataFrame:
    """Each second aggregated first: better where many events of a key share one."""
    second = (F.col("le") - F.pmod("le", F.lit(1000))).alias("second")
    seconds = s.groupBy(second, "k").agg(F.sum("v").alias("v"), F.count("v").alias("n"))
    spread = seconds.selectExpr("explode(sequence(second - 9000, second, 1000)) AS le", "k", "v", "n")
    return spread.groupBy("le", "k").agg((F.sum("v") / F.sum("n")).alias("a"))


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
    rank = F.rank().over(Window.partitionBy("le").orderBy(F.desc("v")))
    return s.select(start, "k", "v").withColumn("rank", rank).where("rank <= 3").drop("rank")


THEIRS = {"Q1": (q1,), "Q2": (q2,), "Q3": (q3, q3_panes), "Q4": (q4,), "Q4n": (q4_naive,), "Q6": (q6,)}
"""By hand, in all the ways that may be the best; the best one counts."""


def cost(*works: Callable[[], DataFrame], rounds: int, warm: int) -> list[float]:
    """The least CPU seconds of some rounds of each, in turn, so that all find Java equally warm.

    What takes long warms Java up at once, and is not repeated as often.
    """
    _turns(works, warm)
    return [min(found) for found in zip(*_turns(works, rounds), strict=True)]


def _turns(works: Sequence[Callable[[], DataFrame]], times: int) -> list[list[float]]:
    """CPU seconds of each in so many turns; there is no further one once they have taken long."""
    found: list[list[float]] = []
    while len(found) < times and sum(map(sum, found)) < LONG:
        found.append([cost_of(work)[0] for work in works])
    return found


def cost_of(work: Callable[[], DataFrame], patience: float = math.inf) -> tuple[float, bool]:
    """CPU seconds of one run, whose rows go nowhere, and whether it was stopped, because it took longer than it may."""
    before, ended, stopped = tree_cpu(), Event(), Event()

    def watch(context: SparkContext) -> None:
        while not ended.wait(1.0):
            if tree_cpu() - before > patience:
                stopped.set()
                context.cancelAllJobs()

    frame = work()
    watcher = Thread(target=watch, args=(frame.sparkSession.sparkContext,), daemon=True)
    watcher.start()
    try:
        frame.write.format("noop").mode("overwrite").save()
    except (PySparkException, Py4JError):
        if not stopped.is_set():
            raise
    finally:
        ended.set()
        watcher.join()
    return tree_cpu() - before, stopped.is_set()


def frames(spark: SparkSession, name: str, events: int, folder: Path) -> dict[str, DataFrame]:
    """The inputs of a query, over files that are made when they are needed."""
    place = folder / str(events)
    if not place.exists():
        data.write(place, data.Shape(events), kinds=["plain", "other"], forms=[], batch=events)
    kinds = {"S": "plain", "R": "other"} if name.startswith("Q4") else {"S": "plain"}
    return {source: spark.read.parquet(str(place / f"{kind}.parquet")) for source, kind in kinds.items()}


@dataclass(frozen=True)
class Measured:
    """CPU seconds of ours and of the hand-written query."""

    query: str
    events: int
    ours: float
    theirs: float
    stopped: bool = False  # then the hand-written one takes at least as long

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs

    def __str__(self) -> str:
        theirs = f"{self.theirs:6.2f}{' when it was stopped' if self.stopped else ''}"
        seen = f"ours {self.ours:6.2f} CPU-s, hand-written {theirs}, ratio {self.ratio:.2f}"
        return f"{self.query:4} {self.events:>10,} events: {seen}"


def compare(spark: SparkSession, name: str, events: int, folder: Path, *, rounds: int, warm: int) -> Measured:
    """One query, ours and by hand, on so many events; their results must agree."""
    given = frames(spark, name, events, folder)
    job = OURS[name].on("spark", session=spark)
    inputs = given["S"], given.get("R", given["S"])
    for theirs in THEIRS[name]:
        agree(job.batch(given), theirs(*inputs))
    by_hand = [partial(theirs, *inputs) for theirs in THEIRS[name]]
    ours, *others = cost(lambda: job.batch(given), *by_hand, rounds=rounds, warm=warm)
    return Measured(name, events, ours, min(others))


def beside_naive(spark: SparkSession, events: int, folder: Path) -> Measured:
    """The join beside one of every pair, which is stopped where it takes too long."""
    job = OURS["Q4n"].on("spark", session=spark)
    few, many = (frames(spark, "Q4n", number, folder) for number in (SMALL, events))
    agree(job.batch(few), q4_naive(few["S"], few["R"]))
    (ours,) = cost(lambda: job.batch(many), rounds=1, warm=1)
    theirs, stopped = cost_of(lambda: q4_naive(many["S"], many["R"]), PATIENCE)
    return Measured("Q4n", events, ours, theirs, stopped)


def agree(ours: DataFrame, theirs: DataFrame) -> None:
    """Both have the same bag of rows, on the columns that both have."""
    columns = [name for name in theirs.columns if name in ours.columns]
    left, right = (frame.select(*columns).agg(F.count("*"), F.sum(F.xxhash64(*columns).cast("decimal(38,0)"))).first()
                   for frame in (ours, theirs))  # fmt: skip
    assert left == right, f"different results: {left} and {right}"
