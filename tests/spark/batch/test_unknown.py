"""An operator and an aggregate that nobody has heard of, in batch mode: refused by name. All others are computed."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import Job, on
from streamproof.engines.spark import SparkEngine
from streamproof.errors import PlanError
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.parse import parse
from streamproof.plan.windows import Window
from tests.test_extension import EVENTS, WINDOWS, S, Throttle, known, mode_of

__all__ = ["known", "mode_of"]  # fixtures


@pytest.mark.usefixtures("known")
def test_an_operator_is_refused_by_name(spark_engine: SparkEngine) -> None:
    with pytest.raises(PlanError, match="Throttle is not supported here: Spark in batch mode has no rule for it"):
        Job(Throttle(S, 3), spark_engine, Settings()).run({"S": EVENTS})


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
def test_an_aggregate_is_refused_by_name(
    window: Window,
    mode_of: Aggregate,
    spark_engine: SparkEngine,
) -> None:
    with pytest.raises(PlanError, match="the engine spark cannot compute mode"):
        Job(nodes.Aggregation(S, window, (("m", mode_of),)), spark_engine, Settings()).run({"S": EVENTS})


def test_every_aggregate_is_computed(spark_engine: SparkEngine) -> None:
    params = {fn: (0.5,) if AGGREGATES[fn].parameter else () for fn in AGGREGATES}
    aggs = tuple((fn, Aggregate(fn, None if fn == "count" else parse("v"), params[fn])) for fn in AGGREGATES)
    plan = nodes.Aggregation(S, WINDOWS[0], aggs)
    found = Job(plan, spark_engine, Settings()).run({"S": EVENTS}).history
    assert found == on(plan, "duckdb").run({"S": EVENTS}).history
