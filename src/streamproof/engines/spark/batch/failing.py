"""Errors on Spark: raised inside expressions or by modules on workers, and read back from what Spark makes of them.

An error travels as one line of text, a mark and the error, through whatever Spark wraps around it: as JSON from Python,
and from expressions as text in which control characters end the fields, which costs Spark less to plan and compile.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from pyspark.sql import functions as f

from streamproof.engines.spark.batch.relation import Relation
from streamproof.engines.spark.rows import sql_type
from streamproof.errors import ErrorName, InfrastructureError, RunError, StreamproofError
from streamproof.events.schema import Type
from streamproof.events.time import FOREVER
from streamproof.plan.check import Typed
from streamproof.plan.labels import label

if TYPE_CHECKING:
    from pyspark.sql import Column


MARK: Final = "streamproof "
_FIELD: Final = "\x1f"
_RAISED: Final = re.compile(f"{MARK}([a-z_]+): (.*?){_FIELD} at: (.*?){_FIELD} fix: (.*?){_FIELD}", re.DOTALL)
_OVERFLOWS: Final = (
    "ARITHMETIC_OVERFLOW", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW", "BINARY_ARITHMETIC_OVERFLOW",
    "INTERVAL_ARITHMETIC_OVERFLOW", "DATETIME_OVERFLOW",
)  # fmt: skip


def failure(what: Column, *, name: ErrorName, fix: str, kind: Type) -> Column:
    """An expression of a type that raises an error where it is evaluated: one about a value, of no event."""
    text = f.concat(f.lit(f"{MARK}{name}: "), what, f.lit(f"{_FIELD} at: {_FIELD} fix: {fix}{_FIELD}"))
    return f.raise_error(text).cast(sql_type(kind))


def failure_of(source: Relation, message: str, *values: str, read: Mapping[str, str] | None = None) -> str:
    """The same for an event, as SQL of type bigint; the message is SQL too, and the values are what it is told of.

    ``read`` says what the columns of an event are, where they have no names yet.
    """
    start, end, *payload = ("le", "re", *source.payload) if read is None else read.values()
    end = f"{start} + 1L" if source.points else end  # then nobody needs to read the end
    shown = [*values, _tick(start), _tick(end), *(f"cast({column} AS string)" for column in payload)]
    return f"cast(raise_error(format_string({message}, {', '.join(shown)})) AS bigint)"


def message_of(source: Relation, name: ErrorName, what: str, fix: str, note: str = "") -> str:
    """The message of an error about an event, as SQL: one text, because Spark plans and compiles each part of it.

    Where ``what`` has values, they are %s in it.
    """
    payload = ", ".join(f"{escaped(column)}=%s" for column in source.schema.names)
    event = f"[%s, %s) {payload}{escaped(note)}"
    return quoted_text(f"{MARK}{name}: {what}{_FIELD} at: {event}{_FIELD} fix: {escaped(fix)}{_FIELD}")


def leaves_time(source: Relation) -> str:
    """The error of an event whose new lifetime does not fit, as SQL."""
    return failure_of(source, outside_message(source))


def outside_message(source: Relation) -> str:
    return message_of(source, "overflow", "the new lifetime lies outside ±2^62 ticks", "use a coarser unit")


def _tick(time: str) -> str:
    """A time for people; no other number has the digits of the infinite ones."""
    return f"replace(cast({time} AS string), '{FOREVER}', 'inf')"


def escaped(text: str) -> str:
    """A text that is to stay as it is in a message."""
    return text.replace("%", "%%")


def quoted_text(text: str) -> str:
    """A text as SQL, whatever the session thinks of quotes and backslashes."""
    return f"decode(unhex('{text.encode().hex()}'), 'UTF-8')" if set(text) & {"'", "\\"} else f"'{text}'"


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
    if "OutOfMemoryError" in text:
        fix = "join on more columns, group before, take the result as a DataFrame, or raise spark.driver.memory"
        return InfrastructureError("Spark ran out of memory", at=note, fix=fix)
    lines = [line for line in text.splitlines() if line.strip()]
    return InfrastructureError(
        f"Spark failed: {lines[0] if lines else type(error).__name__}", at=note, fix="see the exception below it"
    )


def _marked(text: str) -> StreamproofError | None:
    raised = _RAISED.search(text)
    if raised is not None:
        name, what, at, fix = raised.groups()
        return RunError(what, at=at or None, fix=fix, name=cast("ErrorName", name))
    for place in re.finditer(re.escape(MARK) + r"(?=\{)", text):
        try:
            fields: dict[str, Any] = json.JSONDecoder().raw_decode(text, place.end())[0]
            return RunError(fields["what"], at=fields.get("at"), fix=fields.get("fix"), name=fields["error"])
        except (ValueError, KeyError):
            continue
    return None


@contextmanager
def told(plan: Typed) -> Iterator[None]:
    """Errors of Spark as ours."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # noqa: PLC0415  # it has no types
    from pyspark.errors import PySparkException  # noqa: PLC0415  # Spark is loaded by those who use it

    try:
        yield
    except (PySparkException, Py4JError) as error:
        ours = translated(error, f"{label(plan.node)} and what it reads")
        raise ours from (error if isinstance(ours, InfrastructureError) else None)
