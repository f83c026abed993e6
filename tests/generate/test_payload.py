"""Payloads: every type, exact shares of nulls and boundary values, frequencies without floating point."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.schema import Schema, decimal, parse_type
from streamproof.generate.facets import Facets, Values
from streamproof.generate.payload import Payload, boundary_values, frequencies
from streamproof.generate.stream import generated
from tests.generate.space import EVERY_TYPE, Words, facet_words

TYPES = [kind for _, kind in EVERY_TYPE if kind.kind != "null"]


def column(kind: str, count: int = 2000, **words: object) -> pa.Array:
    facets = Facets(**words)  # type: ignore[arg-type]  # words
    return Payload.of(Schema.of({"v": kind}), facets, count, seed=9).columns(np.arange(count))[0]


@given(facet_words(), st.lists(st.integers(0, 299), min_size=1))
def test_each_value_is_told_on_its_own(words: Words, index: list[int]) -> None:
    payload = Payload.of(EVERY_TYPE, Facets(**words), 300, seed=3)
    for some, every in zip(payload.columns(np.array(index)), payload.columns(np.arange(300)), strict=True):
        assert str(some.to_pylist()) == str(every.take(pa.array(index)).to_pylist())


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(("nulls", "expected"), [("none", 0), ("some", 200), ("many", 1000), (0.123, 246), (1.0, 2000)])
def test_nulls_are_exactly_as_many_as_asked_for(kind: str, nulls: str | float, expected: int) -> None:
    assert column(str(kind), nulls=nulls).null_count == expected


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_a_type_has_as_many_values_as_there_are_keys(kind: str) -> None:
    found = len(set(column(str(kind), keys=17).to_pylist()))
    assert found == (2 if str(kind) == "bool" else 17)
    assert str(kind) == "bool" or len(set(column(str(kind), keys="unique").to_pylist())) == 2000


@pytest.mark.parametrize("kind", TYPES, ids=str)
def test_boundary_values_are_drawn_and_nothing_else_where_all_are(kind: str) -> None:
    known = {str(value) for value in boundary_values(parse_type(str(kind))).to_pylist()}
    assert {str(value) for value in column(str(kind), boundary=1.0).to_pylist()} == known


def test_floats_have_every_special_value() -> None:
    values = column("float64", boundary="many").to_pylist()
    assert sum(map(math.isnan, values)) > 20
    assert {math.inf, -math.inf} <= set(values)
    assert any(value == 0 and math.copysign(1, value) < 0 for value in values)


def test_the_widest_decimals_are_exact() -> None:
    digits = {str(value).replace(".", "") for value in boundary_values(decimal(38, 5)).to_pylist()}
    assert {"9" * 38, "-" + "9" * 38} <= digits


@pytest.mark.parametrize("skew", [Fraction(1, 2), Fraction(1), Fraction(3, 2), Fraction(2)])
def test_frequencies_follow_the_power_law(skew: Fraction) -> None:
    ends = [0, *frequencies(50, skew).tolist(), 2**64]
    shares = np.diff(np.array(ends, object)).astype(np.float64) / 2.0**64
    weights = np.arange(1, 51) ** -float(skew)
    assert shares == pytest.approx(weights / weights.sum(), rel=1e-9)


def test_skewed_values_are_as_frequent_as_the_law_says() -> None:
    found = Counter(column("string", count=30_000, keys=10, skew="zipf").to_pylist())
    harmonic = sum(1 / n for n in range(1, 11))
    assert [found[f"k{n}"] / 30_000 for n in range(10)] == pytest.approx(
        [1 / (n + 1) / harmonic for n in range(10)], abs=0.012
    )


def test_columns_are_independent_of_each_other_and_of_the_schema_around_them() -> None:
    alone, both = (generated(schema, 50, 1).rows["v"] for schema in ({"v": "int64"}, {"k": "string", "v": "int64"}))
    assert alone.to_pylist() == both.to_pylist()
    twins = generated({"a": "int64", "b": "int64"}, 50, 1).rows
    assert twins["a"].to_pylist() != twins["b"].to_pylist()


def test_one_column_may_differ_from_the_others() -> None:
    facets = Facets(keys=5, columns={"v": Values(nulls=0.5, keys=1)})
    rows = generated({"k": "string", "v": "int64"}, 100, 1, Facets(**facets.as_dict(), liveliness="never")).rows
    assert (rows["k"].null_count, rows["v"].null_count) == (0, 50)
    assert set(rows["v"].to_pylist()) == {0, None}


def test_decimals_are_small_numbers_of_both_signs() -> None:
    found = {str(value) for value in column("decimal(10,2)", keys=5).to_pylist()}
    assert found == {"0.00", "-0.01", "0.01", "-0.02", "0.02"}
