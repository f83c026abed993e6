"""User modules: called once for each window or set of arguments, checked in what they give."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.oracle.engine import Oracle
from streamproof.errors import RunError
from streamproof.events.time import FOREVER
from streamproof.plan.modules import Event, Module, Registry, WindowSpan, uda, udf, udo
from tests.engines.oracle.running import R, S, history, run, spans

SNAPSHOT = {"type": "snapshot"}


def use(*modules: Module) -> Settings:
    return Settings(registry=Registry(modules))


def test_a_function_is_called_once_for_each_set_of_arguments(engine: Oracle) -> None:
    calls: list[tuple[Any, ...]] = []

    @udf("twice", returns="int64", takes=["float64"])
    def twice(x: float) -> int:
        calls.append((x,))
        return int(2 * x)

    stream = history({"v": "int64"}, [(n, n + 1, {"v": n % 2}) for n in range(6)] + [(9, 10, {"v": None})])
    found = run(
        engine, {"op": "select", "in": S, "exprs": {"out": "twice(v) + twice(v)"}}, settings=use(twice), S=stream
    )
    assert [row[2] for row in spans(found)] == [0, 4, 0, 4, 0, 4, None]
    assert sorted(calls) == [(0.0,), (1.0,)]  # null is not handed to it


def test_a_function_sees_python_values(engine: Oracle) -> None:
    seen: list[tuple[Any, ...]] = []

    @udf("look", returns="string", passes_null=True)
    def look(*args: Any) -> str:
        seen.append(args)
        return "ok"

    columns = {
        "i": "int64",
        "x": "float64",
        "s": "string",
        "b": "bool",
        "d": "decimal(5,2)",
        "day": "date",
        "at": "timestamp",
        "n": "int64",
    }
    row = {
        "i": 1,
        "x": 1.5,
        "s": "é",
        "b": True,
        "d": Decimal("1.50"),
        "day": date(2024, 5, 1),
        "at": datetime(2024, 5, 1, 12, tzinfo=UTC),
        "n": None,
    }
    plan = {"op": "select", "in": S, "exprs": {"out": "look(i, x, s, b, d, day, at, n)"}}
    run(engine, plan, settings=use(look), S=history(columns, [(0, 1, row)]))
    assert seen == [tuple(row.values())]
    assert [type(value) for value in seen[0]] == [type(value) for value in row.values()]


def test_a_function_in_a_branch_is_called_only_for_rows_that_reach_it(engine: Oracle) -> None:
    calls: list[int] = []

    @udf("picky", returns="bool", takes=["int64"])
    def picky(v: int) -> bool:
        calls.append(v)
        if v < 0:
            raise ValueError("negative")
        return v > 1

    @udf("plain", returns="int64", takes=["int64"])
    def plain(v: int) -> int:
        return v

    stream = history({"v": "int64"}, [(n, n + 1, {"v": v}) for n, v in enumerate((-1, 1, 2, None))])
    text = "case when v < 0 then 'low' when picky(plain(v)) then 'high' else cast(picky(v + 10) as varchar) end"
    found = run(engine, {"op": "select", "in": S, "exprs": {"out": text}}, settings=use(picky, plain), S=stream)
    assert [row[2] for row in spans(found)] == ["low", "true", "high", None]
    assert sorted(calls) == [1, 2, 11]


def test_arguments_in_a_branch_are_computed_only_for_rows_that_reach_it(engine: Oracle) -> None:
    @udf("plain", returns="int64", takes=["int64"])
    def plain(v: int) -> int:
        return v

    stream = history({"s": "string"}, [(0, 1, {"s": "x"}), (1, 2, {"s": "7"})])
    text = "case when s = 'x' then -1 else plain(cast(s as bigint)) end"
    found = run(engine, {"op": "select", "in": S, "exprs": {"out": text}}, settings=use(plain), S=stream)
    assert [row[2] for row in spans(found)] == [-1, 7]


def test_a_function_in_a_join_condition_and_in_select(engine: Oracle) -> None:
    @udf("near", returns="bool", takes=["int64", "int64"])
    def near(a: int, b: int) -> bool:
        return abs(a - b) <= 1

    inputs = {
        "S": history({"a": "int64"}, [(0, 9, {"a": a}) for a in (1, 5)]),
        "R": history({"b": "int64"}, [(3, 12, {"b": 2})]),
    }
    plan = {"op": "left_outer", "left": S, "right": R, "on": "near(l.a, r.b)",
            "select": {"a": "l.a", "b": "r.b", "n": "near(l.a, 1)"}}  # fmt: skip
    found = run(engine, plan, settings=use(near), **inputs)
    assert spans(found) == [(0, 3, 1, None, True), (0, 9, 5, None, False), (3, 9, 1, 2, True)]


@pytest.mark.parametrize(
    ("value", "kind"),
    [("x", "int64"), (1.5, "int64"), (True, "int64"), (2**63, "int64"), ("1", "float64"), (True, "float64"),
        (1, "string"), (1, "bool"),
     (Decimal("1.234"), "decimal(5,2)"), (Decimal(1000), "decimal(5,2)"), (1.5, "decimal(5,2)"),
         (datetime(2024, 1, 1, tzinfo=UTC), "date"),
     (datetime(2024, 1, 1), "timestamp"), (10**400, "float64")],
)  # fmt: skip
def test_a_value_of_another_type_is_refused_by_name(value: Any, kind: str, engine: Oracle) -> None:
    @uda("odd", returns=kind)
    def odd(values: Sequence[Any]) -> Any:
        return value

    plan = {"op": "uda", "in": S, "window": SNAPSHOT, "fn": "odd", "arg": "1", "as": "out"}
    with pytest.raises(RunError, match="uda odd@1 gave") as caught:
        run(engine, plan, settings=use(odd), S=history({}, [(2, 5, {})]))
    assert caught.value.name == "module_failed"
    assert caught.value.at == "window [2, 5)"
    assert str(caught.value.fix).startswith(f"return a value of type {kind}".replace("decimal(5,2)", "decimal(5,2)"))


def test_events_come_in_order_with_clipped_lifetimes_and_widened_values(engine: Oracle) -> None:
    seen: list[Any] = []

    @uda("watch", returns="int64", takes="float64", time_sensitive=True)
    def watch(events: Sequence[Event], window: WindowSpan) -> None:
        seen.append((tuple(window), [tuple(event) for event in events]))

    rows = [(0, 20, {"v": 2}), (0, 20, {"v": 1}), (0, 20, {"v": None}), (-5, 30, {"v": 9}), (0, 15, {"v": 3})]
    plan = {
        "op": "uda",
        "in": S,
        "window": {"type": "tumbling", "size": 10},
        "fn": "watch",
        "arg": "v",
        "as": "out",
        "clip": "full",
    }
    run(engine, plan, settings=use(watch), S=history({"v": "int64"}, rows))
    assert [window for window, _ in seen] == [(-10, 0), (0, 10), (10, 20), (20, 30)]
    assert seen[1][1] == [(0, 10, 9.0), (0, 10, 3.0), (0, 10, 1.0), (0, 10, 2.0), (0, 10, None)]
    assert all(isinstance(value, float | None) for _, events in seen for _, _, value in events)


@udo("stamps", returns={"x": "int64"}, time_sensitive=True)
def stamps(events: Sequence[Event], window: WindowSpan) -> list[Any]:
    """Rows around the window [10, 20), stamped and unstamped."""
    return [{"x": 0}, Event(12, 15, {"x": 1}), Event(15, 40, {"x": 2}), Event(18, 18, {"x": 3}), Event(12, FOREVER, {})]


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("align", [(10, 20, 0), (10, 20, 1), (10, 20, 2), (10, 20, 3), (10, 20, None)]),
        ("unchanged", [(10, 20, 0), (12, 15, 1), (12, FOREVER, None), (15, 40, 2)]),
        ("clip", [(10, 20, 0), (12, 15, 1), (12, 20, None), (15, 20, 2)]),
    ],
)
def test_stamping(stamp: str, expected: list[Any], engine: Oracle) -> None:
    plan = {"op": "udo", "in": S, "window": SNAPSHOT, "fn": "stamps", "stamp": stamp}
    assert spans(run(engine, plan, settings=use(stamps), S=history({}, [(10, 20, {})]))) == expected


@pytest.mark.parametrize(
    ("answer", "name", "what"),
    [
        (Event(3, 15, {"x": 1}), "output_in_past", "starts at 3, before its window"),
        (Event(12, 2**63 - 1, {"x": 1}), "overflow", "outside ±2^62"),
        (Event(None, 15, {"x": 1}), "module_failed", "is no time"),
        ({"y": 1}, "module_failed", 'a column "y" that it does not declare'),
        (7, "module_failed", "which is no row"),
    ],
)
def test_rows_that_a_module_may_not_give(answer: Any, name: str, what: str, engine: Oracle) -> None:
    @udo("bad", returns={"x": "int64"}, time_sensitive=True)
    def bad(events: Sequence[Event], window: WindowSpan) -> list[Any]:
        return [answer]

    plan = {"op": "udo", "in": S, "window": SNAPSHOT, "fn": "bad", "stamp": "unchanged"}
    with pytest.raises(RunError) as caught:
        run(engine, plan, settings=use(bad), S=history({}, [(10, 20, {})]))
    assert caught.value.name == name
    assert what in caught.value.what
    assert caught.value.at == "window [10, 20)"


def test_a_module_that_raises_is_named_with_its_window(engine: Oracle) -> None:
    @uda("broken", returns="int64")
    def broken(values: Sequence[Any]) -> int:
        return 1 // 0

    plan = {"op": "uda", "in": S, "window": SNAPSHOT, "fn": "broken", "arg": "v", "as": "out"}
    with pytest.raises(RunError, match="uda broken@1 failed: ZeroDivisionError") as caught:
        run(engine, plan, settings=use(broken), S=history({"v": "int64"}, [(0, 5, {"v": 7})]))
    assert caught.value.name == "module_failed"
    line = broken.implementation.__code__.co_firstlineno + 2
    assert caught.value.at == f"window [0, 5) with [0, 5) 7, raised at test_modules.py:{line}"
