from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.events.order import canonical, group_numbers, ordinals, pack, pieces_of, sort_rows
from streamproof.events.schema import Type
from tests.events.strategies import TYPES, VALUES


def rank(value: object) -> tuple[object, ...]:
    """The order of the specification, in Python."""
    if value is None:
        return (2,)
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return (0, value.encode() if isinstance(value, str) else value)


@pytest.mark.parametrize("kind", [t for t in TYPES if t.kind != "null"], ids=str)
@given(data=st.data())
def test_order_is_that_of_the_specification(kind: Type, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.none() | VALUES[kind.kind], max_size=8))
    table = pa.table({"v": pa.array(values, kind.arrow, from_pandas=False)})
    order, starts = sort_rows(pack(pieces_of(table)), len(values))
    ranks = sorted(rank(v) for v in values)
    assert [rank(values[i]) for i in order] == ranks
    assert len(starts) == len(set(ranks))


@given(st.lists(st.tuples(*(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 2) for _ in range(3))), max_size=9))
def test_many_wide_columns_sort_like_tuples(rows: list[tuple[int, int, int]]) -> None:
    table = pa.table({str(i): pa.array([row[i] for row in rows], pa.int64()) for i in range(3)})
    order, starts = sort_rows(pack(pieces_of(table)), len(rows))
    assert [rows[i] for i in order] == sorted(rows)
    groups = group_numbers(order, starts)
    assert all((rows[i] == rows[j]) == (groups[i] == groups[j]) for i in range(len(rows)) for j in range(len(rows)))


def test_slices_sort_by_their_own_values() -> None:
    values = pa.array([9, None, 3, 1], pa.decimal128(5, 2)).slice(1)
    order, _ = sort_rows(pack(pieces_of(pa.table({"v": values}))), 3)
    assert order.tolist() == [2, 1, 0]


def test_canonical_has_one_zero_and_one_nan() -> None:
    odd_nan = np.array([0x7FF8000000000123], np.uint64).view(np.float64)[0]
    column = canonical(pa.table({"v": pa.array([-0.0, odd_nan, None], from_pandas=False)}))["v"]
    assert column.null_count == 1
    bits = column.chunk(0)[:2].to_numpy().view(np.uint64).tolist()
    assert bits == [0, 0x7FF8000000000000]


@given(st.lists(st.integers(0, 3)))
def test_ordinals_count_earlier_rows_of_the_group(groups: list[int]) -> None:
    expected = [groups[:i].count(g) for i, g in enumerate(groups)]
    assert ordinals(np.array(groups, np.int64)).tolist() == expected
