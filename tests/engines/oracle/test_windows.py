"""Aggregates, rankings, sessions and equal payloads: what the worked cases leave open."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from tests.engines.oracle.running import S, history, run, spans

NAN = math.nan
SNAPSHOT = {"type": "snapshot"}
COLUMNS = {"i": "int64", "x": "float64", "s": "string", "b": "bool", "d": "decimal(5,2)", "z": "null"}


def aggregate(engine: Oracle, aggs: dict[str, Any], rows: list[dict[str, Any]], **more: Any) -> list[tuple[Any, ...]]:
    plan = {"op": "agg", "in": S, "window": SNAPSHOT, "aggs": aggs, **more}
    return spans(run(engine, plan, S=history(COLUMNS, [(0, 1, row) for row in rows])))


@pytest.mark.parametrize(
    ("agg", "rows", "expected"),
    [
        (["count", "x"], [{"x": None}, {"x": 1.0}], 2),
        (["sum", "i"], [{}, {}], None),
        (["sum", "x"], [{"x": 1e16}, {"x": 1.0}, {"x": -1e16}], 1.0),
        (["sum", "x"], [{"x": 1e308}, {"x": 1e308}, {"x": -1e308}], 1e308),
        (["sum", "x"], [{"x": 1e308}, {"x": 1e308}], math.inf),
        (["sum", "x"], [{"x": math.inf}, {"x": 1.0}, {"x": None}], math.inf),
        (["avg", "x"], [{"x": 1e308}, {"x": 1e308}], 1e308),
        (["avg", "i"], [{"i": 1}, {"i": 2}, {}], 1.5),
        (["avg", "i"], [{"i": 2**63 - 1}, {"i": 2**63 - 1}], float(2**63)),
        (["avg", "z"], [{}], None),
        (["min", "x"], [{"x": NAN}, {"x": 2.0}], 2.0),
        (["max", "b"], [{"b": False}, {"b": True}, {}], True),
        (["min", "b"], [{"b": False}, {"b": True}], False),
        (["max", "s"], [{"s": "a"}, {"s": "B"}], "a"),
        (["count_distinct", "x"], [{"x": 0.0}, {"x": -0.0}, {"x": NAN}, {"x": NAN}, {}], 2),
        (["stdev_samp", "i"], [{"i": 3}], None),
        (["stdev_pop", "i"], [{"i": 3}], 0.0),
        (["var_samp", "i"], [{"i": 2**60}, {"i": 2**60 + 1024}], 524288.0),
        (["var_pop", "x"], [{"x": 1.0}, {"x": math.inf}], NAN),
        (["median", "i"], [{"i": 1}, {"i": 2}], 1.5),
        (["percentile", "x", 0.75], [{"x": math.inf}, {"x": math.inf}, {"x": 1.0}], math.inf),
        (["percentile", "x", 1], [{"x": 5.0}, {"x": NAN}], NAN),
        (["sum", "z"], [{}], None),
        (["first", "s"], [{"i": 2, "s": "b"}, {"i": 1, "s": None}, {"i": 3, "s": "c"}], "b"),
        (["last", "s"], [{"i": None, "s": "n"}, {"i": 9, "s": "m"}], "n"),
    ],
    ids=str,
)
def test_aggregate(agg: list[Any], rows: list[dict[str, Any]], expected: Any, engine: Oracle) -> None:
    ((_, _, found),) = aggregate(engine, {"a": agg}, rows)
    same_nan = isinstance(found, float) and isinstance(expected, float) and math.isnan(found) and math.isnan(expected)
    assert same_nan or found == expected


def test_a_sum_that_does_not_fit_is_an_overflow(engine: Oracle) -> None:
    with pytest.raises(RunError) as caught:
        aggregate(engine, {"a": ["sum", "i"]}, [{"i": 2**62}, {"i": 2**62}])
    assert caught.value.name == "overflow"
    assert caught.value.at == "agg(snapshot, a=sum(i))"


def test_an_endless_window_has_no_end_point(engine: Oracle) -> None:
    plan = {"op": "agg", "in": S, "window": SNAPSHOT, "output": "point_end", "aggs": {"n": ["count", None]}}
    stream = history({}, [(0, 5, {}), (3, FOREVER, {})])
    assert spans(run(engine, plan, S=stream)) == [(3, 4, 1), (5, 6, 2)]


@pytest.mark.parametrize(
    ("direction", "expected"),
    [("asc", [(1.0, 1), (math.inf, 2), (NAN, 3), (None, 4), (None, 4)]),
     ("desc", [(NAN, 1), (math.inf, 2), (1.0, 3), (None, 4), (None, 4)])],
)  # fmt: skip
def test_ranks_put_nulls_last_and_nan_above_numbers(direction: str, expected: list[Any], engine: Oracle) -> None:
    stream = history({"x": "float64"}, [(0, 1, {"x": x}) for x in (None, NAN, 1.0, None, math.inf)])
    plan = {"op": "topk", "in": S, "window": SNAPSHOT, "k": 4, "by": [["x", direction]], "rank": "r"}
    found = sorted(((x, r) for _, _, x, r in spans(run(engine, plan, S=stream))), key=lambda row: row[1])
    assert repr(found) == repr(expected)


# --- equal payloads ---------------------------------------------------------------------------------------------------


def test_equal_payloads_include_null_nan_and_both_zeros(engine: Oracle) -> None:
    rows = [
        (0, 2, {"x": NAN}),
        (1, 4, {"x": NAN}),
        (0, 1, {"x": None}),
        (1, 2, {"x": None}),
        (0, 1, {"x": 0.0}),
        (1, 2, {"x": -0.0}),
    ]
    stream = history({"x": "float64"}, rows)
    assert repr(spans(run(engine, {"op": "coalesce", "in": S}, S=stream))) == repr(
        [(0, 2, 0.0), (0, 2, None), (0, 4, NAN)]
    )


def test_stitch_continues_the_chain_that_started_first(engine: Oracle) -> None:
    rows = [(0, 4, {"v": 1}), (1, 5, {"v": 1}), (4, 5, {"v": 1}), (5, 9, {"v": 1}), (5, 7, {"v": 2})]
    found = run(engine, {"op": "stitch", "in": S}, S=history({"v": "int64"}, rows))
    assert spans(found) == [(0, 9, 1), (1, 5, 1), (5, 7, 2)]


def test_stitch_undoes_chop_with_duplicates(engine: Oracle) -> None:
    rows = [(0, 25, {"v": 1})] * 2 + [(3, 18, {"v": 2}), (7, 8, {"v": None})]
    stream = history({"v": "int64"}, rows)
    found = run(engine, {"op": "stitch", "in": {"op": "chop", "in": S, "period": 5}}, S=stream)
    assert found == stream


def test_stitch_of_a_long_chain(engine: Oracle) -> None:
    stream = history({}, [(t, t + 1, {}) for t in range(500)])
    assert spans(run(engine, {"op": "stitch", "in": S}, S=stream)) == [(0, 500)]


# --- sessions ---------------------------------------------------------------------------------------------------------


def test_sessions_are_split_where_they_grow_too_long(engine: Oracle) -> None:
    stream = history({}, [(t, t + 1, {}) for t in (0, 4, 8, 12, 16, 40)])
    found = run(engine, {"op": "session", "in": S, "timeout": 5, "max": 10}, S=stream)
    assert spans(found) == [(0, 10), (4, 10), (8, 10), (12, 21), (16, 21), (40, 45)]


def test_a_gap_of_the_timeout_starts_a_new_session(engine: Oracle) -> None:
    stream = history({}, [(t, t + 1, {}) for t in (0, 4, 9)])
    assert spans(run(engine, {"op": "session", "in": S, "timeout": 5}, S=stream)) == [(0, 9), (4, 9), (9, 14)]


def test_sessions_by_key_take_null_as_a_key(engine: Oracle) -> None:
    rows = [(0, 1, {"k": None}), (3, 4, {"k": None}), (1, 2, {"k": "a"}), (9, 10, {"k": "a"})]
    found = run(engine, {"op": "session", "in": S, "timeout": 5, "key": ["k"]}, S=history({"k": "string"}, rows))
    assert spans(found) == [(0, 8, None), (1, 6, "a"), (3, 8, None), (9, 14, "a")]


def test_a_long_run_of_short_sessions(engine: Oracle) -> None:
    stream = history({}, [(t, t + 1, {}) for t in range(300)])
    found = run(engine, {"op": "session", "in": S, "timeout": 2, "max": 3}, S=stream)
    assert spans(found)[:4] == [(0, 3), (1, 3), (2, 3), (3, 6)]
    assert len(found) == 300
