"""Running a subject over drawn streams: on Spark, as a temporal plan, as a plain function, or from a recording."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.schema import SIGNED, beside, column_name, payload_name
from streamproof.events.time import Span, duration
from streamproof.properties.multiplex import SubjectRunner, name_of_subject
from streamproof.properties.proving import Request, current
from streamproof.properties.runs import SubjectOutput, SubjectRun
from streamproof.properties.spark_run import Setting
from streamproof.properties.streams import WindowedStream, event_times

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Streams = WindowedStream | Sequence[WindowedStream] | Mapping[str, WindowedStream]


def run_stream(
    spark: SparkSession,
    streams: Streams,
    subject: Callable[..., Any],
    *,
    batches: int | Literal["window"] | None = None,
    mode: Literal["stream", "batch"] = "stream",
    watermark: str | None = None,
    output_mode: Literal["append", "update", "complete"] = "append",
    flush: bool = True,
    restart_after: int | None = None,
    reach: Span = "1 week",
) -> SubjectRun:
    """Run a PySpark function from streaming DataFrames to one or two streaming DataFrames.

    ``streams`` is one stream, or two as a tuple. ``batches`` is the number of micro-batches, or ``"window"`` for one
    per window of the generator; if not given, everything goes into one, unless rows arrive out of order.
    ``watermark`` is put on every input before the subject. ``restart_after`` kills the query after so many
    micro-batches and goes on from its checkpoint. ``mode="batch"`` runs the same function over finished tables.
    ``reach`` is how far beyond its inputs the subject may look; the flush comes after it.
    """
    __tracebackhide__ = True
    case = _case(streams)
    if not hasattr(spark, "readStream"):
        fix = "run_stream(spark, stream, subject), with the fixture streamproof_spark"
        raise InputError(f"the first argument is the Spark session, not {type(spark).__name__}", fix=fix)
    if batches is None:
        in_order = all(stream.ordered for stream in case) and restart_after is None
        batches = 1 if in_order or mode == "batch" else "window"
    duration(reach, "us")  # refused here, not in the middle of a run
    setting = Setting(output_mode, watermark, restart_after, flush, reach)
    request = Request(SubjectRunner(spark, subject, setting, batches), case, mode)
    rounds = current()
    return request.alone() if rounds is None else rounds.run(request)


def _case(streams: Streams) -> tuple[WindowedStream, ...]:
    given = streams if isinstance(streams, WindowedStream) else tuple(_values(streams))
    case = (given,) if isinstance(given, WindowedStream) else given
    if not 1 <= len(case) <= 2 or not all(isinstance(stream, WindowedStream) for stream in case):
        raise InputError("a run takes one stream, or two as a tuple", fix="draw them with windows(…)")
    return case


def _values(streams: Sequence[WindowedStream] | Mapping[str, WindowedStream]) -> Iterable[WindowedStream]:
    return streams.values() if isinstance(streams, Mapping) else streams


def run_function(streams: Streams, function: Callable[..., Any], *, frames: str = "pandas") -> SubjectRun:
    """Run a plain function over the whole streams: it takes pandas, Polars or Arrow tables, and gives one or two."""
    case = _case(streams)
    given = function(*[_frame(stream.table, frames) for stream in case])
    results = given if isinstance(given, tuple) else (given,)
    outputs = tuple(_output(_arrow(result)) for result in results)
    return SubjectRun(case, outputs, "function", subject=name_of_subject(function))


def _frame(table: pa.Table, frames: str) -> Any:
    if frames == "pandas":
        return table.to_pandas()
    if frames == "polars":
        import polars  # noqa: PLC0415  # optional

        return polars.from_arrow(table)
    if frames == "arrow":
        return table
    raise InputError(f'frames are "pandas", "polars" or "arrow", not {frames!r}')


def _arrow(result: Any) -> pa.Table:
    if isinstance(result, pa.Table):
        return result
    if hasattr(result, "to_arrow"):
        return result.to_arrow()
    if hasattr(result, "columns") and hasattr(result, "iloc"):
        return pa.Table.from_pandas(result, preserve_index=False)
    return pa.Table.from_pylist(list(result))


def _output(table: pa.Table) -> SubjectOutput:
    return SubjectOutput(table.combine_chunks(), np.zeros(table.num_rows, dtype=np.int64))


def run_recorded(
    inputs: Streams, outputs: pa.Table | Iterable[Mapping[str, Any]] | Sequence[pa.Table], *, name: str = "recording"
) -> SubjectRun:
    """A run that happened elsewhere: its inputs as `recorded` streams, its outputs as tables or rows."""
    several = isinstance(outputs, tuple | list) and bool(outputs) and isinstance(outputs[0], pa.Table)
    tables = outputs if several else [_arrow(outputs)]
    return SubjectRun(_case(inputs), tuple(_output(table) for table in tables), "recorded", subject=name)


def run_plan(streams: Streams, plan: Any, *, engine: str = "local", sources: Sequence[str] | None = None) -> SubjectRun:
    """Run a temporal plan: every row is an event that starts at its time and lasts one microsecond.

    ``sources`` names the plan's source for each stream; the plan's own order if not given. Output rows have the
    payload's columns and ``window``, the lifetime of the event.
    """
    from streamproof.engines.job import on  # noqa: PLC0415
    from streamproof.plan.nodes import sources as sources_of  # noqa: PLC0415

    case = _case(streams)
    node = getattr(plan, "plan", plan)
    names = list(sources or sources_of(node))
    if len(names) != len(case):
        raise InputError(f"the plan has {len(names)} sources, and {len(case)} streams are given", at=", ".join(names))
    inputs = {name: _events(stream) for name, stream in zip(names, case, strict=True)}
    history = on(node, engine).run(inputs).to_arrow()
    return SubjectRun(case, (_output(_lifetimes(history)),), "plan", subject=f"plan on {engine}")


def _events(stream: WindowedStream) -> pa.Table:
    """The rows as events with lifetimes of one tick."""
    table = stream.table
    times = event_times(table, stream.time)
    le, re, _ = beside(SIGNED, table.column_names)
    payload = table.rename_columns([column_name(name) for name in table.column_names])
    return payload.append_column(le, pa.array(times)).append_column(re, pa.array(times + 1))


def _lifetimes(history: pa.Table) -> pa.Table:
    stamp = pa.timestamp("us", tz="UTC")
    ends = [history.column(place).combine_chunks().cast(pa.int64()).cast(stamp) for place in (0, 1)]
    parts = [part.chunk(0) if isinstance(part, pa.ChunkedArray) else part for part in ends]
    window = pa.StructArray.from_arrays(parts, names=["start", "end"])
    payload = history.select(range(2, history.num_columns))
    names = [payload_name(name) for name in payload.column_names]
    return payload.rename_columns(names).append_column("window", window)
