"""Weights in Spark's batch mode: events are listed as often as they are there, or refused by name before they are."""

from __future__ import annotations

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.spark import SparkEngine
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.limits import Limits
from streamproof.plan.nodes import Plan
from tests.engines.test_weights import SCHEMA, rows
from tests.spark.stream.test_weights import PARTS, is_exact, numbered


def listed(engine: SparkEngine, plan: Plan, w: int) -> History:
    given = {name: [Batch.from_rows(SCHEMA, rows(name, w), frontier=FOREVER)] for name in nodes.sources(plan)}
    found = engine.run(check(plan, {"S": SCHEMA, "T": SCHEMA}), given, Settings(limits=Limits(events_listed=20_000)))
    return History.from_batches(check(plan, {"S": SCHEMA, "T": SCHEMA}).schema, found)


def test_a_batch_is_exact_or_refused(spark_engine: SparkEngine) -> None:
    plan = numbered(sorted(PARTS))
    assert is_exact(listed(spark_engine, plan, 7), sorted(PARTS), 7)
    for w in (2**32 + 1, 2**61, 2**63 - 1):
        with pytest.raises(StreamproofError) as caught:
            listed(spark_engine, plan, w)
        assert caught.value.name in ("overflow", "limit_exceeded")
        assert caught.value.fix
