"""Event-driven queries in batch mode: the rows of each key together, in Arrow, by the kernels of the local engine.

What fires, what is paired and what is seen depends on the order of the rows of one key, so Spark brings these together
and a kernel runs over each key's history at once. Keys run apart, as many at a time as there are cores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql import types

from streamproof.engines.spark.batch.failing import marked
from streamproof.engines.spark.batch.relation import BatchContext, Relation, long
from streamproof.engines.spark.rows import spark_type, sql_type
from streamproof.errors import StreamproofError
from streamproof.events.schema import FLOAT64, NULL, Schema, Type
from streamproof.events.time import FOREVER
from streamproof.plan.check import Typed
from streamproof.plan.event_nodes import Drift, During, Pairing, Transition
from streamproof.plan.functions import common_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def keyed(
    context: BatchContext, typed: Typed, node: Transition | Drift | Pairing | During, *inputs: Relation
) -> Relation:
    """Any of the nodes, one key at a time."""
    rows = _together([_side(source, n, node.key, inputs) for n, source in enumerate(inputs)])
    groups = inputs[0].groups
    keys = [f"k{n}" for n in range(len(groups) + len(node.key))] or ["side0"]
    if keys == ["side0"]:
        rows = rows.withColumn("side0", long(0))
    made = types.StructType(
        [types.StructField(name, types.LongType()) for name in ("le", "re")]
        + [types.StructField(name, inputs[0].frame.schema[name].dataType) for name in groups]
        + [types.StructField(f"c{n}", spark_type(kind)) for n, (_, kind) in enumerate(typed.schema)]
    )
    found = rows.groupBy(*keys).applyInArrow(_work(typed, context, groups), made)
    return Relation(found, typed.schema, groups)


def _side(source: Relation, number: int, key: tuple[str, ...], inputs: tuple[Relation, ...]) -> DataFrame:
    """One input: its key, which side it is, and its columns under names of their own."""
    columns = [f.col(name) for name in source.groups]
    columns += [_key(source, name, [other.schema[name] for other in inputs]) for name in key]
    keys = [column.alias(f"k{n}") for n, column in enumerate(columns)]
    payload = [f.col(name).alias(f"s{number}_{name}") for name in source.payload]
    return source.frame.select(*keys, long(number).alias("side"), "le", "re", *source.groups, *payload)


def _key(source: Relation, name: str, kinds: list[Type]) -> Column:
    """A column to group by: one NaN, no −0.0, and one type on both sides."""
    kind = common_type(kinds)
    assert kind is not None
    column = f.col(f"c{source.schema.names.index(name)}").cast(sql_type(kind))
    return f.when(f.isnan(column), float("nan")).otherwise(column + 0.0) if kind == FLOAT64 else column


def _together(sides: list[DataFrame]) -> DataFrame:
    rows = sides[0]
    for side in sides[1:]:
        rows = rows.unionByName(side, allowMissingColumns=True)
    return rows


# --- on a worker ------------------------------------------------------------------------------------------------------


def _work(typed: Typed, context: BatchContext, groups: tuple[str, ...]) -> Callable[[pa.Table], pa.Table]:
    """A function that runs the node's kernel over the history of one key."""
    node, schema, settings = typed.node, typed.schema, context.settings
    schemas = [part.schema for part in typed.inputs]

    def work(rows: pa.Table) -> pa.Table:
        from streamproof.engines.local.processor import context_of  # noqa: PLC0415  # on a worker
        from streamproof.engines.local.rules import KERNELS  # noqa: PLC0415

        inputs = tuple(Typed(node, known) for known in schemas)
        kernel = KERNELS[node](Typed(node, schema, inputs), context_of(settings, "speculative"))
        try:
            return _table(list(_output(kernel, rows, schemas)), schema, rows, groups)
        except StreamproofError as error:
            raise marked(error) from None

    return work


def _output(kernel: Any, rows: pa.Table, schemas: list[Schema]) -> Iterator[Any]:
    """What a kernel gives: for the data first, so that observing events find it complete, and at the end of time."""
    from streamproof.kernels.delta import Delta  # noqa: PLC0415

    for port in reversed(range(len(schemas))):
        yield kernel.on_batch(port, _delta(rows, port, schemas[port]))
    for port, schema in enumerate(schemas):
        yield kernel.on_batch(port, Delta.empty(schema, frontier=FOREVER))


def _delta(rows: pa.Table, side: int, schema: Schema) -> Any:
    import numpy as np  # noqa: PLC0415

    from streamproof.kernels.delta import Delta, one_chunk  # noqa: PLC0415

    at = np.flatnonzero(rows.column("side").to_numpy() == side)
    mine = rows.take(pa.array(at))
    le, re = (mine.column(name).to_numpy().astype(np.int64) for name in ("le", "re"))
    columns = [
        pa.nulls(len(at)) if kind == NULL else one_chunk(mine.column(f"s{side}_c{n}")).cast(kind.arrow)
        for n, (_, kind) in enumerate(schema)
    ]
    return Delta(np.zeros(len(at), np.int64), le, re, np.ones(len(at), np.int64), tuple(columns))


def _table(parts: list[Any], schema: Schema, rows: pa.Table, groups: tuple[str, ...]) -> pa.Table:
    """All that came out, added up, one row for each event."""
    import numpy as np  # noqa: PLC0415

    from streamproof.kernels.cells import Layout, Strings  # noqa: PLC0415
    from streamproof.kernels.delta import concat, consolidate  # noqa: PLC0415

    total = consolidate(concat(parts, frontier=FOREVER), Layout.of(schema), Strings())
    given = total.take(np.repeat(np.arange(len(total)), np.maximum(total.w, 0)))
    first = pa.array(np.zeros(len(given), np.int64))
    columns = [pa.array(given.le), pa.array(given.re), *(rows.column(name).take(first) for name in groups)]
    for column, (_, kind) in zip(given.columns, schema, strict=True):
        columns.append(pa.nulls(len(given), pa.int64()) if kind == NULL else column)
    names = ["le", "re", *groups, *(f"c{n}" for n in range(len(schema.columns)))]
    return pa.Table.from_arrays(columns, names=names)
