"""Buckets by value: equal values have one, in every process and version, and many values are spread evenly."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from streamproof.engines.spark.stream.hashing import bucket_numbers

COLUMNS: dict[str, pa.Array] = {
    "string": pa.array(["", "a", "b", "ab", "ba", "aa", None, "ä€", "a\0"]),
    "int64": pa.array([0, 1, -1, 2**62, None, 7]),
    "float64": pa.array([0.0, 1.5, math.inf, None, -2.0]),
    "bool": pa.array([True, False, None]),
    "date": pa.array([date(2024, 1, 1), None, date(1969, 12, 31)]),
    "timestamp": pa.array([datetime(2024, 1, 1, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
    "decimal": pa.array([Decimal("1.25"), Decimal("-1.25"), None, Decimal(10) ** 30], pa.decimal128(38, 2)),
    "null": pa.nulls(3),
}
FIXED = {
    "string": [0, 673, 5, 594, 735, 608, 41, 804, 460],
    "int64": [0, 789, 67, 525, 41, 604],
    "float64": [0, 784, 544, 41, 555],
    "bool": [789, 0, 41],
    "date": [620, 41, 67],
    "timestamp": [668, 41],
    "decimal": [350, 675, 41, 255],
    "null": [41, 41, 41],
}


def numbers(*columns: pa.Array, count: int = 1000) -> list[int]:
    return bucket_numbers([pa.chunked_array([column]) for column in columns], len(columns[0]), count).tolist()


@pytest.mark.parametrize("kind", COLUMNS)
def test_a_value_has_its_bucket_wherever_it_stands(kind: str) -> None:
    column = COLUMNS[kind]
    found = numbers(column)
    assert found == FIXED[kind], "buckets in checkpoints depend on these numbers"
    for start in range(len(column)):
        assert numbers(column.slice(start)) == found[start:]
    assert len(set(found)) == (1 if kind == "null" else len(column))
    chunked = pa.chunked_array([column.slice(0, 1), column.slice(1)])
    assert bucket_numbers([chunked], len(column), 1000).tolist() == found


def test_equal_floats_have_one_bucket_whatever_they_look_like() -> None:
    found = numbers(pa.array([0.0, -0.0, math.nan, -math.nan, None, 0.5], pa.float64(), from_pandas=False))
    assert found[0] == found[1]
    assert found[2] == found[3]
    assert len(set(found)) == 4


def test_the_order_of_columns_counts_and_all_of_them_do() -> None:
    one, other = pa.array(["a", "b", "a"]), pa.array(["b", "a", "c"])
    assert len(set(numbers(one, other))) == 3
    assert numbers(one, other) != numbers(other, one)


@pytest.mark.parametrize("keys", [pa.array(range(8000)), pa.array([f"key-{n}" for n in range(8000)])])
def test_many_values_are_spread_evenly(keys: pa.Array) -> None:
    counts = np.bincount(numbers(keys, count=8))
    assert counts.min() > 850
    assert counts.max() < 1150
