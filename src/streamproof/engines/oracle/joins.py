"""Joins: pairs of events that match and meet in time, found by equality of keys and of time bins.

Each event has a level by the length of its lifetime (bins of 1, 16, 256, … ticks; the last is all time), where it lies
in at most two bins. A pair meets at the higher of its two levels, in the later of their first bins: once, and found by
a hash join. Long and infinite lifetimes need no special way.
"""

from __future__ import annotations

from dataclasses import dataclass

from streamproof.engines.oracle.compiler import Compiler, EventTable, listed, side_env
from streamproof.engines.oracle.dialect import Sql, literal, order_keys, whole
from streamproof.engines.oracle.expressions import Env
from streamproof.engines.oracle.lifetimes import BEFORE_ALL, INFINITE
from streamproof.engines.oracle.user_functions import values
from streamproof.events.schema import INT64, Type
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.equalities import EqualKeys, keyed
from streamproof.plan.expr import TRUE, Expr
from streamproof.plan.functions import may_fail

_ALL_TIME = 63
_LEVELS = tuple(range(0, _ALL_TIME, 4))


@dataclass(frozen=True, slots=True)
class _Side:
    """One input with row numbers, keys, level and the ends of its bins."""

    table: str
    relation: EventTable
    keys: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class _Matches:
    """Matching pairs with all columns of both sides: a_id, a_le, a_re, a_c0, …, b_id, b_le, …"""

    table: str
    left: _Side
    right: _Side
    env: Env


def join(compiler: Compiler, typed: Typed, node: nodes.Join, left: EventTable, right: EventTable) -> EventTable:
    found = _matches(compiler, node.on, left, right)
    return _select(compiler, typed, node, found, [found.table])


def left_outer(
    compiler: Compiler, typed: Typed, node: nodes.LeftOuter, left: EventTable, right: EventTable
) -> EventTable:
    found = _matches(compiler, node.on, left, right)
    return _select(compiler, typed, node, found, [found.table, _lonely(compiler, found, "a")])


def full_outer(
    compiler: Compiler, typed: Typed, node: nodes.FullOuter, left: EventTable, right: EventTable
) -> EventTable:
    found = _matches(compiler, node.on, left, right)
    return _select(
        compiler, typed, node, found, [found.table, _lonely(compiler, found, "a"), _lonely(compiler, found, "b")]
    )


def followed_by(
    compiler: Compiler, typed: Typed, node: nodes.FollowedBy, left: EventTable, right: EventTable
) -> EventTable:
    found = _matches(compiler, node.on, left, right, starts=True)
    return _select(compiler, typed, node, found, [found.table])


def anti_join(
    compiler: Compiler, typed: Typed, node: nodes.AntiJoin, left: EventTable, right: EventTable
) -> EventTable:
    found = _matches(compiler, node.on, left, right)
    fragments = _fragments(compiler, found, "a")
    columns = listed("s.g, f.le, f.re", (f"s.{name}" for name in left.payload))
    query = f"SELECT {columns} FROM {fragments} f JOIN {found.left.table} s ON s.id = f.id"
    return compiler.relation("fragments", query, typed.schema)


def clip(compiler: Compiler, typed: Typed, node: nodes.Clip, source: EventTable, by: EventTable) -> EventTable:
    keys, rest = keyed(node.on)
    left, right = _sides(compiler, source, by, keys, starts=True)
    if rest == TRUE:
        cuts = _next_starts(compiler, left, right, keys)
    else:
        found = _matched(compiler, left, right, keys, rest, starts=True)
        cuts = compiler.create("cuts", f"SELECT a_id AS id, min(b_le) AS cut FROM {found.table} GROUP BY a_id")
    re = "CASE WHEN c.cut < s.re THEN c.cut ELSE s.re END AS re"
    columns = listed("s.g, s.le", re, (f"s.{name}" for name in source.payload))
    query = f"SELECT {columns} FROM {left.table} s LEFT JOIN {cuts} c ON c.id = s.id"
    return compiler.relation("clipped", query, typed.schema)


def _select(compiler: Compiler, typed: Typed, node: nodes.Join, found: _Matches, parts: list[str]) -> EventTable:
    """The columns of the join over pairs, and over events without a partner, where the other side is null."""
    whole_table = parts[0]
    if len(parts) > 1:
        whole_table = compiler.create("parts", " UNION ALL ".join(f"SELECT * FROM {part}" for part in parts))
    table, columns = values(compiler, whole_table, found.env, [expr for _, expr in node.select or ()])
    payload = [f"{sql.text} AS c{n}" for n, sql in enumerate(columns)]
    return compiler.relation("joined", f"SELECT {listed('g, le, re', payload)} FROM {table}", typed.schema)


# --- pairs ------------------------------------------------------------------------------------------------------------


def _env(left: EventTable, right: EventTable) -> Env:
    left_env, right_env = side_env(left.schema, prefix="a_", side="l"), side_env(right.schema, prefix="b_", side="r")
    return left_env.extended(right_env.columns)


def _matches(compiler: Compiler, on: Expr, left: EventTable, right: EventTable, *, starts: bool = False) -> _Matches:
    keys, rest = keyed(on)
    sides = _sides(compiler, left, right, keys, starts=starts)
    return _matched(compiler, *sides, keys, rest, starts=starts)


def _sides(
    compiler: Compiler, left: EventTable, right: EventTable, keys: list[EqualKeys], *, starts: bool
) -> tuple[_Side, _Side]:
    pairs = [_key_columns(compiler, key, left, right) for key in keys]
    return (
        _side(compiler, left, [a for a, _ in pairs], starts=False),
        _side(compiler, right, [b for _, b in pairs], starts=starts),
    )


def _key_columns(compiler: Compiler, key: EqualKeys, left: EventTable, right: EventTable) -> tuple[Sql, Sql]:
    a = compiler.sql(key.left, side_env(left.schema, side="l"))
    b = compiler.sql(key.right, side_env(right.schema, side="r"))
    return a, b


def _side(compiler: Compiler, source: EventTable, keys: list[Sql], *, starts: bool) -> _Side:
    """``starts``: the event counts as the point at its start."""
    lift = whole(FOREVER)  # makes all times positive, so that shifting bits rounds down
    end = "le" if starts else "re - 1"
    level = "0" if starts else _level()
    columns = [f"{key.text} AS k{n}" for n, key in enumerate(keys)]
    query = (
        f"SELECT {listed('row_number() OVER () AS id, g, le, re', source.payload, columns)}, le + {lift} AS lo,"
        f" ({end}) + {lift} AS hi, {level} AS level FROM {source.table}"
    )
    return _Side(compiler.create("side", query), source, tuple(key.type for key in keys))


def _level() -> str:
    steps = " ".join(f"WHEN re - le <= {whole(1 << bits)} THEN {bits}" for bits in _LEVELS)
    return f"CASE WHEN le <= {BEFORE_ALL} OR re >= {INFINITE} THEN {_ALL_TIME} {steps} ELSE {_ALL_TIME} END"


def _matched(
    compiler: Compiler, left: _Side, right: _Side, keys: list[EqualKeys], rest: Expr, *, starts: bool
) -> _Matches:
    env = _env(left.relation, right.relation)
    pairs = _pairs(compiler, left, right, keys, starts=starts)
    risky = may_fail(rest)
    condition = "" if risky or rest == TRUE else f" WHERE {compiler.sql(rest, env).text}"
    le, re = ("b_le", "least(a_re, b_re)") if starts else ("greatest(a_le, b_le)", "least(a_re, b_re)")
    both = listed(_columns(left, "a"), _columns(right, "b"))
    met = f"SELECT a.g, {both} FROM {pairs} p JOIN {left.table} a ON a.id = p.a JOIN {right.table} b ON b.id = p.b"
    table = compiler.create("met", f"SELECT {le} AS le, {re} AS re, met.* FROM ({met}) AS met{condition}")
    if risky:
        columns = listed(
            "le, re, g", (f"{p}_{name}" for p, side in (("a", left), ("b", right)) for name in _names(side))
        )
        table = _filtered(compiler, table, env, rest, columns)
    return _Matches(table, left, right, env)


def _filtered(compiler: Compiler, table: str, env: Env, rest: Expr, columns: str) -> str:
    """The pairs for which a condition holds that may fail: it sees only pairs that meet and have equal keys."""
    extended, (condition,) = values(compiler, table, env, [rest])
    marked = compiler.create("marked", f"SELECT *, {condition.text} AS kept FROM {extended}")
    return compiler.create("kept", f"SELECT {columns} FROM {marked} WHERE kept")


def _columns(side: _Side, prefix: str) -> list[str]:
    return [f"{prefix}.{name} AS {prefix}_{name}" for name in _names(side)]


def _names(side: _Side) -> list[str]:
    return ["id", "le", "re", *side.relation.payload]


def _pairs(compiler: Compiler, left: _Side, right: _Side, keys: list[EqualKeys], *, starts: bool) -> str:
    """The row numbers a, b of events with equal keys whose lifetimes meet."""
    inside = "a.le < b.le AND b.le < a.re" if starts else "a.le < b.re AND b.le < a.re"
    same = "".join(
        f" AND a.k{n} {'IS NOT DISTINCT FROM' if key.null_safe else '='} b.k{n}" for n, key in enumerate(keys)
    )
    once = "a.bin = greatest(a.first, b.first)"
    on = f"a.g = b.g AND a.at = b.at AND a.bin = b.bin{same} AND {inside} AND {once}"
    at_home = (_bins(compiler, left), _bins(compiler, right, at_levels_of=left))
    above_home = (_bins(compiler, left, at_levels_of=right, above=True), _bins(compiler, right))
    return compiler.create(
        "pairs",
        " UNION ALL ".join(
            f"SELECT a.id AS a, b.id AS b FROM ({a}) a JOIN ({b}) b ON {on}" for a, b in (at_home, above_home)
        ),
        spreads=True,
    )


def _bins(compiler: Compiler, side: _Side, *, at_levels_of: _Side | None = None, above: bool = False) -> str:
    """The bins of a side at its own level, or at the levels of the other side that are at least (or above) its own."""
    at, source = "s.level", f"{side.table} s"
    if at_levels_of is not None:
        levels = f"SELECT DISTINCT level AS at FROM {at_levels_of.table}"
        at, source = "v.at", f"{source} JOIN ({levels}) v ON v.at {'>' if above else '>='} s.level"
    low, high = _bin("s.lo", at), _bin("s.hi", at)
    bins = f"{low} + {compiler.dialect.series(f'{high} - {low} + 1')} AS bin"
    keys = [f"s.k{n}" for n in range(len(side.keys))]
    return f"SELECT {listed('s.id, s.g, s.le, s.re', f'{at} AS at, {low} AS first', keys, bins)} FROM {source}"


def _bin(time: str, level: str) -> str:
    return f"({time} >> CAST({level} AS INTEGER))"


# --- fragments and cuts -----------------------------------------------------------------------------------------------


def _fragments(compiler: Compiler, found: _Matches, side: str) -> str:
    """Per event of one side the maximal parts of its lifetime that no match covers: id, le, re."""
    table = (found.left if side == "a" else found.right).table
    order = f"PARTITION BY {side}_id ORDER BY le, re ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
    covers = compiler.create(
        "covers",
        f"SELECT {side}_id AS id, {side}_le AS first, le, re, max(re) OVER ({order}) AS reached FROM {found.table}",
    )
    gaps = f"SELECT id, coalesce(reached, first) AS le, le AS re FROM {covers} WHERE coalesce(reached, first) < le"
    ends = f"SELECT id, max(re) AS re FROM {covers} GROUP BY id"
    tails = (
        f"SELECT s.id, coalesce(e.re, s.le) AS le, s.re FROM {table} s LEFT JOIN ({ends}) e ON e.id = s.id"
        " WHERE coalesce(e.re, s.le) < s.re"
    )
    return compiler.create("gaps", f"{gaps} UNION ALL {tails}")


def _lonely(compiler: Compiler, found: _Matches, side: str) -> str:
    """The uncovered fragments of one side as rows of the join, with nulls for the other."""
    own, other = (found.left, found.right) if side == "a" else (found.right, found.left)
    fragments = _fragments(compiler, found, side)
    present = _columns(own, side)
    kinds = [INT64, INT64, INT64, *(kind for _, kind in other.relation.keys)]
    prefix = "b" if side == "a" else "a"
    absent = [
        f"{literal(compiler.dialect, None, kind)} AS {prefix}_{name}"
        for name, kind in zip(_names(other), kinds, strict=True)
    ]
    both = (present, absent) if side == "a" else (absent, present)
    query = (
        f"SELECT {listed('f.le, f.re', f'{side}.g', *both)} FROM {fragments} f JOIN {own.table} {side}"
        f" ON {side}.id = f.id"
    )
    return compiler.create("lonely", query)


def _next_starts(compiler: Compiler, left: _Side, right: _Side, keys: list[EqualKeys]) -> str:
    """For each left event the next strictly later start on the right with equal keys: id, cut."""
    names = [f"k{n}" for n in range(len(keys))]
    comparable = "".join(f" AND k{n} IS NOT NULL" for n, key in enumerate(keys) if not key.null_safe)
    both = compiler.create(
        "both",
        f"SELECT {listed('0 AS side, id, le, g', names)} FROM {left.table}"
        f" UNION ALL SELECT {listed('1, id, le, g', names)} FROM {right.table} WHERE TRUE{comparable}",
    )
    order = order_keys(compiler.dialect, [("g", INT64), *((n, kind) for n, kind in zip(names, left.keys, strict=True))])
    ranked = compiler.create("ranked", f"SELECT side, id, le, dense_rank() OVER (ORDER BY {order}) AS p FROM {both}")
    times = f"SELECT p, le AS t, max(side) AS starts FROM {ranked} GROUP BY p, le"
    later = "OVER (PARTITION BY p ORDER BY t DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    following = compiler.create(
        "following", f"SELECT p, t, min(CASE WHEN starts = 1 THEN t END) {later} AS cut FROM ({times}) AS times"
    )
    return compiler.create(
        "cuts",
        f"SELECT r.id, f.cut FROM {ranked} r JOIN {following} f ON f.p = r.p AND f.t = r.le WHERE r.side = 0",
    )
