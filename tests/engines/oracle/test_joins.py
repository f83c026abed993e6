"""Joins by bins find the pairs that a join by definition finds, for lifetimes of every length."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import StreamproofError
from streamproof.events.time import BEGINNING, FOREVER
from tests.engines.oracle.running import R, S, history, run, spans

COLUMNS = {"k": "int64", "v": "int64"}
OTHER = {"k2": "int64", "w_": "int64"}
LENGTHS = st.one_of(
    st.integers(1, 3),
    st.integers(1, 300),
    st.integers(1, 2**40),
    st.sampled_from([1, 15, 16, 17, 255, 256, 257, 2**60]),
)
STARTS = st.one_of(st.integers(-20, 20), st.integers(-(2**45), 2**45), st.just(BEGINNING))


@st.composite
def lifetimes(draw: st.DrawFn) -> tuple[int, int]:
    le = draw(STARTS)
    re = draw(st.one_of(LENGTHS.map(lambda length: le + length), st.just(FOREVER)))
    return le, re


def streams(names: tuple[str, str]) -> st.SearchStrategy[list[tuple[int, int, dict[str, Any]]]]:
    key = st.one_of(st.none(), st.integers(0, 2))
    row = st.tuples(lifetimes(), key, st.integers(0, 3)).map(lambda t: (*t[0], {names[0]: t[1], names[1]: t[2]}))
    return st.lists(row, max_size=12)


def _expected(left: Any, right: Any, *, starts: bool) -> list[tuple[Any, ...]]:
    rows = []
    for a, b, p in left:
        for c, d, q in right:
            inside = a < c < b if starts else max(a, c) < min(b, d)
            if inside and p["k"] is not None and p["k"] == q["k2"]:
                rows.append((max(a, c), min(b, d), p["v"], q["w_"]))
    return sorted(rows)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(left=streams(("k", "v")), right=streams(("k2", "w_")), starts=st.booleans())
@example(left=[(0, FOREVER, {"k": 1, "v": 1})], right=[(5, 6, {"k2": 1, "w_": 2})], starts=True)
@example(left=[(14, 18, {"k": 1, "v": 1})], right=[(15, 17, {"k2": 1, "w_": 2})], starts=False)  # two bins shared
@example(left=[(250, 260, {"k": 1, "v": 1})], right=[(0, 900, {"k2": 1, "w_": 2})], starts=False)  # two levels
def test_pairs_meet_once(left: Any, right: Any, starts: bool, duckdb: Oracle) -> None:
    plan = {
        "op": "followed_by" if starts else "join",
        "left": S,
        "right": R,
        "on": "l.k = r.k2",
        "select": {"v": "l.v", "u": "r.w_"},
    }
    found = run(duckdb, plan, S=history(COLUMNS, left), R=history(OTHER, right))
    assert sorted(spans(found)) == _expected(left, right, starts=starts)


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(left=streams(("k", "v")), right=streams(("k2", "w_")))
def test_clip_by_the_next_start_equals_clip_by_pairs(left: Any, right: Any, duckdb: Oracle) -> None:
    """A condition of equalities alone takes another way than one that also compares; both must agree."""
    inputs = {"S": history(COLUMNS, left), "R": history(OTHER, right)}
    fast = run(duckdb, {"op": "clip", "in": S, "by": R, "on": "l.k = r.k2"}, **inputs)
    slow = run(duckdb, {"op": "clip", "in": S, "by": R, "on": "l.k = r.k2 and l.v < 100"}, **inputs)
    assert fast == slow


def test_null_keys_match_only_by_is_not_distinct_from(engine: Oracle) -> None:
    inputs = {
        "S": history(COLUMNS, [(0, 5, {"k": None, "v": 1})]),
        "R": history(OTHER, [(3, 9, {"k2": None, "w_": 2})]),
    }
    plan = {"op": "join", "left": S, "right": R, "on": "l.k = r.k2"}
    assert spans(run(engine, plan, **inputs)) == []
    assert spans(run(engine, plan | {"on": "l.k is not distinct from r.k2"}, **inputs)) == [(3, 5, None, 1, None, 2)]
    clip = {"op": "clip", "in": S, "by": R, "on": "l.k is not distinct from r.k2"}
    assert spans(run(engine, clip, **inputs)) == [(0, 3, None, 1)]


def test_the_missing_side_of_an_outer_join_is_null_in_expressions(engine: Oracle) -> None:
    inputs = {"S": history(COLUMNS, [(0, 5, {"k": 1, "v": 1})]), "R": history(OTHER, [(3, 9, {"k2": 1, "w_": 2})])}
    plan = {"op": "full_outer", "left": S, "right": R, "on": "l.k = r.k2",
            "select": {"a": "coalesce(l.v, -1)", "b": "coalesce(r.w_, -1)",
            "start": "coalesce(l.le, r.le)"}}  # fmt: skip
    assert spans(run(engine, plan, **inputs)) == [(0, 3, 1, -1, 0), (3, 5, 1, 2, 0), (5, 9, -1, 2, 3)]


def test_a_condition_that_fails_sees_only_pairs_that_meet(engine: Oracle) -> None:
    text = {"s": "string"}
    inputs = {
        "S": history(text, [(0, 5, {"s": "1"}), (50, 60, {"s": "x"})]),
        "R": history({"t": "string"}, [(3, 9, {"t": "1"})]),
    }
    plan = {"op": "join", "left": S, "right": R, "on": "cast(l.s as bigint) = cast(r.t as bigint) and l.s = r.t"}
    assert spans(run(engine, plan, **inputs)) == [(3, 5, "1", "1")]
    inputs["R"] = history({"t": "string"}, [(3, 55, {"t": "1"})])
    failing = plan | {"on": "cast(l.s as bigint) = cast(r.t as bigint)"}
    with pytest.raises(StreamproofError) as caught:
        run(engine, failing, **inputs)
    assert caught.value.name == "bad_input"


def test_a_union_matches_columns_by_name_and_widens(engine: Oracle) -> None:
    inputs = {"S": history({"a": "int64", "b": "string"}, [(0, 1, {"a": 1, "b": "x"})]),
              "R": history({"b": "string", "a": "float64"}, [(0, 1, {"b": "y", "a": 2.5})])}  # fmt: skip
    assert spans(run(engine, {"op": "union", "ins": [S, R]}, **inputs)) == [(0, 1, 1.0, "x"), (0, 1, 2.5, "y")]


def test_groups_inside_groups(engine: Oracle) -> None:
    rows = [(0, 9, {"k": k, "v": v}) for k in (None, 1) for v in (1, None)] * 2
    inner = {"op": "group_apply", "in": {"op": "group_input"}, "key": ["v"],
             "apply": {"op": "agg", "in": {"op": "group_input"}, "window": {"type": "snapshot"},
                       "aggs": {"n": ["count", None]}}}  # fmt: skip
    found = run(engine, {"op": "group_apply", "in": S, "key": ["k"], "apply": inner}, S=history(COLUMNS, rows))
    assert found.schema.names == ("k", "v", "n")
    assert spans(found) == [(0, 9, 1, 1, 2), (0, 9, 1, None, 2), (0, 9, None, 1, 2), (0, 9, None, None, 2)]
