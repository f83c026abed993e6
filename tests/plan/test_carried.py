"""A branch that passes the group's key on has it; one that computes a column of that name is refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import streamproof as sp
from streamproof import count, desc, source
from streamproof.errors import PlanError
from streamproof.events.schema import Schema
from streamproof.plan.check import check

Branch = Callable[[sp.Stream], sp.Stream]
SCHEMAS = {"S": Schema.of({"k": "string", "j": "int64", "v": "int64"})}
S = source("S")
EVENTS = [{"le": n, "re": n + 4, "payload": {"k": "ab"[n % 2], "j": n % 3, "v": n}} for n in range(12)]

PASSED: list[tuple[Branch, tuple[str, ...]]] = [
    (lambda g: g, ("k", "j", "v")),
    (lambda g: g.where("v > 3").shift(1).coalesce(), ("k", "j", "v")),
    (lambda g: g.select("k"), ("k",)),
    (lambda g: g.select(a="k", v="v").select(v="v", k="a"), ("k", "v")),
    (lambda g: g.group_by("j").apply(lambda h: h.where("v > 2")), ("k", "j", "v")),
    (lambda g: g.multicast(lambda m: m.join(m.select(u="v"), "l.v < r.u")), ("k", "j", "v", "u")),
    (lambda g: g.join(g.tumbling(5).aggregate(n=count())), ("k", "j", "v", "n")),
    (lambda g: g.where("v > 5") | g.where("v < 2"), ("k", "j", "v")),
    (lambda g: g.left_outer(g.where("v < 8"), "l.v = r.v", select={"k": "l.k", "u": "r.v"}), ("k", "u")),
    (
        lambda g: g.where("v > 5").full_outer(
            g.where("v < 8"), "l.v = r.v", select={"k": "coalesce(l.k, r.k)", "a": "l.v", "b": "r.v"}
        ),
        ("k", "a", "b"),
    ),
    (lambda g: g.tumbling(5).top(1, by=desc("v"), rank="place"), ("k", "j", "v", "place")),
]
CHANGED: list[Branch] = [
    lambda g: g.select(k="k || 'x'"),
    lambda g: g.select(k="j"),
    lambda g: g | g.select(k="'x'", j="j", v="v"),
    lambda g: g.left_outer(g.where("v < 8"), "l.v = r.v", select={"k": "r.k"}),
    lambda g: g.full_outer(g.where("v < 8"), "l.v = r.v", select={"k": "l.k"}),
    lambda g: g.tumbling(5).aggregate(k=sp.max("k")),
]


@pytest.mark.parametrize(("branch", "names"), PASSED)
def test_a_branch_that_passes_the_key_on_has_it(branch: Branch, names: tuple[str, ...]) -> None:
    stream = S.group_by("k").apply(branch)
    found = stream.on("local").run({"S": EVENTS}).history
    assert (found.schema.names, found) == (names, stream.on("duckdb").run({"S": EVENTS}).history)
    without = S.group_by("k").apply(lambda g: branch(g).select(*names[1:])) if names[1:] else stream
    assert without.on("local").run({"S": EVENTS}).history == found


@pytest.mark.parametrize("branch", CHANGED)
def test_a_branch_that_changes_the_key_is_refused(branch: Branch) -> None:
    with pytest.raises(PlanError, match='the apply branch changes "k", which is a key of the group'):
        check(S.group_by("k").apply(branch).plan, SCHEMAS)


def test_several_keys_and_an_inner_key_of_the_same_name() -> None:
    both = S.group_by("k", "j").apply(lambda g: g.where("v > 1"))
    assert check(both.plan, SCHEMAS).schema.names == ("k", "j", "v")
    inner = S.group_by("k").apply(lambda g: g.group_by("k").apply(lambda h: h.where("v > 1")))
    assert check(inner.plan, SCHEMAS).schema.names == ("k", "j", "v")
