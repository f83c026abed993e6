"""Texts that grow end at the limit that all engines have."""

from __future__ import annotations

from streamproof.engines.spark import SparkEngine
from tests.engines.test_texts import bounded, grown


def test_texts_that_double_end_at_the_limit(spark_engine: SparkEngine) -> None:
    grown(spark_engine)


def test_texts_up_to_the_limit_are_made(spark_engine: SparkEngine) -> None:
    bounded(spark_engine)
