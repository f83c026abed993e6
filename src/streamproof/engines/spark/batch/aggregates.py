"""Aggregates and top-k over windows.

Sums of whole numbers are exact in two halves of 32 bits, so that only the result can overflow. Sums and means of floats
are rounded once, from exact sums of limbs; for their variances the values of a window are collected, and computed with
in Python, a window at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import leaves_time
from streamproof.engines.spark.batch.floats import float_sums, summed, with_totals
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.parquet_statistics import look_at_files
from streamproof.engines.spark.batch.relation import BatchContext, Relation, Value, bound, convert, in_arrow, long
from streamproof.engines.spark.batch.statistics import Look, Looks, look_at
from streamproof.engines.spark.batch.sweep import changes_of, running
from streamproof.engines.spark.batch.windows import (
    as_hopping,
    end_of,
    in_panes,
    members,
    panes,
    ticks,
    windows_of_panes,
)
from streamproof.engines.spark.rows import sql_type
from streamproof.events.schema import FLOAT64, INT64, MAX_PRECISION, NULL, Type
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import AGGREGATES, Aggregate, unsupported
from streamproof.plan.check import Typed
from streamproof.plan.exact import EXACT, exact
from streamproof.plan.expr import TRUE, Col
from streamproof.plan.functions import may_fail
from streamproof.plan.labels import window_label
from streamproof.plan.windows import Hopping, Snapshot
from streamproof.thresholds import DENSE_PANES

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_MERGED: Final = ("count", "sum", "avg", "min", "max")  # what was collected of parts of a window can be put together
_SUMS: Final = ("sum", "avg")
_HALF: Final = 32
_LOW: Final = 2**32 - 1
_SUM: Final = f"decimal({MAX_PRECISION},0)"


class _Read(NamedTuple):
    """What an aggregate reads."""

    column: str
    type: Type


@dataclass(frozen=True, slots=True)
class Collected:
    """An aggregate in two steps: columns to aggregate, and the result from what they gave."""

    columns: dict[str, Column]
    result: Column
    merge: str | None = None  # what makes the same columns from those of parts of a window, where that can be


def aggregation(context: BatchContext, typed: Typed, node: nodes.Aggregation, source: Relation) -> Relation:
    if isinstance(node.window, Snapshot):
        exprs = [agg.reads or TRUE for _, agg in node.aggs]
        frame, args = values(source.frame, source.env(), exprs, context.settings.registry)
        if all(_adds_up(agg, value) for (_, agg), value in zip(node.aggs, args, strict=True)):
            return _sweep(context, typed, node, Relation(frame, source.schema, source.groups), args)
    return _over_members(context, typed, node, source)


def _adds_up(agg: Aggregate, value: Value) -> bool:
    """Whether a snapshot's aggregate follows from what its endpoint adds and takes away, exactly."""
    return agg.fn == "count" or (agg.fn in ("sum", "avg") and (value.type == INT64 or value.type.kind == "decimal"))


def _sweep(
    context: BatchContext, typed: Typed, node: nodes.Aggregation, source: Relation, args: list[Value]
) -> Relation:
    """Snapshots by running sums over their endpoints: no event meets all the snapshots that it lives through."""
    keys = list(source.groups)
    sums: dict[str, Column] = {}
    for n, ((_, agg), value) in enumerate(zip(node.aggs, args, strict=True)):
        sums |= _added(agg, value, f"a{n}")
    ready = source.frame.select("le", "re", *keys, *(column.alias(name) for name, column in sums.items()))
    swept = running(context, changes_of(ready, keys, list(sums)), keys, ["n", *sums]).filter(f.col("n") > 0)
    results = [
        _swept_result(agg, value, f"a{n}").cast(sql_type(kind)).alias(f"c{n}")
        for n, ((_, agg), value, (_, kind)) in enumerate(zip(node.aggs, args, typed.schema, strict=True))
    ]
    found = swept.select(f.col("t").alias("le"), f.col("following").alias("re"), *keys, *results)
    return stamped(Relation(found, typed.schema, source.groups), node.output)


def _added(agg: Aggregate, value: Value, name: str) -> dict[str, Column]:
    """What one event adds to the sums of an aggregate: 0 for null, which is not counted."""
    if agg.fn == "count":
        return {}
    x = value.column
    counted = {f"{name}_n": f.when(x.isNull(), long(0)).otherwise(long(1))}
    if value.type != INT64:
        wide = f"decimal({MAX_PRECISION},{value.type.scale})"
        return {name: f.coalesce(x.cast(wide), f.lit(0).cast(wide)), **counted}
    high, low = f.shiftright(x, _HALF), x.bitwiseAND(long(_LOW))
    halves = {f"{name}_high": f.coalesce(high, long(0)), f"{name}_low": f.coalesce(low, long(0))}
    return halves | counted


def _swept_result(agg: Aggregate, value: Value, name: str) -> Column:
    if agg.fn == "count":
        return f.col("n")
    whole = value.type == INT64
    if agg.fn == "sum":
        total = total_of_halves(name) if whole else f.col(name)
    else:
        total = mean_of_halves(name) if whole else mean_of_decimals(name)
    return f.when(f.col(f"{name}_n") > 0, total)


def _over_members(context: BatchContext, typed: Typed, node: nodes.Aggregation, source: Relation) -> Relation:
    """Aggregates of the rows of each window."""
    window = as_hopping(node.window)
    if window is not None and in_panes(context, source, window):
        results = _over_panes(context, typed, node, source, window)
    else:
        rows, reads = _read(context, node, source, members(context, source, node.window, ends=False))
        found = _Aggregates(typed, node, source, reads, _looks(context, node, source).floats)
        results = found.results(found.aggregated(rows), rows)
    return stamped(Relation(results, typed.schema, source.groups), node.output)


def _over_panes(
    context: BatchContext, typed: Typed, node: nodes.Aggregation, source: Relation, window: Hopping
) -> DataFrame:
    """The same where a window is whole panes: of dense ones the aggregates are put together, of others the rows."""
    inside, reads = _read(context, node, source, panes(source, window, window_label(node.window)))
    merges = window.size != window.hop and all(agg.fn in _MERGED for _, agg in node.aggs)
    looks = _looks(context, node, source, ticks(window.hop) if merges else None)
    found = _Aggregates(typed, node, source, reads, looks.floats)
    rows = windows_of_panes(inside, window)
    if merges and looks.density >= DENSE_PANES.now:
        return found.results(found.merged(windows_of_panes(found.aggregated(inside), window)), rows)
    return found.results(found.aggregated(rows), rows)


def _read(
    context: BatchContext, node: nodes.Aggregation, source: Relation, frame: DataFrame, fns: Container[str] = AGGREGATES
) -> tuple[DataFrame, list[_Read]]:
    """Rows with what these aggregates read: a column of the source as it is, else x0, x1, …; count reads nothing."""
    asked = {n: agg.reads for n, (_, agg) in enumerate(node.aggs) if agg.reads is not None and agg.fn in fns}
    reads = {n: _Read(*source.column(arg)) for n, arg in asked.items() if isinstance(arg, Col)}
    exprs = {n: arg for n, arg in asked.items() if n not in reads}
    frame, args = values(frame, source.env(), list(exprs.values()), context.settings.registry)
    made = {f"x{n}": value.column for n, value in zip(exprs, args, strict=True)}
    reads |= {n: _Read(f"x{n}", value.type) for n, value in zip(exprs, args, strict=True)}
    found = [reads.get(n, _Read(f"x{n}", NULL)) for n in range(len(node.aggs))]
    return frame.withColumns(made) if made else frame, found


def _looks(context: BatchContext, node: nodes.Aggregation, source: Relation, hop: int | None = None) -> Looks:
    """What the floats to add up are like, by the names of their columns, and how dense panes are.

    Only where reading the input twice is cheap.
    """
    if not source.cheap:
        return Looks()
    args = [agg.arg for _, agg in node.aggs if agg.arg and agg.fn in _SUMS]
    fns = () if any(map(may_fail, args)) else _SUMS
    frame, reads = _read(context, node, source, source.frame, fns)
    floats = dict.fromkeys(read.column for read in reads if read.type == FLOAT64)
    names = dict(zip(source.payload, source.schema.names, strict=True))
    if hop is None and source.origin is not None and floats.keys() <= names.keys():
        seen = look_at_files(source.origin, {x: names[x] for x in floats})
        if seen is not None:
            return seen
    pane = [*source.groups, f"le - pmod(le, {hop}L)"] if hop is not None else []
    return look_at(frame, list(floats), pane) if floats or pane else Looks()


def _named(columns: dict[str, Column]) -> list[Column]:
    return [column.alias(name) for name, column in columns.items()]


class _Aggregates:
    """The aggregates of a node: what they read, collect, and give."""

    def __init__(
        self, typed: Typed, node: nodes.Aggregation, source: Relation, reads: list[_Read], looks: Mapping[str, Look]
    ) -> None:
        self.schema, self.looks = typed.schema, looks
        clock = as_hopping(node.window)
        self.keys = [*source.groups, "wle", *([] if clock else ["wre"])]
        self.times = [f.expr("wle AS le"), f.expr(f"{end_of(clock)} AS re"), *map(f.col, source.groups)]
        self.floats = {
            f"c{n}": (agg.fn, read.column)
            for n, ((_, agg), read) in enumerate(zip(node.aggs, reads, strict=True))
            if agg.fn in _SUMS and read.type == FLOAT64
        }
        self.parts = [
            _float_sum(agg.fn, read.column, looks.get(read.column, Look()))
            if f"c{n}" in self.floats
            else part(agg, _ready(agg, Value(f.col(read.column), read.type, atom=True)), f"a{n}", source)
            for n, ((_, agg), read) in enumerate(zip(node.aggs, reads, strict=True))
        ]
        self.columns = {name: column for each in self.parts for name, column in each.columns.items()}

    def aggregated(self, rows: DataFrame) -> DataFrame:
        """What is collected of the rows of each window, or of each pane."""
        return rows.groupBy(*self.keys).agg(*_named(self.columns))

    def merged(self, parts: DataFrame) -> DataFrame:
        """The same from what was collected of the panes of each window."""
        merged = {name: f.expr(f"{each.merge}({name})") for each in self.parts for name in each.columns}
        return parts.groupBy(*self.keys).agg(*_named(merged))

    def results(self, aggregated: DataFrame, rows: DataFrame) -> DataFrame:
        """The windows with their results, from what was collected."""
        results = [
            each.result.cast(sql_type(kind)).alias(f"c{n}")
            for n, (each, (_, kind)) in enumerate(zip(self.parts, self.schema, strict=True))
        ]
        sources = {source for _, source in self.floats.values()}
        limbed = [x for x in sources if self.looks.get(x, Look()).grid is None]
        if not all(x in self.looks and not self.looks[x].rests for x in limbed):
            asked = {column: found for column, found in self.floats.items() if found[1] in limbed}
            return summed(aggregated, rows, self.keys, asked, [*self.times, *results])
        if limbed:
            aggregated = with_totals(aggregated, limbed)
        return aggregated.select(*self.times, *results)


def _float_sum(fn: str, x: str, look: Look) -> Collected:
    """Exactly; see `floats`."""
    result = f"{x}_total" if fn == "sum" else f"try_divide({x}_total, cast({x}_n AS double))"
    return Collected(float_sums(x, look), f.expr(result), "sum")


def _ready(agg: Aggregate, value: Value) -> Value:
    if agg.fn == "count":
        return value
    if value.type == NULL:
        return convert(value, INT64)
    return convert(value, FLOAT64) if agg.function.as_float else value


def part(agg: Aggregate, value: Value, name: str, source: Relation) -> Collected:
    """What an aggregate collects, under names that begin with ``name``, and its result."""
    x, only = value.column, f.col(name)
    match agg.fn:
        case "count":
            return Collected({name: f.expr("count(1)")}, only, "sum")
        case "min" | "max":
            best = f.min if agg.fn == "min" else f.max
            return Collected({name: best(x)}, only, agg.fn)
        case "count_distinct":
            return Collected({name: f.count_distinct(x)}, only)
        case "first" | "last":
            return _extreme(agg.fn, x, name, source)
        case "median" | "percentile":
            p = agg.params[0] if agg.params else 0.5
            assert isinstance(p, int | float)
            return Collected({name: f.sort_array(f.collect_list(x))}, bound(only, lambda xs: _percentile(xs, float(p))))
        case "sum" | "avg" if value.type == INT64:
            return _whole_sum(agg.fn, x, name)
        case "sum" | "avg" if value.type != FLOAT64:
            return _decimal_sum(agg.fn, value, name)
        case fn if fn in EXACT:
            return Collected(
                {name: f.collect_list(x)}, in_arrow(_of_lists(partial(exact, fn, agg.params)), "double", only)
            )
    raise unsupported(agg.fn, "spark")


def _of_lists(function: Callable[[Sequence[float]], float | None]) -> Callable[[pa.Array], pa.Array]:
    """The function of each list of an Arrow array; of an empty one null."""

    def work(lists: pa.Array) -> pa.Array:
        flat = lists.values.to_numpy(zero_copy_only=False).tolist()
        slices = pairwise(lists.offsets.to_pylist())
        return pa.array([function(flat[a:b]) if a < b else None for a, b in slices], pa.float64())

    return work


def _extreme(fn: str, x: Column, name: str, source: Relation) -> Collected:
    """In the order of le, re and payload, nulls last; nulls are no values."""
    order = [f.col("le"), f.col("re")]
    for column in source.payload:
        order += [f.col(column).isNull(), f.col(column)]
    fields = [column.alias(f"o{n}") for n, column in enumerate(order)]
    row = f.when(x.isNotNull(), f.struct(*fields, x.alias("x")))
    return Collected({name: f.min(row) if fn == "first" else f.max(row)}, f.col(name)["x"])


def _percentile(xs: Column, p: float) -> Column:
    """The value at rank p·(n − 1), between its neighbours by a straight line."""
    rank = f.lit(p) * (f.size(xs) - 1).cast("double")
    low, high = f.get(xs, f.floor(rank).cast("int")), f.get(xs, f.ceil(rank).cast("int"))
    between = low + (high - low) * (rank - f.floor(rank).cast("double"))
    return f.when(f.size(xs) > 0, f.when(low == high, low).otherwise(between))


def _whole_sum(fn: str, x: Column, name: str) -> Collected:
    columns = {
        f"{name}_high": f.sum(f.shiftright(x, _HALF)),
        f"{name}_low": f.sum(x.bitwiseAND(long(_LOW))),
    }
    if fn == "avg":
        columns[f"{name}_n"] = f.count(x)
    result = mean_of_halves(name) if fn == "avg" else total_of_halves(name)
    return Collected(columns, result, "sum")


def _high(name: str) -> Column:
    """The upper half, with what the lower one carries over."""
    return f.col(f"{name}_high") + f.shiftright(f.col(f"{name}_low"), _HALF)


def total_of_halves(name: str) -> Column:
    """The sum of whole numbers; it raises exactly where the sum does not fit."""
    return _high(name) * long(2**_HALF) + f.col(f"{name}_low").bitwiseAND(long(_LOW))


def mean_of_halves(name: str) -> Column:
    """The exact sum as the nearest float, by the count."""
    high, low = _high(name), f.col(f"{name}_low").bitwiseAND(long(_LOW))
    wide = high.cast(_SUM) * f.lit(2**_HALF).cast("decimal(10,0)") + low.cast(_SUM)
    fits = f.abs(high) < 2 ** (_HALF - 1)
    total = f.when(fits, total_of_halves(name).cast("double")).otherwise(wide.cast("string").cast("double"))
    return f.try_divide(total, f.col(f"{name}_n").cast("double"))


def _decimal_sum(fn: str, value: Value, name: str) -> Collected:
    wide = f.sum(value.column.cast(f"decimal({MAX_PRECISION},{value.type.scale})"))
    if fn == "sum":
        return Collected({name: wide}, f.col(name), "sum")
    return Collected({name: wide, f"{name}_n": f.count(value.column)}, mean_of_decimals(name), "sum")


def mean_of_decimals(name: str) -> Column:
    """The sum as the nearest float, by the count."""
    return f.try_divide(f.col(name).cast("string").cast("double"), f.col(f"{name}_n").cast("double"))


def stamped(windows: Relation, output: nodes.Output) -> Relation:
    """Windows as events: their own lifetimes, or the points at their ends; an endless window has no such point."""
    if output == "window":
        return windows
    end = f"CASE WHEN re + 1L >= {FOREVER}L THEN {leaves_time(windows)} ELSE re + 1L END"
    return windows.timed(windows.frame.filter(f"re < {FOREVER}L"), "re", end)


def top_k(context: BatchContext, typed: Typed, node: nodes.TopK, source: Relation) -> Relation:
    """RANK() with nulls last in both directions; NaN is the greatest number."""
    frame = members(context, source, node.window, ends=False)
    frame, keys = values(frame, source.env(), [expr for expr, _ in node.by], context.settings.registry)
    directions = [direction for _, direction in node.by]
    order = [_ordered(value, direction) for value, direction in zip(keys, directions, strict=True)]
    rank = f.rank().over(Window.partitionBy(*source.groups, "wle").orderBy(*order))
    ranked = frame.withColumn("place", rank).filter(f.col("place") <= f.lit(node.k))
    extra = [f.col("place").cast("long").alias(f"c{len(source.payload)}")] if node.rank is not None else []
    chosen = ranked.select("*", *extra) if extra else ranked
    windows = Relation(chosen, typed.schema, source.groups).timed(chosen, "wle", end_of(as_hopping(node.window)))
    return stamped(windows, node.output)


def _ordered(value: Value, direction: nodes.Direction) -> Column:
    column = value.column + 0.0 if value.type == FLOAT64 else value.column  # −0.0 equals 0.0
    return column.asc_nulls_last() if direction == "asc" else column.desc_nulls_last()
