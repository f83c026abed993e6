"""An operator and an aggregate that nobody has heard of: everywhere the right answer, or an error that names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest

from streamproof.engines.base import Settings, engine, support
from streamproof.engines.job import on
from streamproof.engines.local.rules import is_settled
from streamproof.engines.local.trace import trace
from streamproof.engines.spark.stream.keys import holds_state, split_by
from streamproof.errors import PlanError
from streamproof.events.physical import PhysicalStream
from streamproof.events.schema import FLOAT64, INT64, TIMESTAMP, Schema
from streamproof.events.time import BEGINNING
from streamproof.language import eql, json, python, sql, xml
from streamproof.plan import check as checking
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate, AggregateFunction
from streamproof.plan.check import Typed, check
from streamproof.plan.event_nodes import NODES, During
from streamproof.plan.explain import explain
from streamproof.plan.expr import Call, Cast, Col
from streamproof.plan.functions import FUNCTIONS
from streamproof.plan.parse import parse
from streamproof.plan.rewrites import rewrite
from streamproof.plan.typing import CASTS
from streamproof.plan.windows import CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.buckets import BucketSubject
from streamproof.workbench.case import Case, CaseStream
from streamproof.workbench.draw import operators as drawing
from streamproof.workbench.draw.choices import DrawnColumn, DrawnShape, RandomChoices
from streamproof.workbench.draw.operators import OperatorMaker, operators
from streamproof.workbench.draw.windowed import WindowMaker
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import EvaluatorOracle
from streamproof.workbench.promises import demanded
from streamproof.workbench.results import things_of
from streamproof.workbench.round_trip import through
from streamproof.workbench.smaller_plans import smaller_plans
from streamproof.workbench.stages import StageSubject
from streamproof.workbench.subjects import Subject
from streamproof.workbench.verdict import Failure

SCHEMA = Schema.of({"k": "string", "v": "int64", "note": "string"})
EVENTS = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"k": "x", "v": 7, "note": ""}}]
S = nodes.Source("S", SCHEMA)
WINDOWS: tuple[Window, ...] = (Tumbling(10), Hopping(10, 5), Snapshot(), CountStart(1))
LANGUAGES: dict[str, Callable[[nodes.Plan], object]] = {
    "json": lambda plan: json.loads(json.dumps(plan)), "xml": lambda plan: xml.loads(xml.dumps(plan)),
    "python": python.dumps, "sql": sql.dumps,
}  # fmt: skip
ENGINES: dict[str, Callable[[nodes.Plan], object]] = {
    "duckdb": lambda plan: on(plan, "duckdb").run({"S": EVENTS}),
    "postgres": lambda plan: show_sql("postgres", plan),
    "local": lambda plan: on(plan, "local").run({"S": EVENTS}),
}
EVALUATOR = EvaluatorOracle(all_modules())


def show_sql(name: str, plan: nodes.Plan) -> str:
    """The SQL of a plan, for a database that is not there."""
    found: Any = engine(name)
    return str(found.show_sql(check(plan), Settings()))


@dataclass(frozen=True, slots=True)
class Throttle(nodes.Node):
    """At most so many events, of whatever payload."""

    op: ClassVar[str] = "throttle"
    input: nodes.Plan
    most: int


CASE = Case(Throttle(S, 3), {"S": CaseStream.of(PhysicalStream.from_dicts(EVENTS, schema=SCHEMA))})


def throttled(typed: Typed) -> Typed:
    """A typed Throttle, as if the check knew it."""
    return Typed(Throttle(typed.node, 3), typed.schema, (typed,))


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check has a rule for Throttle, and nothing else has one."""
    rules = {**checking.RULES._rules, Throttle: checking.RULES[nodes.ToPoint(S)]}
    monkeypatch.setattr(checking.RULES, "_rules", rules)


def test_an_unknown_operator_is_refused_by_the_check() -> None:
    with pytest.raises(PlanError, match="Throttle is not supported here: the check has no rule") as found:
        check(Throttle(S, 3))
    assert found.value.at == "plan: throttle(most=3)"


def test_an_operator_without_traits_is_never_split_and_promises_nothing() -> None:
    typed = throttled(check(S))
    assert split_by(check(S)) is not None
    assert split_by(typed) is None
    assert holds_state(typed)
    assert not is_settled(typed)
    assert demanded(typed, {"S": 100}, "speculative") == BEGINNING


@pytest.mark.usefixtures("known")
def test_filters_and_selects_stay_above_it() -> None:
    plan = nodes.Select(nodes.Where(Throttle(S, 3), parse("k = 'a'")), (("v", parse("v")),))
    assert explain(rewrite(plan, {})).splitlines() == [
        "select(v)",
        "└─ where(k = 'a')",
        "   └─ throttle(most=3)",
        "      └─ source(S)",
    ]


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("name", ENGINES)
def test_engines_refuse_an_operator_by_name(name: str) -> None:
    with pytest.raises(PlanError, match="Throttle is not supported here"):
        ENGINES[name](Throttle(S, 3))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize("subject", [BucketSubject(), StageSubject()], ids=lambda subject: subject.name)
def test_stages_of_spark_refuse_an_operator_by_name(subject: Subject) -> None:
    (ran,) = subject.run([CASE], all_modules())
    assert isinstance(ran.outcome, Failure)
    assert ran.outcome.name == "bad_plan"
    assert "Throttle is not supported here" in ran.outcome.text


@pytest.mark.usefixtures("known")
def test_the_evaluator_refuses_an_operator_by_name() -> None:
    outcome = EvaluatorOracle(all_modules()).expected(CASE)
    assert isinstance(outcome, Failure)
    assert "the evaluator has no rule for it" in outcome.text


@pytest.mark.usefixtures("known")
def test_the_tracer_refuses_an_operator_by_name() -> None:
    with pytest.raises(PlanError, match="Throttle is not supported here"):
        trace(on(Throttle(S, 3), "local"), {"S": EVENTS}, "a")


def test_explain_shows_an_operator_by_its_fields_and_who_refuses_it() -> None:
    text = explain(Throttle(S, 3), support=support())
    assert text.splitlines()[0].startswith("throttle(most=3)")
    assert {line.partition(":")[0] for line in text.splitlines() if "throttle" in line.lower()} > {text.splitlines()[0]}


def test_scenarios_draw_an_operator_by_the_types_of_its_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "NODES", (*NODES, Throttle))
    assert operators()["throttle"] == 1
    assert "throttle" in I.operator(I.stream()).fixed["among"]
    shape = DrawnShape((("v", DrawnColumn(INT64)),))
    plan, known = OperatorMaker(RandomChoices(3)).put("throttle", [(S, shape)])
    assert isinstance(plan, Throttle)
    assert 1 <= plan.most <= 8
    assert known.no_end
    assert known.no_start, "nothing is known of its lifetimes"
    with pytest.raises(PlanError, match='there is no operator "slow_down"'):
        I.stream().then("slow_down")


def test_shrinking_takes_an_operator_apart() -> None:
    bare = nodes.Source("S")
    assert list(smaller_plans(Throttle(bare, 3))) == [bare, Throttle(bare, 1), Throttle(bare, 2)]


def test_coverage_counts_an_operator() -> None:
    assert list(things_of(Throttle(S, 3))) == ["op|throttle", "op|source"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_refuse_an_operator_by_name(language: str) -> None:
    with pytest.raises(PlanError, match=r"(?i)throttle"):
        LANGUAGES[language](Throttle(S, 3))


def test_eql_has_words_for_its_own_queries_alone() -> None:
    with pytest.raises(PlanError, match="only event-driven queries can be written as EQL"):
        eql.dumps(Throttle(S, 3))


@pytest.fixture
def twice(monkeypatch: pytest.MonkeyPatch) -> str:
    """A function that the library has, and no engine."""
    monkeypatch.setitem(FUNCTIONS, "twice", replace(FUNCTIONS["abs"], name="twice"))
    return "twice"


@pytest.mark.parametrize("engine", ["duckdb", "local"])
def test_engines_refuse_a_function_by_name(engine: str, twice: str) -> None:
    with pytest.raises(PlanError, match=f"the engine {engine} cannot compute twice"):
        on(nodes.Select(S, (("x", Call(twice, (Col("v"),))),)), engine).run({"S": EVENTS})


@pytest.mark.parametrize("engine", ["duckdb", "local"])
def test_engines_refuse_a_cast_by_name(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CASTS, "int64", ("timestamp",))
    with pytest.raises(PlanError, match=f"the engine {engine} cannot cast int64 to timestamp"):
        on(nodes.Select(S, (("x", Cast(Col("v"), TIMESTAMP)),)), engine).run({"S": EVENTS})


@pytest.fixture
def mode_of(monkeypatch: pytest.MonkeyPatch) -> Aggregate:
    """An aggregate that says nothing of itself but its type; databases have one of this name, with another meaning."""
    monkeypatch.setitem(AGGREGATES, "mode", AggregateFunction("mode", lambda _: FLOAT64, "the commonest value"))
    return Aggregate("mode", parse("v"))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
@pytest.mark.parametrize("name", ENGINES)
def test_engines_refuse_an_aggregate_by_name(name: str, window: Window, mode_of: Aggregate) -> None:
    with pytest.raises(PlanError, match=f"the engine {name} cannot compute mode"):
        ENGINES[name](nodes.Aggregation(S, window, (("m", mode_of),)))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
def test_stages_of_spark_and_the_evaluator_refuse_an_aggregate_by_name(window: Window, mode_of: Aggregate) -> None:
    case = replace(CASE, plan=nodes.Aggregation(S, window, (("m", mode_of),)))
    outcomes = [subject.run([case], all_modules())[0].outcome for subject in (BucketSubject(), StageSubject())]
    for who, outcome in zip(("local", "local", "evaluator"), [*outcomes, EVALUATOR.expected(case)], strict=True):
        assert isinstance(outcome, Failure)
        assert f"the engine {who} cannot compute mode" in outcome.text


def test_during_refuses_an_aggregate_by_name(mode_of: Aggregate) -> None:
    plan = During(S, nodes.Source("R", SCHEMA), (("m", mode_of),), "end")
    for name in ("duckdb", "local"):
        with pytest.raises(PlanError, match=f"the engine {name} cannot compute mode"):
            on(plan, name).run({"S": EVENTS, "R": EVENTS})


def test_languages_write_an_aggregate_by_its_name(mode_of: Aggregate) -> None:
    plan = nodes.Aggregation(S, Tumbling(10), (("m", mode_of),))
    assert json.loads(json.dumps(plan)) == plan
    assert xml.loads(xml.dumps(plan)) == plan
    with pytest.raises(NameError, match="'mode' is not defined"):  # until query/aggregates.py has it
        through(plan, "python")


@pytest.mark.usefixtures("mode_of")
def test_an_aggregate_is_drawn_and_nothing_is_known_of_its_result() -> None:
    shape = DrawnShape((("v", DrawnColumn(INT64, size=10)),))
    drawn = [WindowMaker(RandomChoices(seed), shape, None).aggregate(("mode", "count")) for seed in range(20)]
    assert {column.rough for agg, column in drawn if agg.fn == "mode"} == {True}, "a computed float"


def test_an_aggregate_may_depend_on_order(mode_of: Aggregate) -> None:
    plan = nodes.Aggregation(S, Tumbling(10), (("m", mode_of),))
    assert explain(rewrite(plan, {})).splitlines()[1:] == ["└─ source(S)"]
    assert demanded(check(plan), {"S": 100}, "speculative") == BEGINNING


@pytest.mark.parametrize("fn", AGGREGATES)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
def test_every_aggregate_is_computed_by_every_engine(fn: str, window: Window) -> None:
    params: tuple[Any, ...] = (0.5,) if AGGREGATES[fn].parameter else ()
    plan = nodes.Aggregation(S, window, (("m", Aggregate(fn, None if fn == "count" else parse("v"), params)),))
    expected, found = (on(plan, name).run({"S": EVENTS}).history for name in ("duckdb", "local"))
    assert len(expected)
    assert found == expected
    assert "SELECT" in show_sql("postgres", plan)
