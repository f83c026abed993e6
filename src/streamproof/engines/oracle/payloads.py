"""Equal payloads together: coalesce, distinct, stitch; and sessions.

Equal rows get one number (null equals null, NaN equals NaN), so that everything else compares integers.
"""

from __future__ import annotations

from heapq import heappop, heappush

import pyarrow as pa

from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.database import Columns
from streamproof.engines.oracle.dialect import order_keys, whole
from streamproof.engines.oracle.lifetimes import INFINITE, leaves_time
from streamproof.engines.oracle.program import Compute, Repeat
from streamproof.events.schema import INT64, Type
from streamproof.plan import nodes
from streamproof.plan.check import Typed

_BEFORE = "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING"
_SO_FAR = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"


def numbered(compiler: Compiler, source: EventTable, keys: list[tuple[str, Type]]) -> str:
    """The rows with p, one number for each different group and key."""
    order = order_keys(compiler.dialect, [("g", INT64), *keys])
    return compiler.create("numbered", f"SELECT *, dense_rank() OVER (ORDER BY {order}) AS p FROM {source.table}")


def coalesce(compiler: Compiler, typed: Typed, node: nodes.Coalesce, source: EventTable) -> EventTable:
    """Gaps and islands: a row starts a new island where no earlier one of its payload reaches its start."""
    rows = numbered(compiler, source, source.keys)
    reached = f"max(re) OVER (PARTITION BY p ORDER BY le, re {_BEFORE})"
    marked = compiler.create("marked", f"SELECT *, CASE WHEN le <= {reached} THEN 0 ELSE 1 END AS fresh FROM {rows}")
    island = f"sum(fresh) OVER (PARTITION BY p ORDER BY le, fresh DESC {_SO_FAR})"
    islands = compiler.create("islands", f"SELECT *, {island} AS island FROM {marked}")
    columns = listed("g, min(le) AS le, max(re) AS re", source.payload)
    query = f"SELECT {columns} FROM {islands} GROUP BY {listed('p, island, g', source.payload)}"
    return compiler.relation("coalesced", query, typed.schema)


def distinct(compiler: Compiler, typed: Typed, node: nodes.Distinct, source: EventTable) -> EventTable:
    """Between consecutive endpoints of a payload, wherever the number of its events is above 0."""
    rows = numbered(compiler, source, source.keys)
    changes = compiler.create(
        "changes",
        f"SELECT p, t, sum(d) AS d FROM (SELECT p, le AS t, 1 AS d FROM {rows}"
        f" UNION ALL SELECT p, re, -1 FROM {rows}) AS ends GROUP BY p, t",
    )
    counts = compiler.create(
        "counts",
        f"SELECT p, t AS le, lead(t) OVER (PARTITION BY p ORDER BY t) AS re,"
        f" sum(d) OVER (PARTITION BY p ORDER BY t {_SO_FAR}) AS n FROM {changes}",
    )
    kinds = compiler.create("kinds", f"SELECT DISTINCT {listed('p, g', source.payload)} FROM {rows}")
    columns = listed("k.g, n.le, n.re", (f"k.{name}" for name in source.payload))
    query = f"SELECT {columns} FROM {counts} n JOIN {kinds} k ON k.p = n.p WHERE n.n > 0"
    return compiler.relation("distinct", query, typed.schema)


def stitch(compiler: Compiler, typed: Typed, node: nodes.Stitch, source: EventTable) -> EventTable:
    """Touching rows of equal payload become one; overlapping rows stay apart.

    Per payload, in the order of start and end: a row that starts where open chains end goes on with the one of them
    that started first; other rows start chains. Which chain goes on depends on all before it, so Python follows them.
    """
    rows = numbered(compiler, source, source.keys)
    made: Columns = (("p", INT64), ("le", INT64), ("re", INT64))
    chains = compiler.name("chains")
    query = f"SELECT p, le, re FROM {rows} ORDER BY p, le, re"
    compiler.steps.append(Compute(query, made, _chains, chains, made, compiler.note, "chains of touching rows"))
    kinds = compiler.create("kinds", f"SELECT DISTINCT {listed('p, g', source.payload)} FROM {rows}")
    columns = listed("k.g, c.le, c.re", (f"k.{name}" for name in source.payload))
    query = f"SELECT {columns} FROM {chains} c JOIN {kinds} k ON k.p = c.p"
    return compiler.relation("stitched", query, typed.schema)


def _chains(rows: pa.Table) -> pa.Table:
    """
    >>> rows = pa.table({"p": [1, 1, 1, 1], "le": [0, 1, 4, 5], "re": [4, 5, 5, 9]})
    >>> _chains(rows).to_pylist()
    [{'p': 1, 'le': 0, 're': 9}, {'p': 1, 'le': 1, 're': 5}]
    """
    open_chains: dict[tuple[int, int], list[int]] = {}  # by payload and end: the starts, the earliest on top
    for p, le, re in zip(*(rows.column(name).to_pylist() for name in ("p", "le", "re")), strict=True):
        touching = open_chains.get((p, le))
        start = heappop(touching) if touching else le
        heappush(open_chains.setdefault((p, re), []), start)
    found = sorted((p, start, end) for (p, end), starts in open_chains.items() for start in starts)
    columns = [list(column) for column in zip(*found, strict=True)] or [[], [], []]
    return pa.table(
        {name: pa.array(column, pa.int64()) for name, column in zip(("p", "le", "re"), columns, strict=True)}
    )


def session(compiler: Compiler, typed: Typed, node: nodes.Session, source: EventTable) -> EventTable:
    """``[le, last start of the session + timeout)``, at the latest until the session's first start + max."""
    timeout, longest = node.timeout, node.max
    assert isinstance(timeout, int)
    assert longest is None or isinstance(longest, int)
    names = source.schema.names
    rows = numbered(compiler, source, [source.keys[names.index(key)] for key in node.key])
    gap = f"le - lag(le) OVER (PARTITION BY p ORDER BY le) < {whole(timeout)}"
    starts = f"SELECT DISTINCT p, le FROM {rows}"
    fresh = compiler.create("starts", f"SELECT p, le, CASE WHEN {gap} THEN 0 ELSE 1 END AS fresh FROM ({starts}) AS s")
    if longest is not None:
        fresh = _split(compiler, fresh, longest)
    first = f"max(CASE WHEN fresh = 1 THEN le END) OVER (PARTITION BY p ORDER BY le {_SO_FAR})"
    begun = compiler.create("begun", f"SELECT p, le, {first} AS first FROM {fresh}")
    end = f"max(le) OVER (PARTITION BY p, first) + {whole(timeout)}"
    if longest is not None:
        end = f"least({end}, first + {whole(longest)})"
    ended = compiler.create("sessions", f"SELECT p, le, {end} AS ends FROM {begun}")
    columns = listed("r.g, r.le, s.ends AS re", (f"r.{name}" for name in source.payload))
    found = compiler.relation(
        "sessions", f"SELECT {columns} FROM {rows} r JOIN {ended} s ON s.p = r.p AND s.le = r.le", typed.schema
    )
    compiler.check(found, (f"re >= {INFINITE}", leaves_time))
    return found


def _split(compiler: Compiler, starts: str, longest: int) -> str:
    """Starts with ``fresh`` also where a session grew too long: the first start at or after its first + max.

    From every start that next one is known; the sessions are what is reached from the starts after a gap. Each round
    doubles the steps, so that long chains take few rounds.
    """
    island = f"sum(fresh) OVER (PARTITION BY p ORDER BY le {_SO_FAR})"
    islands = compiler.create("islands", f"SELECT p, le, fresh, {island} AS island FROM {starts}")
    asked = (
        f"SELECT p, island, le AS t, le AS start, CAST(NULL AS BIGINT) AS origin FROM {islands} UNION ALL"
        f" SELECT p, island, le + {whole(longest)}, NULL, le FROM {islands}"
    )
    following = "min(start) OVER (PARTITION BY p, island ORDER BY t DESC RANGE UNBOUNDED PRECEDING)"
    answered = compiler.create("answered", f"SELECT p, origin, {following} AS following FROM ({asked}) AS asked")
    reach = compiler.create(
        "reach",
        f"SELECT s.p, s.le, a.following, s.fresh FROM {islands} s JOIN {answered} a ON a.p = s.p AND a.origin = s.le",
    )
    heads = f"SELECT DISTINCT p, following AS le FROM {reach} WHERE fresh = 1 AND following IS NOT NULL"
    query = (
        f"SELECT a.p, a.le, b.following, CASE WHEN h.le IS NULL THEN a.fresh ELSE 1 END AS fresh FROM {reach} a"
        f" LEFT JOIN {reach} b ON b.p = a.p AND b.le = a.following"
        f" LEFT JOIN ({heads}) h ON h.p = a.p AND h.le = a.le"
    )
    again = f"SELECT 1 AS more FROM {reach} WHERE following IS NOT NULL LIMIT 1"
    compiler.steps.append(Repeat(reach, query, again, compiler.note))
    return reach
