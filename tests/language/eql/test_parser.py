"""EQL as people write it, what they get wrong, and printing what was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.language import json, python, xml
from streamproof.language.eql import as_plan, dumps, loads, loads_all
from streamproof.plan.check import check
from streamproof.plan.eql.query import EachHop, EqlQuery, Item, Lasting, Meanwhile, Nested, Qos
from streamproof.plan.event_nodes import plan_qos
from tests.language.eql.mistakes import MISTAKES
from tests.language.eql.queries import QueryMaker
from tests.reference.drawn import DrawnChoices

SCHEMAS = {
    "Room": Schema.of({"room": "string", "temp": "float64", "name": "string"}, unit="ms"),
    "Door": Schema.of({"open": "int64", "side": "string"}, unit="ms"),
}


@pytest.mark.parametrize(("text", "place", "fix"), MISTAKES, ids=range(len(MISTAKES)))
def test_a_mistake_is_pointed_at_and_explained(text: str, place: str, fix: str) -> None:
    with pytest.raises(PlanError) as caught:
        check(loads(text), SCHEMAS)
    error = caught.value
    assert fix in f"{error.fix} {error.what}"
    if place:
        line, shown, caret = str(error.at).split("\n")
        column = text.index(place.replace("‸", "")) + place.index("‸")
        assert line == f"line 1, column {column + 1}"
        assert shown.strip() == text.strip()
        assert caret.index("^") == 4 + column


def test_there_are_fifty_mistakes() -> None:
    assert len({text for text, _, _ in MISTAKES}) >= 50


def test_the_place_counts_lines() -> None:
    with pytest.raises(PlanError) as caught:
        loads("-- a comment\nSELECT avg(temp)\nFROM Room\n  EVRY 10s WINDOW 60s")
    assert str(caught.value.at) == "line 4, column 3\n      EVRY 10s WINDOW 60s\n      ^"


@st.composite
def queries(draw: Any) -> EqlQuery:
    return QueryMaker(DrawnChoices(draw)).query()


@given(queries())
@settings(max_examples=120, deadline=None)
def test_what_is_printed_reads_back(query: EqlQuery) -> None:
    plan = as_plan(query)
    assert loads(dumps(plan)) == plan
    assert json.loads(json.dumps(plan)) == plan
    assert xml.loads(xml.dumps(plan)) == plan
    assert python.dumps(plan).startswith("eql(")


def query_of(text: str) -> EqlQuery:
    plan: Any = loads(text)
    found: EqlQuery = plan.query
    return found


def test_lengths_of_time_as_people_write_them() -> None:
    for text, span in (
        ("10s", "10s"), ("10 s", "10 s"), ("1 hour", "1 hour"), ("500ms", "500ms"), ("1m 30s", "1m 30s"),
        ("2.5 sec", "2.5 sec"), ("10 Minutes", "10 Minutes"), ("7 ticks", 7),
    ):  # fmt: skip
        assert query_of(f"SELECT count(*) FROM S EVERY {text} WINDOW 1h").when == EachHop(span)


def test_words_are_not_reserved_where_columns_stand() -> None:
    found = query_of("SELECT last(open), max(max) FROM S AT BECOMES(Door: open = 1 and on = 0 and window > 2)")
    assert [item.name for item in found.items] == ["last_open", "max_max"]


def test_keywords_in_any_case_and_comments_anywhere() -> None:
    small = query_of("select count(*) /* all */ from S -- the stream\n every 5s window 10s;")
    assert small == query_of("SELECT count(*) FROM S EVERY 5s WINDOW 10s")


def test_events_are_shared_by_the_queries_that_follow() -> None:
    text = """
        EVENT bird = LASTING(ARRIVE(Bird), +10s);
        EVENT unused = ARRIVE(Door);
        SELECT avg(light) FROM Sensors DURING bird;
        SELECT count(*) AS n FROM Sensors DURING bird CONTINUOUS HOP 1s;
    """
    first, second = loads_all(text).values()
    assert [name for name, _ in first.query.events] == ["bird"]  # type: ignore[attr-defined]
    assert second.query.items == (Item("n", second.query.items[0].aggregate),)  # type: ignore[attr-defined]
    with pytest.raises(PlanError, match="there are 2 queries here") as caught:
        loads(text)
    assert caught.value.fix == "choose one: FILE.eql#1 to FILE.eql#2"


def test_sequences_group_to_the_right() -> None:
    found = query_of(
        "EVENT a = ARRIVE(A); EVENT b = ARRIVE(B); SELECT count(*) FROM S DURING LASTING(a @ b @ a WITHIN 2s, +1s)"
    )
    assert isinstance(found.when, Meanwhile)
    assert isinstance(found.when.event, Lasting)
    assert isinstance(found.when.event.begin, Nested)
    assert isinstance(found.when.event.begin.inner, Nested)
    assert found.when.event.begin.inner.within == "2s"


def test_quality_of_service_is_kept_in_the_plan() -> None:
    plan = loads("SELECT count(*) FROM S EVERY 5s WINDOW 10s QOS LATENCY 500ms BACKLOG 100")
    assert plan_qos(plan) == Qos("500ms", 100)
    assert plan_qos(loads("SELECT count(*) FROM S EVERY 5s WINDOW 10s")) is None


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(PlanError, match="nested more than 60 deep"):
        loads("SELECT count(*) FROM S WHERE " + "(" * 70 + "v" + ")" * 70 + " ON ARRIVAL")
