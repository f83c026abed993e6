"""The scenarios that the shipped suites share: every operator alone, in pairs, in groups, under modules and errors."""

from __future__ import annotations

from typing import Final

from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.draw.dense import HABITS
from streamproof.workbench.intent import Intent

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
