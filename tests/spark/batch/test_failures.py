"""What Spark batch says of a value that cannot be converted."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError

import streamproof as sp
from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.spark import SparkEngine
from streamproof.errors import StreamproofError


@pytest.mark.parametrize(
    ("cast", "name", "what"),
    [
        ("cast(f as int64)", "overflow", "does not fit into int64"),
        ("cast(k as int64)", "bad_input", "'x' is not a int64"),
    ],
)
def test_a_value_that_does_not_fit_is_told_from_one_that_is_none(
    spark_engine: SparkEngine, cast: str, name: str, what: str
) -> None:
    rows = [{"kind": "insert", "id": "a", "le": 0, "re": 1, "payload": {"f": 1e30, "k": "x"}}]
    job = Job(sp.source("S", {"f": "float64", "k": "string"}).select(c=cast).plan, spark_engine, Settings())
    with pytest.raises(StreamproofError) as found:
        job.run({"S": rows})
    assert found.value.name == name
    assert what in found.value.what


def test_what_java_raises_is_told_in_our_words(spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A result that is too large for the memory ended as an exception of py4j."""

    def full(*_: object) -> None:
        raise Py4JError("An error occurred while calling o275.getResult\njava.lang.OutOfMemoryError: Java heap space")

    monkeypatch.setattr("streamproof.engines.spark.batch.running.table_of", full)
    rows = [{"kind": "insert", "id": "a", "le": 0, "re": 1, "payload": {"v": 1}}]
    with pytest.raises(StreamproofError, match="Spark ran out of memory") as found:
        Job(sp.source("S", {"v": "int64"}).plan, spark_engine, Settings()).run({"S": rows})
    assert (found.value.name, found.value.exit_code) == ("infrastructure", 3)
