"""User modules on Spark: shipped by reference or by value, and their failures told as ours."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.local import LocalEngine
from streamproof.engines.spark import SparkEngine
from streamproof.errors import RunError
from streamproof.plan import nodes
from streamproof.plan.expr import Apply, Call, Case, Col, Expr, literal
from streamproof.plan.library import installed
from streamproof.plan.modules import Module, Registry, uda, udf, udo
from streamproof.plan.parse import parse
from streamproof.plan.windows import Tumbling

EVENTS = [{"kind": "insert", "id": f"e{n}", "le": n, "re": n + 1, "payload": {"v": n, "k": n % 2}} for n in range(8)]


def job(engine: SparkEngine, plan: nodes.Plan, *modules: Module) -> Job:
    return Job(plan, engine, Settings(registry=Registry([*installed(), *modules]), optimise=False))


def test_a_module_of_this_function_travels_by_value(spark_engine: SparkEngine) -> None:
    offset = 100

    @uda("shifted", returns="int64", takes="int64")
    def shifted(values: Sequence[int]) -> int:
        return sum(values) + offset

    plan = nodes.Uda(nodes.Source("S"), Tumbling(4), "shifted", Col("v"), "total")
    run = job(spark_engine, plan, shifted).run({"S": EVENTS})
    assert [(row.le, row.payload["total"]) for row in run.history.to_rows()] == [(0, 106), (4, 122)]


def test_a_module_is_called_once_per_window_and_group(spark_engine: SparkEngine) -> None:
    @uda("size", returns="int64")
    def size(values: Sequence[int]) -> int:
        return len(values)

    inner = nodes.Uda(nodes.GroupInput(), Tumbling(4), "size", Col("v"), "n")
    run = job(spark_engine, nodes.GroupApply(nodes.Source("S"), ("k",), inner), size).run({"S": EVENTS})
    found = [(row.le, row.payload["k"], row.payload["n"]) for row in run.history.to_rows()]
    assert sorted(found) == [(0, 0, 2), (0, 1, 2), (4, 0, 2), (4, 1, 2)]


def test_a_failing_module_names_itself_its_window_and_its_events(spark_engine: SparkEngine) -> None:
    @uda("moody", returns="int64")
    def moody(values: Sequence[int]) -> int:
        raise ValueError("not today")

    plan = nodes.Uda(nodes.Source("S"), Tumbling(4), "moody", Col("v"), "n")
    with pytest.raises(RunError) as raised:
        job(spark_engine, plan, moody).run({"S": EVENTS})
    assert raised.value.name == "module_failed"
    assert raised.value.what == "uda moody@1 failed: ValueError: not today"
    assert "window [" in str(raised.value.at)
    assert "[0, 1) 0" in str(raised.value.at) or "[4, 5) 4" in str(raised.value.at)
    assert "org.apache.spark" not in str(raised.value)


def test_a_row_before_its_window_is_an_error(spark_engine: SparkEngine) -> None:
    @udo("early", returns={"n": "int64"}, time_sensitive=True)
    def early(events, window):  # type: ignore[no-untyped-def]
        from streamproof.plan.modules import Event

        yield Event(window.le - 1, window.re, {"n": len(events)})

    plan = nodes.Udo(nodes.Source("S"), Tumbling(4), "early", stamp="unchanged")
    with pytest.raises(RunError, match=r"udo early@1 gave a row that starts at -?\d+, before its window") as raised:
        job(spark_engine, plan, early).run({"S": EVENTS})
    assert raised.value.name == "output_in_past"


def test_a_value_of_another_type_is_refused(spark_engine: SparkEngine) -> None:
    @uda("wordy", returns="int64")
    def wordy(values: Sequence[int]) -> str:
        return "many"

    plan = nodes.Uda(nodes.Source("S"), Tumbling(4), "wordy", Col("v"), "n")
    with pytest.raises(RunError, match="gave 'many', which is not of type int64"):
        job(spark_engine, plan, wordy).run({"S": EVENTS})


def test_a_function_is_called_only_where_a_case_asks_for_it(spark_engine: SparkEngine) -> None:
    @udf("even_only", returns="int64", takes=["int64"])
    def even_only(value: int) -> int:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value // 2

    called = Apply("even_only", (Col("v"),))
    even = Call("eq", (parse("v % 2"), literal(0)))
    plan = nodes.Select(nodes.Source("S"), (("half", Case(((even, called),), literal(-1))),))
    run = job(spark_engine, plan, even_only).run({"S": EVENTS})
    assert [row.payload["half"] for row in run.history.to_rows()] == [0, -1, 1, -1, 2, -1, 3, -1]
    with pytest.raises(RunError, match=r"udf even_only@1 failed: ValueError: . is odd"):
        job(spark_engine, nodes.Select(nodes.Source("S"), (("half", called),)), even_only).run({"S": EVENTS})


@udf("half", returns="int64", takes=["int64"])
def half(value: int) -> int:
    if value is None or value % 2:
        raise ValueError(f"{value} is odd")
    return value // 2


@udf("next", returns="int64", takes=["int64"])
def following(value: int) -> int:
    if value is None or not value % 2:
        raise ValueError(f"{value} is even")
    return value + 1


EVEN, SMALL, HALF, NEXT = parse("v % 2 = 0"), parse("v < 4"), Apply("half", (Col("v"),)), Apply("next", (Col("v"),))
NONE, KNOWN = literal(-1), parse("v is not null")
ASKED: dict[str, tuple[Expr, ...]] = {
    "in each branch": (Case(((EVEN, HALF), (KNOWN, NEXT)), NONE),),
    "in the default": (Case(((parse("v is null"), NONE), (EVEN, HALF)), NEXT),),
    "in a case in a case": (
        Case(((SMALL, Case(((EVEN, HALF),), NONE)), (EVEN, HALF), (KNOWN, NEXT)), NONE),
        Case(((SMALL, NONE), (EVEN, HALF)), Case(((KNOWN, NEXT),), NONE)),
    ),
    "the same call, asked for elsewhere": (
        Case(((Call("and", (SMALL, EVEN)), HALF),), NONE),
        Case(((SMALL, NONE), (EVEN, HALF)), NONE),
        Case(((EVEN, HALF),), NONE),
    ),
    "in a condition": (Case(((SMALL, NONE), (EVEN, Case(((Call("gt", (HALF, literal(2))), HALF),), NONE))), NONE),),
    "in a cast": (Case(((EVEN, parse("cast(half(v) * cast(0.5 as double) as varchar)")),), literal("odd")),),
    "of what another answers": (Case(((parse("v in (2, 6)"), Apply("next", (HALF,))),), NONE),),
}


@pytest.mark.parametrize("exprs", ASKED.values(), ids=ASKED)
def test_calls_are_made_where_they_are_asked_for_and_nowhere_else(
    spark_engine: SparkEngine, exprs: tuple[Expr, ...]
) -> None:
    """As on the local engine: each fails on what it is not asked for, also on a null."""
    unknown = {"kind": "insert", "id": "null", "le": 9, "re": 10, "payload": {"v": None, "k": 0}}
    plan = nodes.Select(nodes.Source("S"), tuple((f"c{n}", expr) for n, expr in enumerate(exprs)))
    wanted = Job(plan, LocalEngine(), job(spark_engine, plan, half, following).settings).run({"S": [*EVENTS, unknown]})
    found = job(spark_engine, plan, half, following).run({"S": [*EVENTS, unknown]})
    assert found.history == wanted.history
