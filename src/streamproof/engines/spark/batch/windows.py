"""Windows: for each node over windows the members, one row per window and event in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import event_text, failure, leaves_time
from streamproof.engines.spark.batch.relation import Context, Relation, long
from streamproof.engines.spark.batch.sweep import numbered
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.labels import label, window_label
from streamproof.plan.windows import CountEnd, CountStart, Hopping, Snapshot, Tumbling, Window

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_SAMPLE: Final = 100_000  # rows
_DENSE: Final = 4  # events per pane
_MOST: Final = 2**40  # more starts than any table has: a longer count window is empty


def members(context: Context, source: Relation, window: Window) -> DataFrame:
    """The events of each window: wle, wre and the columns of the source."""
    match window:
        case Tumbling(size, offset):
            return hopping(context, source, Hopping(size, size, offset), window_label(window))
        case Hopping():
            return hopping(context, source, window, window_label(window))
        case Snapshot():
            return snapshot(context, source)
        case CountStart(n):
            return counted(context, source, n, "le")
        case CountEnd(n):
            return counted(context, source, n, "re")


def hopping(context: Context, source: Relation, window: Hopping, shown: str) -> DataFrame:
    """Every window ``[offset + k·hop, … + size)`` that an event overlaps, by arithmetic."""
    size, hop = ticks(window.size), ticks(window.hop)
    if size == hop and in_panes(context, source, window):
        return panes(source, window, shown)
    start, n = f.col("start"), f.col("n")
    last_end = start + (n - 1) * long(hop) + long(size)
    leaves = (n > 0) & f.when(start <= BEGINNING, True).otherwise(last_end >= FOREVER)
    spread = _spread(context, source, window, shown, leaves)
    wle = start + f.col("k") * long(hop)
    return spread.select(wle.alias("wle"), (wle + long(size)).alias("wre"), *source.columns)


def in_panes(context: Context, source: Relation, window: Hopping) -> bool:
    """Whether each event lies in one *pane*, which is as long as the hop, and windows are made of whole panes."""
    size, hop = ticks(window.size), ticks(window.hop)
    few = size // hop <= context.settings.limits.windows_per_event
    return source.points and size % hop == 0 and few and context.settings.horizon is None


def is_dense(source: Relation, window: Hopping) -> bool:
    """Whether a pane has several events, else panes save nothing: as far as the first rows show, which are read now."""
    if not source.cheap:
        return True
    pane = f"le - pmod(le, {ticks(window.hop)}L)"
    first = source.frame.limit(_SAMPLE).selectExpr(f"xxhash64({', '.join([*source.groups, pane])}) AS pane")
    found = first.selectExpr("count(*) AS rows", "count(DISTINCT pane) AS panes").first()
    return found is not None and found["rows"] >= _DENSE * found["panes"]


def panes(source: Relation, window: Hopping, shown: str) -> DataFrame:
    """The one pane ``[wle, wre)`` of each point; the window that starts with it ends at wle + size."""
    size, hop, offset = (ticks(span) for span in (window.size, window.hop, window.offset))
    past = f"pmod(le, {hop}L)" if offset % hop == 0 else f"pmod(pmod(le, {hop}L) - {offset % hop - hop}L, {hop}L)"
    first = BEGINNING + size - hop + 1  # before this a window begins before all time; from the last on, one ends after
    first, last = first + (offset - first) % hop, FOREVER - size - 1
    last -= (last - offset) % hop
    inside = f.expr(f"le >= {first}L AND le < {last + hop}L")
    outside = f.when(f.col("le") <= BEGINNING, _unbounded(source, shown)).otherwise(leaves_time(source))
    start = f.when(inside, f.expr(f"le - {past}")).otherwise(outside)
    named = source.frame.select(start.alias("wle"), *source.columns)
    return named.withColumn("wre", f.col("wle") + long(hop))


def windows_of_panes(frame: DataFrame, window: Hopping) -> DataFrame:
    """Rows of panes, once for each window that the pane is in: ``wle`` is then the window's start."""
    size, hop = ticks(window.size), ticks(window.hop)
    starts = f"explode(sequence(wle - {size - hop}L, wle, {hop}L)) AS wle"
    return frame.selectExpr(starts, *(name for name in frame.columns if name != "wle"))


def chop(context: Context, typed: Typed, node: nodes.Chop, source: Relation) -> Relation:
    """Each lifetime cut at the beats ``offset + k·period``. Under a horizon, beats that end later are left out."""
    period = ticks(node.period)
    spread = _spread(context, source, Hopping(period, period, node.offset), label(node), None)
    half = f.call_function("div", f.col("k"), long(2))  # in two steps: the first beat may begin before all time
    beat = f.col("start") + half * long(period) + (f.col("k") - half) * long(period)
    le, re = f.greatest(f.col("le"), beat), f.least(f.col("re"), beat + long(period))
    return source.timed(spread, le, re)


def _spread(context: Context, source: Relation, window: Hopping, shown: str, leaves: Column | None) -> DataFrame:
    """Each event once for each of its windows: the start of the first one, and the number k of this one."""
    size, hop, offset = (ticks(span) for span in (window.size, window.hop, window.offset))
    horizon, limit = context.settings.horizon, context.settings.limits.windows_per_event
    le, re, n = f.col("le"), f.col("re"), f.col("n")
    past = f.pmod(f.pmod(le, long(hop)) - long((size + offset) % hop) + long(hop), long(hop))
    start = (le - long(size)) + (long(hop) - past)
    end = re if horizon is None else f.least(re, long(max(horizon - size + 1, BEGINNING * 2)))
    counted = source.frame.withColumn("start", start).withColumn("n", _count(end, hop))
    endless = le <= BEGINNING if horizon is not None else (le <= BEGINNING) | (re >= FOREVER)
    checked = f.when(endless, _unbounded(source, shown)).when(n > limit, _too_many(source, limit, shown))
    if leaves is not None:
        checked = checked.when(leaves, leaves_time(source))
    places = f.when(checked.otherwise(n) > 0, f.sequence(long(0), n - 1))
    return counted.withColumn("k", f.explode(places))


def _count(end: Column, hop: int) -> Column:
    """How many windows from ``start`` on begin before the end; no step of it overflows.

    A start before all time is an error for windows, but not for the beats of chop: it counts as one, and the rest from
    the next start on.
    """
    start, following = f.col("start"), f.col("start") + long(hop)
    from_start = f.call_function("div", end - start - 1, long(hop)) + 1
    from_next = f.call_function("div", end - following - 1, long(hop)) + 2
    none = (f.col("le") <= BEGINNING) | (end <= start)
    return (
        f.when(none, long(0)).when(start > BEGINNING, from_start).when(end <= following, long(1)).otherwise(from_next)
    )


def ticks(span: object) -> int:
    """A length of time that the check has made into ticks."""
    assert isinstance(span, int)
    return span


def _unbounded(source: Relation, shown: str) -> Column:
    what = f.lit(f"{shown} has infinitely many windows over a lifetime without an end or a beginning")
    fix = "give a horizon (--horizon T): windows that end later are left out; it only bounds ends"
    return failure(what, at=event_text(source), fix=fix, name="unbounded_windows")


def _too_many(source: Relation, limit: int, shown: str) -> Column:
    what = f.concat(
        f.lit("one event falls into "), f.col("n").cast("string"),
        f.lit(f" windows; the limit windows_per_event is {limit}"),
    )  # fmt: skip
    fix = "use a longer hop or period, shorten the lifetimes, or raise the limit"
    at = f.concat(event_text(source), f.lit(f" in {shown}"))
    return failure(what, at=at, fix=fix, name="limit_exceeded")


def snapshot(context: Context, source: Relation) -> DataFrame:
    """Between consecutive endpoints. Each endpoint gets its ordinal, so an event's windows are a range of numbers."""
    keys = list(source.groups)
    times = source.frame.select(*keys, f.explode(f.array("le", "re")).alias("t"))
    points = numbered(context, times, keys)
    begun = _placed(source.frame, points, keys, "le", "first")
    placed = _placed(begun, points, keys, "re", "last")
    spread = placed.withColumn("k", f.explode(f.sequence(f.col("first"), f.col("last") - 1)))
    windows = points.select(*_as_window(keys), f.col("t").alias("wle"), f.col("following").alias("wre"), "i")
    return _in_windows(spread, windows, source)


def counted(context: Context, source: Relation, n: int, time: str) -> DataFrame:
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
    spread = placed.withColumn("k", f.explode(f.sequence(first, f.col("place"))))
    found = _in_windows(spread, windows, source)
    end = f.when(f.col("wre") >= FOREVER, leaves_time(source)).otherwise(f.col("wre"))
    return found.withColumn("wre", end)


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
