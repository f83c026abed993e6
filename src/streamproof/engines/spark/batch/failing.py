"""Errors on Spark: raised inside expressions or by modules on workers, and read back from what Spark makes of them.

An error travels as one line of text, a mark and the error as JSON, through whatever Spark wraps around it.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as f

from streamproof.engines.spark.rows import spark_type
from streamproof.errors import ErrorName, InfrastructureError, RunError, StreamproofError
from streamproof.events.schema import INT64, Type
from streamproof.events.time import BEGINNING, FOREVER

if TYPE_CHECKING:
    from pyspark.sql import Column

    from streamproof.engines.spark.batch.relation import Relation

MARK: Final = "streamproof "
_OVERFLOWS: Final = (
    "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW",
    "INTERVAL_ARITHMETIC_OVERFLOW", "DATETIME_OVERFLOW",
)  # fmt: skip


def failure(what: Column, *, name: ErrorName, at: Column, fix: str, kind: Type = INT64) -> Column:
    """An expression of a type that raises an error where it is evaluated."""
    parts = [f.lit(name).alias("error"), what.alias("what"), at.alias("at"), f.lit(fix).alias("fix")]
    return f.raise_error(f.concat(f.lit(MARK), f.to_json(f.struct(*parts)))).cast(spark_type(kind))


def leaves_time(source: Relation) -> Column:
    """The error of an event whose new lifetime does not fit."""
    what = f.lit("the new lifetime lies outside ±2^62 ticks")
    return failure(what, at=event_text(source), fix="use a coarser unit", name="overflow")


def event_text(source: Relation) -> Column:
    """An event for people, as an expression."""
    values = [
        f.concat(f.lit(f"{name}="), f.coalesce(f.col(column).cast("string"), f.lit("null")))
        for (name, _), column in zip(source.schema, source.payload, strict=True)
    ]
    payload = f.concat_ws(", ", *values) if values else f.lit("")
    return f.concat(f.lit("["), _tick("le"), f.lit(", "), _tick("re"), f.lit(") "), payload)


def _tick(name: str) -> Column:
    time = f.col(name)
    shown = f.when(time >= FOREVER, "inf").when(time <= BEGINNING, "-inf")
    return shown.otherwise(f.coalesce(time.cast("string"), f.lit("null")))


def marked(error: StreamproofError) -> RuntimeError:
    """An error as a worker raises it."""
    return RuntimeError(MARK + json.dumps(error.as_dict(), ensure_ascii=False))


def translated(error: Exception, note: str) -> StreamproofError:
    """Our error for one of Spark's."""
    if isinstance(error, StreamproofError):
        return error
    text = str(error)
    found = _marked(text)
    if found is not None:
        return found.located(note)
    if any(f"[{word}" in text for word in _OVERFLOWS):
        what = "a number is too large for its type"
        return RunError(what, fix="cast to float64 first", name="overflow").located(note)
    lines = [line for line in text.splitlines() if line.strip()]
    return InfrastructureError(
        f"Spark failed: {lines[0] if lines else type(error).__name__}", at=note, fix="see the exception below it"
    )


def _marked(text: str) -> StreamproofError | None:
    for place in re.finditer(re.escape(MARK) + r"(?=\{)", text):
        try:
            fields: dict[str, Any] = json.JSONDecoder().raw_decode(text, place.end())[0]
            return RunError(fields["what"], at=fields.get("at"), fix=fields.get("fix"), name=fields["error"])
        except (ValueError, KeyError):
            continue
    return None
