"""One event at a time: where, select, and the operators that only move lifetimes.

Times are raw ticks, and only shift and extend know the infinities: ``[−2^62, …)`` under alter_duration or to_point
counts from −2^62. A finite time that leaves ±2^62 (exclusive) is the error ``overflow`` and names its event.
"""

from __future__ import annotations

from datetime import timedelta

from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.dialect import whole
from streamproof.engines.oracle.program import Record
from streamproof.engines.oracle.user_functions import values
from streamproof.errors import RunError, StreamproofError
from streamproof.events.history import Row
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, Col, columns_of
from streamproof.plan.functions import may_fail

INFINITE = whole(FOREVER)
BEFORE_ALL = whole(BEGINNING)


def where(compiler: Compiler, typed: Typed, node: nodes.Where, source: EventTable) -> EventTable:
    """A condition that may fail is computed for every row first, so that no planner leaves parts of it out."""
    table, (condition,) = values(compiler, source.table, source.env(), [node.expr])
    if not may_fail(node.expr):
        query = f"SELECT {_columns(source)} FROM {table} WHERE {condition.text}"
        return compiler.relation("where", query, typed.schema)
    marked = compiler.create("marked", f"SELECT {_columns(source)}, {condition.text} AS kept FROM {table}")
    return compiler.relation("where", f"SELECT {_columns(source)} FROM {marked} WHERE kept", typed.schema)


def select(compiler: Compiler, typed: Typed, node: nodes.Select, source: EventTable) -> EventTable:
    table, found = values(compiler, source.table, source.env(), [expr for _, expr in node.exprs])
    columns = [f"{sql.text} AS c{n}" for n, sql in enumerate(found)]
    return compiler.relation("selected", f"SELECT {listed('g, le, re', columns)} FROM {table}", typed.schema)


def shift(compiler: Compiler, typed: Typed, node: nodes.Shift, source: EventTable) -> EventTable:
    """Infinite ends stay infinite."""
    by = node.by
    assert isinstance(by, int)
    outside = " OR ".join(
        f"(abs({time}) < {INFINITE} AND abs({time} + {whole(by)}) >= {INFINITE})" for time in ("le", "re")
    )
    compiler.check(source, (outside, leaves_time))
    le, re = (f"CASE WHEN abs({t}) < {INFINITE} THEN {t} + {whole(by)} ELSE {t} END AS {t}" for t in ("le", "re"))
    return _moved(compiler, typed, source, le, re)


def extend(compiler: Compiler, typed: Typed, node: nodes.Extend, source: EventTable) -> EventTable:
    by = node.by
    assert isinstance(by, int)
    end = f"re + {whole(by)}"
    compiler.check(source, (f"re < {INFINITE} AND {end} >= {INFINITE}", leaves_time))
    re = f"CASE WHEN re < {INFINITE} THEN {end} ELSE re END"
    return _moved(compiler, typed, source, "le", f"{re} AS re", where=f"{re} > le")


def alter_duration(compiler: Compiler, typed: Typed, node: nodes.AlterDuration, source: EventTable) -> EventTable:
    if node.dur is None:
        return _moved(compiler, typed, source, "le", f"{INFINITE} AS re")
    dur = node.dur
    assert not isinstance(dur, int | str | timedelta)  # the check made lengths of time into constants
    reads_end = Col(LIFE_END) in columns_of(dur)
    table, (length,) = values(compiler, source.table, source.env(), [dur])
    known = f"CASE WHEN re >= {INFINITE} THEN NULL ELSE {length.text} END" if reads_end else length.text
    stays = f"re >= {INFINITE}" if reads_end else "FALSE"
    timed = EventTable(
        compiler.create("timed", f"SELECT {_columns(source)}, {known} AS dur, {stays} AS stays FROM {table}"),
        source.schema,
    )
    compiler.check(timed, (f"dur > 0 AND dur > {whole(FOREVER - 1)} - le", leaves_time))
    re = f"CASE WHEN stays THEN {INFINITE} ELSE le + dur END AS re"
    return _moved(compiler, typed, timed, "le", re, where="stays OR dur > 0")


def to_point(compiler: Compiler, typed: Typed, node: nodes.ToPoint, source: EventTable) -> EventTable:
    compiler.check(source, (f"le + 1 >= {INFINITE}", leaves_time))
    return _moved(compiler, typed, source, "le", "le + 1 AS re")


def point_at_end(compiler: Compiler, typed: Typed, node: nodes.PointAtEnd, source: EventTable) -> EventTable:
    compiler.check(source, (f"re < {INFINITE} AND re + 1 >= {INFINITE}", leaves_time))
    return _moved(compiler, typed, source, "re AS le", "re + 1 AS re", where=f"re < {INFINITE}")


def advance_time(compiler: Compiler, typed: Typed, node: nodes.AdvanceTime, source: EventTable) -> EventTable:
    """Over complete input it is the identity."""
    return source


def leaves_time(row: Row, record: Record) -> StreamproofError:
    """The error of an event whose new lifetime does not fit."""
    return RunError("the new lifetime lies outside ±2^62 ticks", at=str(row), fix="use a coarser unit", name="overflow")


def _moved(
    compiler: Compiler, typed: Typed, source: EventTable, le: str, re: str, *, where: str | None = None
) -> EventTable:
    condition = f" WHERE {where}" if where else ""
    query = f"SELECT {listed('g', le, re, source.payload)} FROM {source.table}{condition}"
    return compiler.relation("moved", query, typed.schema)


def _columns(source: EventTable) -> str:
    return listed("g, le, re", source.payload)
