"""Rewriting keeps the meaning: laws over random plans, and what each pass does to the plans it is for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings

from streamproof.engines.oracle import duckdb_engine
from streamproof.errors import StreamproofError
from streamproof.events.schema import Schema
from streamproof.language import json
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.modules import Properties, Registry, udf, udo
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.rewrite import REWRITES, Pass, rewrite
from streamproof.plan.rewrites.normal_form import to_plan
from streamproof.plan.rewrites.substitute import SAFE, can_fail
from streamproof.query import aggregates
from streamproof.query.aggregates import count, first
from streamproof.query.expressions import desc
from streamproof.query.stream import Stream, source
from tests.plan.rewriting import demanding_cases
from tests.reference.compare import difference
from tests.reference.evaluator import TooManyRows
from tests.reference.extra_modules import all_modules
from tests.reference.judge import actual_outcome, expected_outcome
from tests.reference.random_cases import Case

SCHEMAS = {
    "S": Schema.of({"k": "string", "v": "int64", "x": "float64"}),
    "R": Schema.of({"k": "string", "v": "int64"}),
}
ROUNDS = settings(max_examples=60, deadline=None)


# --- laws -------------------------------------------------------------------------------------------------------------


def assert_same_meaning(case: Case, better: Plan) -> None:
    """Where the plan has a result, the better plan has the same, with the same schema."""
    plain = check(case.plan, case.schemas, registry=all_modules())
    typed = check(better, case.schemas, registry=all_modules())
    assert typed.schema == plain.schema
    try:
        before, after = expected_outcome(case, plain), expected_outcome(case, typed)
    except TooManyRows:
        assume(False)
        return
    if isinstance(before, str):
        return  # a row that failed may be gone
    assert not isinstance(after, str), f"the rewritten plan fails with {after}"
    assert difference(before, after) is None


@pytest.mark.parametrize("improve", REWRITES, ids=lambda improve: improve.__name__)
@given(case=demanding_cases())
@ROUNDS
def test_a_pass_keeps_the_meaning(improve: Pass, case: Case) -> None:
    modules = all_modules()
    normal = to_plan(check(case.plan, case.schemas, registry=modules))
    assert_same_meaning(case, improve(normal, modules))


@given(demanding_cases())
@ROUNDS
def test_all_passes_together_keep_the_meaning_and_are_done_after_once(case: Case) -> None:
    better = rewrite(case.plan, case.schemas, registry=all_modules())
    assert_same_meaning(case, better)
    assert rewrite(better, case.schemas, registry=all_modules()) == better


@given(demanding_cases())
@settings(max_examples=25, deadline=None)
def test_duckdb_gives_for_the_rewritten_plan_what_the_evaluator_says_of_the_original(case: Case) -> None:
    plain = check(case.plan, case.schemas, registry=all_modules())
    try:
        expected = expected_outcome(case, plain)
    except TooManyRows:
        assume(False)
        return
    better = rewrite(case.plan, case.schemas, registry=all_modules())
    actual, text = actual_outcome(case, check(better, case.schemas, registry=all_modules()), duckdb_engine())
    if not isinstance(expected, str):
        assert not isinstance(actual, str), text
        assert difference(expected, actual) is None


# --- what each pass does ----------------------------------------------------------------------------------------------


def improved(stream: Stream, *, registry: Registry | None = None) -> Stream:
    return Stream(rewrite(stream.plan, SCHEMAS, registry=registry))


def expect(stream: Stream, wanted: Stream, **options: Any) -> None:
    """The rewritten stream is the wanted one, up to what the normal form makes explicit."""
    normal = to_plan(check(wanted.plan, SCHEMAS, registry=options.get("registry")))
    assert improved(stream, **options).explain() == Stream(normal).explain()


S, R = source("S"), source("R")
BOTH = {"k": "l.k", "a": "l.v", "b": "r.v", "c": "l.v - r.v"}


def test_adjacent_filters_become_one() -> None:
    expect(S.where("v > 1").where("k = 'a'"), S.where("v > 1 and k = 'a'"))


def test_a_filter_that_can_fail_stays_behind_the_one_before() -> None:
    expect(S.where("v > 0").where("v * v > 1"), S.where("v > 0").where("v * v > 1"))


def test_a_true_filter_vanishes() -> None:
    expect(S.where("true"), S)


def test_adjacent_projections_become_one() -> None:
    expect(S.select("v", a="v + 1").select(b="a * 2", c="v"), S.select(b="(v + 1) * 2", c="v"))


def test_projections_that_would_call_a_function_twice_stay_apart() -> None:
    modules = Registry([udf("f", returns="int64")(abs)])
    twice = S.select(a="f(v)").select(b="a + a")
    expect(twice, twice, registry=modules)
    expect(S.select(a="f(v)").select(b="a + 1"), S.select(b="f(v) + 1"), registry=modules)


def test_expressions_that_would_explode_stay_apart() -> None:
    doubling, adding, filtering = S.select(a="v + v"), S.select(a="v"), S
    for n in range(60):
        doubling, adding = doubling.select(a="a + a"), adding.select(a="a + 1")
        filtering = filtering.where(f"v > {n}").to_point()
    for stream in (doubling, adding, doubling.where("a > 1"), filtering):
        better = improved(stream)
        assert len(repr(better.plan)) < 100_000
        assert json.loads(json.dumps(better.plan)) == better.plan
    assert len(list(nodes.walk(improved(adding).plan))) < 5


@pytest.mark.parametrize(
    ("stream", "wanted"),
    [
        (S.shift(2).shift(3), S.shift(5)),
        (S.shift(2).shift(-2), S),
        (S.extend(2).extend(3), S.extend(5)),
        (S.extend(-2).extend(-3), S.extend(-5)),
        (S.extend(-2).extend(3), S.extend(-2).extend(3)),
        (S.extend(5).to_point(), S.to_point()),
        (S.extend(-5).to_point(), S.extend(-5).to_point()),
        (S.alter_duration(5).to_point().alter_duration("v"), S.alter_duration("v")),
        (S.alter_duration(5).alter_duration("re - le"), S.alter_duration(5).alter_duration("re - le")),
        (S.union(S.shift(1).union(S.shift(2))), S.union(S.shift(1), S.shift(2))),
        (S.union(), S),
    ],
)
def test_lifetime_operators_and_unions_fuse(stream: Stream, wanted: Stream) -> None:
    expect(stream, wanted)


V = "v > 1"
PUSHED = [
    (S.select("k", d="v * 2").where("k = 'a'"), S.where("k = 'a'").select("k", d="v * 2")),
    (S.select("k", d="v").where("d > 1"), S.where("v > 1").select("k", d="v")),
    (S.shift(2).where(V), S.where(V).shift(2)),
    (S.to_point().where("v > 1 and le > 3"), S.where("v > 1 and le > 3").to_point()),
    (S.extend(-2).where(V), S.where(V).extend(-2)),
    (S.alter_duration("v").where(V), S.where(V).alter_duration("v")),
    (S.point_at_end().where(V), S.where(V).point_at_end()),
    (S.chop(5).where(V), S.where(V).chop(5)),
    (S.stitch().where(V), S.where(V).stitch()),
    (S.coalesce().where(V), S.where(V).coalesce()),
    (S.distinct().where(V), S.where(V).distinct()),
    (S.clip(R).where(V), S.where(V).clip(R.select("k"))),
    (S.without(R).where(V), S.where(V).without(R.select("k"))),
    (S.select("k", "v").union(R).where(V), S.where(V).select("k", "v").union(R.where(V))),
    (S.session(5, key="k").where("k = 'a'"), S.where("k = 'a'").session(5, key="k")),
    (
        S.join(R, "l.k = r.k", select=BOTH).where("a > 1 and b < 5 and a < b"),
        S.where(V).select("k", "v").join(R.where("v < 5"), "l.k = r.k and l.v < r.v", select=BOTH),
    ),
    (
        S.followed_by(R, "l.k = r.k", select=BOTH).where("a > 1 and b < 5"),
        S.where(V).select("k", "v").followed_by(R.where("v < 5"), "l.k = r.k", select=BOTH),
    ),
    (
        S.left_outer(R, "l.k = r.k", select=BOTH).where("a > 1 and b < 5"),
        S.where(V).select("k", "v").left_outer(R, "l.k = r.k", select=BOTH).where("b < 5"),
    ),
    (
        S.group_by("k").tumbling(5).aggregate(n=count()).where("k = 'a' and n > 1"),
        S.where("k = 'a'")
        .select("k")
        .group_apply("k", apply=lambda g: g.tumbling(5).aggregate(n=count()).where("n > 1")),
    ),
]


@pytest.mark.parametrize(("stream", "wanted"), PUSHED)
def test_filters_move_down(stream: Stream, wanted: Stream) -> None:
    expect(stream, wanted)


STUCK = [
    S.shift(2).where("le > 3"),
    S.point_at_end().where("le > 3"),
    S.chop(5).where("le > 3"),
    S.coalesce().where("le > 3"),
    S.without(R.select("k")).where("le > 3"),
    S.session(5).where(V),
    S.session(5, key="k").where(V),
    S.tumbling(5).top(1, by=desc("v")).where(V),
    S.alter_duration("v").where("v + 1 > 2"),
    S.extend(-2).where("v + 1 > 2"),
    S.without(R.select("k")).where("v + 1 > 2"),
    S.advance_time(every=1).where(V),
    S.select("k", "v").full_outer(R, "l.k = r.k", select=BOTH).where("a > 1"),
    S.select("k", "v").join(R, "l.k = r.k", select=BOTH).where("c > 1"),
    S.select("k").group_apply("k", apply=lambda g: g.tumbling(5).aggregate(n=count())).where("k = 'a' or n > 1"),
    S.tumbling(5).udo("passthrough", map={"k": "k", "v": "v", "x": "x"}).where(V),
]


@pytest.mark.parametrize("stream", STUCK)
def test_filters_stay_where_moving_would_change_the_result(stream: Stream) -> None:
    expect(stream, stream)


def handing_through(*, passes: set[str], deterministic: bool = True) -> Registry:
    promises = Properties(passes=frozenset(passes), deterministic=deterministic)
    return Registry([udo("keep", returns=lambda inputs: inputs, properties=promises)(list)])


def test_a_filter_moves_below_a_module_on_columns_that_it_promises_to_pass() -> None:
    def kept(stream: Stream) -> Stream:
        return stream.tumbling(5).udo("keep", map={"k": "k", "w2": "v"})

    modules = handing_through(passes={"k", "w2"})
    expect(kept(S).where("w2 > 1"), kept(S.where("v > 1").select("k", "v")), registry=modules)
    narrow = S.select("k", "v")
    for other in (handing_through(passes={"k"}), handing_through(passes={"k", "w2"}, deterministic=False)):
        expect(kept(narrow).where("w2 > 1"), kept(narrow).where("w2 > 1"), registry=other)
    snapshots = narrow.snapshot().udo("keep", map={"k": "k", "w2": "v"}).where("w2 > 1")
    expect(snapshots, snapshots, registry=modules)


def test_equal_parts_are_shared() -> None:
    high = S.distinct()
    wanted = high.multicast(lambda m: m.union(m.shift(1)))
    expect(high.union(high.shift(1)), wanted)


def test_parts_inside_a_group_are_shared_inside() -> None:
    def both(group: Stream) -> Stream:
        points = group.select("v").coalesce()
        return points.union(points.shift(1))

    shared = improved(S.group_apply("k", apply=both)).plan
    assert isinstance(shared, nodes.GroupApply)
    assert isinstance(shared.apply, nodes.Let)


def test_calls_of_a_nondeterministic_function_stay_apart() -> None:
    modules = Registry([udf("dice", returns="int64", properties=Properties(deterministic=False))(abs)])
    rolled = S.select(a="dice(v)")
    assert not any(isinstance(n, nodes.Let) for n in nodes.walk(improved(rolled.union(rolled), registry=modules).plan))
    known = S.select(a="v")
    assert any(isinstance(n, nodes.Let) for n in nodes.walk(improved(known.union(known)).plan))


PRUNED = [
    (S.tumbling(5).aggregate(n=count()), S.select("k").tumbling(5).aggregate(n=count())),
    (S.tumbling(5).aggregate(n=aggregates.sum("v")), S.select("v").tumbling(5).aggregate(n=aggregates.sum("v"))),
    (
        S.tumbling(5).aggregate(n=aggregates.sum("v"), m=count()).select("m"),
        S.select("k").tumbling(5).aggregate(m=count()).select("m"),
    ),
    (S.tumbling(5).aggregate(n=first("v")), S.tumbling(5).aggregate(n=first("v"))),
    (S.distinct().tumbling(5).aggregate(n=count()), S.distinct().tumbling(5).aggregate(n=count())),
    (
        S.tumbling(5).top(1, by=desc("v")).select("k"),
        S.select("k", "v").tumbling(5).top(1, by=desc("v")).select("k"),
    ),
    (
        S.group_by("k").tumbling(5).aggregate(n=aggregates.sum("v")),
        S.select("k", "v").group_by("k").tumbling(5).aggregate(n=aggregates.sum("v")),
    ),
    (
        S.join(R, "l.k = r.k", select=BOTH).tumbling(5).aggregate(n=aggregates.sum("b")),
        S.select("k").join(R, "l.k = r.k", select={"b": "r.v"}).tumbling(5).aggregate(n=aggregates.sum("b")),
    ),
]


@pytest.mark.parametrize(("stream", "wanted"), PRUNED)
def test_columns_that_nothing_reads_are_dropped(stream: Stream, wanted: Stream) -> None:
    expect(stream, wanted)


# --- what can fail ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["v + 1 > 2", "cast(k as bigint) = 1", "f(v)", "-(v) > 1", "k like v", "abs(v) > 1"])
def test_expressions_that_can_fail(text: str) -> None:
    assert can_fail(parse(text))


@pytest.mark.parametrize(
    "text",
    ["v > 1", "try_cast(k as bigint) = 1", "lower(k) in ('a', 'b')", "case when v > 1 then true else k = 'a' end"],
)
def test_expressions_that_cannot_fail(text: str) -> None:
    assert not can_fail(parse(text))


def test_safe_functions_exist() -> None:
    from streamproof.plan.functions import FUNCTIONS

    assert set(FUNCTIONS) >= SAFE


def test_rewriting_reports_the_errors_of_the_check() -> None:
    with pytest.raises(StreamproofError, match='unknown column "vv"'):
        rewrite(S.where("vv > 1").plan, SCHEMAS)
