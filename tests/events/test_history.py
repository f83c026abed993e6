from __future__ import annotations

import json
import random
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.history import History, Row
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from tests.events.strategies import SMALL, payloads, rows, schemas

V = Schema.of({"v": "int64"})


@given(rows(), st.randoms())
def test_order_of_rows_does_not_matter(items: list[tuple[int, int, dict[str, object]]], rng: random.Random) -> None:
    history = History.from_rows(SMALL, items)
    rng.shuffle(items)
    assert History.from_rows(SMALL, items) == history
    assert len(history) == len(items)


@given(rows(), rows())
def test_a_stream_is_the_sum_of_its_batches(
    a: list[tuple[int, int, dict[str, object]]], b: list[tuple[int, int, dict[str, object]]]
) -> None:
    plus = [History.from_rows(SMALL, items).to_batch() for items in (a, b)]
    minus = Batch.from_rows(SMALL, [(le, re, -1, p) for le, re, p in a])
    assert History.from_batches(SMALL, [*plus, minus]) == History.from_rows(SMALL, b)
    assert History.from_batches(SMALL, plus) == History.from_rows(SMALL, a + b)


@given(st.data())
def test_every_type_round_trips_through_rows_and_tables(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    items = [(1, 5, p) for p in data.draw(st.lists(payloads(schema), max_size=5))]
    history = History.from_rows(schema, items)
    assert History.from_rows(schema, history.to_rows()) == history
    assert History.from_table(schema, history.expand()) == history
    assert History.from_table(schema, history.rows) == history
    assert History.from_batches(schema, [history.to_batch()]) == history


def test_rows_are_in_canonical_order() -> None:
    schema = Schema.of({"k": "string", "v": "float64"})
    items = [(1, 5, {"k": None}), (1, FOREVER, {"k": "a"}), (1, 5, {"k": "é"}), (0, 9, {}), (1, 5, {"k": "z", "v": 2})]
    items += [(1, 5, {"k": "z", "v": float("nan")}), (1, 5, {"k": "z", "v": float("inf")}), (1, 5, {"k": "z"})]
    shown = [(r.le, r.re, r.payload["k"], str(r.payload["v"])) for r in History.from_rows(schema, items).to_rows()]
    assert shown == [
        (0, 9, None, "None"),
        (1, 5, "z", "2.0"),
        (1, 5, "z", "inf"),
        (1, 5, "z", "nan"),
        (1, 5, "z", "None"),
        (1, 5, "é", "None"),
        (1, 5, None, "None"),
        (1, FOREVER, "a", "None"),
    ]


def test_minus_zero_and_nan_are_one_value_each() -> None:
    schema = Schema.of({"v": "float64"})
    history = History.from_rows(schema, [(1, 2, {"v": v}) for v in (0.0, -0.0, float("nan"), -float("nan"))])
    assert history.rows["w"].to_pylist() == [2, 2]
    assert history == History.from_table(schema, history.expand())


def test_json_lines() -> None:
    schema = Schema.of({"d": "decimal(5,2)", "on": "date", "at": "timestamp", "f": "float64", "s": "string"})
    at = datetime(2024, 5, 1, 12, tzinfo=UTC)
    payload = {"d": Decimal("1.50"), "on": date(2024, 5, 1), "at": at, "f": float("nan"), "s": None}
    line = History.from_rows(schema, [(1, FOREVER, payload)]).to_json_lines()
    assert line == (
        '{"le": 1, "re": "inf", "payload": {"d": "1.50", "on": "2024-05-01", "at": "2024-05-01T12:00:00Z", '
        '"f": NaN, "s": null}}\n'
    )
    assert json.loads(line)["re"] == "inf"


def test_negative_counts_are_an_unmatched_retraction() -> None:
    batch = Batch.from_rows(V, [(1, 5, -1, {"v": 7})])
    with pytest.raises(
        InputError, match=r"more was retracted than inserted: 1 of 1 rows\n  at: \[1, 5\) v=7 × -1"
    ) as info:
        History.from_batches(V, [batch])
    assert info.value.name == "unmatched_retraction"
    kept = History.from_batches(V, [batch], allow_negative=True)
    assert kept.rows["w"].to_pylist() == [-1]
    with pytest.raises(InputError, match="negative counts"):
        kept.expand()
    assert "1 events" in repr(kept)


@pytest.mark.parametrize(
    ("le", "re", "name"), [(5, 5, "empty_lifetime"), (5, 3, "empty_lifetime"), (0, 2**62 + 1, "bad_input")]
)
def test_bad_lifetimes_are_refused(le: int, re: int, name: str) -> None:
    with pytest.raises(InputError) as info:
        History.from_rows(V, [(le, re, {"v": 1})])
    assert info.value.name == name
    assert str(re) in str(info.value.at), "a time beyond the infinities is no infinity"


@pytest.mark.parametrize(
    ("table", "name", "text"),
    [
        (pa.table({"le": [1], "re": [2]}), "unknown_column", 'no column "v"'),
        (pa.table({"le": [1], "re": [2], "v": [1], "x": [1]}), "unknown_column", 'unknown column "x"'),
        (pa.table({"le": [1], "re": [2], "v": [1.5]}), "type_mismatch", 'column "v" of type double'),
        (pa.table({"le": [1], "re": pa.array([None], pa.int64()), "v": [1]}), "bad_input", 'column "re" has nulls'),
    ],
)
def test_tables_that_do_not_fit_are_refused(table: pa.Table, name: str, text: str) -> None:
    with pytest.raises(InputError, match=text) as info:
        History.from_table(V, table)
    assert info.value.name == name


def test_rows_with_unknown_columns_or_types_are_refused() -> None:
    with pytest.raises(InputError, match='unknown column "x"'):
        History.from_rows(V, [(1, 2, {"x": 1})])
    with pytest.raises(InputError, match="'a' is not of type int64"):
        History.from_rows(V, [(1, 2, {"v": "a"})])


def test_weights_in_tables_count() -> None:
    history = History.from_table(V, pa.table({"le": [1], "re": [2], "w": [3], "v": [1]}))
    assert len(history) == 3
    assert history.to_rows() == [Row(1, 2, {"v": 1})] * 3
    assert str(history.to_rows()[0]) == "[1, 2) v=1"


def test_histories_differ_by_schema_and_unit() -> None:
    assert History.empty(V) != History.empty(Schema.of({"v": "float64"}))
    assert History.empty(V) != History.empty(Schema.of({"v": "int64"}, unit="s"))
    assert History.empty(V) != 1
    with pytest.raises(InputError, match="the schema says"):
        History(V, pa.table({"le": [1]}))
    with pytest.raises(InputError, match="give the schema of the batches"):
        History.from_batches(V, [Batch.empty(Schema())])
