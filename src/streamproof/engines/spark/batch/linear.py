"""One event at a time: where, select, and the operators that only move lifetimes.

Times are raw ticks, and only shift and extend know the infinities. A finite time that leaves ±2^62 (exclusive) is the
error ``overflow`` and names its event.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.failing import leaves_time
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.relation import BatchContext, Relation, Value, cols, convert
from streamproof.engines.spark.rows import sql_type
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import LIFE_END, Col, columns_of
from streamproof.plan.functions import may_fail

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def where(context: BatchContext, typed: Typed, node: nodes.Where, source: Relation) -> Relation:
    frame, (condition,) = values(source.frame, source.env(), [node.expr], context.settings.registry)
    found = frame.filter(unmoved(condition.column) if may_fail(node.expr) else condition.column)
    return replace(source, frame=found) if frame is source.frame else source.on(found)


def unmoved(condition: Column) -> Column:
    """A condition that may raise, which Spark must not show to rows that other conditions keep away from it.

    Spark pushes conditions down to where rows are fewer columns, not fewer rows; it leaves alone what is not
    deterministic, as the number of a row is not.
    """
    return f.when(f.monotonically_increasing_id() >= 0, condition)


def select(context: BatchContext, typed: Typed, node: nodes.Select, source: Relation) -> Relation:
    names = [f"c{n}" for n in range(len(node.exprs))]
    return Relation(projected(context, node, source, names), typed.schema, source.groups, source.points)


def projected(context: BatchContext, node: nodes.Select, source: Relation, names: Sequence[str]) -> DataFrame:
    """What a select makes of its input, under these names."""
    exprs = [expr for _, expr in node.exprs]
    frame, found = values(source.frame, source.env(), exprs, context.settings.registry)
    columns = [_typed(value).alias(name) for name, value in zip(names, found, strict=True)]
    return frame.select(*cols(("le", "re", *source.groups)), *columns)


def _typed(value: Value) -> Column:
    """A value in the type that the schema says; a column of the input has it."""
    return value.column if value.atom and not value.constant else value.column.cast(sql_type(value.type))


def shift(context: BatchContext, typed: Typed, node: nodes.Shift, source: Relation) -> Relation:
    """Infinite ends stay infinite."""
    by = node.by
    assert isinstance(by, int)

    wrong = leaves_time(source)

    def moved(time: str) -> str:
        inside = f"WHEN abs({time} + {by}L) < {FOREVER}L THEN {time} + {by}L"
        return f"CASE WHEN abs({time}) >= {FOREVER}L THEN {time} {inside} ELSE {wrong} END"

    return source.timed(source.frame, moved("le"), moved("re"))


def extend(context: BatchContext, typed: Typed, node: nodes.Extend, source: Relation) -> Relation:
    by = node.by
    assert isinstance(by, int)
    end, endless = f"re + {by}L", f"re >= {FOREVER}L"
    moved = f"CASE WHEN {endless} THEN re WHEN {end} >= {FOREVER}L THEN {leaves_time(source)} ELSE {end} END"
    kept = source.frame.filter(f"{endless} OR {end} > le") if by < 0 else source.frame
    return source.timed(kept, "le", moved)


def alter_duration(context: BatchContext, typed: Typed, node: nodes.AlterDuration, source: Relation) -> Relation:
    dur = node.dur
    if dur is None:
        return source.timed(source.frame, "le", f"{FOREVER}L")
    assert not isinstance(dur, int | str | timedelta)  # the check made lengths of time into constants
    frame, (length,) = values(source.frame, source.env(), [dur], context.settings.registry)
    reads_end = Col(LIFE_END) in columns_of(dur)
    ticks = length.column
    stays = f.col("re") >= FOREVER if reads_end else f.lit(False)
    timed = frame.withColumn("dur", f.when(stays, None).otherwise(ticks) if reads_end else ticks)
    kept = timed.filter(unmoved(stays | (f.col("dur") > 0)))
    end = f"CASE WHEN dur > {FOREVER - 1}L - le THEN {leaves_time(source)} ELSE le + dur END"
    return source.timed(kept, "le", f"CASE WHEN re >= {FOREVER}L THEN {FOREVER}L ELSE {end} END" if reads_end else end)


def to_point(context: BatchContext, typed: Typed, node: nodes.ToPoint, source: Relation) -> Relation:
    return source.timed(source.frame, "le", _next("le", source), points=True)


def point_at_end(context: BatchContext, typed: Typed, node: nodes.PointAtEnd, source: Relation) -> Relation:
    return source.timed(source.frame.filter(f"re < {FOREVER}L"), "re", _next("re", source), points=True)


def _next(time: str, source: Relation) -> str:
    return f"CASE WHEN {time} + 1L >= {FOREVER}L THEN {leaves_time(source)} ELSE {time} + 1L END"


def advance_time(context: BatchContext, typed: Typed, node: nodes.AdvanceTime, source: Relation) -> Relation:
    """Over complete input it is the identity."""
    return source


def union(context: BatchContext, typed: Typed, node: nodes.Union, *inputs: Relation) -> Relation:
    """Columns are matched by name, and brought to the common type."""
    frames = []
    for source in inputs:
        env = source.env()
        columns = [convert(env[Col(name)], kind).column.alias(f"c{n}") for n, (name, kind) in enumerate(typed.schema)]
        frames.append(source.frame.select(*cols(("le", "re", *source.groups)), *columns))
    first, *rest = frames
    for frame in rest:
        first = first.unionAll(frame)
    return Relation(first, typed.schema, inputs[0].groups)
