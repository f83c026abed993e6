"""A streaming run over files: everything that lies there now, in order, a few files at a time, into a folder.

Parquet is read by Spark itself. Other formats, one file or a folder of them, are first written to the checkpoint's
spool as Parquet, by our own readers. When all is read, history is complete, and a last micro-batch says so with the
CTI ∞; a folder that will still grow is read with ``final=False``, and again later from the same checkpoint.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.engines.base import Settings
from streamproof.engines.spark.metrics import Metrics
from streamproof.engines.spark.sinks import Sink
from streamproof.engines.spark.sources import Layout, layouts_of, refuse_alike
from streamproof.engines.spark.stream.doors import Door
from streamproof.engines.spark.stream.query import StreamQuery, make_query
from streamproof.engines.spark.stream.running import Watcher
from streamproof.engines.spark.stream.spool import rejected, spool, write_atomically
from streamproof.engines.spark.stream.wire import PACKED, PACKED_DDL
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping
from streamproof.events.files.mapping import layout_of
from streamproof.events.files.metadata import read_metadata
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPOOL: Final = "spool"
END: Final = "end"
_POLL: Final = 0.5  # seconds between looks at whether somebody pressed Ctrl-C


@dataclass(frozen=True, slots=True)
class FileRun:
    """What to run over files, and how."""

    plan: Plan
    inputs: Mapping[str, Path]
    checkpoint: Path
    settings: Settings
    time: Layout | Mapping[str, Layout] | None = None
    files_per_batch: int = 1
    final: bool = True  # the files are all there is: at their end, history is complete
    options: Mapping[str, Any] | None = None  # those of the query

    def query(self, spark: SparkSession) -> StreamQuery:
        """The streaming query over the files."""
        names = nodes.sources(self.plan)
        layouts = layouts_of(self.time, names)
        frames: dict[str, DataFrame] = {}
        for name in names:
            if name not in self.inputs:
                raise InputError(f'no input is given for the source "{name}"', fix=f"give --input {name}=FILE")
            folder, pattern = self._parquet(name, layouts)
            frames[name] = self._stream(spark, folder, pattern)
            layouts[name] = layouts[name] or _own_layout(folder, pattern)
        return make_query(
            spark,
            self.plan,
            frames,
            self.settings,
            time={name: layout for name, layout in layouts.items() if layout is not None},
            checkpoint=self.checkpoint,
            extra=self._end(spark),
            in_order=self.files_per_batch == 1,
            **(self.options or {}),
        )

    def _parquet(self, name: str, layouts: dict[str, Layout | None]) -> tuple[Path, str]:
        """A folder of Parquet files for a source, and which of its files are meant; other formats are spooled."""
        place = Path(self.inputs[name]).resolve()
        if not place.exists():
            raise InputError(f"{place} does not exist", fix="check the path of the input")
        if place.is_dir() and any(place.glob("*.parquet")):
            return place, "*.parquet"
        if place.suffix.lower() in (".parquet", ".pq"):
            return place.parent, place.name
        folder = self.checkpoint / SPOOL / name
        layout = layouts[name]
        mapping = ColumnMapping(start=layout) if isinstance(layout, str) else layout
        if mapping is not None and not isinstance(mapping, ColumnMapping):
            raise InputError(
                "a change feed is read from Parquet files only", at=str(place), fix="convert it to Parquet"
            )
        layouts[name] = None  # the spool is in our own layout
        spool(place, folder, mapping, self._declared(name))
        return folder, "*.parquet"

    def _declared(self, name: str) -> Schema | None:
        """The schema that the plan itself gives a source."""
        given = (node.schema for node in nodes.walk(self.plan) if isinstance(node, nodes.Source) and node.name == name)
        return next((schema for schema in given if schema is not None), None)

    def rejected(self) -> dict[Path, int]:
        """The files of rows that could not be read, and how many rows they hold."""
        return rejected(self.checkpoint / SPOOL)

    def _stream(self, spark: SparkSession, folder: Path, pattern: str) -> DataFrame:
        first = min(folder.glob(pattern), default=None)
        refuse_alike(pq.read_schema(first).names if first is not None else (), str(folder))
        schema = spark.read.option("pathGlobFilter", pattern).parquet(str(folder)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", self.files_per_batch)
        return reader.option("pathGlobFilter", pattern).parquet(str(folder))

    def _end(self, spark: SparkSession) -> DataFrame:
        """A stream that brings nothing, until the end is written into it."""
        folder = self.checkpoint / END
        folder.mkdir(parents=True, exist_ok=True)
        return spark.readStream.schema(PACKED_DDL).parquet(str(folder))

    def write_end(self, doors: tuple[Door, ...]) -> bool:
        """Say that all sources are complete; whether that had not been said before."""
        file = self.checkpoint / END / "end.parquet"
        if file.exists():
            return False
        rows = [
            {
                "query": 0,
                "bucket": bucket,
                "source": door.number,
                "order": 1 << 62,
                "cti": FOREVER,
                "events": 0,
                "dropped": 0,
            }
            for door in doors
            for bucket in range(door.buckets)
        ]
        write_atomically(pa.Table.from_pylist(rows, schema=PACKED), file)
        return True


def run_files(spark: SparkSession, run: FileRun, sink: Sink, *, watcher: Watcher | None = None) -> Metrics:
    """Process all files, and give the counts. Ctrl-C stops after the running micro-batch; the next run goes on."""
    query = run.query(spark)
    metrics = Metrics()
    _to_the_end(query, sink, metrics, watcher)
    if run.final and run.write_end(query.doors):
        _to_the_end(query, sink, metrics, watcher)
    return metrics


def _to_the_end(query: StreamQuery, sink: Sink, metrics: Metrics, watcher: Watcher | None) -> None:
    running = query.start(sink, trigger={"availableNow": True}, watcher=watcher, metrics=metrics)
    try:
        while not running.wait(_POLL):
            pass
    except KeyboardInterrupt:
        running.stop()
        raise


def _own_layout(folder: Path, pattern: str) -> ColumnMapping:
    """Our own layout of events or of a history, with the unit of time that was written beside the rows."""
    file = min(folder.glob(pattern))
    fields = pq.read_schema(file)
    unit = read_metadata(fields, file).get("unit") or None
    return replace(layout_of(fields.names), unit=unit)  # type: ignore[arg-type]  # one of the units
