"""Windows: for each node over windows, the table of members — one row per window and event in it."""

from __future__ import annotations

from streamproof.engines.oracle.compiler import Compiler, EventTable, Reason, listed
from streamproof.engines.oracle.dialect import whole
from streamproof.engines.oracle.lifetimes import BEFORE_ALL, INFINITE, leaves_time
from streamproof.engines.oracle.program import Record
from streamproof.errors import RunError, StreamproofError
from streamproof.events.history import Row
from streamproof.events.time import BEGINNING
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.labels import label, window_label
from streamproof.plan.limits import too_many_windows
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

_MOST = 2**40  # more starts than any table has: a longer count window is empty


def members(compiler: Compiler, source: EventTable, window: Window) -> EventTable:
    """The events of each window: g, wle, wre, le, re and the payload."""
    match window:
        case Tumbling(size, offset):
            return hopping(compiler, source, Hopping(size, size, offset), window_label(window))
        case Hopping():
            return hopping(compiler, source, window, window_label(window))
        case Snapshot():
            return snapshot(compiler, source)
        case CountStart(n):
            return counted(compiler, source, n, "le")
        case CountEnd(n):
            return counted(compiler, source, n, "re")


def hopping(compiler: Compiler, source: EventTable, window: Hopping, shown: str) -> EventTable:
    """Every window ``[offset + k·hop, … + size)`` that an event overlaps, by arithmetic."""
    size, hop = _ticks(window.size), _ticks(window.hop)
    last_end = f"start + (n - 1) * {whole(hop)} + {whole(size)}"
    leaves = f"n > 0 AND CASE WHEN start <= {BEFORE_ALL} THEN TRUE ELSE {last_end} >= {INFINITE} END"
    spread = _spread(compiler, source, window, shown, (leaves, leaves_time))
    rows = f"SELECT *, {compiler.dialect.series('n')} AS k FROM {spread.table} WHERE n > 0"
    start = f"start + k * {whole(hop)}"
    columns = listed("g", f"{start} AS wle", f"{start} + {whole(size)} AS wre", "le, re", source.payload)
    return compiler.relation("members", f"SELECT {columns} FROM ({rows}) AS spread", source.schema, spreads=True)


def chop(compiler: Compiler, typed: Typed, node: nodes.Chop, source: EventTable) -> EventTable:
    """Each lifetime cut at the beats ``offset + k·period``. Under a horizon, beats that end later are left out."""
    period = _ticks(node.period)
    spread = _spread(compiler, source, Hopping(period, period, node.offset), label(node))
    rows = f"SELECT *, {compiler.dialect.series('n')} AS k FROM {spread.table} WHERE n > 0"
    half = compiler.dialect.whole_division("k", "2")  # in two steps: the first beat may begin before all time
    beat = f"(start + {half} * {whole(period)} + (k - {half}) * {whole(period)})"
    le, re = f"greatest(le, {beat}) AS le", f"least(re, {beat} + {whole(period)}) AS re"
    query = f"SELECT {listed('g', le, re, source.payload)} FROM ({rows}) AS spread"
    return compiler.relation("chopped", query, typed.schema, spreads=True)


def _spread(compiler: Compiler, source: EventTable, window: Hopping, shown: str, *more: Reason) -> EventTable:
    """Each event with the start of its first window and the number of its windows, checked before they are made."""
    size, hop, offset = (_ticks(span) for span in (window.size, window.hop, window.offset))
    horizon, limit = compiler.settings.horizon, compiler.settings.limits.windows_per_event
    phase, h = whole((size + offset) % hop), whole(hop)
    past = f"(((((le % {h}) + {h}) % {h}) - {phase} + {h}) % {h})"
    started = f"SELECT *, (le - {whole(size)}) + ({h} - {past}) AS start FROM {source.table}"
    end = "re" if horizon is None else f"least(re, {whole(_last_start(horizon, size))})"
    spread = compiler.relation(
        "spread", f"SELECT *, {_count(compiler, end, h)} AS n FROM ({started}) AS s", source.schema
    )
    endless = f"le <= {BEFORE_ALL}" + ("" if horizon is not None else f" OR re >= {INFINITE}")
    compiler.check(
        spread,
        (endless, lambda row, _: _unbounded(row, shown)),
        (f"n > {whole(limit)}", lambda row, record: _too_many(row, record, limit, shown)),
        *more,
        more=("n",),
    )
    return spread


def _count(compiler: Compiler, end: str, hop: str) -> str:
    """How many windows from ``start`` on begin before the end; no step of it overflows.

    A start before all time is an error for windows, but not for the beats of chop: it counts as one, and the rest from
    the next start on.
    """
    from_start = compiler.dialect.whole_division(f"({end} - start - 1)", hop)
    from_next = compiler.dialect.whole_division(f"({end} - (start + {hop}) - 1)", hop)
    return (
        f"CASE WHEN le <= {BEFORE_ALL} OR {end} <= start THEN 0 WHEN start > {BEFORE_ALL} THEN {from_start} + 1"
        f" WHEN {end} <= start + {hop} THEN 1 ELSE {from_next} + 2 END"
    )


def _last_start(horizon: int, size: int) -> int:
    """One more than the start of the last window that ends by the horizon."""
    return max(horizon - size + 1, BEGINNING * 2)


def _ticks(span: object) -> int:
    assert isinstance(span, int)
    return span


def _unbounded(row: Row, shown: str) -> StreamproofError:
    endless = row.le > BEGINNING
    return RunError(
        f"{shown} has infinitely many windows over a lifetime without {'end' if endless else 'beginning'}",
        at=str(row),
        fix="give a horizon (--horizon T): windows that end later are left out"
        if endless
        else "give the event a start; --horizon only bounds ends",
        name="unbounded_windows",
    )


def _too_many(row: Row, record: Record, limit: int, shown: str) -> StreamproofError:
    count = record["n"]
    assert isinstance(count, int)
    return too_many_windows(count, limit, at=f"{row} in {shown}")


def snapshot(compiler: Compiler, source: EventTable) -> EventTable:
    """Between consecutive endpoints. Each endpoint gets its ordinal, so an event's windows are a range of numbers."""
    points = numbered_points(compiler, f"SELECT g, le AS t FROM {source.table} UNION SELECT g, re FROM {source.table}")
    columns = listed("e.g, e.le, e.re", (f"e.{name}" for name in source.payload))
    placed = compiler.create(
        "placed",
        f"SELECT {columns}, a.i AS i, b.i - a.i AS n FROM {source.table} e"
        f" JOIN {points} a ON a.g = e.g AND a.t = e.le JOIN {points} b ON b.g = e.g AND b.t = e.re",
    )
    spread = compiler.create("spread", f"SELECT *, i + {compiler.dialect.series('n')} AS k FROM {placed}", spreads=True)
    return compiler.relation(
        "members",
        f"SELECT e.g, w.t AS wle, w.following AS wre, {columns.removeprefix('e.g, ')} FROM {spread} e"
        f" JOIN {points} w ON w.g = e.g AND w.i = e.k",
        source.schema,
    )


def numbered_points(compiler: Compiler, times: str) -> str:
    """The distinct times t of each group with their ordinals i, and the time that follows."""
    frame = "OVER (PARTITION BY g ORDER BY t)"
    return compiler.create(
        "points",
        f"SELECT g, t, row_number() {frame} AS i, lead(t) {frame} AS following FROM ({times}) AS times",
    )


def counted(compiler: Compiler, source: EventTable, n: int, time: str) -> EventTable:
    """``[s_i, s_{i+n−1} + 1)`` over the distinct starts (or finite ends); members by that time, not by overlap."""
    n = min(n, _MOST)
    finite = f"WHERE {time} < {INFINITE}"
    starts = numbered_points(compiler, f"SELECT DISTINCT g, {time} AS t FROM {source.table} {finite}")
    windows = compiler.create(
        "windows",
        f"SELECT a.g, a.i, a.t AS wle, b.t + 1 AS wre FROM {starts} a"
        f" JOIN {starts} b ON b.g = a.g AND b.i = a.i + {whole(n - 1)}",
    )
    columns = listed("e.g, e.le, e.re", (f"e.{name}" for name in source.payload))
    placed = compiler.create(
        "placed",
        f"SELECT {columns}, s.i AS i, least(s.i, {whole(n)}) AS n FROM {source.table} e"
        f" JOIN {starts} s ON s.g = e.g AND s.t = e.{time}",
    )
    spread = compiler.create("spread", f"SELECT *, i - {compiler.dialect.series('n')} AS k FROM {placed}", spreads=True)
    found = compiler.relation(
        "members",
        f"SELECT e.g, w.wle, w.wre, {columns.removeprefix('e.g, ')} FROM {spread} e"
        f" JOIN {windows} w ON w.g = e.g AND w.i = e.k",
        source.schema,
    )
    compiler.check(found, (f"wre >= {INFINITE}", leaves_time))
    return found
