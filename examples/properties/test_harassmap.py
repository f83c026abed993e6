"""Danger levels of zones by the hour: a safety property, one that is wrong, and a liveness property.

pytest examples/properties/test_harassmap.py
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from streamproof.properties import (
    PropertyFailed,
    always,
    assert_holds,
    consume,
    eventually,
    implies,
    now,
    of,
    prove,
    run_stream,
    tumbling,
    windows,
)


def harass_max(incidents: DataFrame) -> DataFrame:
    """The subject: how dangerous each zone was in each hour, by its worst incident."""
    worst = (
        incidents.withWatermark("event_time", "0 seconds")
        .groupBy(F.window("event_time", "1 hour"), "zone_id")
        .agg(F.max("danger").alias("danger"))
    )
    level = (
        F.when(F.col("danger") <= 1, "Safe")
        .when(F.col("danger") <= 5, "Warning")
        .when(F.col("danger") <= 8, "Danger")
        .otherwise("Extreme")
    )
    return worst.select("window", "zone_id", level.alias("level"))


def incidents(low: float):
    return st.fixed_dictionaries({"zone_id": st.integers(0, 9), "danger": st.floats(low, 10.0)})


def no_zone_is_safe(i, o):
    return all(r.level != "Safe" for r in o)


never_safe = always(now(no_zone_is_safe)).during(20)


@given(stream=windows(always(of(incidents(1.1), 15, 50), 20), size="1 hour", time="event_time"))
def test_high_danger_is_never_safe(stream, streamproof_spark):
    """Holds: no incident is safe, so no zone is."""
    run = run_stream(streamproof_spark, stream, harass_max)
    assert_holds(never_safe, run, steps=tumbling("1 hour", on="window"))


@given(stream=windows(always(of(incidents(0.5), 0, 50), 20), size="1 hour", time="event_time"))
def from_a_half(stream, spark):
    run = run_stream(spark, stream, harass_max)
    assert_holds(never_safe, run, steps=tumbling("1 hour", on="window"))


def test_danger_from_a_half_is_sometimes_safe(streamproof_spark):
    """Must fail, and does: the smallest stream that shows it is one incident in one window."""
    with pytest.raises(PropertyFailed, match="level='Safe'") as failed:
        prove(from_a_half, {"spark": streamproof_spark}, seed=1)
    assert failed.value.judgement.run.inputs[0].count == 1


def extreme_zones_show(i, o):
    """Zones with an incident above 8 are Extreme now, or in one of the next three quarters of an hour."""
    zones = {r.zone_id for r in i if r.danger > 8}

    def shown(output):
        return zones <= {r.zone_id for r in output if r.level == "Extreme"}

    return implies(bool(zones), shown(o) | eventually(now(lambda _, later: shown(later))).within(3))


@settings(max_examples=50)
@given(stream=windows(always(of(incidents(0.0), 4), 4), size="30 minutes", time="event_time"))
def test_extreme_zones_show_within_the_hour(stream, streamproof_spark):
    """Holds, with three sizes of windows: drawn by 30 minutes, computed by the hour, judged by 15 minutes."""
    run = run_stream(streamproof_spark, stream, harass_max)
    assert_holds(always(consume(extreme_zones_show)).during(5), run, steps=tumbling("15 minutes", on="window"))
