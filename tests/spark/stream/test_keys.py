"""By which columns plans are split: examples; that the split is right is shown by running random plans in buckets."""

from __future__ import annotations

import pytest

import streamproof as sp
from streamproof.engines.spark.stream.keys import split_by, together_because
from streamproof.plan.check import check

S = sp.source("S")
R = sp.source("R")
SCHEMAS = {
    "S": sp.Schema.of({"k": "string", "j": "int64", "v": "int64"}),
    "R": sp.Schema.of({"k": "string", "u": "float64", "v": "int64"}),
}
COUNT = {"n": sp.count()}
PAIRS = S.join(R, "l.k = r.k and l.v = r.v", select={"key": "l.k", "x": "r.v", "u": "r.u"})


@pytest.mark.parametrize(
    ("stream", "split"),
    [
        (S.where("v > 1").select(k="k"), {"S": ("k", "j", "v")}),
        (S.where("v > 1").shift(3), {"S": ("k", "j", "v")}),
        (S.group_by("k", "j").tumbling(5).aggregate(**COUNT), {"S": ("k", "j")}),
        (S.group_by("k", "j").tumbling(5).aggregate(**COUNT).group_by("j").tumbling(9).aggregate(m=sp.max("n")),
         {"S": ("j",)}),
        (S.group_by("k").tumbling(5).aggregate(**COUNT).tumbling(9).aggregate(m=sp.max("n")), None),
        (S.select(k="k || 'x'").group_by("k").tumbling(5).aggregate(**COUNT), None),
        (PAIRS, {"S": ("k", "v"), "R": ("k", "v")}),
        (PAIRS.group_by("key").snapshot().aggregate(**COUNT), {"S": ("k",), "R": ("k",)}),
        (PAIRS.group_by("u").snapshot().aggregate(**COUNT), None),
        (S.join(R, "l.v = r.u", select={"k": "l.k"}), None),
        (S.left_outer(R, "l.k = r.k", select={"k": "r.k"}).group_by("k").snapshot().aggregate(**COUNT), None),
        (S.left_outer(R, "l.k = r.k", select={"k": "l.k"}).group_by("k").snapshot().aggregate(**COUNT),
         {"S": ("k",), "R": ("k",)}),
        (S.select(k="k").union(R.select(k="k")).distinct(), {"S": ("k",), "R": ("k",)}),
        (S.select(k="k").union(S.select(k="k || ''")).distinct(), None),
        (S.select(a="v", b="j").union(R.select(a="v", b="v")).distinct(), {"S": ("v", "j"), "R": ("v", "v")}),
        (S.session(5), None),
        (S.session(5, key=["j"]), {"S": ("j",)}),
    ],
)  # fmt: skip
def test_splitting(stream: sp.Stream, split: dict[str, tuple[str, ...]] | None) -> None:
    found = split_by(check(stream.plan, SCHEMAS))
    assert found == split


@pytest.mark.parametrize(
    ("stream", "why"),
    [
        (S.group_by("k").tumbling(5).aggregate(**COUNT), None),
        (S.group_by("k").tumbling(5).aggregate(**COUNT).tumbling(9).aggregate(m=sp.max("n")),
         "agg(tumbling(size=9), m=max(n)) lets rows meet that no column of the sources keeps together"),
        (PAIRS.group_by("u").snapshot().aggregate(**COUNT),
         "group_apply(u) lets rows meet that no column of the sources keeps together"),
        (S.session(5), "session(timeout=5) lets rows meet that no column of the sources keeps together"),
    ],
)  # fmt: skip
def test_why_rows_stay_together(stream: sp.Stream, why: str | None) -> None:
    assert together_because(check(stream.plan, SCHEMAS)) == why
