"""Dense numbers for rows of cells: the same row always has the same number, while somebody holds it."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.kernels.interning import Interner
from streamproof.thresholds import lowered

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([0, 1, 2**62, -(2**62)])), max_size=40)


def cells(rows: list[tuple[int, int]]) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    return np.array(rows, np.int64).reshape(-1, 2)


@settings(max_examples=100, deadline=None)
@given(st.lists(ROWS, max_size=4))
def test_numbers_and_rows_are_inverse(batches: list[list[tuple[int, int]]]) -> None:
    known, numbers = Interner(2, capacity=2), {}
    for rows in batches:
        codes = known.intern(cells(rows))
        assert known.rows(codes).tolist() == [list(row) for row in rows]
        assert known.column(codes, 1).tolist() == [row[1] for row in rows]
        for row, code in zip(rows, codes.tolist(), strict=True):
            assert numbers.setdefault(row, code) == code
    assert sorted(numbers.values()) == list(range(len(numbers)))  # dense
    assert len(known) == len(numbers)


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sets(st.integers(0, 30)), ROWS)
def test_numbers_that_nobody_holds_are_given_again(
    first: list[tuple[int, int]], held: set[int], second: list[tuple[int, int]]
) -> None:
    known = Interner(2, capacity=4)
    numbers = dict(zip(first, known.intern(cells(first)).tolist(), strict=True))
    live = {row: code for row, code in numbers.items() if code in held}
    known.keep_only(np.array(sorted(live.values()), np.int64))
    assert len(known) == len(live)
    again = dict(zip(second, known.intern(cells(second)).tolist(), strict=True))
    assert all(again[row] == live[row] for row in again if row in live)
    everything = {**live, **again}
    assert len(set(everything.values())) == len(everything)
    most = max(len(numbers), len(everything))
    assert all(code < most for code in everything.values())


@settings(max_examples=100, deadline=None)
@given(ROWS, st.sets(st.integers(0, 30)), ROWS)
def test_restore_is_the_inverse_of_export(
    first: list[tuple[int, int]], held: set[int], second: list[tuple[int, int]]
) -> None:
    known = Interner(2)
    codes = known.intern(cells(first))
    known.keep_only(np.array(sorted(held & set(codes.tolist())), np.int64))
    other = Interner.restore(2, *known.export())
    assert [part.tolist() for part in other.export()] == [part.tolist() for part in known.export()]
    assert other.rows(other.intern(cells(second))).tolist() == [list(row) for row in second]
    kept = [row for row, code in zip(first, codes.tolist(), strict=True) if code in held]
    assert other.intern(cells(kept)).tolist() == known.intern(cells(kept)).tolist()


PLAIN = st.lists(st.tuples(st.sampled_from([0, 0, 1, -1]), st.sampled_from([0, 1, 2, 3, 7, -1, 2**62])), max_size=20)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(PLAIN, st.sampled_from(["plain", "whole", "forget", "restart"]), st.booleans()), max_size=8))
def test_plain_rows_have_the_numbers_that_they_have_as_rows(steps: list[tuple[Any, str, bool]]) -> None:
    """Small numbers are found without hashing, also after some were forgotten."""
    numbers: dict[tuple[int, int], int] = {}
    with lowered({"interning.plain": 3, "interning.room": 1}):
        known = Interner(3)
        for rows, what, all_plain in steps:
            if what == "forget":
                numbers = dict(list(numbers.items())[::2])
                known.keep_only(np.array(list(numbers.values()), np.int64))
            elif what == "restart":
                known = Interner.restore(3, *known.export())
            whole = np.array([(*row, 0) for row in rows], np.int64).reshape(-1, 3)
            codes = (
                known.intern_plain(whole[:, 0].copy(), whole[:, 1].copy()) if what == "plain" else known.intern(whole)
            )
            for row, code in zip(rows, codes.tolist(), strict=True):
                assert numbers.setdefault(row, code) == code
            assert len(set(numbers.values())) == len(numbers) == len(known)
            assert known.rows(codes).tolist() == whole.tolist()
            other = known.intern(np.array([[0, 1, 5]])) if not all_plain else codes[:0]  # not plain: its last cell is 5
            firsts, seconds, plain = known.plain_columns(np.concatenate([codes, other]))
            assert list(zip(firsts.tolist(), seconds.tolist(), strict=True)) == rows + [(0, 1)] * len(other)
            assert plain is (not len(other))
            known.keep_only(np.array(list(numbers.values()), np.int64))


def test_many_rows() -> None:
    known = Interner(2)
    rows = np.stack([np.arange(100_000), np.arange(100_000) % 7], axis=1)
    assert known.intern(rows).tolist() == list(range(100_000))
    assert known.intern(rows[::-1].copy()).tolist() == list(range(99_999, -1, -1))
