"""SQL for plain temporal queries: what it means, what it refuses, and printing what was read."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streamproof.errors import PlanError
from streamproof.language.sql import dumps, loads, loads_all
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.expr import Col
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling
from streamproof.query.aggregates import avg, count, last
from streamproof.query.column import asc, desc
from streamproof.query.stream import source
from tests.language.plans import counting_events

S, A, B = source("S"), source("A"), source("B")
MEANINGS = (
    ("SELECT * FROM S", S),
    ("SELECT * FROM S WHERE v > 1", S.where("v > 1")),
    ("SELECT * FROM S WHERE k IS DISTINCT FROM 'a'", S.where("k is distinct from 'a'")),
    ("SELECT k, v * 2 AS x FROM S", S.select("k", x="v * 2")),
    ("SELECT k, v FROM S WHERE v > 1", S.where("v > 1").select("k", "v")),
    (
        "SELECT k, count(*) AS n, avg(v) AS mean FROM S WHERE v > 3 GROUP BY k, TUMBLING(10 s)",
        S.where("v > 3").group_by("k").tumbling("10 s").aggregate(n=count(), mean=avg("v")),
    ),
    ("SELECT count(*) FROM S GROUP BY SNAPSHOT", S.snapshot().aggregate(count=count())),
    (
        "SELECT last(v) FROM S GROUP BY HOPPING(1 minute, 10s)",
        S.hopping("1 minute", hop="10s").aggregate(last_v=last("v")),
    ),
    ("SELECT count(*) AS n FROM S GROUP BY COUNT_START(3)", S.count_start(3).aggregate(n=count())),
    ("SELECT count(*) AS n FROM S GROUP BY COUNT_END(3)", S.count_end(3).aggregate(n=count())),
    ("SELECT count(*) AS n FROM S GROUP BY TUMBLING(5, 2)", S.tumbling(5, offset=2).aggregate(n=count())),
    (
        "SELECT a.k, a.v, b.v AS u FROM A a JOIN B b ON a.k = b.k",
        A.join(B, "l.k = r.k", select={"k": "l.k", "v": "l.v", "u": "r.v"}),
    ),
    (
        "SELECT a.k, a.v, b.v FROM A a JOIN B b ON a.k = b.k",
        A.join(B, "l.k = r.k", select={"k": "l.k", "v": "l.v", "b_v": "r.v"}),
    ),
    ("SELECT a.k FROM A a LEFT JOIN B b ON a.k = b.k", A.left_outer(B, "l.k = r.k", select={"k": "l.k"})),
    ("SELECT a.k FROM A a FULL JOIN B b ON a.k = b.k", A.full_outer(B, "l.k = r.k", select={"k": "l.k"})),
    ("SELECT * FROM A a ANTI JOIN B b ON a.k = b.k", A.without(B, "l.k = r.k")),
    ("SELECT * FROM A a LEFT ANTI JOIN B b ON a.k = b.k", A.without(B, "l.k = r.k")),
    ("SELECT * FROM S UNION ALL SELECT * FROM A UNION ALL SELECT * FROM B", S.union(A, B)),
    (
        "SELECT TOP 3 BY v DESC, k ASC k, v FROM S GROUP BY SNAPSHOT",
        S.snapshot().top(3, by=[desc("v"), asc("k")]).select("k", "v"),
    ),
    ("SELECT TOP 1 BY v DESC * FROM S GROUP BY TUMBLING(5)", S.tumbling(5).top(1, by=desc("v"))),
    (
        "SELECT TOP 2 BY v DESC k, v, rank() AS place FROM S WHERE v > 1 GROUP BY k, TUMBLING(10 s)",
        S.where("v > 1").group_by("k").apply(
            lambda g: g.tumbling("10 s").top(2, by=desc("v"), rank="place").select("v", "place")
        ),
    ),
    (
        "SELECT TOP 2 BY v DESC v, k AS key FROM S GROUP BY k, TUMBLING(10 s)",
        S.group_by("k").apply(lambda g: g.tumbling("10 s").top(2, by=desc("v")).select("v")).select("v", key="k"),
    ),
    (
        "SELECT k, twavg(v, p => 2) AS x FROM S GROUP BY k, SNAPSHOT",
        S.group_by("k").snapshot().uda("twavg", "v", as_="x", params={"p": 2}),
    ),
    ("SELECT n FROM (SELECT count(*) AS n FROM S GROUP BY SNAPSHOT) t WHERE n > 1",
     S.snapshot().aggregate(n=count()).where("n > 1").select("n")),
)  # fmt: skip


@pytest.mark.parametrize(("text", "stream"), MEANINGS, ids=[text for text, _ in MEANINGS])
def test_sql_makes_these_plans(text: str, stream: source) -> None:  # type: ignore[valid-type]
    assert loads(text) == stream.plan  # type: ignore[attr-defined]
    assert loads(dumps(loads(text))) == loads(text)


WRONG = (
    ("SELEC k FROM S", "cannot read the SQL", "SELECT"),
    ("SELECT count(*) FROM S", "count needs to know of which events", "TUMBLING"),
    ("SELECT k, count(*) FROM S GROUP BY k", "GROUP BY needs a window", "SNAPSHOT"),
    ("SELECT count(*) FROM S GROUP BY TUMBLNG(10)", 'unknown window "TUMBLNG"', 'did you mean "tumbling"?'),
    ("SELECT count(*) FROM S GROUP BY TUMBLE(10 s)", 'unknown window "TUMBLE"', 'did you mean "tumbling"?'),
    ("SELECT count(*) FROM S GROUP BY HOPPING(10 s)", "HOPPING takes 2 values, got 1", "HOPPING(size, hop)"),
    ("SELECT v, count(*) FROM S GROUP BY SNAPSHOT", '"v" is neither grouped by nor aggregated', "last(v)"),
    ("SELECT k FROM S ORDER BY k", "ORDER BY is not supported", "TOP n BY"),
    ("SELECT k FROM S LIMIT 3", "LIMIT is not supported", "TOP n BY"),
    ("SELECT DISTINCT k FROM S", "DISTINCT is not supported here", "SNAPSHOT"),
    ("SELECT * FROM A a JOIN B b", "a JOIN needs ON", "ON true"),
    ("SELECT k FROM A a JOIN B b ON a.k = b.k", 'the column "k" needs a side', "a.k or b.k"),
    ("SELECT c.k FROM A a JOIN B b ON a.k = b.k", 'there is no stream "c"', '"a", "b"'),
    ("SELECT a.k FROM A a RIGHT JOIN B b ON a.k = b.k", "RIGHT JOIN is not supported", "LEFT JOIN"),
    ("SELECT * FROM S UNION SELECT * FROM A", "UNION would remove duplicates", "UNION ALL"),
    ("DELETE FROM S", "DELETE is no query", "SELECT"),
    ("SELECT v + 1 FROM S", "has no name", "AS x"),
    ("SELECT k, k FROM S", 'two columns are called "k"', "AS k_2"),
    ("", "there is no query", "SELECT"),
)


@pytest.mark.parametrize(("text", "what", "fix"), WRONG, ids=[text or "nothing" for text, _, _ in WRONG])
def test_what_sql_cannot_say_is_refused(text: str, what: str, fix: str) -> None:
    with pytest.raises(PlanError) as caught:
        loads(text)
    assert what in caught.value.what
    assert fix in f"{caught.value.fix}"


def test_a_file_may_hold_several_queries() -> None:
    assert list(loads_all("SELECT * FROM S; SELECT * FROM A;")) == ["1", "2"]


def test_what_has_no_words_says_so() -> None:
    with pytest.raises(PlanError, match="SQL has no words for moving lifetimes"):
        dumps(S.shift(5).plan)


names = st.sampled_from(("k", "v", "x", "two words"))
exprs = st.sampled_from(tuple(map(parse, ("v", "v * 2", "k = 'a'", "v > 1 and k is null", "abs(v)"))))
windows = st.sampled_from(
    (Tumbling(5), Tumbling("10 s", 3), Hopping("1 minute", 5), Snapshot(), CountStart(2), CountEnd(3))
)
aggs = st.dictionaries(
    names, st.sampled_from(sorted(set(AGGREGATES) - {"percentile"})).map(lambda fn: Aggregate(fn, Col("v"))),
    min_size=1, max_size=2,
).map(lambda found: tuple(found.items()))  # fmt: skip


def _larger(plans: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
    named = st.dictionaries(names, exprs, min_size=1, max_size=3).map(lambda found: tuple(found.items()))
    build = st.builds
    return st.one_of(
        build(nodes.Where, plans, exprs),
        build(nodes.Select, plans, named),
        build(nodes.Aggregation, plans, windows, aggs),
        build(nodes.AntiJoin, plans, plans, st.sampled_from((parse("l.k = r.k"), parse("true")))),
        build(nodes.Join, plans, plans, st.just(parse("l.k = r.k")), st.just((("k", Col("k", "l")),)) | st.none()),
        build(lambda a, b: nodes.Union((a, b)), plans, plans),
    )  # fmt: skip


@given(st.recursive(st.sampled_from((nodes.Source("S"), nodes.Source("two words"))), _larger, max_leaves=4))
@settings(max_examples=120, deadline=None)
def test_what_is_printed_reads_back(plan: Plan) -> None:
    assert loads(dumps(plan)) == counting_events(_flat(plan))


def _flat(plan: Plan) -> Plan:
    """Unions of unions are one union in SQL."""

    def flatten(node: Plan) -> Plan:
        if not isinstance(node, nodes.Union):
            return node
        return nodes.Union(
            tuple(leaf for part in node.ins for leaf in (part.ins if isinstance(part, nodes.Union) else (part,)))
        )

    return nodes.transform(plan, flatten)
