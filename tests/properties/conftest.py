"""The one Spark session of all tests, set for tiny jobs while these tests run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from streamproof.engines.spark.session import active, session
from tests.spark.sessions import FAST

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="package")
def spark() -> Iterator[SparkSession]:
    found = active() or session(**FAST)
    fast = {name: value for name, value in FAST.items() if found.conf.isModifiable(name)}
    before = {name: found.conf.get(name) for name in fast}
    for name, value in fast.items():
        found.conf.set(name, value)
    yield found
    for name, old in before.items():
        found.conf.set(name, old or "")
