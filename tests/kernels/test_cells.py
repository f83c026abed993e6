"""Payloads as cells: equal payloads have equal cells, and nothing is lost on the way."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.events.schema import NULL, Schema, Type, parse_type
from streamproof.kernels.cells import Layout, Strings
from streamproof.thresholds import STRINGS_SHOWN
from streamproof.workbench.evaluator.values import order, payload_identity

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(),
    "string": st.text(max_size=3),
    "bool": st.booleans(),
    "decimal(20,2)": st.decimals(-(10**17), 10**17, places=2),
    "decimal(38,0)": st.integers(-(10**38) + 1, 10**38 - 1).map(Decimal),
    "date": st.dates(date(1900, 1, 1), date(2100, 1, 1)),
    "timestamp": st.datetimes(datetime(1900, 1, 1), datetime(2100, 1, 1)).map(lambda t: t.replace(tzinfo=UTC)),
}


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[Type], list[tuple[Any, ...]]]:
    """Column types and rows of them, with nulls and repetitions."""
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    row = st.tuples(*(st.none() | VALUES[kind] for kind in kinds))
    rows = draw(st.lists(row, max_size=8))
    return [parse_type(kind) for kind in kinds], rows + draw(st.permutations(rows))


def arrays(types: Sequence[Type], rows: Sequence[tuple[Any, ...]]) -> list[pa.Array]:
    return [pa.array([row[n] for row in rows], kind.arrow) for n, kind in enumerate(types)]


def identities(rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return [payload_identity(dict(enumerate(row)), range(len(row))) for row in rows]  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None)
@given(tables())
def test_decode_is_the_inverse_of_encode(table: tuple[list[Type], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    layout, strings = Layout.of(types), Strings()
    columns = layout.decode(layout.encode(arrays(types, rows), strings), strings)
    assert [column.type for column in columns] == [kind.arrow for kind in types]
    decoded = list(zip(*(column.to_pylist() for column in columns), strict=True))
    assert identities(decoded) == identities(rows)


@settings(max_examples=150, deadline=None)
@given(tables())
def test_cells_are_equal_exactly_when_payloads_are(table: tuple[list[Type], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    cells = Layout.of(types).encode(arrays(types, rows), Strings())
    keys = [tuple(row) for row in cells.tolist()]
    same = identities(rows)
    for a in range(len(rows)):
        for b in range(a):
            assert (keys[a] == keys[b]) == (same[a] == same[b])


@settings(max_examples=100, deadline=None)
@given(tables())
def test_parts_of_columns_encode_alike(table: tuple[list[Type], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    layout, strings = Layout.of(types), Strings()
    whole = layout.encode(arrays(types, rows), strings)
    sliced = layout.encode([column.slice(1) for column in arrays(types, rows)], strings)
    assert sliced.tolist() == whole[1:].tolist()


@settings(max_examples=100, deadline=None)
@given(tables())
def test_order_keys_sort_as_payloads_do(table: tuple[list[Type], list[tuple[Any, ...]]]) -> None:
    types, rows = table
    if not rows:
        return
    layout, strings = Layout.of(types), Strings()
    keys = layout.order_keys(layout.encode(arrays(types, rows), strings), strings)
    found = [identities(rows)[n] for n in np.lexsort(keys[::-1])]
    assert found == identities(sorted(rows, key=lambda row: [order(value) for value in row]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(max_size=2)), st.lists(st.text(max_size=2)), st.lists(st.text(max_size=2)))
def test_strings_keep_their_numbers_while_held(first: list[str], held: list[str], second: list[str]) -> None:
    strings = Strings()
    numbers = dict(zip(first, strings.encode(pa.array(first, pa.string())).tolist(), strict=True))
    live = {text: code for text, code in numbers.items() if text in held}
    strings.keep_only(np.array(list(live.values()), np.int64))
    assert len(strings) == len(live)
    codes = strings.encode(pa.array(second, pa.string()))
    assert strings.decode(codes, np.zeros(len(second), np.bool_)).to_pylist() == second
    assert all(code == live[text] for text, code in zip(second, codes.tolist(), strict=True) if text in live)
    assert max(codes.tolist(), default=0) < max(len(numbers), len({*live, *second}), 1)  # free numbers come first


def test_few_of_many_strings_decode_alike() -> None:
    strings = Strings()
    texts = [f"text {n}" for n in range(2 * STRINGS_SHOWN.usual)]
    codes = strings.encode(pa.array(texts))
    picked, mask = codes[::1000], np.zeros(len(codes[::1000]), np.bool_)
    mask[1] = True
    expected = texts[::1000]
    expected[1] = None  # type: ignore[call-overload]
    assert strings.decode(picked, mask).to_pylist() == expected


def test_string_codes_leave_nulls_out() -> None:
    layout, strings = Layout.of(Schema.of({"s": "string", "v": "int64", "t": "string"})), Strings()
    cells = layout.encode([pa.array(["a", None]), pa.array([1, 2]), pa.array([None, "b"])], strings)
    assert strings.decode(layout.string_codes(cells), np.zeros(2, np.bool_)).to_pylist() == ["a", "b"]


def test_a_column_of_nulls() -> None:
    layout, strings = Layout.of([NULL]), Strings()
    cells = layout.encode([pa.nulls(2)], strings)
    assert layout.decode(cells, strings)[0].to_pylist() == [None, None]


def test_nan_and_zero_have_one_form() -> None:
    values = pa.array([math.nan, -math.nan, np.float64(np.uint64(0x7FF8000000000001).view(np.float64)), 0.0, -0.0])
    cells = Layout.of([parse_type("float64")]).encode([values], Strings())
    assert len(set(cells[:, 0].tolist())) == 2


def test_too_many_columns_are_refused() -> None:
    with pytest.raises(PlanError, match="63 payload columns; at most 62 are supported here") as caught:
        Layout.of([parse_type("int64")] * 63)
    assert caught.value.name == "limit_exceeded"
    assert caught.value.fix == "select the columns that the query needs"
