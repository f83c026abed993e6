"""Weights on Spark never wrap: each run gives the exact result, or the error by its name, with the node and an event.

Many plans are one here, because a Spark job costs seconds: the rows of all, each with a number.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest

from streamproof.engines.base import Settings
from streamproof.engines.job import Job
from streamproof.engines.spark import SparkEngine
from streamproof.engines.spark.sinks import CallSink, OutputBatch
from streamproof.errors import StreamproofError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.aggregates import Aggregate
from streamproof.plan.expr import Col, literal
from streamproof.plan.nodes import Plan
from streamproof.plan.parse import parse
from streamproof.plan.windows import Snapshot, Tumbling
from tests.engines.test_weights import SCHEMA, Expected, S, T, agree, cells, rows
from tests.spark.stream.tables import table_stream, write_files

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SEEN = (("n", Aggregate("count")), ("t", Aggregate("sum", Col("v"))))
SQUARE = nodes.Join(S, S, parse("l.k = r.k"), (("v", parse("l.v")),))
PARTS: dict[str, Plan] = {
    "count and sum": nodes.Aggregation(S, Snapshot(), SEEN),
    "of a union": nodes.Aggregation(nodes.Union((S, T, S)), Tumbling(10), SEEN),
    "of a self-join": nodes.Aggregation(SQUARE, Snapshot(), SEEN),
    "of a join": nodes.Aggregation(nodes.Join(S, T, parse("1 = 1"), (("v", parse("r.v")),)), Tumbling(10), SEEN),
    "per group": nodes.Select(
        nodes.GroupApply(S, ("k",), nodes.Aggregation(nodes.GroupInput(), Tumbling(10), SEEN)),
        (("n", Col("n")), ("t", Col("t"))),
    ),
    "rows of a self-join": nodes.Select(SQUARE, (("n", parse("0 - v")), ("t", parse("v")))),
    "rows of an outer join": nodes.LeftOuter(S, T, parse("l.k = r.k"), (("n", parse("l.v")), ("t", parse("r.v")))),
    "rows that last": nodes.Select(nodes.Extend(S, 3), (("n", parse("2")), ("t", parse("v")))),
}


UNTIMED = [name for name in PARTS if name not in ("of a union", "of a join", "per group")]
"""What comes out before a CTI does: no windows of the clock."""


LAST = 30  # the start of the last event: no CTI says that its snapshot is whole


def numbered(names: list[str]) -> Plan:
    return nodes.Union(
        tuple(nodes.Select(PARTS[name], (("part", literal(name)), ("n", Col("n")), ("t", Col("t")))) for name in names)
    )


def is_exact(found: History, names: list[str], w: int, *, before: int = FOREVER) -> bool:
    """Whether each part of a result is what the evaluator says, as far as it begins before a time."""
    schema = Schema.of({"n": "int64", "t": "int64"})
    known = found.rows.filter(pc.less(found.rows["le"], before))
    parts = {name: known.filter(pc.equal(known["part"], name)).drop_columns(["part"]) for name in names}
    return all(
        agree([row for row in Expected(PARTS[name]).at(w) if row[0] < before], cells(History(schema, part)))  # type: ignore[operator]  # a tick
        for name, part in parts.items()
    )


def streamed(spark: SparkSession, plan: Plan, w: int, folder: Path) -> History:
    """Two micro-batches of signed rows; what comes out of them adds up to the result."""
    frames = {
        name: table_stream(spark, write_files(folder / name, [part.rows for part in in_two(name, w)]))
        for name in nodes.sources(plan)
    }
    seen: list[OutputBatch] = []
    query = Job(plan, SparkEngine(session=spark), Settings()).stream(frames, checkpoint=folder / "cp", buckets=2)
    query.start(CallSink(seen.append, emit="rows"), trigger={"availableNow": True}).wait()
    schema = query.typed.schema
    return History.from_batches(schema, [Batch(schema, batch.rows.cast(schema.arrow_rows)) for batch in seen])


def in_two(name: str, w: int) -> list[Batch]:
    given = rows(name, w)
    return [Batch.from_rows(SCHEMA, part) for part in (given[::2], given[1::2])]


@pytest.mark.parametrize("seed", range(2))
def test_a_stream_is_exact_or_overflows(seed: int, spark: SparkSession, folder: Path) -> None:
    draw = random.Random(seed)
    names = draw.sample(sorted(UNTIMED), 4)
    exact = draw.randrange(2**8, 2**13)
    found = streamed(spark, numbered(names), exact, folder / "exact")
    assert is_exact(found, names, exact, before=LAST)
    name = draw.choice(["rows of a self-join", "of a self-join"])
    with pytest.raises(StreamproofError) as caught:
        streamed(spark, PARTS[name], draw.randrange(2**31, 2**61), folder / "too many")
    assert (caught.value.name, bool(caught.value.at), bool(caught.value.fix)) == ("overflow", True, True)
