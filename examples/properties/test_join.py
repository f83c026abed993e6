"""A join of two streams: clicks belong to impressions of the same ad in the ten minutes before. Right, and wrong."""

from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import (
    PropertyFailed,
    always,
    assert_holds,
    every,
    now,
    of,
    prove,
    run_stream,
    tumbling,
    windows,
)

ads = st.fixed_dictionaries({"ad": st.integers(1, 2)})
impressions = windows(always(of(ads, 0, 3), 4), size="10 minutes", time="shown")
clicks = windows(always(of(ads, 0, 3), 4), size="10 minutes", time="clicked")


def joined(impressions: DataFrame, clicks: DataFrame, condition: str) -> DataFrame:
    left = impressions.withWatermark("shown", "0 seconds").alias("i")
    right = clicks.withWatermark("clicked", "0 seconds").alias("c")
    return left.join(right, F.expr(f"i.ad = c.ad AND {condition}")).select("i.ad", "shown", "clicked")


def right_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    return joined(impressions, clicks, "clicked BETWEEN shown AND shown + INTERVAL 10 MINUTES")


def wrong_join(impressions: DataFrame, clicks: DataFrame) -> DataFrame:
    """The sides of time are swapped: clicks before their impression."""
    return joined(impressions, clicks, "shown BETWEEN clicked AND clicked + INTERVAL 10 MINUTES")


in_time = now(
    lambda i, o: every(o, lambda row: timedelta() <= row.clicked - row.shown <= timedelta(minutes=10)),
    "a click follows its impression within ten minutes",
)


def complete(i, o):
    """Impressions and clicks of one step that belong together are in its output."""
    pairs = [(a.ad, a.shown, b.clicked) for a, b in product(*i) if a.ad == b.ad and a.shown <= b.clicked]
    found = {(row.ad, row.shown, row.clicked) for row in o}
    return every(pairs, lambda pair: pair in found)


def check(shown, clicked, spark, subject):
    run = run_stream(spark, (shown, clicked), subject)
    assert_holds(always(in_time & now(complete)).during(4), run, steps=tumbling("10 minutes", on="clicked"))


@settings(max_examples=40)
@given(shown=impressions, clicked=clicks)
def test_the_right_join(shown, clicked, streamproof_spark):
    check(shown, clicked, streamproof_spark, right_join)


@settings(max_examples=40)
@given(shown=impressions, clicked=clicks)
def with_the_wrong_join(shown, clicked, spark):
    check(shown, clicked, spark, wrong_join)


def test_the_wrong_join_must_fail(streamproof_spark):
    """One impression and one click show it."""
    with pytest.raises(PropertyFailed) as failed:
        prove(with_the_wrong_join, {"spark": streamproof_spark}, seed=1)
    assert sum(stream.count for stream in failed.value.judgement.run.inputs) == 2
