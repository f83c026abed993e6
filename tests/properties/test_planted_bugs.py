"""Bugs planted in PySpark subjects are found, and shrunk to a handful of rows."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.properties import (
    Match,
    PropertyFailed,
    always,
    assert_holds,
    every,
    now,
    of,
    prove,
    run_stream,
    same,
    tumbling,
    windows,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow
events = st.fixed_dictionaries({"key": st.integers(1, 3)})


def counted(i: Any, o: Any) -> Match:
    found = [(row.key, row["count"]) for row in o]
    return same(found, Counter(row.key for row in i).items())


def smallest(test: Callable[..., None], spark: SparkSession, **options: Any) -> PropertyFailed:
    with pytest.raises(PropertyFailed) as failed:
        prove(test, {"spark": spark}, seed=1, **options)
    return failed.value


def rows_of(failure: PropertyFailed) -> int:
    return sum(stream.count for stream in failure.judgement.run.inputs)


def test_an_off_by_one_window(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def shifted(rows: DataFrame) -> DataFrame:
        windows = F.window("at", "1 hour", startTime="1 second")  # a second too late
        return rows.withWatermark("at", "0 seconds").groupBy(windows, "key").count()

    @settings(max_examples=60, database=None)
    @given(stream=windows(always(of(events, 0, 8), 4), size="1 hour", time="at"))
    def hourly_counts(stream: Any, spark: Any) -> None:
        assert_holds(always(now(counted)).during(4), run_stream(spark, stream, shifted), steps=tumbling("1 hour"))

    assert rows_of(smallest(hourly_counts, spark)) == 1


def test_late_rows_are_dropped(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def impatient(rows: DataFrame) -> DataFrame:
        return rows.withWatermark("at", "1 minute").groupBy(F.window("at", "1 hour"), "key").count()

    @settings(max_examples=20, database=None)
    @given(stream=windows(always(of(events, 1, 2), 4), size="1 hour", time="at", late="6 hours"))
    def nothing_is_lost(stream: Any, spark: Any) -> None:
        run = run_stream(spark, stream, impatient)
        assert_holds(always(now(counted)).during(4), run, steps=tumbling("1 hour"))

    failure = smallest(nothing_is_lost, spark, workers=2)
    assert rows_of(failure) <= 4
    assert failure.judgement.run.late_rows >= 1


def running(key: Any, frames: Any, state: Any) -> Any:
    """Numbers the rows of a key within each hour, but never starts again."""
    import pandas as pd

    n = state.get[0] if state.exists else 0
    for frame in frames:
        ordered = frame.sort_values("at")
        numbers = list(range(n + 1, n + 1 + len(ordered)))
        n += len(ordered)
        yield pd.DataFrame({"at": ordered["at"], "key": key[0], "n": numbers})
    state.update((n,))


def test_state_is_not_reset(spark: SparkSession) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # workers cannot import tests

    def numbered(rows: DataFrame) -> DataFrame:
        kind = "at timestamp, key long, n long"
        return rows.groupBy("key").applyInPandasWithState(running, kind, "n long", "append", "NoTimeout")

    @settings(max_examples=20, database=None)
    @given(stream=windows(always(of(events, 0, 3), 3), size="1 hour", time="at"))
    def numbers_start_anew(stream: Any, spark: Any) -> None:
        run = run_stream(spark, stream, numbered, batches="window")
        fits = now(lambda i, o: every(o, lambda row: row.n <= len(i)))
        assert_holds(always(fits).during(3), run, steps=tumbling("1 hour"))

    assert rows_of(smallest(numbers_start_anew, spark, workers=2)) == 2


def test_the_wrong_side_of_a_join(spark: SparkSession) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    def swapped(orders: DataFrame, payments: DataFrame) -> DataFrame:
        left = orders.withWatermark("ordered", "0 seconds").alias("o")
        right = payments.withWatermark("paid", "0 seconds").alias("p")
        condition = "o.key = p.key AND ordered BETWEEN paid AND paid + INTERVAL 1 HOUR"
        return left.join(right, F.expr(condition)).select("o.key", "ordered", "paid")

    @settings(max_examples=40, database=None)
    @given(
        orders=windows(always(of(events, 0, 3), 3), size="1 hour", time="ordered"),
        payments=windows(always(of(events, 0, 3), 3), size="1 hour", time="paid"),
    )
    def paid_after_ordered(orders: Any, payments: Any, spark: Any) -> None:
        run = run_stream(spark, (orders, payments), swapped)
        fits = now(lambda i, o: every(o, lambda row: timedelta() <= row.paid - row.ordered))
        assert_holds(always(fits).during(3), run, steps=tumbling("1 hour", on="paid"))

    assert rows_of(smallest(paid_after_ordered, spark)) <= 3  # one of each would do
