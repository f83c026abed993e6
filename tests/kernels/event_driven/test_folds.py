"""The sharing algorithms agree: whatever the ranges, whatever adds up."""

from __future__ import annotations

import numpy as np
import pytest

from streamproof.kernels.event_driven import event_loops, folds


def ranges(chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:  # type: ignore[type-arg]
    count, asked = int(chance.integers(0, 40)), int(chance.integers(0, 15))
    rows = chance.integers(-9, 9, (count, 2))
    ops = np.array([event_loops.ADD, chance.integers(0, 2)])
    ends = np.sort(chance.integers(0, count + 1, (asked, 2)), axis=1)
    return rows, ops, np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])


@pytest.mark.parametrize("name", ["running", "slices", "folded"])
def test_they_agree_with_scanning(name: str) -> None:
    fold, chance = getattr(folds, name), np.random.default_rng(1)
    for _ in range(500):
        rows, ops, first, last = ranges(chance)
        assert (fold(rows, ops, first, last) == folds.delayed(rows, ops, first, last)).all()


def test_what_is_taken_off_agrees_with_scanning() -> None:
    chance = np.random.default_rng(2)
    for _ in range(300):
        rows, ops, first, last = ranges(chance)
        ops[:] = event_loops.ADD
        assert (folds.prefixes(rows, ops, first, last) == folds.delayed(rows, ops, first, last)).all()


def test_two_stacks_agree_where_ranges_end_in_turn() -> None:
    chance = np.random.default_rng(3)
    for _ in range(500):
        rows, ops, first, last = ranges(chance)
        first, last = np.sort(first), np.sort(last)
        assert (folds.two_stacks(rows, ops, first, last) == folds.delayed(rows, ops, first, last)).all()


def test_the_algorithm_is_chosen_by_aggregate_and_order() -> None:
    adds, extremes = np.array([event_loops.ADD]), np.array([folds.GREATEST])
    first, crossed = np.array([0, 2]), np.array([5, 3])
    assert folds.chosen(adds, first, crossed) is folds.prefixes
    assert folds.chosen(extremes, first, crossed) is folds.slices
    assert folds.chosen(extremes, first, np.array([3, 5])) is folds.two_stacks
