"""User-defined aggregates and operators: Spark finds the members of each window, sorts and clips them; Python runs the
module, once per window.

The rows of a partition come in the order of their windows, so one pass over them meets every window whole, and no
window costs more than its call.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types

from streamproof.engines.spark.batch.aggregates import stamped
from streamproof.engines.spark.batch.failing import marked
from streamproof.engines.spark.batch.hoisting import values
from streamproof.engines.spark.batch.relation import Context, Relation, Value
from streamproof.engines.spark.batch.windows import members
from streamproof.engines.spark.rows import spark_type, sql_type
from streamproof.errors import RunError, StreamproofError
from streamproof.events.schema import FLOAT64, INT64, NULL, Schema, Type
from streamproof.events.time import BEGINNING, FOREVER, show_tick
from streamproof.plan import nodes
from streamproof.plan.check import Typed
from streamproof.plan.expr import INT64_MAX, INT64_MIN, Expr
from streamproof.plan.modules import Event, Module, Stamping, WindowSpan
from streamproof.thresholds import MODULE_ROWS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Answers: TypeAlias = "Callable[[WindowSpan, list[tuple[Any, ...]]], Iterator[list[object]]]"
"""From a window and its events (le, re, values) to rows: le, re and the payload."""
Fields: TypeAlias = "list[tuple[str, Type]]"


def uda(context: Context, typed: Typed, node: nodes.Uda, source: Relation) -> Relation:
    module, params = typed.module, dict(node.params)
    assert module is not None
    (_, result) = typed.schema.columns[0]

    def answers(window: WindowSpan, rows: list[tuple[Any, ...]]) -> Iterator[list[object]]:
        answer = module.evaluate([Event(*row) for row in rows], window, params)
        yield [window.le, window.re, checked(module, answer, result, window)]

    made = _run(context, source, node, _Call([node.arg], answers, [("c0", result)]))
    return stamped(Relation(made, typed.schema, source.groups), node.output)


def udo(context: Context, typed: Typed, node: nodes.Udo, source: Relation) -> Relation:
    module, params, schema, stamp = typed.module, dict(node.params), typed.schema, node.stamp
    assert module is not None
    names = [name for name, _ in node.map or ()]

    def answers(window: WindowSpan, rows: list[tuple[Any, ...]]) -> Iterator[list[object]]:
        events = [Event(le, re, dict(zip(names, row, strict=True))) for le, re, *row in rows]
        for answer in module.evaluate(events, window, params):
            le, re, payload = _stamp(module, answer, window, stamp)
            if le < re:
                yield [le, re, *_payload(module, payload, schema, window)]

    fields = [(f"c{n}", kind) for n, (_, kind) in enumerate(schema)]
    made = _run(context, source, node, _Call([expr for _, expr in node.map or ()], answers, fields))
    return Relation(made.select("le", "re", *source.groups, *(name for name, _ in fields)), schema, source.groups)


@dataclass(frozen=True, slots=True)
class _Call:
    """What a module is called with, for each window, and the payload of what it gives."""

    exprs: Sequence[Expr]
    answers: Answers
    made: Fields


def _run(context: Context, source: Relation, node: nodes.Uda | nodes.Udo, call: _Call) -> DataFrame:
    """What the call gives for the rows of each window: groups, le, re and its payload."""
    found = members(context, source, node.window)
    frame, args = values(found, source.env(), call.exprs, context.settings.registry)
    keys = [*source.groups, "wle", "wre"]
    seen = frame.select(*keys, *_seen(source, args, node), *_order(source))
    order = [f.col(name).asc_nulls_last() for name in _order_names(source)]
    sorted_rows = seen.repartition(*keys).sortWithinPartitions(*keys, *order).drop(*_order_names(source))
    groups = [(name, frame.schema[name].dataType) for name in source.groups]
    schema = types.StructType(
        [types.StructField(name, kind) for name, kind in groups]
        + [types.StructField(name, types.LongType()) for name in ("le", "re")]
        + [types.StructField(name, spark_type(kind)) for name, kind in call.made]
    )
    work = _work(call.answers, len(source.groups), call.made)
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


# --- what a module gave -----------------------------------------------------------------------------------------------


def checked(module: Module, value: object, kind: Type, window: WindowSpan) -> object:
    """A value of a module, if it is of the declared type."""
    try:
        return returned(value, kind)
    except (TypeError, ValueError, ArithmeticError):
        raise RunError(
            f"{module} gave {value!r}, which is not of type {kind}",
            at=_place(window),
            fix=f"return a value of type {kind} or None",
            name="module_failed",
        ) from None


def returned(value: object, kind: Type) -> object:
    """A Python value as one of our type, or TypeError; whole numbers are floats and decimals too.

    >>> returned(3, Type("float64")), returned(None, Type("string"))
    (3.0, None)
    """
    if value is None:
        return None
    if isinstance(value, bool | np.bool_):
        if kind.kind == "bool":
            return bool(value)
        raise TypeError
    match kind.kind:
        case "int64" if isinstance(value, numbers.Integral) and INT64_MIN <= int(value) <= INT64_MAX:
            return int(value)
        case "float64" if isinstance(value, numbers.Real):
            return float(value)
        case "string" if isinstance(value, str):
            return str(value)
        case "decimal" if isinstance(value, Decimal | int):
            return pa.scalar(Decimal(value), kind.arrow).as_py()
        case "date" if isinstance(value, date) and not isinstance(value, datetime):
            return value
        case "timestamp" if isinstance(value, datetime) and value.tzinfo is not None:
            return value
    raise TypeError


def _place(window: WindowSpan) -> str:
    return f"window [{show_tick(window.le)}, {show_tick(window.re)})"


def _stamp(
    module: Module, answer: object, window: WindowSpan, stamp: Stamping
) -> tuple[int, int, Mapping[str, object]]:
    """The lifetime of a row that a module gave, and its payload."""
    if isinstance(answer, Mapping):  # unstamped
        return window.le, window.re, answer
    if not (isinstance(answer, tuple) and len(answer) == 3 and isinstance(answer[2], Mapping)):
        raise RunError(
            f"{module} gave {answer!r}, which is no row",
            at=_place(window),
            fix="give dicts, or Event(le, re, dict)",
            name="module_failed",
        )
    le, re, payload = answer
    if stamp == "align":
        return window.le, window.re, payload
    le, re = (_time(module, time, window) for time in (le, re))
    if stamp == "clip":
        return max(le, window.le), min(re, window.re), payload
    if le < window.le:
        raise RunError(
            f"{module} gave a row that starts at {show_tick(le)}, before its window",
            at=_place(window),
            fix='clip the input on the left, or use stamp "clip" or "align"',
            name="output_in_past",
        )
    return le, re, payload


def _time(module: Module, time: object, window: WindowSpan) -> int:
    found = checked(module, time, INT64, window)
    if found is None:
        raise RunError(f"{module} gave a row without a lifetime", at=_place(window), fix="give both times")
    assert isinstance(found, int)
    if not BEGINNING <= found <= FOREVER:
        what = f"{module} gave a row whose lifetime lies outside ±2^62 ticks: {found}"
        raise RunError(what, at=_place(window), name="overflow")
    return found


def _payload(module: Module, row: Mapping[str, object], schema: Schema, window: WindowSpan) -> list[object]:
    unknown = [name for name in row if name not in schema]
    if unknown:
        raise RunError(
            f'{module} gave a column "{unknown[0]}" that it does not declare',
            at=_place(window),
            fix="give the columns " + ", ".join(schema.names),
            name="module_failed",
        )
    return [checked(module, row.get(name), kind, window) for name, kind in schema]
