"""Hourly tips of taxi drivers: two windows in a chain, the tips of each driver and the best driver of the hour."""

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import Match, always, assert_holds, now, of, run_stream, tumbling, until, windows

fares = st.fixed_dictionaries({"driver": st.integers(1, 4), "tip": st.integers(0, 20)})


def best_tips(rides: DataFrame) -> DataFrame:
    """The subject: the largest sum of tips that a driver made in each hour."""
    hourly = (
        rides.withWatermark("event_time", "0 seconds")
        .groupBy(F.window("event_time", "1 hour"), "driver")
        .agg(F.sum("tip").alias("tips"))
    )
    return hourly.groupBy(F.window(F.window_time("window"), "1 hour")).agg(F.max("tips").alias("best"))


def agrees(i, o) -> Match:
    """The output of an hour against the same computed plainly from its input."""
    sums = defaultdict(int)
    for ride in i:
        sums[ride.driver] += ride.tip
    expected = [max(sums.values())] if sums else []
    found = [row.best for row in o]
    return Match(found == expected, f"expected {expected}, found {found}")


@settings(max_examples=40)
@given(stream=windows(until(of(fares, 0, 6), of(fares, 1, 3), 6), size="1 hour", time="event_time"))
def test_the_best_driver_of_every_hour(stream, streamproof_spark):
    """Holds in every hour that the stream has."""
    run = run_stream(streamproof_spark, stream, best_tips)
    assert_holds(always(now(agrees)).during(len(stream)), run, steps=tumbling("1 hour", on="window"))
