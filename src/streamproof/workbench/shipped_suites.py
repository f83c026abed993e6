"""The suites that are shipped, and their scenarios: operators alone, in pairs, in groups, under modules and errors.

>>> [suite.name for suite in SUITES.values()]
['smoke', 'full', 'large', 'deep', 'fuzz']
"""

from __future__ import annotations

from typing import Final

from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.draw.dense import HABITS
from streamproof.workbench.facets import EventFacets
from streamproof.workbench.intent import Intent
from streamproof.workbench.suite import Suite

JOINS: Final = ("join", "left_outer", "full_outer", "followed_by", "lasj", "clip", "union")
EQUALS: Final = ("coalesce", "stitch", "distinct")
WINDOWED: Final = ("agg", "topk", "uda", "udo")
LIFETIMES: Final = (
    "shift", "extend", "alter_duration", "point_at_end", "chop", "session", "coalesce", "stitch", "distinct",
)  # fmt: skip


def single() -> tuple[Intent, ...]:
    """Every operator directly above its streams; those that look for equal rows also where columns are gone."""
    a, b = I.stream(), I.stream()
    narrow = I.stream({"k": "string", "v": "int64"}).select({"k": "k"})
    return (
        I.operator(a).called("one-input"),
        I.operator(a, b).called("two-inputs"),
        I.operator(a, among=WINDOWED).called("windows"),
        I.operator(a, b, among=JOINS).over(I.events(pattern="dense")).called("dense-joins"),
        I.operator(a, among=WINDOWED).over(I.events(pattern="dense")).called("dense-windows"),
        I.operator(a, among=("agg",)).over(I.events(pattern="dense")).called("dense-aggregates"),
        I.operator(a, among=LIFETIMES).over(I.events(pattern="dense")).called("dense-lifetimes"),
        I.operator(narrow, among=EQUALS).over(I.events(pattern="dense", speculative=False)).called("narrowed"),
    )


def pairs() -> tuple[Intent, ...]:
    """Operators above operators; those that look for equal rows also where a join gave nulls."""
    a, b = I.stream(), I.stream()
    left, right = (I.stream({"k": "string", "v": "int64"}) for _ in range(2))
    alone = left.then("left_outer", right, on="l.k = r.k", select={"k": "r.k"})
    return (
        I.operator(I.operator(a)).called("chains"),
        I.operator(I.operator(a, b)).called("over-joins"),
        I.operator(I.operator(a), b).called("joins-of-results"),
        I.operator(alone, among=EQUALS).over(I.events(pattern="dense", speculative=False)).called("nulls-of-joins"),
        I.operator(a, a).called("self-joins"),
        a.multicast(lambda x, y: I.operator(I.operator(x), y)).called("multicast"),
    )


def groups() -> tuple[Intent, ...]:
    """Group and apply: around every operator, nested, below and above joins."""
    a, b = I.stream(), I.stream()
    return (
        a.group_apply(I.operator).called("groups"),
        a.group_apply(lambda g: I.operator(g, g)).called("groups-of-joins"),
        a.group_apply(lambda g: I.operator(I.operator(g))).called("groups-of-chains"),
        a.group_apply(lambda g: g.group_apply(I.operator)).called("nested-groups"),
        a.group_apply(lambda g: g.group_apply(lambda h: I.operator(h, among=WINDOWED)))
        .over(I.events(pattern="dense"))
        .called("nested-windows"),
        I.operator(a.group_apply(I.operator), b).called("joins-of-groups"),
        I.operator(a.group_apply(I.operator)).called("over-groups"),
    )


def others() -> tuple[Intent, ...]:
    """Streams as edges under modules, speculation by query, time that is advanced, whole random plans."""
    a, b = I.stream(), I.stream()
    edges = I.events(shape="edge")
    return (
        I.operator(a, among=("uda", "udo")).over(edges).called("modules-over-edges"),
        I.operator(a)
        .over(I.events(speculative=True, disorder=I.one_of("out_of_order", "highly")))
        .called("speculative"),
        I.operator(a.advance_time())
        .over(I.events(liveliness=I.one_of("never", "final", "lazy"), disorder=I.one_of("out_of_order", "highly")))
        .called("advanced"),
        I.random_plan(a, b, depth=2).called("shallow"),
        I.random_plan(a, b, depth=4).called("random"),
        I.random_plan(a, b, depth=3).over(I.events(pattern="dense")).called("dense-random"),
    )


def edges() -> tuple[Intent, ...]:
    """Ties, times that meet, equal rows, nulls, NaN and both zeros, one event and none."""
    a, b = I.stream(), I.stream()
    tight = I.events(pattern=I.one_of(*HABITS), nulls=I.one_of("some", "many"), speculative=False)
    return (
        I.operator(a).over(tight).called("edges"),
        I.operator(a, b).over(tight).called("edges-of-two"),
        I.operator(a, among=WINDOWED).over(tight).called("edges-of-windows"),
        a.group_apply(I.operator).over(tight).called("edges-of-groups"),
    )


def rewritten() -> tuple[Intent, ...]:
    """What rewriting moves and puts together: conditions and selects above, below and between other operators."""
    a, b = I.stream(), I.stream()
    tight = I.events(pattern=I.one_of(*HABITS), speculative=False)

    def moved(below: Intent) -> Intent:
        return I.operator(below, among=("where", "select"))

    return (
        moved(I.operator(a)).over(tight).called("moved"),
        moved(I.operator(a, b)).over(tight).called("moved-over-two"),
        moved(moved(moved(a))).over(tight).called("moved-together"),
        I.operator(moved(I.operator(a)), among=(*WINDOWED, "select")).over(tight).called("moved-between"),
        moved(a.group_apply(lambda g: I.operator(moved(g)))).over(tight).called("moved-over-groups"),
        a.multicast(lambda x, y: I.operator(moved(x), moved(y))).over(tight).called("shared"),
    )


def longer() -> tuple[Intent, ...]:
    """Streams long enough that windows open and close with one batch, and that state is tidied on the way."""
    a, b = I.stream(), I.stream()
    calm = I.events(
        most=60, duration=I.one_of("short", "point"), overlap=I.one_of("low", "medium"), speculative=False,
        pattern=I.one_of("random", "staggered"), duplicates="none",
    )  # fmt: skip
    brief = I.events(
        most=80, duration="short", overlap=I.one_of("low", "medium"), liveliness=12, disorder="in_order",
        speculation=I.one_of("none", "mixed"), speculative=False, pattern=I.one_of("random", "staggered"),
    )  # fmt: skip
    tumbling = I.window("tumbling")
    stateful = ("agg", "topk", "session", "coalesce", "stitch", "distinct", "alter_duration")
    return (
        a.topk(window=tumbling).over(brief).called("passing-events"),
        a.group_apply(lambda g: g.topk(window=tumbling)).over(brief).called("passing-groups"),
        I.operator(a, among=stateful).over(calm).called("long-streams"),
        I.operator(a, b, among=JOINS).over(calm).called("long-joins"),
    )


def everything() -> tuple[Intent, ...]:
    """All of them."""
    return (*single(), *pairs(), *groups(), *others(), *edges(), *rewritten(), *longer())


def above_real_ones() -> tuple[Intent, ...]:
    """Streams of as many events as take the ways of code for many rows, of which few are alive together."""
    a, b = I.stream(), I.stream()
    some, most = _many(50_000), _many(200_000)
    return (
        I.operator(a, among=WINDOWED).over(some).called("large-windows"),
        I.operator(a, b, among=JOINS).over(some).called("large-joins"),
        I.operator(a, among=(*LIFETIMES, "where", "select", "to_point")).over(most).called("large-lifetimes"),
        I.operator(a, among=EQUALS).over(most).called("large-equals"),
        a.group_apply(lambda g: I.operator(g, among=(*WINDOWED, *EQUALS, "session"))).over(some).called("large-groups"),
        I.operator(I.operator(a, among=(*LIFETIMES, "where")), among=("agg",)).over(some).called("large-chains"),
        I.operator(a, among=("agg",)).over(most).called("largest-aggregates"),
    )


def _many(most: int) -> EventFacets:
    """So many events, and CTIs that come after thousands."""
    return I.events(
        least=20_000, most=most, speculative=False, shape=I.one_of("interval", "point"),
        duration=I.one_of("short", "point", "long"),
        overlap=I.one_of("low", "medium", "high"),
        pattern=I.one_of("random", "staggered", "back_to_back", "duplicates"),
        liveliness=I.one_of("never", "final", 500, 5000), keys=I.one_of("few", 100, 5000, "unique"),
        disorder=I.one_of("in_order", (0.1, 64), (0.5, 2000)), duplicates=I.one_of("none", "some"),
    )  # fmt: skip


def briefly() -> tuple[Intent, ...]:
    """Every operator alone and in groups."""
    one, other = I.stream(), I.stream()
    return (
        I.operator(one).called("one-input"),
        I.operator(one, other).called("two-inputs"),
        one.group_apply(I.operator).called("groups"),
    )


SUITES: Final = {
    suite.name: suite
    for suite in (
        Suite(
            "smoke", briefly(), cases=300, slow_cases=60, streams_per_plan=4,
            about="Seconds: every operator once or twice, alone and in groups.",
        ),
        Suite(
            "full", everything(), cases=12_000, slow_cases=1_200, engines=("local", "spark-buckets"),
            streams_per_plan=8,
            about="Minutes: every operator, window, module kind and facet value, pairs of them, every law.",
        ),
        Suite(
            "large", above_real_ones(), cases=140, slow_cases=28, engines=("local", "spark-batch", "spark-stream"),
            streams_per_plan=1,
            about="Streams above the real ones: 20,000 to 200,000 events, every operator, on the ways that code takes "
            "for many rows.",
        ),
        Suite(
            "deep", everything(), cases=1_000_000, slow_cases=50_000, seed=2, engines=("local", "spark-buckets"),
            streams_per_plan=8,
            about="As long as you like: the scenarios of full, without an end; give --cases or --time-budget.",
        ),
        Suite(
            "fuzz", (I.random_case().called("anything"),), cases=2000, slow_cases=500, streams_per_plan=1,
            about="Everything drawn: any plan over dense streams, up to five operators deep, each plan once; for the "
            "evaluator to judge.",
        ),
    )
}  # fmt: skip
