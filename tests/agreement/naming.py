"""Plans in any names: each is a function of three column names, and together they have every kind of node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import pyarrow as pa
from hypothesis import strategies as st

import streamproof as sp
from streamproof import col, count, desc, left, right
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.plan.text import quote

Plan: TypeAlias = "Callable[[str, str, str], sp.Stream]"
Text: TypeAlias = "Callable[[str, str, str], str]"
PLAIN = ("a", "b", "c")
KINDS = ("string", "int64", "float64")

OURS = (
    "le", "re", "w", "kind", "id", "re_new", "start", "end", "new_end", "cti", "payload", "payload.le", "payload.",
    "streamproof_le", "streamproof_w", "streamproof_kind", "payload.streamproof_le", "LE", "Re", "W", "ID", "Kind",
)  # fmt: skip
"""Names of our own columns, also as they are where payload has one of them, and in capitals."""
INSIDE = (
    "g", "g0", "c0", "C0", "c1", "x0", "k0", "p0", "n0", "l", "r", "S", "t", "p", "n", "dur", "stays", "copy", "side",
    "wle", "wre", "seen_le", "g_c0", "a_le", "b_c0", "bits", "gap", "part", "number", "following", "reached", "fresh",
    "island", "lifetimes", "chain", "ends", "first", "last", "weight", "bucket", "cluster", "rows", "source", "order",
    "one", "begin", "low", "high", "latest", "value", "shared1", "arg0", "xmin", "ctid", "rowid", "_metadata", "oid",
)  # fmt: skip
"""Names that engines use inside, and columns that databases have of their own."""
WORDS = ("select", "from", "group", "where", "null", "true", "case", "if", "interval", "date", "Select", "NULL", "*")
SIGNS = (
    "a.b", "a`b", 'a"b', '"', "it's", " ", "two words", "le ", "\t", "x\ny", "é", "ß", "ẞ", "日本", "😀", "\u0301",
    "%s", "{0}", "$1", "?", "--", ";", "a\\b", "a,b", "[", "#", "\ufeff", "x" * 100, "x" * 100 + "y",
)  # fmt: skip

one_name = (
    st.sampled_from(OURS)
    | st.sampled_from(INSIDE + WORDS + SIGNS)
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=6)
)
alike = st.sampled_from(
    [("w", "W", "le"), ("le", "LE", "re"), ("x" * 99, "x" * 99 + "y", "X" * 99), ("id", "Id", "kind")]
)
names = alike | st.lists(one_name, min_size=3, max_size=3, unique=True).map(tuple)


def q(name: str, side: str = "") -> str:
    return (f"{side}." if side else "") + quote(name)


def _both(names: Iterable[str], side: str = "l") -> dict[str, str]:
    return {name: q(name, side) for name in names}


S, R = sp.source("S"), sp.source("R")

PLANS: dict[str, Plan] = {
    "where": lambda a, b, c: S.where(f"{q(b)} > 2 and {q(a)} <> 'z'"),
    "select": lambda a, b, c: S.select({a: col(b) + 1, b: col(c), c: col(a)}),
    "times": lambda a, b, c: S.select({a: col(a), b: col("streamproof_le") + col(b), c: col(c)}),
    "shift": lambda a, b, c: S.shift(2).extend(3).to_point(),
    "alter_duration": lambda a, b, c: S.alter_duration(col(b) + 1),
    "twice": lambda a, b, c: S.alter_duration((col("streamproof_re") - col("streamproof_le")) * 2),
    "point_at_end": lambda a, b, c: S.point_at_end().chop(3),
    "stitch": lambda a, b, c: S.chop(2).stitch().coalesce().distinct(),
    "union": lambda a, b, c: S | S.select({c: col(c), a: sp.lit("u"), b: col(b)}),
    "join": lambda a, b, c: S.join(R, left(a) == right(a), select={a: q(b, "l"), b: q(b, "r"), c: q(a, "l")}),
    "join times": lambda a, b, c: S.join(R, f"l.streamproof_le < {q(b, 'r')} + 5", select={**_both((a, b, c))}),
    "left_outer": lambda a, b, c: S.left_outer(
        R, left(b) == right(b), select={a: q(c, "r"), b: q(b, "l"), c: q(a, "l")}
    ),
    "full_outer": lambda a, b, c: S.full_outer(
        R, left(a) == right(a), select={a: q(a, "l"), b: q(b, "r"), c: q(c, "l")}
    ),
    "followed_by": lambda a, b, c: S.followed_by(
        R, left(a) == right(a), select={a: q(a, "l"), b: q(b, "r"), c: q(c, "r")}
    ),
    "anti_join": lambda a, b, c: S.without(R, left(b) == right(b)),
    "clip": lambda a, b, c: S.clip(R, left(a) == right(a)),
    "group_apply": lambda a, b, c: S.group_by(a).apply(lambda g: g.where(col(b) > 1)),
    "two keys": lambda a, b, c: S.group_by(b, a).tumbling(5).aggregate({c: sp.max(col(c))}),
    "nested": lambda a, b, c: S.group_by(a).apply(
        lambda g: g.group_by(b).apply(lambda h: h.snapshot().aggregate({c: sp.sum(col(c))}))
    ),
    "session": lambda a, b, c: S.session(3, key=[a]),
    "aggregation": lambda a, b, c: S.hopping(6, hop=3).aggregate({a: count(), b: sp.sum(col(b)), c: sp.last(col(a))}),
    "snapshot": lambda a, b, c: S.snapshot().aggregate({b: sp.max(col(b)), a: sp.first(col(a)), c: sp.avg(col(c))}),
    "counted": lambda a, b, c: S.count_start(2).aggregate({b: sp.median(col(b)), a: count(), c: sp.min(col(c))}),
    "topk": lambda a, b, c: S.select({a: col(a), b: col(b)}).tumbling(6).top(2, by=desc(col(b)), rank=c),
    "uda": lambda a, b, c: S.group_by(a).tumbling(8).uda("twavg", col(c), as_=c),
    "udo": lambda a, b, c: S.tumbling(8).udo("passthrough", clip="full"),
    "advance_time": lambda a, b, c: S.advance_time(every=2, delay=100).where(col(b) > 1),
    "let": lambda a, b, c: S.where(col(b) > 0).multicast(lambda m: m.clip(m.shift(1), left(a) == right(a))),
    "transition": lambda a, b, c: S.transition(col(b) > 2, key=a),
    "drift": lambda a, b, c: S.drift(col(c), step=2, key=a),
    "pairing": lambda a, b, c: S.pairing(R, key=a),
    "during": lambda a, b, c: S.select({a: col(a)}).observe(R, {b: count(), c: sp.sum(col(b))}, key=a),
    "told": lambda a, b, c: S.select({a: col(a)}).observe(R, {"sum": sp.sum(col(b))}, key=a, begin=b, end=c),
    "eql": lambda a, b, c: S.at(sp.becomes("R", col(b) > 2), by=a).aggregate(n=count(), m=sp.max(col(b))),
    "lasting": lambda a, b, c: S.during(
        sp.lasting(sp.arrive("R", col(b) < 2), sp.arrive("R", col(b) > 2), by=a)
    ).aggregate(n=count()),
}  # fmt: skip

SQL: dict[str, Text] = {
    "sql select": lambda a, b, c: f"SELECT {q(a)}, {q(b)} FROM S WHERE {q(b)} > 1",
    "sql group": lambda a, b, c: f"SELECT {q(a)}, max({q(b)}) AS {q(b)} FROM S GROUP BY {q(a)}, TUMBLING(5)",
    "sql join": lambda a, b, c: f"SELECT x.{q(a)}, y.{q(b)} FROM S x JOIN R y ON x.{q(a)} = y.{q(a)}",
}


def events(columns: tuple[str, ...], shift: int = 0) -> History:
    """The same events under any names."""
    rows = [
        (n + shift, n + shift + 2 + n % 4, dict(zip(columns, ("xyz"[n % 3], n % 5, n * 1.5), strict=True)))
        for n in range(9)
    ]
    return History.from_rows(Schema.of(dict(zip(columns, KINDS, strict=True))), rows)


def inputs(columns: tuple[str, ...]) -> dict[str, Any]:
    return {"S": events(columns), "R": events(columns, 3)}


def unnamed(history: History) -> list[pa.ChunkedArray]:
    """What a history holds, whatever its columns are called."""
    return [column.combine_chunks() for column in history.rows.columns]
