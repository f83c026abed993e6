"""Arbitrary plans: every node, every window, any name, any constant. They need not type-check.

They are in the one form that all doors give: whole numbers of ticks are integers, other lengths are text with a unit.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from streamproof.events.schema import Schema
from streamproof.language.eql import as_plan
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate
from streamproof.plan.eql.query import EqlQuery
from streamproof.plan.event_nodes import POLICIES, WAYS, Drift, During, EventQuery, Pairing, Transition
from streamproof.plan.nodes import Plan
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling
from tests.language.eql.queries import QueryMaker
from tests.plan.expressions import ODD_NAMES, TYPES, expressions
from tests.reference.drawn import DrawnChoices


@st.composite
def _queries(draw: Any) -> EqlQuery:
    return QueryMaker(DrawnChoices(draw)).query()


eql_queries = _queries()
words = st.sampled_from(ODD_NAMES) | st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=5)
columns = st.sampled_from(("v", "k", "x1", "output", "self", "name")) | words
texts = st.sampled_from(("5s", "250 ms", "1 hour", "1m 30s", "2.5s"))
positive = st.integers(1, 2**40) | texts
spans = st.integers(-(2**40), 2**40) | texts
one, two = expressions(max_leaves=4), expressions(("l", "r"), max_leaves=4)
outputs = st.sampled_from(("window", "point_end"))
clips = st.sampled_from(("none", "left", "right", "full"))
restrictions = st.sampled_from(("none", "window_based", "time_bound"))
modules = st.sampled_from(("twavg", "passthrough", "odd name", "spread@2"))

values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(),
    words,
    st.sampled_from(("1", "true", "null", "1.0", "", "2024-05-01", "line\r\nbreak\t")),
    st.sampled_from((Decimal("1.50"), Decimal("-0"), date(2024, 5, 1), datetime(2024, 5, 1, 12, 0, 0, 5, UTC))),
)


def unique(element: st.SearchStrategy[Any], *, least: int = 0) -> st.SearchStrategy[Any]:
    """Pairs of different column names with something each."""
    pairs = st.tuples(columns, element)
    return st.lists(pairs, min_size=least, max_size=3, unique_by=lambda pair: pair[0]).map(tuple)


def names(*, least: int = 1) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(columns, min_size=least, max_size=2, unique=True).map(tuple)


def _aggregate(fn: str) -> st.SearchStrategy[Aggregate]:
    arg = one | st.none() if fn == "count" else one
    params = st.tuples(st.sampled_from((0, 1, 0.5, 0.9))) if AGGREGATES[fn].parameter else st.just(())
    return st.builds(Aggregate, st.just(fn), arg, params)


aggregates = st.sampled_from(sorted(AGGREGATES)).flatmap(_aggregate)


def counting_events(plan: Plan) -> Plan:
    """The same plan, where counts of events say nothing of what they do not look at: people write ``count(*)``."""

    def bare(node: Plan) -> Plan:
        if not isinstance(node, nodes.Aggregation | During):
            return node
        return replace(node, aggs=tuple((n, Aggregate("count") if a.fn == "count" else a) for n, a in node.aggs))

    return nodes.transform(plan, bare)


windows = st.one_of(
    st.builds(Tumbling, positive, spans),
    st.builds(Hopping, positive, positive, spans),
    st.builds(Snapshot),
    st.builds(CountStart, st.integers(1, 9)),
    st.builds(CountEnd, st.integers(1, 9)),
)
schemas = unique(st.sampled_from(TYPES)).map(Schema.of)
sources = st.builds(
    nodes.Source, words, st.none() | schemas, st.none() | st.sampled_from(("ns", "us", "ms", "s"))
)  # fmt: skip
leaves = st.one_of(sources, sources, st.builds(nodes.Ref, words), st.builds(nodes.GroupInput))


def _event_query(query: EqlQuery, bare: bool, plan: Plan) -> Plan:
    made = as_plan(query)
    assert isinstance(made, EventQuery)
    return made if bare else EventQuery(((made.bind[0][0], plan), *made.bind[1:]), query)


def _advance_time(every: int | str, is_count: bool, **rest: Any) -> Plan:
    count = every if is_count and isinstance(every, int) else None
    return nodes.AdvanceTime(every=count, every_duration=None if count else every, **rest)


def _larger(plans: st.SearchStrategy[Plan]) -> st.SearchStrategy[Plan]:
    joins = (nodes.Join, nodes.LeftOuter, nodes.FullOuter, nodes.FollowedBy)
    orders = st.lists(st.tuples(one, st.sampled_from(("asc", "desc"))), min_size=1, max_size=3).map(tuple)
    params = st.lists(st.tuples(words, values), max_size=3, unique_by=lambda pair: pair[0]).map(tuple)
    binds = st.lists(st.tuples(words, plans), max_size=2, unique_by=lambda pair: pair[0]).map(tuple)
    plain = (nodes.ToPoint, nodes.PointAtEnd, nodes.Stitch, nodes.Coalesce, nodes.Distinct)
    build = st.builds
    return st.one_of(
        build(nodes.Where, plans, one),
        build(nodes.Select, plans, unique(one)),
        build(nodes.Shift, plans, spans),
        build(nodes.Extend, plans, spans),
        build(nodes.AlterDuration, plans, one | spans | st.none()),
        *(build(kind, plans) for kind in plain),
        build(nodes.Chop, plans, positive, spans),
        build(nodes.Union, st.lists(plans, min_size=1, max_size=3).map(tuple)),
        *(build(kind, plans, plans, two, unique(two) | st.none()) for kind in joins),
        build(nodes.AntiJoin, plans, plans, two),
        build(nodes.Clip, plans, plans, two),
        build(nodes.Join, plans, plans),
        build(nodes.GroupApply, plans, names(), plans),
        build(nodes.Session, plans, positive, positive | st.none(), names(least=0)),
        build(nodes.Aggregation, plans, windows, unique(aggregates, least=1), outputs),
        build(nodes.GroupApply, plans, names(), build(nodes.Aggregation, st.builds(nodes.GroupInput), windows,
                                                      unique(aggregates, least=1), outputs)),
        build(nodes.TopK, plans, windows, st.integers(1, 9), orders, columns | st.none(), outputs),
        build(nodes.Uda, plans, windows, modules, one, columns, params, clips, outputs, restrictions),
        build(nodes.Udo, plans, windows, modules, unique(one) | st.none(), params, clips,
              st.sampled_from(("align", "unchanged", "clip")), restrictions),
        build(_advance_time, positive, st.booleans(), input=plans, delay=st.integers(0, 9) | texts,
              late=st.sampled_from(("drop", "adjust")), final=st.booleans()),
        build(nodes.Let, binds, plans),
        build(Transition, plans, one, names(least=0)),
        build(Drift, plans, one, one, st.sampled_from(WAYS), names(least=0)),
        build(Pairing, plans, plans, names(least=0), st.sampled_from(POLICIES), positive | st.none()),
        build(During, plans, plans, unique(aggregates, least=1), st.just("end"), names(least=0), names(least=0),
              begin=st.just("its begin") | st.none(), end=st.just("its end") | st.none()),
        build(During, plans, plans, unique(aggregates, least=1), st.just("hop"), names(least=0), names(least=0),
              positive | st.none(), positive),
        build(During, plans, plans, unique(aggregates, least=1), st.just("start"), latest=st.booleans()),
        build(_event_query, eql_queries, st.booleans(), plans),
    )  # fmt: skip


plans: st.SearchStrategy[Plan] = st.recursive(leaves, _larger, max_leaves=6)
