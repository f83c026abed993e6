"""Aggregates and top-k over windows.

Sums of whole numbers are exact in two halves of 32 bits, so that only the result can overflow. Sums and means of floats
are rounded once, from exact sums of limbs; for their variances the values of a window are collected, and computed with
in Python, a window at a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as f

from streamproof.engines.spark.batch.arrow import in_arrow
from streamproof.engines.spark.batch.exact import EXACT, of_lists
from streamproof.engines.spark.batch.expressions import convert
from streamproof.engines.spark.batch.failing import leaves_time
from streamproof.engines.spark.batch.floats import corrected, limb_sums, with_limbs, with_totals
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.literals import bound
from streamproof.engines.spark.batch.relation import Context, Relation, Value, long
from streamproof.engines.spark.batch.sweep import changes_of, running
from streamproof.engines.spark.batch.windows import members, ticks
from streamproof.engines.spark.rows import spark_type
from streamproof.events.schema import FLOAT64, INT64, MAX_PRECISION, NULL, Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.expr import TRUE
from streamproof.plan.windows import Hopping, Snapshot, Tumbling

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_HALF: Final = 32
_LOW: Final = 2**32 - 1
_SUM: Final = f"decimal({MAX_PRECISION},0)"


@dataclass(frozen=True, slots=True)
class Part:
    """An aggregate in two steps: columns to aggregate, and the result from what they gave."""

    columns: dict[str, Column]
    result: Column


def aggregation(context: Context, typed: Typed, node: nodes.Aggregation, source: Relation) -> Relation:
    if isinstance(node.window, Snapshot):
        exprs = [agg.arg or TRUE for _, agg in node.aggs]
        frame, args = values(source.frame, source.env(), exprs, context.settings.registry)
        if all(_adds_up(agg, value) for (_, agg), value in zip(node.aggs, args, strict=True)):
            return _sweep(context, typed, node, Relation(frame, source.schema, source.groups), args)
    return _over_members(context, typed, node, source)


def _adds_up(agg: Aggregate, value: Value) -> bool:
    """Whether a snapshot's aggregate follows from what its endpoint adds and takes away, exactly."""
    return agg.fn == "count" or (agg.fn in ("sum", "avg") and (value.type == INT64 or value.type.kind == "decimal"))


def _sweep(context: Context, typed: Typed, node: nodes.Aggregation, source: Relation, args: list[Value]) -> Relation:
    """Snapshots by running sums over their endpoints: no event meets all the snapshots that it lives through."""
    keys = list(source.groups)
    sums: dict[str, Column] = {}
    for n, ((_, agg), value) in enumerate(zip(node.aggs, args, strict=True)):
        sums |= _added(agg, value, f"a{n}")
    ready = source.frame.select("le", "re", *keys, *(column.alias(name) for name, column in sums.items()))
    swept = running(context, changes_of(ready, keys, list(sums)), keys, ["n", *sums]).filter(f.col("n") > 0)
    results = [
        _swept_result(agg, value, f"a{n}").cast(spark_type(kind)).alias(f"c{n}")
        for n, ((_, agg), value, (_, kind)) in enumerate(zip(node.aggs, args, typed.schema, strict=True))
    ]
    found = swept.select(*keys, f.col("t").alias("wle"), f.col("following").alias("wre"), *results)
    return stamped(found, typed.schema, source.groups, node.output)


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


def _over_members(context: Context, typed: Typed, node: nodes.Aggregation, source: Relation) -> Relation:
    """Aggregates of the rows of each window."""
    frame = members(context, source, node.window)
    frame, args = values(frame, source.env(), [agg.arg or TRUE for _, agg in node.aggs], context.settings.registry)
    named = [value.column.alias(f"x{n}") for n, value in enumerate(args)]
    rows = frame.select("wle", "wre", *source.columns, *named)
    keys = [*source.groups, "wle", *([] if isinstance(node.window, Tumbling | Hopping) else ["wre"])]
    added = {
        f"c{n}": (agg.fn, f"x{n}")
        for n, ((_, agg), value) in enumerate(zip(node.aggs, args, strict=True))
        if agg.fn in ("sum", "avg") and value.type == FLOAT64
    }
    for _, column in added.values():
        rows = with_limbs(rows, column)
    parts = [
        part(agg, _ready(agg, Value(f.col(f"x{n}"), value.type, atom=True)), f"a{n}", source)
        if f"c{n}" not in added
        else _float_sum(agg.fn, f"x{n}")
        for n, ((_, agg), value) in enumerate(zip(node.aggs, args, strict=True))
    ]
    columns = {name: column for each in parts for name, column in each.columns.items()}
    found = rows.groupBy(*keys).agg(*(column.alias(name) for name, column in columns.items()))
    for column in {column for _, column in added.values()}:
        found = with_totals(found, column)
    results = [
        each.result.cast(spark_type(kind)).alias(f"c{n}")
        for n, (each, (_, kind)) in enumerate(zip(parts, typed.schema, strict=True))
    ]
    odd = [f"{column}_odd" for column in dict.fromkeys(column for _, column in added.values())]
    found = found.select(*keys, *results, *odd)
    if added:
        found = corrected(found, rows, keys, added)
    if isinstance(node.window, Tumbling | Hopping):
        found = found.withColumn("wre", f.col("wle") + long(ticks(node.window.size)))
    return stamped(found, typed.schema, source.groups, node.output)


def _float_sum(fn: str, x: str) -> Part:
    """From the limbs of the values; see `floats`."""
    total = f.col(f"{x}_total")
    return Part(limb_sums(x), total if fn == "sum" else f.try_divide(total, f.col(f"{x}_n").cast("double")))


def _ready(agg: Aggregate, value: Value) -> Value:
    if value.type == NULL:
        return convert(value, INT64)
    floats = ("var_samp", "var_pop", "stdev_samp", "stdev_pop", "median", "percentile")
    return convert(value, FLOAT64) if agg.fn in floats else value


def part(agg: Aggregate, value: Value, name: str, source: Relation) -> Part:
    """What an aggregate collects, under names that begin with ``name``, and its result."""
    x, only = value.column, f.col(name)
    match agg.fn:
        case "count":
            return Part({name: f.count(f.lit(1))}, only)
        case "min" | "max":
            return Part({name: f.min(x) if agg.fn == "min" else f.max(x)}, only)
        case "count_distinct":
            return Part({name: f.count_distinct(x)}, only)
        case "first" | "last":
            return _extreme(agg.fn, x, name, source)
        case "median" | "percentile":
            p = agg.params[0] if agg.params else 0.5
            assert isinstance(p, int | float)
            return Part({name: f.sort_array(f.collect_list(x))}, bound(only, lambda xs: _percentile(xs, float(p))))
        case "sum" | "avg" if value.type == INT64:
            return _whole_sum(agg.fn, x, name)
        case "sum" | "avg" if value.type != FLOAT64:
            return _decimal_sum(agg.fn, value, name)
    return Part({name: f.collect_list(x)}, exact_column(agg.fn, only))


def exact_column(fn: str, lists: Column) -> Column:
    """An aggregate of floats over lists of them, by Python."""
    return in_arrow(of_lists(EXACT[fn]), "double", lists)


def _extreme(fn: str, x: Column, name: str, source: Relation) -> Part:
    """In the order of le, re and payload, nulls last; nulls are no values."""
    order = [f.col("le"), f.col("re")]
    for column in source.payload:
        order += [f.col(column).isNull(), f.col(column)]
    fields = [column.alias(f"o{n}") for n, column in enumerate(order)]
    row = f.when(x.isNotNull(), f.struct(*fields, x.alias("x")))
    return Part({name: f.min(row) if fn == "first" else f.max(row)}, f.col(name)["x"])


def _percentile(xs: Column, p: float) -> Column:
    """The value at rank p·(n − 1), between its neighbours by a straight line."""
    rank = f.lit(p) * (f.size(xs) - 1).cast("double")
    low, high = f.get(xs, f.floor(rank).cast("int")), f.get(xs, f.ceil(rank).cast("int"))
    between = low + (high - low) * (rank - f.floor(rank).cast("double"))
    return f.when(f.size(xs) > 0, f.when(low == high, low).otherwise(between))


def _whole_sum(fn: str, x: Column, name: str) -> Part:
    columns = {
        f"{name}_high": f.sum(f.shiftright(x, _HALF)),
        f"{name}_low": f.sum(x.bitwiseAND(long(_LOW))),
    }
    if fn == "avg":
        columns[f"{name}_n"] = f.count(x)
        return Part(columns, mean_of_halves(name))
    return Part(columns, total_of_halves(name))


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


def _decimal_sum(fn: str, value: Value, name: str) -> Part:
    wide = f.sum(value.column.cast(f"decimal({MAX_PRECISION},{value.type.scale})"))
    if fn == "sum":
        return Part({name: wide}, f.col(name))
    return Part({name: wide, f"{name}_n": f.count(value.column)}, mean_of_decimals(name))


def mean_of_decimals(name: str) -> Column:
    """The sum as the nearest float, by the count."""
    return f.try_divide(f.col(name).cast("string").cast("double"), f.col(f"{name}_n").cast("double"))


def stamped(frame: DataFrame, schema: Schema, groups: tuple[str, ...], output: nodes.Output) -> Relation:
    """Windows as events: their own lifetimes, or the points at their ends; an endless window has no such point."""
    timed = Relation(frame.withColumnsRenamed({"wle": "le", "wre": "re"}), schema, groups)
    if output == "window":
        return timed.on(timed.frame)
    re = f.col("re")
    end = f.when(re + 1 >= FOREVER, leaves_time(timed)).otherwise(re + 1)
    return timed.timed(timed.frame.filter(re < FOREVER), re, end)


def top_k(context: Context, typed: Typed, node: nodes.TopK, source: Relation) -> Relation:
    """RANK() with nulls last in both directions; NaN is the greatest number."""
    frame = members(context, source, node.window)
    frame, keys = values(frame, source.env(), [expr for expr, _ in node.by], context.settings.registry)
    directions = [direction for _, direction in node.by]
    order = [_ordered(value, direction) for value, direction in zip(keys, directions, strict=True)]
    rank = f.rank().over(Window.partitionBy(*source.groups, "wle").orderBy(*order)).cast("long")
    ranked = frame.withColumn("place", rank).filter(f.col("place") <= node.k)
    extra = [f.col("place").alias(f"c{len(source.payload)}")] if node.rank is not None else []
    chosen = ranked.select(*source.groups, "wle", "wre", *source.payload, *extra)
    return stamped(chosen, typed.schema, source.groups, node.output)


def _ordered(value: Value, direction: nodes.Direction) -> Column:
    column = value.column + 0.0 if value.type == FLOAT64 else value.column  # −0.0 equals 0.0
    return column.asc_nulls_last() if direction == "asc" else column.desc_nulls_last()
