"""What Spark batch says of a value that cannot be converted."""

from __future__ import annotations

import pytest

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
