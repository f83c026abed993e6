"""Exact sums of floats: as `math.fsum` has them, whatever the values and their order."""

from __future__ import annotations

import math
import random
import struct

import pytest
from pyspark.sql import functions as f

import streamproof as sp
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.floats import Look, float_sums, rest_of, with_totals
from streamproof.errors import RunError
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.language.notation import from_document
from streamproof.plan.exact import total

SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 2.0**40, 2.0**-69, 1e16, -1e16]


def lists(seed: int, count: int) -> list[list[float]]:
    """Lists of floats of very different sizes, that cancel, tie, and fill all bits."""
    draw = random.Random(seed)
    made = []
    for _ in range(count):
        scale = draw.choice([0, 1, 8, 30])
        xs = [draw.uniform(-1, 1) * 2.0 ** draw.randint(-min(scale, 15), scale) for _ in range(draw.randint(1, 9))]
        xs += [-x for x in xs if draw.random() < 0.4]
        xs += [draw.choice([0.5, 1.0, 2.0**-30, -(2.0**-30), 2.0**39, 2.0**-60]) for _ in range(draw.randint(0, 2))]
        draw.shuffle(xs)
        made.append(xs)
    return made


def test_limbs_add_up_to_the_nearest_float(spark_engine: SparkEngine) -> None:
    """Ties and sticky bits included: 1 + 2^-53 + 2^-68 is above the middle of two floats, 1 + 2^-53 is it."""
    cases = lists(1, 400)
    cases += [[1.0, 2.0**-53], [1.0, 2.0**-53, 2.0**-68], [1.0, 2.0**-53, -(2.0**-68)], [2.0**39] * 5 + [2.0**-68]]
    rows = [(number, x) for number, xs in enumerate(cases) for x in xs]
    frame = spark_engine.session.createDataFrame(rows, "number bigint, x double")
    sums = [
        *(column.alias(name) for name, column in float_sums("x", Look()).items()),
        f.expr(f"max({rest_of('x')} <> 0) AS odd"),
    ]
    found = with_totals(frame.groupBy("number").agg(*sums), ["x"]).select("number", "x_total", "odd").collect()
    checked = 0
    for number, value, is_odd in found:
        if not is_odd:
            checked += 1
            assert value == math.fsum(cases[number]), cases[number]
    assert checked > 300


@pytest.mark.parametrize("fn", ["sum", "avg"])
def test_odd_values_are_added_up_too(fn: str, spark_engine: SparkEngine) -> None:
    draw = random.Random(5)
    schema = Schema.of({"x": "float64"})
    groups = [[draw.choice([*SPECIAL, 1.5, None]) for _ in range(4)] for _ in range(40)] + [[0.1] * 10, [None, None]]
    rows = [(10 * n + i % 9, 10 * n + 10, {"x": x}) for n, xs in enumerate(groups) for i, x in enumerate(xs)]
    plan = from_document({
        "op": "agg", "in": {"op": "source", "name": "S", "schema": {"x": "float64"}},
        "window": {"type": "tumbling", "size": 10}, "aggs": {"y": [fn, "x"], "n": ["count", None]},
    })  # fmt: skip
    from streamproof.engines.base import Settings
    from streamproof.plan.check import check

    typed = check(plan, {"S": schema})
    inputs = {"S": [History.from_rows(schema, rows).to_batch()]}
    found = {row.le // 10: row.payload["y"] for row in
             History.from_batches(typed.schema, spark_engine.run(typed, inputs, Settings())).to_rows()}  # fmt: skip
    for number, xs in enumerate(groups):
        there = [x for x in xs if x is not None]
        want = None if not there else total(there) if fn == "sum" else _mean(there)
        assert _bits(found[number]) == _bits(want), xs


def _mean(values: list[float]) -> float:
    from streamproof.plan.exact import mean

    return mean(values)


def _bits(value: object) -> object:
    """NaN equals NaN, and −0.0 equals 0.0."""
    if not isinstance(value, float):
        return value
    return "nan" if math.isnan(value) else struct.pack("<d", value + 0.0)


VALUES = {
    "on a grid": [n / 8 for n in range(-40, 40)],  # Spark's own sum is exact
    "decimals": [n * 0.1 for n in range(-40, 40)],  # in limbs
    "with rests": [1e-9, 1e300, -1e300, math.inf, 0.1, 2.5],  # in limbs and in Python
}


@pytest.mark.parametrize("values", VALUES)
@pytest.mark.parametrize("window", ["tumbling", "panes"])
def test_windows_of_points_add_up_like_elsewhere(values: str, window: str, spark_engine: SparkEngine) -> None:
    """Over panes too, because each has several events: whatever is known of the floats, and with an offset before 0."""
    points = sp.source("S").to_point().group_by("k")
    windows = points.tumbling(10, offset=3) if window == "tumbling" else points.hopping(20, 5, offset=-7)
    stream = windows.aggregate(
        n=sp.count(), s=sp.sum("x"), a=sp.avg("x"), low=sp.min("x"), high=sp.max("x"), i=sp.sum("v"), j=sp.avg("v")
    )
    draw = random.Random(9)
    payloads = [
        {"k": draw.choice("ab"), "x": draw.choice([*VALUES[values], None]), "v": draw.randint(-9, 9)} for _ in "x" * 150
    ]
    rows = [(draw.randrange(-60, 60), 100, payload) for payload in payloads]
    history = History.from_rows(Schema.of({"k": "string", "x": "float64", "v": "int64"}), rows)
    frame = spark_engine.session.createDataFrame(history.expand())
    found = stream.on("spark", session=spark_engine.session).batch({"S": frame}).toArrow()
    wanted = stream.on("duckdb").run({"S": history}).history
    assert History.from_table(wanted.schema, found.cast(wanted.expand().schema)) == wanted


def test_panes_that_leave_time_are_errors(spark_engine: SparkEngine) -> None:
    stream = sp.source("S").to_point().hopping(20, 5).aggregate(n=sp.count())
    for le, what in ((FOREVER - 15, "the new lifetime lies outside"), (BEGINNING, "has infinitely many windows")):
        rows = History.from_rows(Schema.of({"v": "int64"}), [(le, FOREVER, {"v": 1})])
        with pytest.raises(RunError, match=what):
            stream.on("spark", session=spark_engine.session).run({"S": rows})
