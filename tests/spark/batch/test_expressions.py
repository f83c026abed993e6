"""What every function and cast gives on Spark: the same table as on the databases."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.batch.functions import plain_pattern
from streamproof.errors import PlanError, StreamproofError
from streamproof.events.history import History, Row
from streamproof.events.schema import INT64, TIMESTAMP, Schema
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate, AggregateFunction
from streamproof.plan.check import check
from streamproof.plan.expr import Call, Case, Cast, Col, Expr, Lit, literal
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.parse import parse
from streamproof.plan.typing import CASTS
from streamproof.plan.windows import Snapshot
from tests.engines.oracle.running import history
from tests.engines.oracle.test_expressions import COLUMNS, NOON, TABLE, VALUES, Fails, _given, _same

SHARE = 30  # expressions in one plan


def rows_of(engine: SparkEngine, plan: nodes.Plan, stream: History) -> list[Row]:
    typed = check(plan, {"S": stream.schema})
    batches = engine.run(typed, {"S": [stream.to_batch()]}, Settings(optimise=False))
    return History.from_batches(typed.schema, batches).to_rows()


def guarded(first: int, last: int, expr: Expr) -> Expr:
    """The expression for events that start from first to last; null for others."""
    inside = Call("and", (Call("gte", (parse("le"), literal(first))), Call("lte", (parse("le"), literal(last)))))
    return Case(((inside, expr),), literal(None))


@pytest.mark.parametrize("start", range(0, len(VALUES), SHARE))
def test_values(start: int, spark_engine: SparkEngine) -> None:
    """Many expressions in one plan, each over its own events: so each is also a branch that others do not take."""
    exprs: list[tuple[str, Expr]] = []
    events: list[tuple[int, int, dict[str, Any]]] = []
    expected: list[tuple[str, str, Any]] = []
    for number, text in enumerate(list(VALUES)[start : start + SHARE]):
        pairs = VALUES[text]
        exprs.append((f"x{number}", guarded(len(events), len(events) + len(pairs) - 1, parse(text))))
        expected += [(text, f"x{number}", result) for _, result in pairs]
        for payload, _ in pairs:
            row = {name: _given(name, value) for name, value in payload.items()}
            events.append((len(events), len(events) + 1, row))
    found = rows_of(spark_engine, nodes.Select(nodes.Source("S"), tuple(exprs)), history(COLUMNS, events, unit="ms"))
    pairs_found = zip(expected, found, strict=True)
    wrong = [(text, row.payload[name], want) for (text, name, want), row in pairs_found
             if not _same(row.payload[name], want)]  # fmt: skip
    assert wrong == []


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("cast(try_cast(f as decimal(30,3)) as decimal(4,1))", Decimal("2.5")),
        ("cast(cast(cast(f as decimal(9,2)) as string) as decimal(9,3))", Decimal("2.500")),
        (
            "case when cast(cast(f as string) as decimal(5,1)) > 2 then cast(cast(f as decimal(5,1)) as string) end",
            "2.5",
        ),
    ],
)
def test_casts_of_casts(text: str, want: object, spark_engine: SparkEngine) -> None:
    """Each of those that Python makes is a column before the one around it is looked at."""
    stream = History.from_rows(Schema.of({"f": "float64"}), [(0, 1, {"f": 2.5})])
    (row,) = rows_of(spark_engine, nodes.Select(nodes.Source("S"), (("out", parse(text)),)), stream)
    assert row.payload["out"] == want


FAILURES = [row for row in TABLE if isinstance(row[2], Fails)]
QUICK = {text: row for row in reversed(FAILURES) for text in [row[0]]}  # one of each expression


def check_failure(engine: SparkEngine, text: str, payload: dict[str, Any], name: str) -> None:
    stream = history(COLUMNS, [(0, 1, {key: _given(key, value) for key, value in payload.items()})], unit="ms")
    with pytest.raises(StreamproofError) as caught:
        rows_of(engine, nodes.Select(nodes.Source("S"), (("out", parse(text)),)), stream)
    assert caught.value.name == name, (text, payload)


ONE = history({"i": "int64"}, [(1, 2, {"i": 1})])


def test_a_function_that_spark_does_not_know_is_refused_by_name(
    spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(FUNCTIONS, "twice", replace(FUNCTIONS["abs"], name="twice"))
    with pytest.raises(PlanError, match="the engine spark cannot compute twice"):
        rows_of(spark_engine, nodes.Select(nodes.Source("S"), (("x", Call("twice", (Col("i"),))),)), ONE)


def test_a_cast_that_spark_does_not_know_is_refused_by_name(
    spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CASTS, "int64", ("timestamp",))
    with pytest.raises(PlanError, match="the engine spark cannot cast int64 to timestamp"):
        rows_of(spark_engine, nodes.Select(nodes.Source("S"), (("x", Cast(Col("i"), TIMESTAMP)),)), ONE)


def test_an_aggregate_that_spark_does_not_know_is_refused_by_name(
    spark_engine: SparkEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(AGGREGATES, "mode", AggregateFunction("mode", lambda _: INT64, "the commonest value"))
    plan = nodes.Aggregation(nodes.Source("S"), Snapshot(), (("m", Aggregate("mode", Col("i"))),))
    with pytest.raises(PlanError, match="the engine spark cannot compute mode"):
        rows_of(spark_engine, plan, ONE)


def test_failures(spark_engine: SparkEngine) -> None:
    for text, payload, name in QUICK.values():
        check_failure(spark_engine, text, payload, name)


@pytest.mark.slow
def test_all_failures(spark_engine: SparkEngine) -> None:
    for text, payload, name in FAILURES:
        check_failure(spark_engine, text, payload, name)


def test_a_failing_cast_says_which_value_and_what_to_do(spark_engine: SparkEngine) -> None:
    stream = history({"s": "string"}, [(0, 1, {"s": "it's | no\nnumber"})])
    with pytest.raises(StreamproofError) as caught:
        rows_of(spark_engine, nodes.Select(nodes.Source("S"), (("out", parse("cast(s as bigint)")),)), stream)
    assert "it's | no\nnumber" in caught.value.what
    assert caught.value.fix == "use try_cast, which gives null there"
    assert "select(out=cast(s as bigint))" in str(caught.value)


def test_deeply_nested_arithmetic_stays_small(spark_engine: SparkEngine) -> None:
    """A value that is used twice is written once: the plan must not double with every level."""
    text = "i"
    for _ in range(25):
        text = f"({text}) // 1"
    stream = history({"i": "int64"}, [(0, 1, {"i": 7})])
    found = rows_of(spark_engine, nodes.Select(nodes.Source("S"), (("out", parse(text)),)), stream)
    assert found[0].payload == {"out": 7}


def test_literals_of_every_type_come_through(spark_engine: SparkEngine) -> None:
    values: dict[str, tuple[Any, str]] = {
        "i": (-(2**63), "int64"), "x": (5e-324, "float64"), "n": (math.nan, "float64"),
        "s": ("a'b\"c\\d\n--é😀", "string"), "b": (True, "bool"), "d": (Decimal("-12.345"), "decimal(5,3)"),
        "day": (NOON.date(), "date"), "at": (NOON, "timestamp"), "z": (None, "string"),
    }  # fmt: skip
    schema = Schema.of({name: kind for name, (_, kind) in values.items()})
    exprs = tuple((name, Lit(value, schema[name])) for name, (value, _) in values.items())
    payload = rows_of(spark_engine, nodes.Select(nodes.Source("S"), exprs), history({}, [(0, 1, {})]))[0].payload
    assert payload.pop("at") == NOON
    assert repr(payload) == repr({name: value for name, (value, _) in values.items() if name != "at"})


def test_a_pattern_escapes_nothing_that_needs_no_escape() -> None:
    assert plain_pattern(r"a\b\%\_\\c") == r"ab\%\_\\c"


def test_a_condition_that_may_fail_sees_only_rows_that_others_let_through(spark_engine: SparkEngine) -> None:
    """Spark would ask it of all rows of an input, before they have met a partner."""
    left = history({"k": "int64", "s": "string"}, [(0, 9, {"k": 1, "s": "5"}), (0, 9, {"k": 2, "s": "no number"})])
    right = history({"j": "int64"}, [(0, 9, {"j": 1})])
    joined = nodes.Join(nodes.Source("L"), nodes.Source("R"), parse("l.k = r.j"))
    plan = nodes.Where(joined, parse("cast(s as bigint) > 1"))
    typed = check(plan, {"L": left.schema, "R": right.schema})
    inputs = {"L": [left.to_batch()], "R": [right.to_batch()]}
    found = History.from_batches(typed.schema, spark_engine.run(typed, inputs, Settings()))
    assert [row.payload for row in found.to_rows()] == [{"k": 1, "s": "5", "j": 1}]
