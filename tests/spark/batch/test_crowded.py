"""Very many events that live at once: windows that would list their square are refused by name before they do."""

from __future__ import annotations

import pytest

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.spark import SparkEngine
from streamproof.errors import StreamproofError
from streamproof.plan.limits import Limits
from tests.engines.local.test_bounded import SETTINGS
from tests.engines.local.test_crowded import CROWDED, S, crowd

PLANS = {name: CROWDED[name] for name in ("count_start far", "udo of all", "ranking of all")} | {
    "median": S.snapshot().aggregate(m=sp.median("v")),
    "median by key": S.group_by("g").snapshot().aggregate(m=sp.median("v"), n=sp.count_distinct("s")),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_crowd_is_refused(spark_engine: SparkEngine, name: str) -> None:
    job = Job(PLANS[name].plan, spark_engine, Settings(limits=Limits(events_listed=50_000), registry=SETTINGS.registry))
    with pytest.raises(StreamproofError, match=r"members of windows .* limit events_listed is 50000") as found:
        job.run({"S": crowd(2000)})
    assert (found.value.name, bool(found.value.at), bool(found.value.fix)) == ("limit_exceeded", True, True)


def test_many_events_of_which_few_meet_are_no_crowd(spark_engine: SparkEngine) -> None:
    """What grows with the events is what Spark is for."""
    job = Job(PLANS["median"].plan, spark_engine, Settings(limits=Limits(events_listed=2000)))
    assert len(job.run({"S": crowd(60)}).history) == 119
