"""User-defined aggregates and operators: Spark finds the members of each window, sorts and clips them; Python runs the
module, once per window.

The rows of a partition come in the order of their windows, so one pass over them meets every window whole, and no
window costs more than its call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types

from streamproof.engines.spark.batch.aggregates import stamped
from streamproof.engines.spark.batch.failing import marked
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.relation import BatchContext, Relation, Value
from streamproof.engines.spark.batch.windows import members
from streamproof.engines.spark.rows import spark_type, sql_type
from streamproof.errors import StreamproofError
from streamproof.events.schema import FLOAT64, INT64, NULL, Type
from streamproof.plan import nodes
from streamproof.plan.answers import Answers, answers_of
from streamproof.plan.check import Typed
from streamproof.plan.expr import Expr
from streamproof.plan.modules import WindowSpan
from streamproof.thresholds import MODULE_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Fields: TypeAlias = "list[tuple[str, Type]]"


def uda(context: BatchContext, typed: Typed, node: nodes.Uda, source: Relation) -> Relation:
    made = _run(context, source, typed, node, [node.arg])
    return stamped(Relation(made, typed.schema, source.groups), node.output)


def udo(context: BatchContext, typed: Typed, node: nodes.Udo, source: Relation) -> Relation:
    made = Relation(
        _run(context, source, typed, node, [expr for _, expr in node.map or ()]), typed.schema, source.groups
    )
    return made.on(made.frame)


def _run(
    context: BatchContext, source: Relation, typed: Typed, node: nodes.Uda | nodes.Udo, exprs: Sequence[Expr]
) -> DataFrame:
    """What the module answers for the rows of each window: groups, le, re and its payload."""
    found = members(context, source, node.window)
    frame, args = values(found, source.env(), exprs, context.settings.registry)
    keys = [*source.groups, "wle", "wre"]
    seen = frame.select(*keys, *_seen(source, args, node), *_order(source))
    order = [f.col(name).asc_nulls_last() for name in _order_names(source)]
    sorted_rows = seen.repartition(*keys).sortWithinPartitions(*keys, *order).drop(*_order_names(source))
    groups = [(name, frame.schema[name].dataType) for name in source.groups]
    made = [(f"c{n}", kind) for n, (_, kind) in enumerate(typed.schema)]
    schema = types.StructType(
        [types.StructField(name, kind) for name, kind in groups]
        + [types.StructField(name, types.LongType()) for name in ("le", "re")]
        + [types.StructField(name, spark_type(kind)) for name, kind in made]
    )
    work = _work(answers_of(typed), len(source.groups), made)
    return sorted_rows.mapInArrow(work, schema)


def _seen(source: Relation, args: list[Value], node: nodes.Uda | nodes.Udo) -> list[Column]:
    """What the module sees: clipped lifetimes and mapped values."""
    le = f.greatest("le", "wle") if node.clip in ("left", "full") else f.col("le")
    re = f.least("re", "wre") if node.clip in ("right", "full") else f.col("re")
    values_seen = [arg.column.cast(sql_type(arg.type)).alias(f"x{n}") for n, arg in enumerate(args)]
    return [le.alias("seen_le"), re.alias("seen_re"), *values_seen]


def _order_names(source: Relation) -> list[str]:
    return [f"o{n}" for n in range(2 + len(source.payload))]


def _order(source: Relation) -> list[Column]:
    """What events are sorted by: their own lifetimes and payloads; −0.0 equals 0.0."""
    kinds = [INT64, INT64, *(kind for _, kind in source.schema)]
    columns = ["le", "re", *source.payload]
    return [
        (f.col(name) + 0.0 if kind == FLOAT64 else f.col(name)).alias(new)
        for name, kind, new in zip(columns, kinds, _order_names(source), strict=True)
    ]


# --- on workers -------------------------------------------------------------------------------------------------------


def _work(answers: Answers, groups: int, made: Fields) -> Callable[[Any], Iterator[pa.RecordBatch]]:
    """The function over the sorted rows of a partition."""

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        first = next(batches, None)
        if first is None:
            return
        keys = [(field.name, field.type) for field in first.schema][:groups]
        times = [(name, pa.int64()) for name in ("le", "re")]
        fields = pa.schema([*keys, *times, *((name, _stored(kind)) for name, kind in made)])
        try:
            for rows in _answered(chain([first], batches), answers, groups):
                columns = zip(*rows, strict=True)
                arrays = [pa.array(column, field.type) for column, field in zip(columns, fields, strict=True)]
                yield pa.RecordBatch.from_arrays(arrays, schema=fields)
        except StreamproofError as error:
            raise marked(error) from None

    return work


def _stored(kind: Type) -> pa.DataType:
    return pa.int64() if kind == NULL else kind.arrow


def _answered(batches: Iterable[pa.RecordBatch], answers: Answers, groups: int) -> Iterator[list[list[object]]]:
    """What the module gives for all windows, some thousand rows at a time."""
    rows: list[list[object]] = []
    for key, window, events in _windows(batches, groups):
        rows += [[*key, *row] for row in answers(window, events)]
        if len(rows) >= MODULE_ROWS.now:
            yield rows
            rows = []
    if rows:
        yield rows


def _windows(
    batches: Iterable[pa.RecordBatch], groups: int
) -> Iterator[tuple[tuple[Any, ...], WindowSpan, list[tuple[Any, ...]]]]:
    """Group, window and events of each window. NaN equals NaN, so groups are told apart by how they are written."""
    rows = chain.from_iterable(zip(*(c.to_pylist() for c in batch.columns), strict=True) for batch in batches)
    for _, found in groupby(rows, key=lambda row: (repr(row[:groups]), *row[groups : groups + 2])):
        part = list(found)
        yield part[0][:groups], WindowSpan(*part[0][groups : groups + 2]), [row[groups + 2 :] for row in part]
