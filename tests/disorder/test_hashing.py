"""The same numbers as Spark's xxhash64, and never the same one twice."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from streamproof.disorder.hashing import draws, hash_bytes, hash_slices, uniforms


def of_bytes(text: bytes, seed: int) -> int:
    data = np.frombuffer(text + b" ", np.uint8)
    return int(hash_bytes(data, 0, len(text), np.uint64(seed)))


def test_known_values() -> None:
    assert of_bytes(b"", 0) == 0xEF46DB3751D8E999
    assert of_bytes(b"abc", 0) == 0x44BC2CF5AD770999
    assert of_bytes(b"xxhash", 20141025) == 0xB559B98D844E0635
    text = b"The quick brown fox jumps over the lazy dog"
    assert of_bytes(text, 0) == 0x0B242D361FDA71BC


@given(st.lists(st.integers(-(2**63), 2**63 - 1), unique=True, max_size=200), st.integers(-(2**63), 2**63 - 1))
def test_different_rows_draw_different_numbers(ids: list[int], seed: int) -> None:
    found = draws(seed, "select", np.array(ids, np.int64))
    assert len(set(found.tolist())) == len(ids)
    assert all(0 <= chance < 1 for chance in uniforms(found).tolist())


def test_the_same_as_spark(spark) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    ids = [0, 1, -5, 2**62, 12_345_678_901]
    frame = spark.createDataFrame(
        [(n, f"row {n} of a file with some longer text in it") for n in ids], "id long, text string"
    )
    rows = frame.select(F.xxhash64(F.lit(7).cast("long"), F.lit("select"), "id"), F.xxhash64("text"), "text").collect()
    ours = draws(7, "select", np.array(ids)).view(np.int64).tolist()
    assert [row[0] for row in rows] == ours
    for row in rows:
        data = np.frombuffer(row[2].encode(), np.uint8)
        assert int(hash_slices(data, np.array([0]), np.array([len(data)])).view(np.int64)[0]) == row[1]
