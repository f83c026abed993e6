"""Running a plan in batch mode: inputs become DataFrames, the rules build one, and its rows come back or stay there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from streamproof.engines.base import Settings, prepare
from streamproof.engines.inputs import Loaded, load
from streamproof.engines.results import Output, Whole
from streamproof.engines.spark.batch.failing import failure_of, message_of, told
from streamproof.engines.spark.batch.linear import projected
from streamproof.engines.spark.batch.reading import Given, given
from streamproof.engines.spark.batch.relation import BatchContext, Relation
from streamproof.engines.spark.batch.results import FrameOutput
from streamproof.engines.spark.batch.rules import build
from streamproof.engines.spark.rows import frame_of, inner_frame, outer_frame, schema_of, table_of
from streamproof.engines.spark.session import meaning
from streamproof.errors import ErrorName, InputError, StreamproofError, did_you_mean
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.schema import NULL, SIGNED, Schema, own_columns
from streamproof.events.time import BEGINNING, FOREVER
from streamproof.events.validate import Validator
from streamproof.plan import nodes
from streamproof.plan.check import Typed, walk
from streamproof.plan.labels import label
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FAULTS: Final[tuple[tuple[ErrorName, str, str], ...]] = (
    ("bad_input", "an event without a start or an end", f"an endless event ends at {FOREVER}"),
    ("empty_lifetime", "an event without a lifetime", "give it an end after its start"),
    ("overflow", "a lifetime lies outside ±2^62 ticks", "use a coarser unit"),
)


def run(spark: SparkSession, plan: Typed, inputs: Mapping[str, Iterable[Batch]], settings: Settings) -> Batch:
    """The whole result in one batch, complete."""
    for name, _ in sources_of(plan):
        if name not in inputs:
            raise InputError(f'no input is given for the source "{name}"', fix=did_you_mean(name, inputs))
    histories = {name: History.from_batches(schema, inputs[name]) for name, schema in sources_of(plan)}
    most = settings.limits.events_listed
    frames = {name: frame_of(spark, each.schema, each.expand(most=most)) for name, each in histories.items()}
    with told(plan):
        with meaning(spark):
            found = build(BatchContext(spark, settings, frames), plan)
        table = table_of(found.frame, plan.schema)
    return History.from_table(plan.schema, table).to_batch()


def over_inputs(
    spark: SparkSession,
    plan: Typed,
    inputs: Mapping[str, Loaded],
    settings: Settings,
    validators: Mapping[str, Validator],
) -> Output:
    """The result over inputs, in Spark's storage where Spark has read one of them; else here, where they are too."""
    most = settings.limits.events_listed
    ready: dict[str, Given] = {}
    try:
        with told(plan), meaning(spark):
            for name, schema in sources_of(plan):
                check = validators.get(name)
                ready[name] = given(spark, name, inputs[name], schema=schema, validator=check, most=most)
            found = build(BatchContext(spark, settings, {name: one.frame for name, one in ready.items()}), plan)
        notes = tuple(one.note for one in ready.values() if one.note is not None)
        if any(one.by_spark for one in ready.values()):
            return FrameOutput(found.frame, plan, notes)
        with told(plan):
            return Whole(History.from_table(plan.schema, table_of(found.frame, plan.schema)), notes=notes)
    finally:
        for one in ready.values():
            if one.kept is not None:
                one.kept.unpersist()


def batch(spark: SparkSession, plan: Plan, inputs: Mapping[str, object], settings: Settings) -> DataFrame:
    """The result as a DataFrame: le, re and the payload, one row per event; nothing goes through the driver.

    Inputs that are no DataFrames are read here first.
    """
    declared = {node.name: node.schema for node in nodes.walk(plan) if isinstance(node, nodes.Source)}
    for name in inputs:
        if name not in declared:
            raise InputError(f'the plan has no source "{name}"', fix=did_you_mean(name, declared))
    missing = [name for name in declared if name not in inputs]
    if missing:
        raise InputError(f'no input is given for the source "{missing[0]}"', fix="give it a DataFrame")
    with meaning(spark):
        most = settings.limits.events_listed
        ready = {name: _opened(spark, name, inputs[name], schema, most) for name, schema in declared.items()}
        typed = prepare(plan, {name: schema for name, (schema, _) in ready.items()}, settings)
        with told(typed):
            frames = {name: frame for name, (_, frame) in ready.items()}
            return _outer(BatchContext(spark, settings, frames, _one_row_each(inputs)), typed)


def _outer(context: BatchContext, typed: Typed) -> DataFrame:
    """The result under the names of the schema, which a select gives by itself."""
    plain = typed.schema.arrow_rows.names == [*SIGNED, *typed.schema.names]
    if plain and isinstance(typed.node, nodes.Select) and NULL not in (kind for _, kind in typed.schema):
        source = build(context, typed.inputs[0])
        context.note = label(typed.node)
        return projected(context, typed.node, source, typed.schema.names)
    return outer_frame(build(context, typed).frame, typed.schema)


def _one_row_each(inputs: Mapping[str, object]) -> dict[str, DataFrame]:
    """The DataFrames among the inputs that have a row for each event: no weights."""
    from pyspark.sql import DataFrame  # noqa: PLC0415

    frames = {name: frame for name, frame in inputs.items() if isinstance(frame, DataFrame)}
    return {name: frame for name, frame in frames.items() if "w" not in own_columns(frame.columns, SIGNED)}


def _opened(spark: SparkSession, name: str, given: Any, declared: Schema | None, most: int) -> tuple[Schema, DataFrame]:
    """An input with its schema, as the rules see it."""
    from pyspark.sql import DataFrame  # noqa: PLC0415  # Spark is loaded by those who use it

    if not isinstance(given, DataFrame):
        loaded = load(name, given, schema=declared).checked()
        return loaded.schema, frame_of(spark, loaded.schema, loaded.history().expand(most=most))
    try:
        schema = declared or schema_of(given)
        return schema, lawful(*inner_frame(given, schema), schema)
    except StreamproofError as error:
        raise error.located(f"input {name}") from None


def lawful(frame: DataFrame, read: Mapping[str, str], schema: Schema) -> DataFrame:
    """Events as the rules see them; one without a lifetime, or with one outside of all time, is an error where it is
    read. ``read`` says what le, re, c0, c1, … are in a DataFrame, as SQL."""
    le, re, *payload = read.values()
    good = f"{le} >= {BEGINNING}L AND {re} <= {FOREVER}L AND {re} > {le}"
    error = failure_of(Relation(frame, schema), _unlawful(Relation(frame, schema), le, re), read=read)
    columns = [le, f"CASE WHEN {good} THEN {re} ELSE {error} END", *payload]
    return frame.selectExpr(*(f"{text} AS {name}" for name, text in zip(read, columns, strict=True)))


def _unlawful(source: Relation, le: str, re: str) -> str:
    """What is wrong with an event's lifetime: one error, whatever it is, because Spark compiles each."""
    missing, empty, outside = (message_of(source, *fault) for fault in _FAULTS)
    return f"CASE WHEN {le} IS NULL OR {re} IS NULL THEN {missing} WHEN {re} <= {le} THEN {empty} ELSE {outside} END"


def sources_of(plan: Typed) -> list[tuple[str, Schema]]:
    """The streams that a plan reads."""
    return [(part.node.name, part.schema) for part in walk(plan) if isinstance(part.node, nodes.Source)]
