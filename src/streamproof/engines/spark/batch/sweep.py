"""Sweeps along the time axis: running sums, and for each time the one that follows.

Per group a sweep is one window function. Over one large group it must not be one task: the axis is cut into ranges
that hold about as many rows each, every range is swept by itself, and what the ranges before it add up to is carried
in. All of it is lazy, and depends on the rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.relation import BatchContext
from streamproof.thresholds import RANGE_ACCURACY, RANGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def running(context: BatchContext, frame: DataFrame, keys: Sequence[str], sums: Sequence[str]) -> DataFrame:
    """The rows (keys, t and what is summed; each t once per key) with sums up to and including each, and ``following``.

    ``following`` is the next t of the same key, or null.
    """
    if keys or context.parts == 1:
        return _swept(frame, keys, sums)
    return _swept_in_ranges(frame, sums, min(context.parts, RANGES.now))


def changes_of(frame: DataFrame, keys: Sequence[str], sums: Sequence[str]) -> DataFrame:
    """At each endpoint t by how much the number n of events, and sums over them, change there."""
    ends = [
        f.struct(
            f.col(time).alias("t"),
            f.lit(sign).cast("long").alias("n"),
            *((f.col(name) if sign > 0 else -f.col(name)).alias(name) for name in sums),
        )
        for time, sign in (("le", 1), ("re", -1))
    ]
    names = ["n", *sums]
    spread = frame.select(*keys, f.explode(f.array(*ends)).alias("end"))
    changes = spread.select(*keys, f.col("end.t").alias("t"), *(f.col(f"end.{name}").alias(name) for name in names))
    return changes.groupBy(*keys, "t").agg(*(f.sum(name).alias(name) for name in names))


def numbered(context: BatchContext, times: DataFrame, keys: Sequence[str]) -> DataFrame:
    """The distinct times of each key with their ordinals i from 1 on, and the time that follows."""
    distinct = times.select(*keys, "t").distinct()
    return running(context, distinct.withColumn("i", f.lit(1).cast("long")), keys, ["i"])


def _swept(frame: DataFrame, keys: Sequence[str], sums: Sequence[str]) -> DataFrame:
    order = Window.partitionBy(*keys).orderBy("t")
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    totals = {name: f.sum(name).over(so_far) for name in sums}
    return frame.withColumns({**totals, "following": f.lead("t").over(order)})


def _swept_in_ranges(frame: DataFrame, sums: Sequence[str], ranges: int) -> DataFrame:
    shares = [n / ranges for n in range(1, ranges)]
    cuts = frame.agg(f.percentile_approx("t", shares, f.lit(RANGE_ACCURACY.now)).alias("cuts"))
    part = f.size(f.filter(f.col("cuts"), lambda cut: cut < f.col("t")))
    ranged = frame.crossJoin(f.broadcast(cuts)).withColumn("range", part).drop("cuts")
    carried = f.broadcast(_carried(ranged, sums))
    swept = _swept(ranged, ["range"], sums).join(carried, "range")
    totals = {name: f.col(name) + f.coalesce(f.col(f"{name}_before"), f.lit(0)) for name in sums}
    following = {"following": f.coalesce(f.col("following"), f.col("first_after"))}
    return swept.withColumns({**totals, **following}).drop("range", "first_after", *(f"{name}_before" for name in sums))


def _carried(ranged: DataFrame, sums: Sequence[str]) -> DataFrame:
    """For each range what all before it add up to, and the first time after it: a few rows."""
    totals = [f.sum(name).alias(f"{name}_total") for name in sums]
    parts = ranged.groupBy("range").agg(f.min("t").alias("first"), *totals)
    order = Window.orderBy("range")
    before = order.rowsBetween(Window.unboundedPreceding, -1)
    carried = [f.sum(f"{name}_total").over(before).alias(f"{name}_before") for name in sums]
    return parts.select("range", f.lead("first").over(order).alias("first_after"), *carried)
