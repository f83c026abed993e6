"""What a look at the data says: how floats add up, and how dense panes are; and that plans heed it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import streamproof as sp
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.parquet_statistics import look_at_files
from streamproof.engines.spark.batch.statistics import Look, Looks, look_at
from streamproof.events.history import History
from streamproof.events.schema import Schema


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


# --- local files ------------------------------------------------------------------------------------------------------


def _stored(folder: Path, values: list[Any], kind: pa.DataType | None = None, name: str = "a b.parquet") -> Path:
    pq.write_table(pa.table({"x": pa.array(values, kind or pa.float64())}), folder / name, row_group_size=3)
    return folder


@pytest.mark.parametrize(
    "values",
    [
        [1.0, -3.0, None], [1.0] * 7 + [0.5], [2.0**-20, 7.0], [0.1], [1.0, 0.1, 2.0**-20], [2.0**39 + 0.5, 2.0**-11],
        [2.0**-68], [None], [], [-(2.0**39)], [5e15, 1.0, 0.5],
    ],
)  # fmt: skip
def test_files_are_seen_as_spark_sees_them(values: list[float], spark_engine: SparkEngine, tmp_path: Path) -> None:
    frame = spark_engine.session.read.parquet(str(_stored(tmp_path, values)))
    seen = look_at(frame, ["x"])
    assert look_at_files(frame, {"x": "x"}) == (None if seen.floats["x"].rests else seen)


@pytest.mark.parametrize("odd", [math.nan, math.inf, 2.0**40, 2.0**-70])
def test_rests_in_files_are_left_to_spark(odd: float, spark_engine: SparkEngine, tmp_path: Path) -> None:
    frame = spark_engine.session.read.parquet(str(_stored(tmp_path, [1.0, 2.0, 3.0, 4.0, odd, 1.0])))
    assert look_at_files(frame, {"x": "x"}) is None
    assert look_at(frame, ["x"]).floats["x"].rests


def test_several_files_are_all_seen(spark_engine: SparkEngine, tmp_path: Path) -> None:
    for n, value in enumerate([1.0, 0.5, 2.0]):
        _stored(tmp_path, [value] * 4, name=f"{n}.parquet")
    frame = spark_engine.session.read.parquet(str(tmp_path))
    assert look_at_files(frame, {"c0": "x"}) == Looks({"c0": Look(rests=False, grid=10, largest=2.0)})


def test_what_is_no_file_of_floats_is_left_to_spark(spark_engine: SparkEngine, tmp_path: Path) -> None:
    stored = spark_engine.session.read.parquet(str(_stored(tmp_path, [1.0])))
    made = spark_engine.session.createDataFrame([(1.0,)], "x double")
    (tmp_path / "n").mkdir()
    narrow = spark_engine.session.read.parquet(str(_stored(tmp_path / "n", [1.0], pa.float32())))
    assert look_at_files(stored, {"x": "x"}) is not None
    for frame in (made, narrow, stored.filter("x > 0"), stored.selectExpr("x * 0.1D AS x"), stored.unionAll(stored)):
        assert look_at_files(frame, {"x": "x"}) is None
    assert look_at_files(stored, {"y": "y"}) is None
    assert look_at_files(stored.cache(), {"x": "x"}) is None
    stored.unpersist()


@pytest.mark.parametrize("kind", ["plain", "weighed", "selected", "filtered"])
@pytest.mark.parametrize("values", [[0.5, 2.25, -3.0], [0.1, 0.2, 0.3, 1e15], [0.1, 1e300, -1e300, 5e-324]])
def test_sums_over_files_are_exact(kind: str, values: list[float], spark_engine: SparkEngine, tmp_path: Path) -> None:
    """Whatever becomes of the column on the way: a weight, an expression, a condition."""
    rows = [(10 * n % 40, 10 * n % 40 + 1, n % 2, value) for n, value in enumerate(values * 9)]
    le, re, k, v = zip(*rows, strict=True)
    weight = {"w": [2] * len(rows)} if kind == "weighed" else {}
    pq.write_table(pa.table({"le": le, "re": re, "k": k, "v": v, **weight}), tmp_path / "rows.parquet")
    plan = sp.source("S").to_point()
    plan = plan.select(k="k", v="v / 3.0") if kind == "selected" else plan
    plan = plan.where("v < 1e200") if kind == "filtered" else plan
    stream = plan.group_by("k").tumbling(20).aggregate(s=sp.sum("v"), a=sp.avg("v"))
    frame = spark_engine.session.read.parquet(str(tmp_path))
    found = stream.on("spark", session=spark_engine.session).batch({"S": frame}).toArrow()
    schema = Schema.of({"k": "int64", "v": "float64"})
    events = [(le, re, {"k": k, "v": v}) for le, re, k, v in rows for _ in range(2 if weight else 1)]
    wanted = stream.on("duckdb").run({"S": History.from_rows(schema, events)}).history
    assert History.from_table(wanted.schema, found.cast(wanted.expand().schema)) == wanted
