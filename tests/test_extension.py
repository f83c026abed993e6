"""An operator and an aggregate that nobody has heard of: everywhere the right answer, or an error that names them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import pytest

from streamproof.engines.job import on
from streamproof.engines.local.rules import is_settled
from streamproof.engines.spark.stream.keys import holds_state, split_by
from streamproof.errors import PlanError
from streamproof.events.schema import FLOAT64, Schema
from streamproof.events.time import BEGINNING
from streamproof.language import json, python, sql, xml
from streamproof.plan import check as checking
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate, AggregateFunction
from streamproof.plan.check import Typed, check
from streamproof.plan.explain import explain
from streamproof.plan.parse import parse
from streamproof.plan.rewrites import rewrite
from streamproof.plan.windows import CountStart, Hopping, Snapshot, Tumbling, Window
from streamproof.workbench.progress import demanded

SCHEMA = Schema.of({"k": "string", "v": "int64", "note": "string"})
EVENTS = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"k": "x", "v": 7, "note": ""}}]
S = nodes.Source("S", SCHEMA)
WINDOWS: tuple[Window, ...] = (Tumbling(10), Hopping(10, 5), Snapshot(), CountStart(1))
LANGUAGES: dict[str, Callable[[nodes.Plan], object]] = {
    "json": lambda plan: json.loads(json.dumps(plan)), "xml": lambda plan: xml.loads(xml.dumps(plan)),
    "python": python.dumps, "sql": sql.dumps,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Throttle(nodes.Node):
    """At most so many events, of whatever payload."""

    op: ClassVar[str] = "throttle"
    input: nodes.Plan
    most: int


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
@pytest.mark.parametrize("engine", ["duckdb", "local"])
def test_engines_refuse_an_operator_by_name(engine: str) -> None:
    with pytest.raises(PlanError, match="Throttle is not supported here"):
        on(Throttle(S, 3), engine).run({"S": EVENTS})


@pytest.mark.parametrize("language", LANGUAGES)
def test_languages_refuse_an_operator_by_name(language: str) -> None:
    with pytest.raises(PlanError, match=r"(?i)throttle"):
        LANGUAGES[language](Throttle(S, 3))


@pytest.fixture
def mode_of(monkeypatch: pytest.MonkeyPatch) -> Aggregate:
    """An aggregate that says nothing of itself but its type; databases have one of this name, with another meaning."""
    monkeypatch.setitem(AGGREGATES, "mode", AggregateFunction("mode", lambda _: FLOAT64, "the commonest value"))
    return Aggregate("mode", parse("v"))


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
@pytest.mark.parametrize("engine", ["duckdb", "local"])
def test_engines_refuse_an_aggregate_by_name(engine: str, window: Window, mode_of: Aggregate) -> None:
    with pytest.raises(PlanError, match=f"the engine {engine} cannot compute mode"):
        on(nodes.Aggregation(S, window, (("m", mode_of),)), engine).run({"S": EVENTS})


def test_an_aggregate_may_depend_on_order(mode_of: Aggregate) -> None:
    plan = nodes.Aggregation(S, Tumbling(10), (("m", mode_of),))
    assert explain(rewrite(plan, {})).splitlines()[1:] == ["└─ source(S)"]
    assert demanded(check(plan), {"S": 100}, "speculative") == BEGINNING


@pytest.mark.parametrize("fn", AGGREGATES)
@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.kind)
def test_every_aggregate_is_computed_by_every_engine(fn: str, window: Window) -> None:
    params: tuple[Any, ...] = (0.5,) if AGGREGATES[fn].parameter else ()
    plan = nodes.Aggregation(S, window, (("m", Aggregate(fn, None if fn == "count" else parse("v"), params)),))
    expected, found = (on(plan, engine).run({"S": EVENTS}).history for engine in ("duckdb", "local"))
    assert len(expected)
    assert found == expected
