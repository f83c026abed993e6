"""Pollution alerts: a sensor above 180 is never called fine, and an alarm comes now or within four windows."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import (
    always,
    assert_holds,
    consume,
    eventually,
    exists,
    implies,
    now,
    of,
    run_stream,
    tumbling,
    until,
    windows,
)


def readings(low: int, high: int):
    return st.fixed_dictionaries({"sensor": st.integers(1, 3), "concentration": st.integers(low, high)})


def alerts(readings: DataFrame) -> DataFrame:
    """The subject: the worst reading of each sensor over four seconds, and whether that is fine."""
    worst = (
        readings.withWatermark("at", "0 seconds")
        .groupBy(F.window("at", "4 seconds"), "sensor")
        .agg(F.max("concentration").alias("worst"))
    )
    return worst.withColumn("fine", F.col("worst") <= 180)


@settings(max_examples=40)
@given(stream=windows(always(of(readings(181, 400), 0, 5), 8), size="1 second", time="at"))
def test_high_is_never_fine(stream, streamproof_spark):
    """Safety: holds."""
    run = run_stream(streamproof_spark, stream, alerts)
    assert_holds(always(now(lambda i, o: all(not r.fine for r in o))).during(8), run, steps=tumbling("1 second"))


def alarm_follows(i, o):
    sensors = {r.sensor for r in i if r.concentration > 180}
    rung = now(lambda _, output: exists(output, lambda r: r.sensor in sensors and not r.fine))
    at_once = any(r.sensor in sensors and not r.fine for r in o)
    return implies(bool(sensors), at_once | eventually(rung).within(4))


@settings(max_examples=40)
@given(
    stream=windows(
        until(of(readings(0, 100), 0, 3), of(readings(181, 400), 1, 2), 4).then(always(of(readings(0, 50), 0, 1), 8)),
        size="1 second",
        time="at",
    )
)
def test_an_alarm_comes_now_or_within_four_windows(stream, streamproof_spark):
    """Liveness: holds. The streams are calm until something happens, and calm again for a while."""
    run = run_stream(streamproof_spark, stream, alerts)
    assert_holds(always(consume(alarm_follows)).during(4), run, steps=tumbling("1 second"))
