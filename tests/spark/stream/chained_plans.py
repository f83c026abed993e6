"""Plans whose key changes, of every shape, and a stream for them."""

from __future__ import annotations

import random
from typing import Any

import streamproof as sp

S, R = sp.source("S"), sp.source("R")
BY_K = S.group_by("k").tumbling(10).aggregate(n=sp.count(), m=sp.max("v"))
BY_J = S.group_by("j").hopping(20, 10).aggregate(c=sp.count(), j0=sp.min("v"))
CHAINED: dict[str, tuple[sp.Stream, int]] = {
    "keyed, then global": (BY_K.tumbling(20).top(2, by=sp.desc("n"), keep=["k", "n"]), 2),
    "keyed, then by another key": (
        S.group_by("k", "j").tumbling(10).aggregate(n=sp.count()).group_by("n").tumbling(30).aggregate(c=sp.count()),
        2,
    ),
    "joined on k, then by j": (
        S.join(R, "l.k = r.name", select={"j": "l.j", "x": "r.u"}).group_by("j").tumbling(20).aggregate(s=sp.sum("x")),
        2,
    ),
    "two keys of one stream, joined": (
        S.multicast(
            lambda s: (
                s.group_by("k")
                .tumbling(10)
                .aggregate(n=sp.count())
                .join(
                    s.group_by("j").tumbling(10).aggregate(c=sp.count()),
                    "l.n = r.c",
                    select={"k": "l.k", "j": "r.j", "n": "l.n"},
                )
            )
        ),
        2,
    ),
    "two sources aggregated by different keys, joined without an equality": (
        BY_K.join(
            R.group_by("name").tumbling(10).aggregate(t=sp.sum("u")), "l.m < r.t", select={"k": "l.k", "name": "r.name"}
        ),
        2,
    ),
    "three keys, one after the other": (
        S.group_by("k", "j")
        .tumbling(10)
        .aggregate(n=sp.count())
        .group_by("j", "n")
        .tumbling(20)
        .aggregate(c=sp.count())
        .group_by("c")
        .tumbling(40)
        .aggregate(d=sp.count())
        .tumbling(80)
        .aggregate(most=sp.max("d")),
        3,  # the first two share j
    ),
    "windows that stay open by key, then global": (
        S.group_by("k").count_end(3).aggregate(s=sp.sum("v")).snapshot().aggregate(n=sp.count(), s=sp.sum("s")),
        2,  # its buckets are at different times
    ),
    "a key that is computed": (S.select(b="v % 3", v="v").group_by("b").tumbling(10).aggregate(n=sp.sum("v")), 2),
    "a stream beside what it was aggregated to": (
        S.multicast(
            lambda s: s.join(
                s.group_by("k").tumbling(10).aggregate(n=sp.count()),
                "l.v = r.n",
                select={"k": "l.k", "other": "r.k", "v": "l.v"},
            )
        ),
        2,
    ),
    "a stream without what was counted": (
        S.without(R.group_by("name").tumbling(10).aggregate(t=sp.count()), "l.v = r.t"),
        2,
    ),
    "a source that comes in late": (
        BY_K.join(R, "l.n = r.u", select={"k": "l.k", "name": "r.name", "n": "l.n"}),
        2,
    ),
    "all of them together": (
        BY_K.select(a="k", n="n").union(
            BY_J.select(a="j", n="c"),
            R.group_by("name").count_start(2).aggregate(n=sp.count()).select(a="name", n="n"),
        ),
        2,
    ),
}
"""Each with the number of its stages."""


def stream(name: str, seed: int, count: int = 60) -> sp.PhysicalStream:
    """Events with retractions and CTIs between them; two sources have different columns."""
    chance = random.Random(f"{name} {seed}")
    events: list[Any] = []
    waiting: list[tuple[int, Any]] = []  # changes, and after how many events they come
    for n in range(count):
        payload: dict[str, Any] = {
            "k": f"k{chance.randint(0, 6)}",
            "j": chance.choice(["a", "b", None]),
            "v": chance.randint(0, 9),
        }
        if name == "R":
            payload = {"name": f"k{chance.randint(0, 6)}", "u": chance.randint(0, 5)}
        le, length = n + chance.randint(0, 4), chance.randint(1, 8)
        events.append(sp.Insert(f"{name}{n}", le, le + length, payload))
        if chance.random() < 0.2:
            change = sp.Retract(f"{name}{n}", le, le + length, le + chance.randint(0, length - 1), payload)
            waiting.append((n + chance.randint(0, 8), change))
        events += [change for due, change in waiting if due == n]
        if n % 10 == 9:
            events.append(sp.Cti(n - 10))
    return sp.PhysicalStream.from_events(events)
