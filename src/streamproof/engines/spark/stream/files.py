"""A streaming run over files: everything that lies there now, in order, a few files at a time, into a folder.

Parquet is read by Spark itself, where it reads what our own readers do. All else, one file or a folder of them, is
first written to the checkpoint's spool as Parquet, by our own readers. When all is read, history is complete, and a
last micro-batch says so with the CTI ∞; a folder that will still grow is read with ``final=False``, and again later
from the same checkpoint.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.engines.base import Settings
from streamproof.engines.claims import plain, schema_claim
from streamproof.engines.inputs import no_input
from streamproof.engines.sealed import digest_of, opened_json, sealed_json, write_atomically
from streamproof.engines.spark.failures import disk_errors
from streamproof.engines.spark.metrics import StreamMetrics
from streamproof.engines.spark.origins import FOREVER_OLD
from streamproof.engines.spark.positions import refuse_strange
from streamproof.engines.spark.rows import quoted
from streamproof.engines.spark.sinks import Sink
from streamproof.engines.spark.sources import ChangeFeed, Layout, layouts_of, refuse_alike
from streamproof.engines.spark.stream.checkpoint import ANEW, Lock
from streamproof.engines.spark.stream.ledger import (
    PARQUET,
    FileLedger,
    Listing,
    columns_of,
    parquet_schema,
    refuse_unfinished,
)
from streamproof.engines.spark.stream.ports import SourcePort
from streamproof.engines.spark.stream.query import StreamQuery, make_query
from streamproof.engines.spark.stream.running import Watcher
from streamproof.engines.spark.stream.spool import refuse_damaged, rejected, spark_reads, spool
from streamproof.engines.spark.stream.wire import INPUT, BucketInput, ddl, record
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping
from streamproof.events.files.binary import read_metadata
from streamproof.events.files.mapping import layout_of
from streamproof.events.schema import Schema
from streamproof.events.time import FOREVER
from streamproof.plan import nodes
from streamproof.plan.nodes import Plan

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SPOOL: Final = "spool"
SPOOLING: Final = "_streamproof.spooling"
READ: Final = "_streamproof.read"
END: Final = "end"
END_FILE: Final = "end.parquet"
END_RECORD: Final = "_end.json"
VERSION: Final = 1
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
        """The streaming query over the files. Files that are new are taken in; those that changed are refused."""
        names = nodes.sources(self.plan)
        layouts = layouts_of(self.time, names)
        frames: dict[str, DataFrame] = {}
        known = {END_FILE}
        with disk_errors(), closing(Lock(self._home, SPOOLING)):
            for name in names:
                if name not in self.inputs:
                    raise no_input(name)
                ledger = self._ledger(name, layouts[name])
                folder, files = self._taken(name, layouts, ledger)
                known |= {entry.name for entry in ledger.entries}
                known |= {part.name for entry in ledger.entries for part in entry.parts}
                layouts[name] = layouts[name] or _own_layout(files[0])
                frames[name] = self._stream(spark, folder, files, layouts[name])
        refuse_strange(self._home, known)
        return make_query(
            spark,
            self.plan,
            frames,
            self.settings,
            time={name: layout for name, layout in layouts.items() if layout is not None},
            checkpoint=self._home,
            extra=self._end(spark),
            in_order=True,
            **(self.options or {}),
        )

    def _place(self, name: str) -> Path:
        return Path(os.path.realpath(self.inputs[name]))

    @property
    def _home(self) -> Path:
        return Path(os.path.realpath(self.checkpoint))

    def _ledger(self, name: str, layout: Layout | None) -> FileLedger:
        safe = name if re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9_.-]{0,99}", name) else digest_of(name.encode())[:24]
        declared = self._declared(name)
        schema = None if declared is None else schema_claim(declared)
        mapping = plain(ColumnMapping(start=layout) if isinstance(layout, str) else layout)
        read_as = {"input": str(self._place(name)), "mapping": mapping, "schema": schema}
        return FileLedger(self._home / SPOOL / safe, read_as)

    def _taken(self, name: str, layouts: dict[str, Layout | None], ledger: FileLedger) -> tuple[Path, list[Path]]:
        """The folder that Spark reads for a source, and its files; what it cannot read as we do is spooled."""
        place = self._place(name)
        listing = Listing.of(place)
        new = ledger.new(listing)
        if new and (self._home / END / END_FILE).exists():
            raise InputError(
                "the run is complete: it has said that nothing more comes (CTI ∞), and now there is "
                + new[0].name + (f" and {len(new) - 1} more" if len(new) > 1 else ""),
                at=str(place),
                fix="run over all files with a new checkpoint and a new output folder; "
                "a folder that still grows is read with --growing (in Python final=False)",
            )  # fmt: skip
        already = _already_read(self._home).get(ledger.folder.name, 0)
        if len(ledger.entries) < already:
            text = (
                f"the checkpoint has lost its records of files: {already} were read, and it knows {len(ledger.entries)}"
            )
            raise InputError(text, at=str(ledger.folder), fix=ANEW)
        mapping = layouts[name]
        mapping = ColumnMapping(start=mapping) if isinstance(mapping, str) else mapping
        if listing.is_parquet and self._is_native(name, mapping, ledger, listing):
            _refuse_gone(ledger, place, already)
            for file in new:
                ledger.add(ledger.entry_of(file))
            return (place if place.is_dir() else place.parent), list(listing.files)
        if mapping is not None and not isinstance(mapping, ColumnMapping):
            raise InputError(
                "a change feed is read from Parquet files only", at=str(place), fix="convert it to Parquet"
            )
        layouts[name] = None  # the spool is in our own layout
        refuse_damaged(ledger, already)
        for file in () if self.final else new:
            refuse_unfinished(file)
        spool(ledger, new, mapping, self._declared(name))
        return ledger.folder, [ledger.folder / part.name for entry in ledger.entries for part in entry.parts]

    def _is_native(self, name: str, mapping: Layout | None, ledger: FileLedger, listing: Listing) -> bool:
        """Whether Spark itself reads the files of a source; all have the same columns."""
        if ledger.entries:
            return not any(entry.parts or entry.rejects for entry in ledger.entries)
        columns_of(listing.files[0])  # or it is refused in words
        given = mapping if isinstance(mapping, ColumnMapping) else None
        return isinstance(mapping, ChangeFeed) or spark_reads(listing.files[0], given, self._declared(name))

    def skipped(self) -> dict[Path, str]:
        """What lies in the folders of the inputs and is not read, and why."""
        found = [file for name in nodes.sources(self.plan) for file in Listing.of(self._place(name)).skipped]
        return {file: _why(file) for file in found}

    def _declared(self, name: str) -> Schema | None:
        """The schema that the plan itself gives a source."""
        given = (node.schema for node in nodes.walk(self.plan) if isinstance(node, nodes.Source) and node.name == name)
        return next((schema for schema in given if schema is not None), None)

    def rejected(self) -> dict[Path, int]:
        """The files of rows that could not be read, and how many rows they hold."""
        return rejected(self._home / SPOOL)

    def _stream(self, spark: SparkSession, folder: Path, files: list[Path], layout: Layout | None) -> DataFrame:
        pattern = literal(files[0].name) if self._is_one(files) else f"*{{{','.join(PARQUET)}}}"
        refuse_alike(parquet_schema(files[0]).names, str(folder))
        schema = spark.read.parquet(literal(str(files[0]))).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", self.files_per_batch)
        reader = reader.option("maxFileAge", FOREVER_OLD).option("pathGlobFilter", pattern)
        frame = reader.parquet(literal(str(folder)))
        return in_file_order(frame) if self.files_per_batch > 1 and self._has_order(layout, frame.columns) else frame

    def _has_order(self, layout: Layout | None, columns: list[str]) -> bool:
        """Whether the result depends on the order of rows: there are CTIs or retractions, or late rows are dropped."""
        has_kinds = isinstance(layout, ColumnMapping) and "kind" in layout.roles(columns)
        return has_kinds or any(isinstance(node, nodes.AdvanceTime) for node in nodes.walk(self.plan))

    def _is_one(self, files: list[Path]) -> bool:
        """Whether Spark is to read one file of a folder in which others may lie."""
        return any(self._place(name) == files[0] for name in self.inputs)

    def _end(self, spark: SparkSession) -> DataFrame:
        """A stream that brings nothing, until the end is written into it."""
        folder = self._home / END
        folder.mkdir(parents=True, exist_ok=True)
        if (folder / END_FILE).exists():
            data, record = (folder / END_FILE).read_bytes(), _read_json(folder / END_RECORD, "end of a run")
            if digest_of(data) != record.get("digest_of_end"):
                raise InputError("the end of the run is damaged", at=str(folder / END_FILE), fix=ANEW)
        reader = spark.readStream.schema(ddl(INPUT)).option("maxFileAge", FOREVER_OLD)
        return reader.option("pathGlobFilter", END_FILE).parquet(literal(str(folder)))

    def write_end(self, ports: tuple[SourcePort, ...]) -> bool:
        """Say that all sources are complete; whether that had not been said before."""
        file = self._home / END / END_FILE
        if file.exists():
            return False
        rows = [
            record(port.query, bucket, BucketInput(port.number, 1 << 62, FOREVER, 0))
            for port in ports
            for bucket in range(port.buckets)
        ]
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows, schema=INPUT), out)
        _write_json(file.with_name(END_RECORD), "end of a run", {"digest_of_end": digest_of(out.getvalue())})
        write_atomically(file, out.getvalue())
        return True

    def note_read(self) -> None:
        """Note that all files that were taken are read: from now on they may go away."""
        layouts = layouts_of(self.time, nodes.sources(self.plan))
        ledgers = [self._ledger(name, layout) for name, layout in layouts.items()]
        found = {ledger.folder.name: len(ledger.entries) for ledger in ledgers}
        _write_json(self._home / READ, "place in inputs", {"files": found})


def run_files(spark: SparkSession, run: FileRun, sink: Sink, *, watcher: Watcher | None = None) -> StreamMetrics:
    """Process all files; returns the counts. Ctrl-C stops after the running micro-batch, and a new run continues."""
    query = run.query(spark)
    metrics = StreamMetrics()
    _to_the_end(query, sink, metrics, watcher)
    with disk_errors():
        run.note_read()
        is_new = run.final and run.write_end(query.ports)
    if is_new:
        _to_the_end(query, sink, metrics, watcher)
    return metrics


def _to_the_end(query: StreamQuery, sink: Sink, metrics: StreamMetrics, watcher: Watcher | None) -> None:
    running = query.start(sink, trigger={"availableNow": True}, watcher=watcher, metrics=metrics)
    try:
        while not running.wait(_POLL):
            pass
    except KeyboardInterrupt:
        running.stop()
        raise


def _own_layout(file: Path) -> ColumnMapping:
    """Our own layout of events or of a history, with the unit of time that was written beside the rows."""
    fields = parquet_schema(file)
    unit = read_metadata(fields, file).get("unit") or None
    return replace(layout_of(fields.names), unit=unit)  # type: ignore[arg-type]  # one of the units


def in_file_order(frame: DataFrame) -> DataFrame:
    """The rows of files in the order of the files. Left alone, Spark takes the largest of a micro-batch first."""
    columns = [f"{quoted(name)} as c{n}" for n, name in enumerate(frame.columns)]  # whatever is in their names
    named = frame.selectExpr(*columns, *(f"_metadata.{name} as place_{name}" for name in _PLACE))
    schema = named.drop(*(f"place_{name}" for name in _PLACE)).schema
    return named.coalesce(1).mapInArrow(_in_order, schema).toDF(*frame.columns)


_PLACE: Final = ("file_modification_time", "file_name", "row_index")


def _in_order(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of a micro-batch by their places in files, which are the last columns."""
    if found := list(batches):
        table = pa.Table.from_batches(found)
        names = table.column_names[: -len(_PLACE)]
        order = pc.sort_indices(table, [(name, "ascending") for name in table.column_names[len(names) :]])
        yield from table.select(names).take(order).combine_chunks().to_batches()


def literal(path: str) -> str:
    """A path for Spark, which takes brackets, stars and the like for patterns.

    >>> print(literal("/data/[a]*.parquet"))
    /data/\\[a\\]\\*.parquet
    """
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _refuse_gone(ledger: FileLedger, place: Path, already_read: int) -> None:
    for entry in ledger.entries[already_read:]:
        if place.is_dir() and not (place / entry.name).exists():
            text = f"{entry.name} is gone, and it is not sure that all of it was read"
            raise InputError(text, at=str(place), fix=f"put it back; or {ANEW}")


def _already_read(checkpoint: Path) -> dict[str, int]:
    """How many files of each source were read to their end."""
    found: dict[str, int] = _read_json(checkpoint / READ, "place in inputs").get("files", {})
    return found


def _read_json(file: Path, kind: str) -> dict[str, Any]:
    if not file.exists():
        return {}
    return opened_json(file.read_bytes(), kind=kind, version=VERSION, at=str(file), fix=ANEW)


def _write_json(file: Path, kind: str, document: Mapping[str, Any]) -> None:
    write_atomically(file, sealed_json(document, kind=kind, version=VERSION))


def _why(file: Path) -> str:
    if file.name.startswith((".", "_")):
        return "hidden"
    return "empty" if file.stat().st_size == 0 else "no file of events"
