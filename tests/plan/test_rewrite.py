"""Rewriting keeps the meaning: laws over random plans, and what each pass does to the plans it is for."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import pytest
from hypothesis import assume, given, settings

from streamproof.engines.base import Settings
from streamproof.engines.oracle import duckdb_engine
from streamproof.errors import StreamproofError
from streamproof.events.event import Insert
from streamproof.events.history import History
from streamproof.events.physical import to_batches
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.language import json
from streamproof.plan import nodes
from streamproof.plan.check import check
from streamproof.plan.modules import Properties, Registry, udf, udo
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.rewrites import REWRITES, Pass, rewrite
from streamproof.plan.rewrites.normal_form import SAFE, can_fail, to_plan
from streamproof.plan.rewrites.push_filter import RULES, never, passes
from streamproof.query import aggregates
from streamproof.query.aggregates import count, first
from streamproof.query.column import desc
from streamproof.query.stream import Stream, source
from streamproof.workbench.case import Case
from streamproof.workbench.case import CaseStream as Events
from streamproof.workbench.evaluator.evaluate import evaluate
from streamproof.workbench.evaluator.values import Row
from streamproof.workbench.modules import all_modules
from streamproof.workbench.oracle import EvaluatorOracle
from streamproof.workbench.verdict import TOO_LARGE, Failure
from tests.plan.rewriting import MODULES, SCHEMAS, case
from tests.reference.compare import difference
from tests.reference.drawn import cases as random_cases
from tests.reference.drawn import folded
from tests.reference.judging import rows_in

S, R = source("S"), source("R")

# --- laws -------------------------------------------------------------------------------------------------------------


def outcome(case: Case, plan: Plan) -> list[Row] | str:
    """What the evaluator says: rows, or the name of an error."""
    typed = check(plan, case.schemas, registry=MODULES)
    try:
        return evaluate(typed, {name: folded(stream) for name, stream in case.streams.items()}, registry=MODULES)
    except StreamproofError as error:
        return error.name


def assert_same_meaning(case: Case, better: Plan) -> None:
    """Where the plan has a result, the better plan has the same, with the same schema."""
    plain, typed = (check(plan, case.schemas, registry=MODULES) for plan in (case.plan, better))
    assert typed.schema == plain.schema
    before, after = outcome(case, case.plan), outcome(case, better)
    if isinstance(before, str):
        return  # the row that failed may be gone
    assert not isinstance(after, str), f"the rewritten plan fails with {after}"
    assert difference(before, after) is None


@pytest.mark.parametrize("improve", REWRITES, ids=lambda improve: improve.__name__)
def test_a_pass_keeps_the_meaning(improve: Pass) -> None:
    for seed in range(80):
        found = case(seed)
        normal = to_plan(check(found.plan, found.schemas, registry=MODULES))
        assert_same_meaning(found, improve(normal, MODULES))


def assert_rewriting_keeps_the_meaning(found: Case) -> None:
    better = rewrite(found.plan, found.schemas, registry=MODULES)
    assert_same_meaning(found, better)
    assert rewrite(better, found.schemas, registry=MODULES) == better


def test_all_passes_together_keep_the_meaning_and_are_done_after_once() -> None:
    for seed in range(1000, 1150):
        assert_rewriting_keeps_the_meaning(case(seed))


@pytest.mark.slow
def test_all_passes_together_keep_the_meaning_of_many_plans() -> None:
    for seed in range(2000, 5000):
        assert_rewriting_keeps_the_meaning(case(seed))


@given(random_cases())
@settings(max_examples=60, deadline=None)
def test_all_passes_together_keep_the_meaning_of_any_plan(found: Case) -> None:
    modules = all_modules()
    better = rewrite(found.plan, found.schemas, registry=modules)
    assert (
        check(better, found.schemas, registry=modules).schema
        == check(found.plan, found.schemas, registry=modules).schema
    )
    assert rewrite(better, found.schemas, registry=modules) == better
    judge = EvaluatorOracle(modules)
    before, after = (judge.expected(replace(found, plan=plan)) for plan in (found.plan, better))
    assume(TOO_LARGE not in (before, after))
    if not isinstance(before, Failure):
        assert difference(rows_in(before), rows_in(after)) is None


MOST = 2**63 - 1
DENSE = Case(
    S.plan,
    {
        "S": Events(
            SCHEMAS["S"],
            tuple(
                Insert(f"s{n}", le, re, dict(zip("kvx", row, strict=True)))
                for n, (le, re, *row) in enumerate(
                    [
                        (0, 4, "a", 1, 0.5), (0, 4, "a", 1, 0.5), (2, 6, "a", 2, 1.0), (3, 5, "b", 3, 2.0),
                        (4, 9, None, 2, None), (5, 7, "b", None, 1.0), (6, FOREVER, "a", 0, 2.0),
                        (8, 9, "c", MOST, 0.5),
                    ]
                )
            ),
        ),
        "R": Events(
            SCHEMAS["R"],
            tuple(
                Insert(f"r{n}", le, re, {"k": k, "v": v})
                for n, (le, re, k, v) in enumerate(
                    [
                        (1, 3, "a", 2), (1, 3, "a", 0), (4, 8, "b", 3), (4, 5, None, 1), (7, 10, "c", None),
                        (6, 8, "a", 1),
                    ]
                )
            ),
        ),
    },
)  # fmt: skip
SIDES = {"k": "l.k", "a": "l.v", "j": "r.k", "b": "r.v"}
UNDER: tuple[Stream, ...] = (
    S.where("v < 3"), S.select("k", a="v", b="v * 2 - 2"), S.shift(2), S.extend(3), S.extend(-2), S.to_point(),
    S.alter_duration("v"), S.alter_duration(2), S.point_at_end(), S.chop(3), S.select("k").stitch(),
    S.select("v").coalesce(), S.distinct(), S.clip(R, "l.k = r.k"), S.without(R, "l.k = r.k"),
    S.select("k", "v").union(R), S.distinct().multicast(lambda m: m.union(m.shift(1))), S.session(3, key="k"),
    S.session(2), S.tumbling(4).udo("keep", map={"k": "k", "v": "v", "x": "x"}),
    *(getattr(S, name)(R, "l.k = r.k", select=SIDES) for name in ("join", "followed_by", "left_outer", "full_outer")),
    S.group_apply("k", apply=lambda g: g.snapshot().aggregate(n=count(), s=aggregates.max("x"))),
    S.snapshot().aggregate(n=count(), s=aggregates.max("v")), S.tumbling(4).top(1, by=desc("v")),
    S.advance_time(every=1, delay=9),
)  # fmt: skip


def conditions(stream: Stream) -> list[str]:
    """Conditions of every sort: on one column, on a column and a time, on two columns, one that can fail."""
    schema = check(stream.plan, SCHEMAS, registry=MODULES).schema
    found = ["le > 3", "le <= 4"]
    for name, kind in schema:
        text = "'a'" if kind.kind == "string" else "1"
        found += [f"{name} = {text}", f"{name} > {text}", f"{name} is null", f"{name} > {text} or le > 4"]
        found += [f"{name} + 1 > 2"] if kind.kind == "int64" else []
    for (one, kind), (other, same) in permutations(schema, 2):
        found += [f"{one} is null or {other} is not null"]
        found += [f"{one} > {other}", f"{one} <= {other} and {other} is not null"] if kind == same else []
    return found


@pytest.mark.parametrize("stream", UNDER, ids=lambda stream: type(stream.plan).__name__)
def test_a_filter_over_any_operator_keeps_its_meaning(stream: Stream) -> None:
    for condition in conditions(stream):
        assert_rewriting_keeps_the_meaning(replace(DENSE, plan=stream.where(condition).plan))


def test_every_operator_that_filters_move_below_stands_under_one() -> None:
    under = {
        type(part) for stream in UNDER for part in nodes.walk(to_plan(check(stream.plan, SCHEMAS, registry=MODULES)))
    }
    moved = {kind for kind in nodes.CORE_NODES if passes(kind)} | {
        kind for kind, rule in RULES.items() if rule is not never
    }
    assert moved - {nodes.AdvanceTime} <= under


def test_duckdb_gives_for_the_rewritten_plan_what_the_evaluator_says_of_the_original() -> None:
    engine = duckdb_engine()
    run_settings = Settings(registry=MODULES)
    for seed in range(3000, 3030):
        found = case(seed)
        expected = outcome(found, found.plan)
        typed = check(rewrite(found.plan, found.schemas, registry=MODULES), found.schemas, registry=MODULES)
        if isinstance(expected, str):
            continue
        inputs = {
            n: list(to_batches(PhysicalStream.from_events(s.events, schema=s.schema))) for n, s in found.streams.items()
        }
        output = History.from_batches(typed.schema, engine.run(typed, inputs, run_settings))
        assert difference(expected, rows_in(output)) is None


# --- what each pass does ----------------------------------------------------------------------------------------------


def improved(stream: Stream, *, registry: Registry | None = None) -> Stream:
    return Stream(rewrite(stream.plan, SCHEMAS, registry=registry))


def expect(stream: Stream, wanted: Stream, **options: Any) -> None:
    """The rewritten stream is the wanted one, up to what the normal form makes explicit."""
    normal = to_plan(check(wanted.plan, SCHEMAS, registry=options.get("registry")))
    assert improved(stream, **options).explain() == Stream(normal).explain()


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
    S.shift(1).where("le > 3").where("v + 1 > 2"),
    S.select("k", "v").full_outer(R, "l.k = r.k", select=BOTH).where("a > 1"),
    S.select("k", "v").join(R, "l.k = r.k", select=BOTH).where("c > 1"),
    S.select("k").group_apply("k", apply=lambda g: g.tumbling(5).aggregate(n=count())).where("k = 'a' or n > 1"),
    S.select("k").group_apply("k", apply=lambda g: g.tumbling(5).aggregate(n=count())).where("k = 'a' or le > 1"),
    S.tumbling(5).udo("passthrough", map={"k": "k", "v": "v", "x": "x"}).where(V),
]


@pytest.mark.parametrize("stream", STUCK)
def test_filters_stay_where_moving_would_change_the_result(stream: Stream) -> None:
    expect(stream, stream)


def test_a_filter_below_a_union_sees_the_types_of_the_union() -> None:
    mixed = S.select("v").union(S.select(v="x"))
    wanted = S.where("cast(cast(v as double) as varchar) = '1.0'").select(v="cast(v as double)")
    expect(mixed.where("cast(v as varchar) = '1.0'"), wanted.union(S.where("cast(x as varchar) = '1.0'").select(v="x")))


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
        S.distinct().union(S).tumbling(5).aggregate(n=aggregates.max("v")),
        S.distinct().select("v").union(S.select("v")).tumbling(5).aggregate(n=aggregates.max("v")),
    ),
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
