"""The engine in batch mode, on the one Spark session of all tests, set for tiny plans while these tests run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.session import active, session
from tests.spark.sessions import FAST


@pytest.fixture(scope="package")
def spark_engine() -> Iterator[SparkEngine]:
    spark = active() or session(**FAST)
    fast = {name: value for name, value in FAST.items() if spark.conf.isModifiable(name)}
    before = {name: spark.conf.get(name) for name in fast}
    for name, value in fast.items():
        spark.conf.set(name, value)
    yield SparkEngine(session=spark)
    for name, old in before.items():
        spark.conf.set(name, old or "")
