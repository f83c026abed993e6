"""What a look at the data says: how floats add up, and how dense panes are; and that plans heed it."""

from __future__ import annotations

import math
from typing import Any

import pytest

import streamproof as sp
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.looks import Look, Looks, look_at


@pytest.mark.parametrize(
    ("values", "seen"),
    [
        ([1.0, -3.0, None], Look(rests=False, grid=0, largest=3.0)),
        ([0.5, 2.0**-10], Look(rests=False, grid=10, largest=0.5)),
        ([2.0**-20, 7.0], Look(rests=False, grid=20, largest=7.0)),
        ([0.1], Look(rests=False, grid=None, largest=0.1)),
        ([2.0**39 + 0.5, 2.0**-11], Look(rests=False, grid=None, largest=2.0**39 + 0.5)),
        ([2.0**40], Look(rests=True, grid=None, largest=2.0**40)),
        ([1.0, math.inf], Look(rests=True, grid=None, largest=math.inf)),
        ([2.0**-70], Look(rests=True, grid=None, largest=2.0**-70)),
        ([None], Look(rests=False, grid=0, largest=0.0)),
        ([], Look(rests=False, grid=0, largest=0.0)),
    ],
)
def test_floats_are_seen_as_they_are(values: list[float | None], seen: Look, spark_engine: SparkEngine) -> None:
    frame = spark_engine.session.createDataFrame([(value,) for value in values], "x double")
    assert look_at(frame, ["x"]) == Looks({"x": seen})


def test_nan_has_a_rest(spark_engine: SparkEngine) -> None:
    frame = spark_engine.session.createDataFrame([(math.nan,), (1.0,)], "x double")
    assert look_at(frame, ["x"]).floats["x"].rests


@pytest.mark.parametrize(("rows", "panes"), [(20_000, 20_000), (20_000, 2_000), (20_000, 200)])
def test_density_is_about_right(rows: int, panes: int, spark_engine: SparkEngine) -> None:
    frame = spark_engine.session.range(rows).selectExpr(f"id % {panes} AS g0", "id AS le")
    found = look_at(frame, [], ["g0", "le - le"]).density
    assert rows / panes / 2 <= found <= rows / panes * 2


@pytest.mark.parametrize("each", [1, 40])
def test_sparse_and_dense_panes_give_the_same_windows(each: int, spark_engine: SparkEngine) -> None:
    """Sparse rows are spread over their windows, dense ones are aggregated per pane first."""
    events = [(t, t + 1, t % 3, x / 4) for t in range(0, 20_000, 50) for x in range(each)]
    plan = sp.source("S").to_point().group_by("k").hopping(1000, 100).aggregate(n=sp.count(), a=sp.avg("v"))
    want = plan.on("local").run({"S": [{"le": le, "re": re, "payload": {"k": k, "v": v}} for le, re, k, v in events]})
    frame = spark_engine.session.createDataFrame(events, "le bigint, re bigint, k bigint, v double")
    result = plan.on("spark", session=spark_engine.session).batch({"S": frame})
    shuffles = _plan_of(result).count("Exchange")
    assert shuffles == (1 if each == 1 else 2)
    rows = [(row.le, row.re, *row.payload.values()) for row in want.history.to_rows()]
    assert sorted(map(tuple, result.collect())) == sorted(rows)


def _plan_of(frame: Any) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())
