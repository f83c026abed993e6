"""Streams above the real ones: 20,000 to 200,000 events, every operator, on the ways that code takes for many rows."""

from __future__ import annotations

from streamproof.workbench import intent as I  # noqa: N812  # as testers write it
from streamproof.workbench.facets import Events
from streamproof.workbench.intent import Intent
from streamproof.workbench.suite import Suite
from streamproof.workbench.suites.scenarios import EQUALS, JOINS, LIFETIMES, WINDOWED


def _many(most: int) -> Events:
    """So many events that few of them are alive together, and CTIs that come after thousands."""
    return I.events(
        least=20_000, most=most, speculative=False, shape=I.one_of("interval", "point"),
        duration=I.one_of("short", "point", "long"),
        overlap=I.one_of("low", "medium", "high"),
        pattern=I.one_of("random", "staggered", "back_to_back", "duplicates"),
        liveliness=I.one_of("never", "final", 500, 5000), keys=I.one_of("few", 100, 5000, "unique"),
        disorder=I.one_of("in_order", (0.1, 64), (0.5, 2000)), duplicates=I.one_of("none", "some"),
    )  # fmt: skip


def _scenarios() -> tuple[Intent, ...]:
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


SUITE = Suite(
    "large",
    _scenarios(),
    cases=140,
    slow_cases=28,
    engines=("local", "spark-batch", "spark-stream"),
    streams_per_plan=1,
    about=__doc__ or "",
)
