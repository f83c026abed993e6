"""Windows: for each node over windows the members, one row per window and event in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import escaped, failure_of, leaves_time, message_of, outside_message
from streamproof.engines.spark.batch.relation import BatchContext, Relation, long
from streamproof.engines.spark.batch.sweep import numbered
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.labels import label, window_label
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MOST: Final = 2**40  # more starts than any table has: a longer count window is empty
_USUAL: Final = 100  # windows of an event, on average, that are as many as the input makes them, not as its square


def members(context: BatchContext, source: Relation, window: Window, *, ends: bool = True) -> DataFrame:
    """The events of each window: wle, wre and the columns of the source.

    Without ``ends``, windows of the clock have no wre: see `end_of`.
    """
    clock = as_hopping(window)
    if clock is not None:
        found = _hopping(context, source, clock, window_label(window))
        return found.selectExpr("*", f"{end_of(clock)} AS wre") if ends else found
    match window:
        case CountStart(n):
            return counted(context, source, n, "le")
        case CountEnd(n):
            return counted(context, source, n, "re")
    assert isinstance(window, Snapshot)
    return snapshot(context, source)


def as_hopping(window: Window) -> Hopping | None:
    """A window of the clock as a hopping one."""
    if isinstance(window, Tumbling):
        return Hopping(window.size, window.size, window.offset)
    return window if isinstance(window, Hopping) else None


def end_of(window: Hopping | None) -> str:
    """The end of a window, as SQL: of the clock's it follows from the start, and others have it."""
    return "wre" if window is None else f"wle + {ticks(window.size)}L"


def _hopping(context: BatchContext, source: Relation, window: Hopping, shown: str) -> DataFrame:
    """Every window ``[offset + k·hop, … + size)`` that an event overlaps, by arithmetic."""
    size, hop = ticks(window.size), ticks(window.hop)
    if in_panes(context, source, window):
        return windows_of_panes(panes(source, window, shown), window)
    last_end = f"start + (n - 1L) * {hop}L + {size}L"
    leaves = f"n > 0L AND CASE WHEN start <= {BEGINNING}L THEN true ELSE {last_end} >= {FOREVER}L END"
    spread = _spread(context, source, window, shown, leaves)
    return spread.selectExpr(f"start + k * {hop}L AS wle", *source.columns)


def in_panes(context: BatchContext, source: Relation, window: Hopping) -> bool:
    """Whether each event lies in one *pane*, which is as long as the hop, and windows are made of whole panes."""
    size, hop = ticks(window.size), ticks(window.hop)
    few = size // hop <= context.settings.limits.windows_per_event
    return source.points and size % hop == 0 and few and context.settings.horizon is None


def panes(source: Relation, window: Hopping, shown: str) -> DataFrame:
    """The pane of each point: ``wle`` is where it begins."""
    size, hop, offset = (ticks(span) for span in (window.size, window.hop, window.offset))
    past = f"pmod(le, {hop}L)" if offset % hop == 0 else f"pmod(pmod(le, {hop}L) - {offset % hop - hop}L, {hop}L)"
    first = BEGINNING + size - hop + 1  # before this a window begins before all time; from the last on, one ends after
    first, last = first + (offset - first) % hop, FOREVER - size - 1
    last -= (last - offset) % hop
    inside = f"WHEN le >= {first}L AND le < {last + hop}L THEN le - {past}"
    endless, outside = _endless(source, shown), outside_message(source)
    wrong = failure_of(source, f"CASE WHEN le <= {BEGINNING}L THEN {endless} ELSE {outside} END")  # Spark compiles each
    return source.frame.selectExpr(f"CASE {inside} ELSE {wrong} END AS wle", *source.columns)


def windows_of_panes(frame: DataFrame, window: Hopping) -> DataFrame:
    """Rows of panes, once for each window that the pane is in: ``wle`` is then the window's start."""
    size, hop = ticks(window.size), ticks(window.hop)
    if size == hop:
        return frame
    starts = f"explode(sequence(wle - {size - hop}L, wle, {hop}L)) AS wle"
    return frame.selectExpr(starts, *(name for name in frame.columns if name != "wle"))


def chop(context: BatchContext, typed: Typed, node: nodes.Chop, source: Relation) -> Relation:
    """Each lifetime cut at the beats ``offset + k·period``. Under a horizon, beats that end later are left out."""
    period = ticks(node.period)
    spread = _spread(context, source, Hopping(period, period, node.offset), label(node), None)
    half = "(k div 2L)"  # in two steps: the first beat may begin before all time
    beat = f"start + {half} * {period}L + (k - {half}) * {period}L"
    return source.timed(spread, f"greatest(le, {beat})", f"least(re, {beat} + {period}L)")


def _spread(context: BatchContext, source: Relation, window: Hopping, shown: str, leaves: str | None) -> DataFrame:
    """Each event once for each of its windows: the start of the first one, and the number k of this one."""
    size, hop, offset = (ticks(span) for span in (window.size, window.hop, window.offset))
    horizon, limit = context.settings.horizon, context.settings.limits.windows_per_event
    past = f"pmod(pmod(le, {hop}L) - {(size + offset) % hop}L + {hop}L, {hop}L)"
    end = "re" if horizon is None else f"least(re, {max(horizon - size + 1, BEGINNING * 2)}L)"
    begun = source.frame.selectExpr("*", f"(le - {size}L) + ({hop}L - {past}) AS start")
    counted = begun.selectExpr("*", f"{_count(end, hop)} AS n")
    endless = f"le <= {BEGINNING}L" if horizon is not None else f"le <= {BEGINNING}L OR re >= {FOREVER}L"
    wrong = f"WHEN {endless} THEN {_unbounded(source, shown)} WHEN n > {limit}L THEN {_too_many(source, limit, shown)}"
    if leaves is not None:
        wrong = f"{wrong} WHEN {leaves} THEN {leaves_time(source)}"
    return counted.selectExpr(
        "*", f"explode(CASE WHEN CASE {wrong} ELSE n END > 0L THEN sequence(0L, n - 1L) END) AS k"
    )


def _count(end: str, hop: int) -> str:
    """How many windows from ``start`` on begin before the end; no step of it overflows.

    A start before all time is an error for windows, but not for the beats of chop: it counts as one, and the rest from
    the next start on.
    """
    following = f"start + {hop}L"
    return (
        f"CASE WHEN le <= {BEGINNING}L OR {end} <= start THEN 0L "
        f"WHEN start > {BEGINNING}L THEN ({end} - start - 1L) div {hop}L + 1L "
        f"WHEN {end} <= {following} THEN 1L ELSE ({end} - ({following}) - 1L) div {hop}L + 2L END"
    )


def ticks(span: object) -> int:
    """A length of time that the check has made into ticks."""
    assert isinstance(span, int)
    return span


def _unbounded(source: Relation, shown: str) -> str:
    return failure_of(source, _endless(source, shown))


def _endless(source: Relation, shown: str) -> str:
    what = f"{escaped(shown)} has infinitely many windows over a lifetime without an end or a beginning"
    fix = "give a horizon (--horizon T): windows that end later are left out; it only bounds ends"
    return message_of(source, "unbounded_windows", what, fix)


def _too_many(source: Relation, limit: int, shown: str) -> str:
    what = f"one event falls into %s windows; the limit windows_per_event is {limit}"
    fix = "use a longer hop or period, shorten the lifetimes, or raise the limit"
    return failure_of(source, message_of(source, "limit_exceeded", what, fix, note=f" in {shown}"), "n")


def snapshot(context: BatchContext, source: Relation) -> DataFrame:
    """Between consecutive endpoints. Each endpoint gets its ordinal, so an event's windows are a range of numbers."""
    keys = list(source.groups)
    times = source.frame.select(*keys, f.explode(f.array("le", "re")).alias("t"))
    points = numbered(context, times, keys)
    begun = _placed(source.frame, points, keys, "le", "first")
    placed = _placed(begun, points, keys, "re", "last").withColumn("last", f.col("last") - 1)
    spread = _numbered_windows(context, source, placed, "snapshot")
    windows = points.select(*_as_window(keys), f.col("t").alias("wle"), f.col("following").alias("wre"), "i")
    return _in_windows(spread, windows, source)


def counted(context: BatchContext, source: Relation, n: int, time: str) -> DataFrame:
    """``[s_i, s_{i+n−1} + 1)`` over the distinct starts (or finite ends); members by that time, not by overlap."""
    n, keys = min(n, _MOST), list(source.groups)
    frame = source.frame.filter(f.col(time) < FOREVER)
    starts = numbered(context, frame.select(*keys, f.col(time).alias("t")), keys)
    lasts = starts.select(*_as_window(keys), (f.col("i") - (n - 1)).alias("j"), f.col("t").alias("last"))
    whole = [starts["i"] == lasts["j"], *(starts[key].eqNullSafe(lasts[f"w_{key}"]) for key in keys)]
    windows = starts.join(lasts, whole).select(
        *_as_window(keys), f.col("t").alias("wle"), (f.col("last") + 1).alias("wre"), "i"
    )
    placed = _placed(frame, starts, keys, time, "place")
    first = f.greatest(f.col("place") - (n - 1), long(1))
    ranged = placed.withColumns({"first": first, "last": f.col("place")})
    spread = _numbered_windows(context, source, ranged, "a count window")
    found = _in_windows(spread, windows, source)
    end = f"CASE WHEN wre >= {FOREVER}L THEN {leaves_time(source)} ELSE wre END"
    return found.withColumn("wre", f.expr(end))


def _numbered_windows(context: BatchContext, source: Relation, frame: DataFrame, shown: str) -> DataFrame:
    """Each event once for each of its windows, of which ``first`` and ``last`` are the numbers: ``k``.

    Live events that meet in windows are as many rows as their square. Before that many are made they are added up.
    """
    limit = context.settings.limits.events_listed
    total = f.broadcast(frame.agg(f.sum(f.expr("last - first + 1L")).alias("listed"), f.count("*").alias("events")))
    what = f"%s members of windows would have to be listed; the limit events_listed is {limit}"
    fix = "shorten lifetimes or windows, group before, or raise the limit"
    wrong = failure_of(source, message_of(source, "limit_exceeded", what, fix, note=f" in {shown}"), "listed")
    crowded = f"listed > {limit}L AND listed > {_USUAL} * events"
    k = f.explode(f.expr(f"sequence(first, CASE WHEN {crowded} THEN {wrong} ELSE last END)")).alias("k")
    return frame.crossJoin(total).select(*(name for name in frame.columns if name not in ("first", "last")), k)


def _as_window(keys: list[str]) -> list[Column]:
    return [f.col(key).alias(f"w_{key}") for key in keys]


def _placed(frame: DataFrame, points: DataFrame, keys: list[str], time: str, name: str) -> DataFrame:
    """The rows with the ordinal of one of their times."""
    places = points.select(*_as_window(keys), f.col("t").alias("w_t"), f.col("i").alias(name))
    same = [f.col(time) == f.col("w_t"), *(f.col(key).eqNullSafe(f.col(f"w_{key}")) for key in keys)]
    return frame.join(places, same).drop("w_t", *(f"w_{key}" for key in keys))


def _in_windows(spread: DataFrame, windows: DataFrame, source: Relation) -> DataFrame:
    same = [f.col("k") == f.col("i"), *(f.col(key).eqNullSafe(f.col(f"w_{key}")) for key in source.groups)]
    return spread.join(windows, same).select("wle", "wre", *source.columns)
