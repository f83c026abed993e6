from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from engine.agreement import Bag, bag
from engine.match import Score, disagreements
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = ("t", "k", "a")
ROWS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 999)), min_size=1, max_size=20)


def written(folder: Path, rows: list[tuple[int, int, int]], weights: list[int] | None = None) -> Path:
    t, k, a = zip(*rows, strict=True)
    columns: dict[str, object] = {"a": [value / 7 for value in a], "k": k, "t": t}
    if weights:
        columns["w"] = weights
    path = folder / "result.parquet"
    pq.write_table(pa.table(columns), path)
    return path


@given(rows=ROWS, data=st.data())
def test_the_order_of_rows_does_not_matter(tmp_path_factory, rows, data):
    folder = tmp_path_factory.mktemp("bags")
    shuffled = data.draw(st.permutations(rows))
    assert bag(written(folder, rows), COLUMNS) == bag(written(folder, shuffled), COLUMNS)


@given(rows=ROWS, other=ROWS)
def test_other_rows_are_another_bag(tmp_path_factory, rows, other):
    folder = tmp_path_factory.mktemp("bags")
    same = bag(written(folder, rows), COLUMNS) == bag(written(folder, other), COLUMNS)
    assert same == (sorted(rows) == sorted(other))


def test_a_row_and_its_retraction_are_nothing(tmp_path):
    plain = bag(written(tmp_path, [(1, 2, 3)]), COLUMNS)
    assert bag(written(tmp_path, [(1, 2, 3), (4, 5, 6), (4, 5, 6)], [1, 1, -1]), COLUMNS) == plain


def test_the_last_bit_of_a_mean_does_not_matter(tmp_path):
    one, other = tmp_path / "one.parquet", tmp_path / "other.parquet"
    pq.write_table(pa.table({"a": [0.0000078125]}), one)
    pq.write_table(pa.table({"a": [0.0000078125 * (1 + 2**-52)]}), other)
    assert bag(one, ("a",)) == bag(other, ("a",))


def test_who_differs_is_named():
    agreed = Score(cpu=1.0, rows=10, small=Bag(2, "aa"))
    scores = {
        "local": agreed,
        "duckdb": Score(cpu=1.0, rows=10, small=Bag(2, "bb")),
        "polars": Score(cpu=1.0, rows=11, small=Bag(2, "aa")),
        "flink": Score(cpu=1.0, rows=None, small=Bag(2, "aa")),
        "spark": Score(note="cannot express it"),
    }
    assert disagreements(scores) == [
        "duckdb gave Bag(rows=2, checksum='bb'), local Bag(rows=2, checksum='aa')",
        "polars gave 11 rows of the full run, local 10",
    ]
