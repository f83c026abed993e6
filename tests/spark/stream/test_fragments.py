"""Where plans are cut: at changes of the key, and nowhere else."""

from __future__ import annotations

import pytest

import streamproof as sp
from streamproof.engines.base import Settings, prepare
from streamproof.engines.spark.stream.chain import cut, described
from streamproof.engines.spark.stream.keys import holds_state
from streamproof.plan import nodes
from streamproof.plan.check import Typed, check
from tests.spark.stream.chained_plans import BY_J, BY_K, CHAINED, R, S, stream

SCHEMAS = {name: stream(name, 0).schema for name in "SR"}
WANTED = {
    "keyed, then global": [
        "stage 1: S by k, in 4 buckets: group_apply(k)",
        "stage 2: stage 1, in one bucket: topk(tumbling(size=20), k=2, by=n desc)",
    ],
    "joined on k, then by j": [
        "stage 1: S by k and R by name, in 4 buckets: join(on=l.k = r.name, j=l.j, x=r.u)",
        "stage 2: stage 1 by j, in 4 buckets: group_apply(j)",
    ],
    "two keys of one stream, joined": [
        "stage 1a: S by k, in 4 buckets: group_apply(k)",
        "stage 1b: S by j, in 4 buckets: group_apply(j)",
        "stage 2: stage 1a by n and stage 1b by c, in 4 buckets: join(on=l.n = r.c, k=l.k, j=r.j, n=l.n)",
    ],
    "three keys, one after the other": [
        "stage 1: S by j, in 4 buckets: group_apply(j, n)",
        "stage 2: stage 1 by c, in 4 buckets: group_apply(c)",
        "stage 3: stage 2, in one bucket: agg(tumbling(size=80), most=max(d))",
    ],
    "a key that is computed": [
        "stage 1: S by k, j, v, in 4 buckets: select(b=v % 3, v)",
        "stage 2: stage 1 by b, in 4 buckets: group_apply(b)",
    ],
    "a stream beside what it was aggregated to": [
        "stage 1: S by k, in 4 buckets: group_apply(k)",
        "stage 2: S by v and stage 1 by n, in 4 buckets: join(on=l.v = r.n, k=l.k, other=r.k, v=l.v)",
    ],
}


def typed_of(query: sp.Stream) -> Typed:
    return prepare(query.plan, {name: SCHEMAS[name] for name in nodes.sources(query.plan)}, Settings())


@pytest.mark.parametrize("plan", WANTED)
def test_plans_are_cut_where_their_key_changes(plan: str) -> None:
    assert described(cut(typed_of(CHAINED[plan][0])), 4) == WANTED[plan]


@pytest.mark.parametrize(
    "query",
    [
        BY_K,
        BY_K.where("n > 1").group_by("k").tumbling(20).aggregate(c=sp.sum("n")),
        S.join(R, "l.k = r.name", select={"k": "l.k"}).group_by("k").tumbling(10).aggregate(n=sp.count()),
        S.where("v > 1").tumbling(10).aggregate(n=sp.count()),  # a filter alone is not worth a stage
        S.tumbling(10)
        .aggregate(n=sp.count())
        .group_by("n")
        .tumbling(20)
        .aggregate(c=sp.count()),  # it is there already
        S.select(x="v + 1"),
    ],
)
def test_what_shares_a_key_stays_together(query: sp.Stream) -> None:
    assert len(cut(typed_of(query))) == 1


def test_what_is_cut_for_one_reader_is_computed_once() -> None:
    """One branch could stay with the keyed part, the other cannot."""
    both = BY_K.multicast(
        lambda keyed: (
            keyed.group_by("k")
            .tumbling(20)
            .aggregate(c=sp.sum("n"))
            .select(x="c")
            .union(keyed.group_by("n").tumbling(20).aggregate(c=sp.count()).select(x="c"))
        )
    )
    assert described(cut(typed_of(both))) == [
        "stage 1: S by k, in buckets: group_apply(k)",
        "stage 2a: stage 1 by k, in buckets: group_apply(k)",
        "stage 2b: stage 1 by n, in buckets: group_apply(n)",
        "stage 3: stage 2a by x and stage 2b by x, in buckets: union",
    ]


def test_events_that_may_be_let_go_are_judged_in_one_place() -> None:
    both = typed_of(BY_K.select(a="k").union(BY_J.select(a="j")))
    assert described(cut(both, {"S"})) == [
        "stage 1: S by k, j, v, in buckets: source(S)",
        "stage 2a: stage 1 by k, in buckets: group_apply(k)",
        "stage 2b: stage 1 by j, in buckets: group_apply(j)",
        "stage 3: stage 2a by a and stage 2b by a, in buckets: union",
    ]
    assert [fragment.layer for fragment in cut(typed_of(BY_K), {"S"})] == [1]


def test_names_of_fragments_are_no_names_of_sources() -> None:
    schema = SCHEMAS["S"]
    odd = nodes.transform(
        CHAINED["keyed, then global"][0].plan, lambda n: nodes.Source("#1") if isinstance(n, nodes.Source) else n
    )
    first, second = cut(check(odd, {"#1": schema}))
    assert first.sources == ["#1"]
    assert second.sources == list(second.feeds) != ["#1"]
    assert holds_state(first.typed)
