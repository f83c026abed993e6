"""The fluent API gives the plans that it says, and its errors name the call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import event_nodes, nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import check
from streamproof.plan.eql import query as eqm
from streamproof.plan.expr import TRUE, Col
from streamproof.plan.parse import parse
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling
from streamproof.query.aggregates import avg, count
from streamproof.query.column import asc, col, desc, left, right
from streamproof.query.eql import arrive, lasting
from streamproof.query.stream import Stream, group_input, let, ref, source

S, R = source("S"), source("R")
PLAIN, OTHER = nodes.Source("S"), nodes.Source("R")
COUNT = (("n", Aggregate("count")),)

MADE: list[tuple[Stream, nodes.Plan]] = [
    (S.where("v > 1"), nodes.Where(PLAIN, parse("v > 1"))),
    (S.where(col("v") > 1), nodes.Where(PLAIN, parse("v > 1"))),
    (S.where(True), nodes.Where(PLAIN, TRUE)),
    (S.select("k", x="v"), nodes.Select(PLAIN, (("k", Col("k")), ("x", Col("v"))))),
    (
        S.select({"a b": "v"}, "k", self="v"),
        nodes.Select(PLAIN, (("a b", Col("v")), ("k", Col("k")), ("self", Col("v")))),
    ),
    (S.shift(timedelta(minutes=-2)), nodes.Shift(PLAIN, "-120s")),
    (S.shift("5"), nodes.Shift(PLAIN, 5)),
    (S.extend("5s"), nodes.Extend(PLAIN, "5s")),
    (S.alter_duration("v"), nodes.AlterDuration(PLAIN, Col("v"))),
    (S.alter_duration(col("v")), nodes.AlterDuration(PLAIN, Col("v"))),
    (S.alter_duration(5), nodes.AlterDuration(PLAIN, 5)),
    (S.alter_duration("inf"), nodes.AlterDuration(PLAIN, None)),
    (S.alter_duration(FOREVER), nodes.AlterDuration(PLAIN, None)),
    (S.to_point(), nodes.ToPoint(PLAIN)),
    (S.point_at_end(), nodes.PointAtEnd(PLAIN)),
    (S.chop(5, offset=1), nodes.Chop(PLAIN, 5, 1)),
    (S.stitch(), nodes.Stitch(PLAIN)),
    (S.coalesce(), nodes.Coalesce(PLAIN)),
    (S.distinct(), nodes.Distinct(PLAIN)),
    (S.session(5, max="1h", key="k"), nodes.Session(PLAIN, 5, "1h", ("k",))),
    (S.session(5, key=("k", "j")), nodes.Session(PLAIN, 5, None, ("k", "j"))),
    (S.advance_time(every=3, late="adjust"), nodes.AdvanceTime(PLAIN, 3, late="adjust")),
    (S.advance_time(every_duration="5s", delay=2, final=False), nodes.AdvanceTime(PLAIN, None, "5s", 2, "drop", False)),
    (S.join(R), nodes.Join(PLAIN, OTHER)),
    (
        S.join(R, left.k == right.k, select={"k": "l.k"}),
        nodes.Join(PLAIN, OTHER, parse("l.k = r.k"), (("k", Col("k", "l")),)),
    ),
    (S.left_outer(R), nodes.LeftOuter(PLAIN, OTHER)),
    (S.full_outer(R), nodes.FullOuter(PLAIN, OTHER)),
    (S.followed_by(R), nodes.FollowedBy(PLAIN, OTHER)),
    (S.without(R), nodes.AntiJoin(PLAIN, OTHER)),
    (S.anti_join(R, "l.k = r.k"), nodes.AntiJoin(PLAIN, OTHER, parse("l.k = r.k"))),
    (S.clip(R), nodes.Clip(PLAIN, OTHER)),
    (S.union(R, S), nodes.Union((PLAIN, OTHER, PLAIN))),
    (S | R, nodes.Union((PLAIN, OTHER))),
    (S.tumbling(5).aggregate(n=count()), nodes.Aggregation(PLAIN, Tumbling(5), COUNT)),
    (S.tumbling("5s", offset=1).aggregate({"n": count()}), nodes.Aggregation(PLAIN, Tumbling("5s", 1), COUNT)),
    (
        S.hopping(5, hop=2).aggregate(n=count(), output="point_end"),
        nodes.Aggregation(PLAIN, Hopping(5, 2), COUNT, "point_end"),
    ),
    (S.snapshot().aggregate(n=count()), nodes.Aggregation(PLAIN, Snapshot(), COUNT)),
    (S.count_start(2).aggregate(n=count()), nodes.Aggregation(PLAIN, CountStart(2), COUNT)),
    (S.count_end(2).aggregate(n=count()), nodes.Aggregation(PLAIN, CountEnd(2), COUNT)),
    (S.snapshot().top(2, by=desc("v")), nodes.TopK(PLAIN, Snapshot(), 2, ((Col("v"), "desc"),))),
    (
        S.snapshot().top(2, by=[asc("v"), col("k").desc()], rank="place", keep=["v"]),
        nodes.Select(
            nodes.TopK(PLAIN, Snapshot(), 2, ((Col("v"), "asc"), (Col("k"), "desc")), "place"),
            (("v", Col("v")), ("place", Col("place"))),
        ),
    ),
    (
        S.snapshot().uda("twavg", "v", as_="x", params={"p": 1}, clip="full", restriction="time_bound"),
        nodes.Uda(PLAIN, Snapshot(), "twavg", Col("v"), "x", (("p", 1),), "full", "window", "time_bound"),
    ),
    (S.snapshot().uda("twavg@2", "v"), nodes.Uda(PLAIN, Snapshot(), "twavg@2", Col("v"), "twavg")),
    (
        S.snapshot().udo("f", map={"v": "v"}, params={"p": None}, stamp="clip"),
        nodes.Udo(PLAIN, Snapshot(), "f", (("v", Col("v")),), (("p", None),), "none", "clip"),
    ),
    (
        S.group_by("k").tumbling(5).aggregate(n=count()),
        nodes.GroupApply(PLAIN, ("k",), nodes.Aggregation(nodes.GroupInput(), Tumbling(5), COUNT)),
    ),
    (
        S.group_apply("k", "j", apply=lambda g: g.to_point()),
        nodes.GroupApply(PLAIN, ("k", "j"), nodes.ToPoint(nodes.GroupInput())),
    ),
    (let(M=S).in_(ref("M")), nodes.Let((("M", PLAIN),), nodes.Ref("M"))),
    (
        S.multicast(lambda m: m | m),
        nodes.Let((("shared1", PLAIN),), nodes.Union((nodes.Ref("shared1"), nodes.Ref("shared1")))),
    ),
    (S.transition("v > 1", key="k"), event_nodes.Transition(PLAIN, parse("v > 1"), ("k",))),
    (S.drift("v", step=3, way="up"), event_nodes.Drift(PLAIN, Col("v"), parse("3"), "up")),
    (S.pairing(R, key=["k"], policy="lifo", max="5s"), event_nodes.Pairing(PLAIN, OTHER, ("k",), "lifo", "5s")),
    (
        S.observe(R, {"n": count()}, trigger="hop", hop=2, reach="5s", begin="b"),
        event_nodes.During(PLAIN, OTHER, COUNT, "hop", reach="5s", hop=2, begin="b"),
    ),
    (
        S.where("v > 1").during(lasting(arrive("R"), 5)).group_by("k").aggregate(n=count()),
        event_nodes.EventQuery(
            (("S", PLAIN), ("R", OTHER)),
            eqm.EqlQuery(
                (eqm.Item("n", Aggregate("count")),),
                "S",
                eqm.Meanwhile(eqm.Lasting(eqm.Arrive("R"), 5)),
                where=parse("v > 1"),
                group=("k",),
            ),
        ),
    ),
    (group_input(), nodes.GroupInput()),
    (source("S", {"v": "int64"}, unit="ms"), nodes.Source("S", Schema.of({"v": "int64"}, unit="ms"), "ms")),
    (source("S", unit="ms"), nodes.Source("S", None, "ms")),
]


@pytest.mark.parametrize(("stream", "plan"), MADE, ids=[repr(stream) for stream, _ in MADE])
def test_methods_make_these_plans(stream: Stream, plan: nodes.Plan) -> None:
    assert stream.plan == plan


def test_every_node_can_be_made() -> None:
    made = {type(node) for stream, _ in MADE for node in nodes.walk(stream.plan)}
    assert made == set(event_nodes.NODES)


def test_streams_are_values() -> None:
    assert S.where("v > 1") == source("S").where("v>1")
    assert len({S.to_point(), source("S").to_point()}) == 1
    with pytest.raises(AttributeError):
        S.plan = OTHER  # type: ignore[misc]


WRONG: list[tuple[Callable[[], object], str, str]] = [
    (lambda: S.where("v >"), "cannot read the expression near '>'", '.where("v >")'),
    (lambda: S.where(["v"]), "['v'] cannot stand in an expression", ".where(['v'])"),  # type: ignore[arg-type]
    (lambda: S.hopping(10, hop=0), "hop must be positive, got 0", ".hopping(10, hop=0)"),
    (lambda: S.tumbling(size=0), "size must be positive, got 0", ".tumbling(size=0)"),
    (lambda: S.shift(1.5), "1.5 is not a duration", ".shift(1.5)"),  # type: ignore[arg-type]
    (lambda: S.select("v", "v"), 'two columns are called "v"', '.select("v", "v")'),
    (lambda: S.select(5), "5 has no name", ".select(5)"),  # type: ignore[arg-type]
    (lambda: S.select({"a b": "v +"}), "cannot read the expression near '+'", '.select({"a b": "v +"})'),
    (lambda: S.join("R"), "'R' is not a stream", '.join("R")'),  # type: ignore[arg-type]
    (lambda: S.union(R, 5), "5 is not a stream", ".union(…, 5)"),  # type: ignore[arg-type]
    (lambda: S.tumbling(5).aggregate(), "an aggregation needs at least one aggregate", ".aggregate()"),
    (
        lambda: S.tumbling(5).aggregate(n="sum(v)"),  # type: ignore[arg-type]
        "the column \"n\" is no aggregate: 'sum(v)'",
        '.aggregate(n="sum(v)")',
    ),
    (lambda: S.tumbling(5).top(0, by=desc("v")), "k must be positive, got 0", ".top(0, by=…)"),
    (lambda: S.tumbling(5).top(1, by="v"), "which end of 'v' is the top?", '.top(1, by="v")'),  # type: ignore[arg-type]
    (
        lambda: S.tumbling(5).uda("f", "v", clip="half"),  # type: ignore[arg-type]
        "clip must be one of none, left, right, full, got 'half'",
        '.uda("f", "v", clip="half")',
    ),
    (S.group_by, "group_by needs at least one key column", ".group_by()"),
    (lambda: S.group_apply("k", apply=lambda g: 5), "apply must give a stream, got 5", ".apply(…)"),  # type: ignore[arg-type,return-value]
    (
        lambda: S.group_apply("k", apply=lambda g: g.tumbling(0).aggregate(n=count())),
        "size must be positive, got 0",
        ".tumbling(0)",
    ),
    (lambda: S.multicast(lambda m: None), "multicast must give a stream, got None", ".multicast(…)"),  # type: ignore[arg-type,return-value]
    (lambda: S.session(0), "timeout must be positive, got 0", ".session(0)"),
    (S.advance_time, "advance_time needs either every (events) or every_duration", ".advance_time()"),
    (lambda: S.chop(-1), "period must be positive, got -1", ".chop(-1)"),
]


@pytest.mark.parametrize(("make", "what", "at"), WRONG, ids=[at for _, _, at in WRONG])
def test_errors_name_the_call(make: Callable[[], object], what: str, at: str) -> None:
    with pytest.raises(PlanError) as caught:
        make()
    assert caught.value.what == what
    assert caught.value.at == at


def test_an_inner_multicast_never_hides_an_outer_one() -> None:
    stream = S.multicast(lambda outer: R.multicast(lambda inner: outer.union(inner, outer)))
    first, second = nodes.Ref("shared1"), nodes.Ref("shared2")
    inner = nodes.Let((("shared2", OTHER),), nodes.Union((first, second, first)))
    assert stream.plan == nodes.Let((("shared1", PLAIN),), inner)


def test_names_of_multicasts_do_not_depend_on_what_was_made_before() -> None:
    assert S.multicast(lambda m: m | m) == S.multicast(lambda m: m | m)


def test_a_multicast_may_be_named_but_not_like_one_around_it() -> None:
    assert "let(M)" in S.multicast(lambda m: m | m, name="M").explain()
    with pytest.raises(PlanError, match='an enclosing multicast is called "M" already'):
        S.multicast(lambda m: R.multicast(lambda n: m | n, name="M"), name="M")


def test_a_multicast_means_the_same_as_using_the_stream_twice() -> None:
    schemas = {"S": Schema.of({"v": "int64"})}
    shared = check(S.to_point().multicast(lambda m: m | m.shift(1)).plan, schemas)
    apart = check((S.to_point() | S.to_point().shift(1)).plan, schemas)
    assert shared.schema == apart.schema


def test_a_stream_shows_itself_in_all_languages() -> None:
    stream = S.where("v > 1").group_by("k").tumbling(5).aggregate(mean=avg("v"))
    assert stream.explain().startswith("group_apply(k)\n")
    assert stream.mermaid().startswith("flowchart LR\n")
    assert '"op": "group_apply"' in stream.to_json()
    assert "<group_apply>" in stream.to_xml()
    assert stream.to_python() == 'source("S").where("v > 1").group_by("k").tumbling(5).aggregate(mean=avg("v"))'


def test_a_stream_runs_on_an_engine() -> None:
    events = [{"kind": "insert", "id": "a", "le": 1, "re": 5, "payload": {"v": 1}}]
    run = S.where("v > 0").shift(2).on("duckdb").run({"S": events})
    assert [(row.le, row.re, row.payload) for row in run.history.to_rows()] == [(3, 7, {"v": 1})]


def test_an_unknown_engine_is_named() -> None:
    with pytest.raises(PlanError, match='unknown engine "duckbd"') as caught:
        S.on("duckbd")
    assert 'did you mean "duckdb"?' in (caught.value.fix or "")
