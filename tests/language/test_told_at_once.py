"""Mistakes that do not need each other are told together, each as if it were the only one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.language import eql, sql
from streamproof.plan.check import check
from streamproof.plan.nodes import Plan

SQL = {
    "item": ("sum(v)", "v ILIKE 'a'", "w", "t.v", "first(v, true)", "(select 1)", "max(v) + 1"),
    "more": ("count(*)", "sum(sum(v))", "u.k", "last(v IGNORE NULLS)", "min(v, 1, 2)"),
    "from": ("S", "S TABLESAMPLE (3)", "S FOR SYSTEM_TIME AS OF 3"),
    "where": ("v > 1", "v > INTERVAL 1 day", "v in (select 1)", "x.v = 1 and y.v = 2", "count(v) > 1"),
    "tail": ("", "HAVING v > 1", "LIMIT 3", "ORDER BY v", "QUALIFY v", "HAVING v > 1 ORDER BY v LIMIT 2"),
}
EQL = {
    "item": ("avg(v)", "foo(v)", "max(v, 2)", "sum(*)", "avg(sum(v))", "avg(v) AS a, last(T.v)"),
    "more": ("count(*)", "bar(v)", "percentile(v, 'a')"),
    "where": ("v > 1", "v == 1", "v in (select 1)", "T.v > 1"),
    "drive": ("ARRIVE(S)", "nothing", "ARRIVE(S: v = null)", "ARRIVE(S) @ other"),
    "tail": ("GROUP BY k", "GROUP BY k, k", "WINDOW 3s"),
}  # fmt: skip


def _sql(parts: Mapping[str, str]) -> Plan:
    text = "SELECT {item} AS a, {more} AS b FROM {from} WHERE {where} GROUP BY k, TUMBLING(10) {tail}"
    return sql.loads(text.format(**parts))


def _eql(parts: Mapping[str, str]) -> Plan:
    return eql.loads("SELECT {item}, {more} FROM S WHERE {where} AT {drive} WINDOW 5s {tail}".format(**parts))


def _told(read: Callable[[Mapping[str, str]], Plan], parts: Mapping[str, str]) -> dict[str, str | None]:
    try:
        read(parts)
    except PlanError as error:
        return {part.what: part.fix for part in (error, *error.others)}
    return {}


@pytest.mark.parametrize(("read", "words"), [(_sql, SQL), (_eql, EQL)], ids=["sql", "eql"])
def test_two_mistakes_are_told_as_each_alone(
    read: Callable[[Mapping[str, str]], Plan], words: Mapping[str, tuple[str, ...]]
) -> None:
    right = {place: first for place, (first, *_) in words.items()}
    wrong = [(place, word) for place, (_, *rest) in words.items() for word in rest]
    alone = {mistake: _told(read, right | dict([mistake])) for mistake in wrong}
    assert not _told(read, right)
    assert all(alone.values()), [mistake for mistake, told in alone.items() if not told]
    for one, other in combinations(wrong, 2):
        if one[0] != other[0]:
            assert _told(read, right | dict([one, other])) == alone[one] | alone[other], (one, other)


def test_the_order_is_that_of_the_text() -> None:
    with pytest.raises(PlanError) as caught:
        sql.loads("SELECT count(*) FILTER (WHERE v) AS n,\n a.v\nFROM S\nLIMIT 3;\nSELECT * EXCLUDE (v) FROM S")
    places = [f"{error.at}".split("\n")[0] for error in (caught.value, *caught.value.others)]
    assert places == ["line 1, column 8", "line 2, column 2", "line 4, column 7", "line 5, column 19"]


def test_an_event_that_is_refused_is_still_known() -> None:
    with pytest.raises(PlanError) as caught:
        eql.loads_all("EVENT a = ARRIVE(S: v == 1); SELECT count(*) FROM S AT a @ b WINDOW 5s;")
    assert [error.what for error in (caught.value, *caught.value.others)] == [
        "== is not EQL", 'there is no event "b"',
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from(("n1", "n2 + 1", "f1(v)", "f2(n3)", "case when n4 then v end")), min_size=1, max_size=5)
)
def test_an_expression_names_all_that_it_does_not_know(parts: list[str]) -> None:
    """Unknown columns and functions, wherever they stand in an expression."""
    plan = sql.loads(f"SELECT coalesce({', '.join(['v', *parts])}) AS x FROM S")
    with pytest.raises(PlanError) as caught:
        check(plan, {"S": Schema.of({"v": "int64"})})
    told = {error.what.split('"')[1] for error in (caught.value, *caught.value.others)}
    names = ("n1", "n2", "f1", "f2", "n3", "n4")
    assert told == {name for name in names if any(name in part for part in parts)}
