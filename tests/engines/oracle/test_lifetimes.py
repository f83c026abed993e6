"""Lifetimes at the edges: infinities, overflow, and what a duration may read."""

from __future__ import annotations

from typing import Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import RunError
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan.limits import Limits
from tests.engines.oracle.running import S, history, run, spans

LAST = FOREVER - 1
V = {"v": "int64"}


def one(le: int, re: int, v: int | None = 1) -> Any:
    return history(V, [(le, re, {"v": v})])


def test_infinite_ends_stay_under_shift(engine: Oracle) -> None:
    plan = {"op": "shift", "in": S, "by": -5}
    assert spans(run(engine, plan, S=one(BEGINNING, FOREVER))) == [(BEGINNING, FOREVER, 1)]
    assert spans(run(engine, plan, S=one(3, FOREVER))) == [(-2, FOREVER, 1)]
    assert spans(run(engine, plan, S=one(BEGINNING, 7))) == [(BEGINNING, 2, 1)]


OVERFLOWS = [
    ({"op": "shift", "in": S, "by": 1}, LAST - 1, LAST),
    ({"op": "shift", "in": S, "by": -1}, BEGINNING + 1, 0),
    ({"op": "shift", "in": S, "by": FOREVER}, LAST - 1, LAST),
    ({"op": "extend", "in": S, "by": 1}, 0, LAST),
    ({"op": "alter_duration", "in": S, "dur": 1}, LAST, FOREVER),
    ({"op": "alter_duration", "in": S, "dur": "v + 9223372036854775806"}, 0, 1),
    ({"op": "to_point", "in": S}, LAST, FOREVER),
    ({"op": "point_at_end", "in": S}, 0, LAST),
    ({"op": "session", "in": S, "timeout": 5}, LAST - 1, LAST),
    ({"op": "agg", "in": S, "window": {"type": "tumbling", "size": 4}, "aggs": {"n": ["count", None]}},
     LAST - 1, LAST),
    ({"op": "agg", "in": S, "window": {"type": "hopping", "size": 10, "hop": 3}, "aggs": {"n": ["count", None]}},
     BEGINNING + 2, 0),
    ({"op": "agg", "in": S, "window": {"type": "count_start", "n": 1}, "aggs": {"n": ["count", None]}}, LAST, FOREVER),
    ({"op": "agg", "in": S, "window": {"type": "snapshot"}, "output": "point_end", "aggs": {"n": ["count", None]}},
     0, LAST),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "le", "re"), OVERFLOWS, ids=lambda value: str(value)[:60])
def test_a_lifetime_that_leaves_time_is_an_overflow_that_names_the_event(
    plan: dict[str, Any], le: int, re: int, engine: Oracle
) -> None:
    settings = Settings(limits=Limits(windows_per_event=2**62))
    with pytest.raises(RunError, match="outside ±2\\^62") as caught:
        run(engine, plan, settings=settings, S=one(le, re))
    assert caught.value.name == "overflow"
    assert caught.value.at is not None
    assert "[" in caught.value.at


def test_a_count_window_without_enough_starts_overflows_nothing(engine: Oracle) -> None:
    plan = {"op": "agg", "in": S, "window": {"type": "count_start", "n": 2**62}, "aggs": {"n": ["count", None]}}
    assert spans(run(engine, plan, S=one(LAST, FOREVER))) == []


def test_a_duration_that_reads_the_end_is_not_evaluated_at_infinity(engine: Oracle) -> None:
    plan = {"op": "alter_duration", "in": S, "dur": "cast(cast(re as varchar) as bigint) * 9"}
    assert spans(run(engine, plan, S=one(3, FOREVER))) == [(3, FOREVER, 1)]
    assert spans(run(engine, plan, S=one(3, 5))) == [(3, 48, 1)]


@pytest.mark.parametrize(
    ("dur", "expected"), [("v", [(3, 5)]), ("v - 2", []), ("v - 9", []), ("null", []), ("inf", [(3, FOREVER)])]
)
def test_alter_duration(dur: str, expected: list[Any], engine: Oracle) -> None:
    found = run(engine, {"op": "alter_duration", "in": S, "dur": dur}, S=one(3, FOREVER, 2))
    assert [(le, re) for le, re, _ in spans(found)] == expected


def test_a_null_duration_gives_no_row(engine: Oracle) -> None:
    assert spans(run(engine, {"op": "alter_duration", "in": S, "dur": "v"}, S=one(3, 9, None))) == []


def test_extend_that_shrinks_to_nothing_vanishes(engine: Oracle) -> None:
    stream = history(V, [(0, 5, {"v": 1}), (0, 6, {"v": 2}), (0, FOREVER, {"v": 3})])
    assert spans(run(engine, {"op": "extend", "in": S, "by": -5}, S=stream)) == [(0, 1, 2), (0, FOREVER, 3)]


# --- windows that do not end ------------------------------------------------------------------------------------------

ENDLESS = [
    {"op": "chop", "in": S, "period": 10},
    {"op": "agg", "in": S, "window": {"type": "tumbling", "size": 10}, "aggs": {"n": ["count", None]}},
    {"op": "topk", "in": S, "window": {"type": "hopping", "size": 10, "hop": 5}, "k": 1, "by": [["v", "asc"]]},
]


@pytest.mark.parametrize("plan", ENDLESS, ids=lambda plan: plan["op"])
def test_endless_windows_need_a_horizon(plan: dict[str, Any], engine: Oracle) -> None:
    with pytest.raises(RunError, match="a lifetime without end") as caught:
        run(engine, plan, S=one(3, FOREVER))
    assert caught.value.name == "unbounded_windows"
    assert "--horizon" in (caught.value.fix or "")
    assert "[3, inf) v=1" in (caught.value.at or "")


@pytest.mark.parametrize("plan", ENDLESS, ids=lambda plan: plan["op"])
def test_a_lifetime_without_beginning_stays_an_error(plan: dict[str, Any], engine: Oracle) -> None:
    with pytest.raises(RunError, match="a lifetime without beginning") as caught:
        run(engine, plan, settings=Settings(horizon=50), S=one(BEGINNING, 5))
    assert caught.value.name == "unbounded_windows"


def test_the_horizon_leaves_out_windows_that_end_later_for_finite_lifetimes_too(engine: Oracle) -> None:
    stream = history(V, [(3, FOREVER, {"v": 1}), (12, 30, {"v": 2})])
    settings = Settings(horizon=25)
    counts = run(engine, ENDLESS[1], settings=settings, S=stream)
    assert spans(counts) == [(0, 10, 1), (10, 20, 2)]
    pieces = run(engine, ENDLESS[0], settings=settings, S=stream)
    assert spans(pieces) == [(3, 10, 1), (10, 20, 1), (12, 20, 2)]


def test_the_horizon_holds_in_nested_operators(engine: Oracle) -> None:
    inner = {"op": "group_apply", "in": S, "key": ["v"],
             "apply": {"op": "agg", "in": {"op": "group_input"}, "window": {"type": "tumbling", "size": 10},
                       "aggs": {"n": ["count", None]}}}  # fmt: skip
    found = run(engine, inner, settings=Settings(horizon=20), S=one(3, FOREVER))
    assert spans(found) == [(0, 10, 1, 1), (10, 20, 1, 1)]


def test_too_many_windows_are_counted_before_they_are_made(engine: Oracle) -> None:
    plan = {"op": "agg", "in": S, "window": {"type": "hopping", "size": 10, "hop": 1}, "aggs": {"n": ["count", None]}}
    with pytest.raises(
        RunError, match="falls into 1000000000009 windows; the limit windows_per_event is 100"
    ) as caught:
        run(engine, plan, settings=Settings(limits=Limits(windows_per_event=100)), S=one(0, 10**12))
    assert caught.value.name == "limit_exceeded"
    with pytest.raises(RunError, match="falls into 4000000000 windows"):
        run(engine, {"op": "chop", "in": S, "period": 1}, S=one(0, 4 * 10**9))


def test_a_huge_beat_around_a_small_lifetime_is_no_overflow(engine: Oracle) -> None:
    plan = {"op": "chop", "in": S, "period": FOREVER, "offset": 7}
    assert spans(run(engine, plan, S=one(BEGINNING + 1, LAST))) == [
        (BEGINNING + 1, BEGINNING + 7, 1),
        (BEGINNING + 7, 7, 1),
        (7, LAST, 1),
    ]


def test_hopping_windows_with_gaps_over_negative_times(engine: Oracle) -> None:
    plan = {"op": "agg", "in": S, "window": {"type": "hopping", "size": 2, "hop": 5, "offset": 1},
            "aggs": {"n": ["count", None]}}  # fmt: skip
    stream = history(V, [(-9, -7, {"v": 1}), (-7, -4, {"v": 2}), (3, 6, {"v": 3})])
    assert spans(run(engine, plan, S=stream)) == [(-9, -7, 1)]
    assert spans(run(engine, plan, S=one(-5, 7))) == [(-4, -2, 1), (1, 3, 1), (6, 8, 1)]
