"""Event-driven queries: transitions, drifts, pairings, and what is seen during events.

Each row is a tuple at its start. Where what happens next depends on all that happened before, Python follows the rows.
"""

from __future__ import annotations

from collections import deque

import pyarrow as pa

from streamproof.engines.oracle.aggregates import over_members
from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.database import Columns
from streamproof.engines.oracle.dialect import Sql, literal, order_keys, whole
from streamproof.engines.oracle.expressions import convert
from streamproof.engines.oracle.lifetimes import INFINITE, leaves_time
from streamproof.engines.oracle.payloads import numbered
from streamproof.engines.oracle.program import Compute, Record
from streamproof.engines.oracle.user_functions import values
from streamproof.errors import RunError, StreamproofError
from streamproof.events.history import Row
from streamproof.events.schema import FLOAT64, INT64, Schema, Type
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.expr import Lit
from streamproof.plan.functions import common_type

_NO_COLUMNS = Schema(())


def transition(compiler: Compiler, typed: Typed, node: Transition, source: EventTable) -> EventTable:
    """Where the condition holds, and did not hold at the row before."""
    _refuse_late(compiler, source)
    rows = EventTable(numbered(compiler, source, _keys(source, node.key)), source.schema)
    table, (condition,) = values(compiler, rows.table, rows.env(), [node.expr])
    holds = f"CASE WHEN {condition.text} THEN 1 ELSE 0 END AS holds"
    marked = compiler.create("marked", f"SELECT {listed('g, p, le', source.payload, holds)} FROM {table}")
    order = order_keys(compiler.dialect, [("le", INT64), *source.keys])
    before = f"lag(holds) OVER (PARTITION BY p ORDER BY {order})"
    seen = compiler.create("seen", f"SELECT *, coalesce({before}, 0) AS held FROM {marked}")
    query = f"SELECT {listed('g, le, le + 1 AS re', source.payload)} FROM {seen} WHERE holds = 1 AND held = 0"
    return compiler.relation("fired", query, typed.schema)


def drift(compiler: Compiler, typed: Typed, node: Drift, source: EventTable) -> EventTable:
    """Where a value is far enough from that at the last firing."""
    _refuse_late(compiler, source)
    assert isinstance(node.step, Lit)
    rows = EventTable(numbered(compiler, source, _keys(source, node.key)), source.schema)
    table, (value,) = values(compiler, rows.table, rows.env(), [node.expr])
    order = order_keys(compiler.dialect, [("p", INT64), ("le", INT64), *source.keys])
    listed_rows = compiler.create(
        "listed",
        f"SELECT {listed('g, p, le', source.payload)}, {value.text} AS x, row_number() OVER (ORDER BY {order}) AS id"
        f" FROM {table}",
    )
    fired, made = compiler.name("fired"), (("id", INT64),)
    wanted: Columns = (("id", INT64), ("p", INT64), ("x", value.type))
    step = float(node.step.value) if value.type == FLOAT64 else node.step.value  # type: ignore[arg-type]  # a number

    def follow(found: pa.Table) -> pa.Table:
        return pa.table({"id": pa.array(_drifting(found, node.way, step), pa.int64())})

    query = f"SELECT id, p, x FROM {listed_rows} ORDER BY id"
    compiler.steps.append(Compute(query, wanted, follow, fired, made, compiler.note, "rows that moved far enough"))
    columns = listed("r.g, r.le, r.le + 1 AS re", (f"r.{name}" for name in source.payload))
    return compiler.relation(
        "drifted", f"SELECT {columns} FROM {listed_rows} r JOIN {fired} f ON f.id = r.id", typed.schema
    )


def _drifting(found: pa.Table, way: str, step: object) -> list[int]:
    fired: list[int] = []
    key, reference = None, None
    for number, p, x in zip(*(found.column(name).to_pylist() for name in ("id", "p", "x")), strict=True):
        if p != key:
            key, reference = p, None
        if x is None or x != x:  # noqa: PLR0124  # NaN
            continue
        if reference is None:
            reference = x
            continue
        moved = {"up": x - reference, "down": reference - x, "any": abs(x - reference)}[way]
        if moved >= step:
            fired.append(number)
            reference = x
    return fired


# --- pairing ----------------------------------------------------------------------------------------------------------


def _both(compiler: Compiler, key: tuple[str, ...], left: EventTable, right: EventTable) -> tuple[str, str]:
    """Both sides with row numbers id and p, one number for each different group and key."""
    tables, kinds = [], []
    for source in (left, right):
        other = right if source is left else left
        columns = []
        for n, name in enumerate(key):
            kind = common_type([source.schema[name], other.schema[name]])
            assert kind is not None
            place = source.schema.names.index(name)
            columns.append(f"{convert(Sql(f'c{place}', source.schema[name]), kind, compiler.dialect).text} AS k{n}")
            kinds.append((f"k{n}", kind))
        rows = listed("row_number() OVER () AS id, g, le, re", source.payload, columns)
        tables.append(compiler.create("side", f"SELECT {rows} FROM {source.table}"))
    names = [f"k{n}" for n in range(len(key))]
    united = " UNION ".join(f"SELECT {listed('g', names)} FROM {table}" for table in tables)
    order = order_keys(compiler.dialect, [("g", INT64), *kinds[: len(key)]])
    ranked = compiler.create(
        "keys", f"SELECT *, dense_rank() OVER (ORDER BY {order}) AS p FROM ({united}) AS both_sides"
    )
    same = "".join(f" AND s.{name} IS NOT DISTINCT FROM k.{name}" for name in names)
    first, second = (
        compiler.create("keyed", f"SELECT s.*, k.p FROM {table} s JOIN {ranked} k ON k.g = s.g{same}")
        for table in tables
    )
    return first, second


def pairing(compiler: Compiler, typed: Typed, node: Pairing, left: EventTable, right: EventTable) -> EventTable:
    """Ends in order of time, each for the first or the last open begin of its key."""
    for side in (left, right):
        _refuse_late(compiler, side)
    begins, ends = _both(compiler, node.key, left, right)
    order = order_keys(compiler.dialect, left.keys) or "le"
    query = (
        f"SELECT p, le AS t, 1 AS side, id, row_number() OVER (PARTITION BY p, le ORDER BY {order}) AS n FROM {begins}"
        f" UNION ALL SELECT p, le, 0, 0, 0 FROM {ends} ORDER BY p, t, side, n"
    )
    wanted: Columns = tuple((name, INT64) for name in ("p", "t", "side", "id", "n"))
    made: Columns = (("id", INT64), ("ends", INT64))
    closed = compiler.name("closed")
    longest = node.max
    assert longest is None or isinstance(longest, int)

    def follow(found: pa.Table) -> pa.Table:
        pairs = _paired(found, longest, last=node.policy == "lifo")
        columns = [[pair[n] for pair in pairs] for n in (0, 1)]
        return pa.table({name: pa.array(c, pa.int64()) for name, c in zip(("id", "ends"), columns, strict=True)})

    compiler.steps.append(Compute(query, wanted, follow, closed, made, compiler.note, "the end that closes each begin"))
    lasts = INFINITE if longest is None else f"b.le + {whole(longest)}"
    columns = listed("b.g, b.le", f"coalesce(c.ends, {lasts}) AS re", (f"b.{name}" for name in left.payload))
    found = compiler.relation(
        "paired", f"SELECT {columns} FROM {begins} b LEFT JOIN {closed} c ON c.id = b.id", typed.schema
    )
    if longest is not None:
        compiler.check(found, (f"re >= {INFINITE}", leaves_time))
    return found


def _paired(found: pa.Table, longest: int | None, *, last: bool) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    key, waiting = None, deque[tuple[int, int]]()
    for p, t, side, number in zip(*(found.column(name).to_pylist() for name in ("p", "t", "side", "id")), strict=True):
        if p != key:
            key, waiting = p, deque()
        while waiting and longest is not None and waiting[0][0] + longest <= t:
            waiting.popleft()
        if side:
            waiting.append((t, number))
        elif waiting:
            _, closed = waiting.pop() if last else waiting.popleft()
            pairs.append((closed, t))
    return pairs


# --- during -----------------------------------------------------------------------------------------------------------


def during(compiler: Compiler, typed: Typed, node: During, left: EventTable, right: EventTable) -> EventTable:
    """Triggers, the rows that each sees, and their aggregates; a trigger and a group are one number."""
    _refuse_late(compiler, right)
    observers, data = _both(compiler, node.key, left, right)
    groups = order_keys(compiler.dialect, _keys(right, node.group))
    q = f"dense_rank() OVER (ORDER BY {groups})" if groups else "CAST(1 AS BIGINT)"
    data = compiler.create("data", f"SELECT *, {q} AS q FROM {data}")
    asked = _triggers(compiler, node, observers, data)
    refused = EventTable(asked, left.schema)
    columns = listed("le, t AS re", left.payload)
    late = EventTable(compiler.create("asked", f"SELECT {columns}, t FROM {refused.table}"), left.schema)
    compiler.check(late, (f"t + 1 >= {INFINITE}", leaves_time))
    members = _members(compiler, node, asked, data, right)
    found = EventTable(
        compiler.create(
            "members",
            f"SELECT n AS g, t AS wle, t + 1 AS wre, {listed('le, re', right.payload)} FROM {members}",
        ),
        right.schema,
    )
    kinds = [kind for _, kind in typed.schema][-len(node.aggs) :]
    results = over_members(compiler, found, [agg for _, agg in node.aggs], kinds)
    return _result(compiler, typed, node, (left, right), (asked, members, results))


def _triggers(compiler: Compiler, node: During, observers: str, data: str) -> str:
    """The observing events with each instant t at which they ask, about starts from low to high, in q or everywhere."""
    nowhere = "CAST(NULL AS BIGINT) AS q"
    match node.trigger:
        case "start":
            query = f"SELECT d.*, le AS t, {_back('le', node)} AS low, le AS high, {nowhere} FROM {observers} d"
        case "end":
            query = (
                f"SELECT d.*, re AS t, le AS low, re - 1 AS high, {nowhere} FROM {observers} d WHERE re < {INFINITE}"
            )
        case "hop":
            return _hops(compiler, node, observers, data)
        case "arrival":
            low = f"greatest(d.le, {_back('s.le', node)})"
            query = (
                f"SELECT d.*, s.le AS t, {low} AS low, s.le AS high, s.q FROM {observers} d JOIN {data} s"
                " ON s.p = d.p AND s.le >= d.le AND s.le < d.re"
            )
    return compiler.create("triggers", f"SELECT *, row_number() OVER () AS trigger_id FROM ({query}) AS asked")


def _back(t: str, node: During) -> str:
    """The first start that a trigger at t sees."""
    if node.reach is None:
        return whole(-(2**62))
    assert isinstance(node.reach, int)
    return f"({t} - {whole(node.reach - 1)})"  # both lie within ±2^62


def _hops(compiler: Compiler, node: During, observers: str, data: str) -> str:
    assert isinstance(node.hop, int)
    limits = ["d.re - 1"]
    if compiler.settings.horizon is not None:
        limits.append(whole(compiler.settings.horizon))
    if node.reach is not None:
        assert isinstance(node.reach, int)
        limits.append(f"s.le + {whole(node.reach - 1)}")
    final = f"least({', '.join(limits)})" if len(limits) > 1 else limits[0]
    first = "min(s.le)" if node.reach is None else "s.le"
    grouped = " GROUP BY d.id, d.le, d.re" if node.reach is None else ""
    seen = compiler.create(
        "bounded",
        f"SELECT d.id, d.le, d.re, {first} AS s, {final} AS final FROM {observers} d"
        f" JOIN {data} s ON s.p = d.p AND s.le >= d.le AND s.le < d.re{grouped}",
    )
    # from the first hop at or after the tuple to the last that sees it
    begin, end = (
        compiler.dialect.floor_by(text, node.hop) for text in (f"s - le + {whole(node.hop - 1)}", "final - le")
    )
    bounded = compiler.create("hops", f"SELECT id, le, re, {begin} AS k, {end} AS last FROM {seen} WHERE final >= s")
    _refuse_endless(compiler, bounded)
    spread = f"SELECT id, k + {compiler.dialect.series('last - k + 1')} AS k FROM {bounded} WHERE last >= k"
    spread = compiler.create("spread", f"SELECT DISTINCT id, k FROM ({spread}) AS spread")
    t = f"d.le + s.k * {whole(node.hop)}"
    low = f"greatest(d.le, {_back(f'({t})', node)})"
    query = f"SELECT d.*, {t} AS t, {low} AS low, {t} AS high, CAST(NULL AS BIGINT) AS q"
    return compiler.create(
        "triggers", f"{query}, row_number() OVER () AS trigger_id FROM {spread} s JOIN {observers} d ON d.id = s.id"
    )


def _refuse_endless(compiler: Compiler, bounded: str) -> None:
    many = f"last - k >= {whole(compiler.settings.limits.windows_per_event)}"
    endless = EventTable(bounded, _NO_COLUMNS)

    def error(row: Row, record: Record) -> StreamproofError:
        what = "an event that never ends asks for ever" if row.re >= 2**62 else "an event asks at too many instants"
        fix = "give it a WINDOW or a MAX, or run with a horizon"
        name = "unbounded_windows" if row.re >= 2**62 else "limit_exceeded"
        return RunError(what, at=str(row), fix=fix, name=name)  # type: ignore[arg-type]  # both are names

    compiler.check(endless, (many, error))


def _members(compiler: Compiler, node: During, asked: str, data: str, right: EventTable) -> str:
    """The rows that each trigger sees: n (one number for each trigger and group), t, le, re and the payload."""
    columns = listed("a.trigger_id, a.t, d.q, d.le, d.le + 1 AS re", (f"d.{name}" for name in right.payload))
    on = "d.p = a.p AND d.le >= a.low AND d.le <= a.high AND (a.q IS NULL OR a.q = d.q)"
    seen = compiler.create("seen", f"SELECT {columns} FROM {asked} a JOIN {data} d ON {on}", spreads=True)
    if node.latest:
        order = order_keys(compiler.dialect, [("le", INT64), *right.keys], descending=True)
        place = f"row_number() OVER (PARTITION BY trigger_id, q ORDER BY {order}) AS place"
        ranked = compiler.create("ranked", f"SELECT *, {place} FROM {seen}")
        seen = compiler.create("latest", f"SELECT * FROM {ranked} WHERE place = 1")
    number = "dense_rank() OVER (ORDER BY trigger_id, q) AS n"
    return compiler.create("numbered", f"SELECT *, {number} FROM {seen}")


def _result(
    compiler: Compiler, typed: Typed, node: During, sides: tuple[EventTable, EventTable], tables: tuple[str, str, str]
) -> EventTable:
    """A point for each trigger and group."""
    (left, right), (asked, members, results) = sides, tables
    places = [right.schema.names.index(name) for name in node.group]
    keys = [f"c{place} AS k{n}" for n, place in enumerate(places)]
    kinds = compiler.create("kinds", f"SELECT DISTINCT {listed('n, trigger_id', keys)} FROM {members}")
    times = [t for name, t in ((node.begin, "a.le"), (node.end, f"nullif(a.re, {INFINITE})")) if name is not None]
    own = [*(f"k.k{n}" for n in range(len(places))), *(f"a.{name}" for name in left.payload), *times]
    aggs = [f"r.c{n}" for n in range(len(node.aggs))]
    columns = [f"{text} AS c{n}" for n, text in enumerate([*own, *aggs])]
    query = (
        f"SELECT {listed('a.g, a.t AS le, a.t + 1 AS re', columns)} FROM {asked} a"
        f" JOIN {kinds} k ON k.trigger_id = a.trigger_id JOIN ({results}) r ON r.g = k.n"
    )
    if node.empty:
        query += f" UNION ALL {_empty(compiler, typed, node, own, (asked, members))}"
    return compiler.relation("eql", query, typed.schema)


def _empty(compiler: Compiler, typed: Typed, node: During, own: list[str], tables: tuple[str, str]) -> str:
    """The triggers that see nothing: counts are 0, all else is null."""
    asked, members = tables
    kinds = [kind for _, kind in typed.schema][-len(node.aggs) :]
    nothing = [
        whole(0) if agg.of_nothing == 0 else literal(compiler.dialect, None, kind)
        for (_, agg), kind in zip(node.aggs, kinds, strict=True)
    ]
    columns = [f"{text} AS c{n}" for n, text in enumerate([*own, *nothing])]
    lonely = f"NOT EXISTS (SELECT 1 FROM {members} m WHERE m.trigger_id = a.trigger_id)"
    return f"SELECT {listed('a.g, a.t, a.t + 1', columns)} FROM {asked} a WHERE {lonely}"


def _keys(source: EventTable, names: tuple[str, ...]) -> list[tuple[str, Type]]:
    return [source.keys[source.schema.names.index(name)] for name in names]


def _refuse_late(compiler: Compiler, source: EventTable) -> None:
    compiler.check(source, (f"le + 1 >= {INFINITE}", leaves_time))
