"""Running a plan in batch mode: inputs become DataFrames, the rules build one, and its rows come back or stay there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa

from streamproof.engines.base import Settings
from streamproof.engines.spark.batch.failing import translated
from streamproof.engines.spark.batch.relation import Context, Relation
from streamproof.engines.spark.batch.rules import build
from streamproof.engines.spark.rows import frame_of, table_of
from streamproof.engines.spark.session import meaning
from streamproof.errors import InputError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.labels import label

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def run(spark: SparkSession, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Batch:
    """The whole result in one batch, complete."""
    frames = {name: frame_of(spark, schema, _events(name, schema, inputs)) for name, schema in sources_of(plan)}
    with told(plan):
        found = relation(spark, plan, frames, settings)
        table = table_of(found.frame, plan.schema)
    return History.from_table(plan.schema, table).to_batch()


def relation(spark: SparkSession, plan: Typed, frames: Mapping[str, DataFrame], settings: Settings) -> Relation:
    """The DataFrame of a plan, not yet run but for what the widths of bins are counted from."""
    with meaning(spark):
        return build(Context(spark, settings, frames), plan)


def sources_of(plan: Typed) -> list[tuple[str, Schema]]:
    """The streams that a plan reads."""
    return [(part.node.name, part.schema) for part in walk(plan) if isinstance(part.node, nodes.Source)]


def _events(name: str, schema: Schema, inputs: Mapping[str, Iterable[Batch]]) -> pa.Table:
    """The events of an input, one row each."""
    if name not in inputs:
        raise InputError(f'no input is given for the source "{name}"', fix=did_you_mean(name, inputs))
    return History.from_batches(schema, inputs[name]).expand()


@contextmanager
def told(plan: Typed) -> Iterator[None]:
    """Errors of Spark as ours."""
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Spark is loaded by those who use it

    try:
        yield
    except PySparkException as error:
        raise translated(error, f"{label(plan.node)} and what it reads") from error
