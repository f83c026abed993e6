"""Matchers: the worked cases, and reasons that can be read."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof.properties import (
    Verdict,
    empty,
    evaluate,
    every,
    exists,
    has_count,
    minus,
    nonempty,
    now,
    same,
    subset,
)
from tests.properties.cases import CASES

PREDICATES = {"true": lambda v: True, "false": lambda v: False}


@pytest.mark.parametrize("case", CASES["matcher_cases"], ids=lambda case: case["id"])
def test_worked_cases(case: Any) -> None:
    kind, data = case["matcher"], case["data"]
    if kind in {"exists", "forall"}:
        found: Any = (exists if kind == "exists" else every)(data, PREDICATES[case["predicate"]])
    elif kind in {"empty", "nonempty"}:
        found = (empty if kind == "empty" else nonempty)(data)
    else:
        found = {"subset": subset, "minus": minus}[kind](data, case["of"])
    assert (found if isinstance(case["expected"], list) else bool(found)) == case["expected"]


def test_sets_and_multisets() -> None:
    assert subset([1, 1], [1])
    assert not subset([1, 1], [1], multiset=True)
    assert same([1, 2], [2, 1])
    assert not same([1, 1], [1])
    assert same([1, 1], [1], multiset=False)
    assert has_count([1, 2], 2)


def test_reasons_name_the_difference() -> None:
    assert repr(same([1, 2], [2, 3])) == "no: only left: 1; only right: 3"
    assert repr(subset([{"v": 1}], [])) == "no: 1 of 1 are missing: {'v': 1}"
    assert repr(has_count([], 2)) == "no: 0 rows, not 2"


def test_matches_combine_with_booleans_and_formulas() -> None:
    good, bad = has_count([], 0), has_count([], 1)
    assert (good & bad) is bad
    assert (bad | good) is good
    assert (good & True) is True
    assert (bad | now(bool)) is now(bool)
    assert evaluate(good & now(bool), [True]) is Verdict.HOLDS
