"""Aggregates and top-k over windows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pyarrow as pa

from streamproof.engines.oracle.compiler import Compiler, EventTable, listed
from streamproof.engines.oracle.database import Columns, storage_type
from streamproof.engines.oracle.dialect import Sql, lifetime_order
from streamproof.engines.oracle.expressions import convert
from streamproof.engines.oracle.lifetimes import INFINITE, leaves_time
from streamproof.engines.oracle.program import ComputeLists
from streamproof.engines.oracle.user_functions import values
from streamproof.engines.oracle.windows import members
from streamproof.events.schema import FLOAT64, INT64, NULL, Type
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.check import Typed
from streamproof.plan.exact import EXACT, exact
from streamproof.plan.expr import TRUE


@dataclass(frozen=True, slots=True)
class _AggregateColumn:
    """One aggregate: its place in the output, what it reads, and whether Python adds it up."""

    place: int
    agg: Aggregate
    arg: Sql
    result: Type

    @property
    def exact(self) -> bool:
        """Sums of floats and everything built on them; sums of whole numbers and decimals are exact in SQL."""
        return self.agg.fn in EXACT and not (self.agg.fn in ("sum", "avg") and self.arg.type != FLOAT64)


def aggregation(compiler: Compiler, typed: Typed, node: nodes.Aggregation, source: EventTable) -> EventTable:
    found = members(compiler, source, node.window)
    query = over_members(compiler, found, [agg for _, agg in node.aggs], [kind for _, kind in typed.schema])
    return stamped(compiler, typed, node.output, f"({query}) AS groups")


def over_members(compiler: Compiler, found: EventTable, aggs: Sequence[Aggregate], kinds: Sequence[Type]) -> str:
    """A query for the aggregates of each g, wle, wre: these, and the results as c0, c1, …"""
    table, args = values(compiler, found.table, found.env(), [agg.reads or TRUE for agg in aggs])
    columns = [
        _AggregateColumn(n, agg, _ready(compiler, agg, arg), kind)
        for n, (agg, arg, kind) in enumerate(zip(aggs, args, kinds, strict=True))
    ]
    native = [f"{_native(compiler, found, column)} AS c{column.place}" for column in columns if not column.exact]
    groups = compiler.create("groups", f"SELECT {listed('g, wle, wre', native)} FROM {table} GROUP BY g, wle, wre")
    summed = [column for column in columns if column.exact]
    query = f"SELECT * FROM {groups}"
    if summed:
        sums = _sums(compiler, table, summed)
        more = listed(f"s.c{column.place}" for column in summed)
        query = f"SELECT w.*, {more} FROM {groups} w JOIN {sums} s ON s.g = w.g AND s.wle = w.wle"
    return query


def _ready(compiler: Compiler, agg: Aggregate, arg: Sql) -> Sql:
    if arg.type == NULL:
        return convert(arg, INT64, compiler.dialect)
    if agg.function.as_float:
        return convert(arg, FLOAT64, compiler.dialect)
    return arg


def _native(compiler: Compiler, found: EventTable, column: _AggregateColumn) -> str:
    if column.agg.fn == "count":
        return "count(*)"
    fn = "average" if column.agg.fn == "avg" else column.agg.fn
    return compiler.dialect.aggregate(fn, column.arg, lifetime_order(found.keys))


def _sums(compiler: Compiler, table: str, columns: list[_AggregateColumn]) -> str:
    """Per window the values of each argument as a list; Python adds them up."""
    texts = list(dict.fromkeys(column.arg.text for column in columns))
    lists = listed("g, wle", (f"{compiler.dialect.values_of(text)} AS x{n}" for n, text in enumerate(texts)))
    made: Columns = (("g", INT64), ("wle", INT64), *((f"c{column.place}", FLOAT64) for column in columns))

    def work(keys: pa.Table, found: list[pa.Array]) -> pa.Table:
        by_text = {text: _lists(array) for text, array in zip(texts, found, strict=True)}
        results = [
            pa.array(
                [exact(column.agg.fn, column.agg.params, part) if part else None for part in by_text[column.arg.text]],
                storage_type(FLOAT64),
            )
            for column in columns
        ]  # fmt: skip
        return pa.Table.from_arrays([*keys.columns, *results], names=[name for name, _ in made])

    sums = compiler.name("sums")
    what = "the exact " + ", ".join(column.agg.fn for column in columns) + " of each list"
    query = f"SELECT {lists} FROM {table} GROUP BY g, wle"
    compiler.steps.append(ComputeLists(query, 2, work, sums, made, compiler.note, what))
    return sums


def _lists(array: pa.Array) -> list[list[float] | None]:
    """The lists of an Arrow array; one slice of Python floats each, which is much faster than Arrow's own way."""
    flat: list[float] = array.values.to_numpy(zero_copy_only=False).tolist()
    offsets: list[int] = array.offsets.to_pylist()
    present: list[bool] = array.is_valid().to_pylist()
    return [flat[a:b] if valid else None for (a, b), valid in zip(pairwise(offsets), present, strict=True)]


def stamped(compiler: Compiler, typed: Typed, output: nodes.Output, source: str) -> EventTable:
    """Windows as events: their own lifetimes, or the points at their ends; an endless window has no such point."""
    payload = [f"c{n}" for n in range(len(typed.schema.columns))]
    if output == "window":
        columns = listed("g, wle AS le, wre AS re", payload)
        return compiler.relation("windowed", f"SELECT {columns} FROM {source}", typed.schema)
    ended = compiler.relation(
        "ended",
        f"SELECT {listed('g, wle AS le, wre AS re', payload)} FROM {source} WHERE wre < {INFINITE}",
        typed.schema,
    )
    compiler.check(ended, (f"re + 1 >= {INFINITE}", leaves_time))
    columns = listed("g, re AS le, re + 1 AS re", payload)
    return compiler.relation("windowed", f"SELECT {columns} FROM {ended.table}", typed.schema)


def top_k(compiler: Compiler, typed: Typed, node: nodes.TopK, source: EventTable) -> EventTable:
    """RANK() with nulls last in both directions; NaN is the greatest number."""
    found = members(compiler, source, node.window)
    table, keys = values(compiler, found.table, found.env(), [expr for expr, _ in node.by])
    # an ORDER BY must not raise, so the keys are columns before they are sorted by
    columns = (f"{key.text} AS by_{n}" for n, key in enumerate(keys))
    keyed = compiler.create("keyed", f"SELECT {listed('g, wle, wre', source.payload, columns)} FROM {table}")
    order = ", ".join(
        f"{compiler.dialect.ordered(f'by_{n}', key.type)} {direction.upper()} NULLS LAST"
        for n, (key, (_, direction)) in enumerate(zip(keys, node.by, strict=True))
    )
    ranked = compiler.create(
        "ranked", f"SELECT *, rank() OVER (PARTITION BY g, wle ORDER BY {order}) AS place FROM {keyed}"
    )
    payload = listed("g, wle, wre", source.payload)
    rank = f", place AS c{len(source.payload)}" if node.rank is not None else ""
    return stamped(
        compiler, typed, node.output, f"(SELECT {payload}{rank} FROM {ranked} WHERE place <= {node.k}) AS ranked"
    )
