"""Equal payloads together: coalesce, distinct, stitch; and sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import leaves_time
from streamproof.engines.spark.batch.relation import BatchContext, Relation, in_arrow, long
from streamproof.engines.spark.batch.sweep import changes_of, running
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_CHAINS: Final = "array<struct<le: bigint, re: bigint>>"


def coalesce(context: BatchContext, typed: Typed, node: nodes.Coalesce, source: Relation) -> Relation:
    """Gaps and islands: a row starts a new island where no earlier one of its payload reaches its start."""
    keys = [*source.groups, *source.payload]
    order = Window.partitionBy(*keys).orderBy("le", "re")
    reached = f.max("re").over(order.rowsBetween(Window.unboundedPreceding, -1))
    fresh = f.when(f.col("le") <= f.col("reached"), long(0)).otherwise(long(1))
    island = f.sum("fresh").over(order.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    rows = source.frame.withColumn("reached", reached).withColumn("fresh", fresh).withColumn("island", island)
    merged = rows.groupBy(*keys, "island").agg(f.min("le").alias("le"), f.max("re").alias("re"))
    return source.timed(merged, "le", "re")


def distinct(context: BatchContext, typed: Typed, node: nodes.Distinct, source: Relation) -> Relation:
    """Between consecutive endpoints of a payload, wherever the number of its events is above 0."""
    keys = [*source.groups, *source.payload]
    changes = changes_of(source.frame, keys, [])
    swept = running(context, changes, keys, ["n"]).filter(f.col("n") > 0)
    return source.timed(swept, "t", "following")


def stitch(context: BatchContext, typed: Typed, node: nodes.Stitch, source: Relation) -> Relation:
    """Touching rows of equal payload become one; overlapping rows stay apart.

    At each instant the chains that end there and the rows that start there pair up in order: which chain goes on
    depends on all before it, so the lifetimes of a payload are collected, and followed in compiled loops.
    """
    keys = [*source.groups, *source.payload]
    lifetimes = f.collect_list(f.struct("le", "re")).alias("lifetimes")
    rows = source.frame.groupBy(*keys).agg(lifetimes) if keys else source.frame.agg(lifetimes)
    spread = rows.select(*keys, f.explode(in_arrow(chains, _CHAINS, f.col("lifetimes"))).alias("chain"))
    return source.timed(spread, "chain.le", "chain.re")


def chains(lists: pa.Array) -> pa.Array:
    """The chains of touching lifetimes in each list.

    >>> lifetimes = [{"le": 0, "re": 4}, {"le": 1, "re": 5}, {"le": 4, "re": 5}, {"le": 5, "re": 9}]
    >>> [(chain["le"], chain["re"]) for chain in chains(pa.array([lifetimes])).to_pylist()[0]]
    [(0, 9), (1, 5)]
    >>> len(chains(pa.array([[{"le": 0, "re": 4}] * 3])).to_pylist()[0])
    3
    """
    from streamproof.kernels.lifetimes import stitched  # noqa: PLC0415  # on a worker
    from streamproof.kernels.store import ordered  # noqa: PLC0415
    from streamproof.kernels.store_loops import KEY, LE, RE, W  # noqa: PLC0415

    flat, offsets = lists.flatten(), lists.offsets.to_numpy()
    key = np.repeat(np.arange(len(lists)), np.diff(offsets))
    le, re = (np.ascontiguousarray(flat.field(name).to_numpy(zero_copy_only=False)) for name in ("le", "re"))
    rows = ordered(key, le, re, np.ones(len(key), np.int64), np.empty((len(key), 0), np.int64))
    found = stitched(rows, np.empty((0, 5), np.int64), -FOREVER)
    found = np.repeat(found, found[:, W], axis=0)  # equal chains are one row with a weight
    ends = np.searchsorted(found[:, KEY], np.arange(len(lists) + 1)).astype(np.int32)
    fields = [pa.array(np.ascontiguousarray(found[:, column])) for column in (LE, RE)]
    return pa.ListArray.from_arrays(pa.array(ends), pa.StructArray.from_arrays(fields, names=["le", "re"]))


# --- sessions ---------------------------------------------------------------------------------------------------------


def session(context: BatchContext, typed: Typed, node: nodes.Session, source: Relation) -> Relation:
    """``[le, last start of the session + timeout)``, at the latest until the session's first start + max."""
    timeout, longest = node.timeout, node.max
    assert isinstance(timeout, int)
    assert longest is None or isinstance(longest, int)
    names = source.schema.names
    keys = {f"k{n}": f.col(name) for n, name in enumerate([*source.groups, *(f"c{names.index(k)}" for k in node.key)])}
    rows = source.frame.withColumns(keys) if keys else source.frame
    sessions = _sessions(context, rows.select(*keys, f.col("le").alias("t")).distinct(), list(keys), timeout)
    if longest is not None:
        sessions = _split(sessions, list(keys), longest)
    ended = _ends(sessions, list(keys), timeout, longest)
    renamed = ended.withColumnsRenamed({key: f"s_{key}" for key in keys})
    same = [f.col("le") == f.col("t"), *(f.col(key).eqNullSafe(f.col(f"s_{key}")) for key in keys)]
    end = f"CASE WHEN ends >= {FOREVER}L THEN {leaves_time(source)} ELSE ends END"
    return source.timed(rows.join(renamed, same), "le", end)


def _sessions(context: BatchContext, starts: DataFrame, keys: list[str], timeout: int) -> DataFrame:
    """The distinct starts, each with the number of its session."""
    swept = running(context, starts, keys, [])
    last = f.when(f.col("following") - f.col("t") < timeout, long(0)).otherwise(long(1))
    marked = swept.select(*keys, "t", last.alias("last"), last.alias("before"))
    counted = running(context, marked, keys, ["before"])
    return counted.select(*keys, "t", (f.col("before") - f.col("last")).alias("number"))


def _ends(sessions: DataFrame, keys: list[str], timeout: int, longest: int | None) -> DataFrame:
    groups = [*keys, "number", *(["first"] if longest is not None else [])]
    lasts = sessions.groupBy(*groups).agg(f.max("t").alias("last"), f.collect_list("t").alias("starts"))
    end = f.col("last") + long(timeout)
    if longest is not None:
        end = f.least(end, f.col("first") + long(longest))
    return lasts.select(*keys, f.explode("starts").alias("t"), end.alias("ends"))


def _split(sessions: DataFrame, keys: list[str], longest: int) -> DataFrame:
    """Sessions cut where a start is ``longest`` or more after the first: with ``first``, the start of each part."""
    lists = sessions.groupBy(*keys, "number").agg(f.sort_array(f.collect_list("t")).alias("starts"))
    begun = f.struct(f.get("starts", f.lit(0)).alias("first"), f.array(f.get("starts", f.lit(0))).alias("firsts"))

    def follow(state: Column, t: Column) -> Column:
        fresh = f.struct(t.alias("first"), f.array_append(state["firsts"], t).alias("firsts"))
        return f.when(t - state["first"] >= longest, fresh).otherwise(state)

    cut = lists.select(*keys, "number", f.aggregate("starts", begun, follow)["firsts"].alias("firsts"))
    firsts = cut.select(*keys, "number", f.explode("firsts").alias("t"), f.lit(True).alias("cut"))
    both = sessions.withColumn("cut", f.lit(False)).unionByName(firsts)
    order = Window.partitionBy(*keys, "number").orderBy("t", f.col("cut").desc())
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    first = f.max(f.when(f.col("cut"), f.col("t"))).over(so_far)
    return both.withColumn("first", first).filter(~f.col("cut")).drop("cut")
