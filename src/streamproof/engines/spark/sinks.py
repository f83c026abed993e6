"""Where the output of a streaming run goes, so that a restart after any crash leaves it as if nothing had happened.

A micro-batch becomes files whose names carry its number. They are written aside, renamed, and then a small file that
says how far the folder is takes its new content in one step. A micro-batch that comes again after a crash is written
over, or left out if the folder has it already.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.engines.claims import plain, refuse_other
from streamproof.engines.spark.metrics import OF_OUTPUT
from streamproof.engines.spark.output import (
    REBUILD,
    STATE,
    Content,
    Format,
    OutputFile,
    OutputFiles,
    OutputFolder,
    OutputState,
    Step,
    content_of,
    leftovers,
    merged,
    name_of,
    put_aside,
    read_rows,
    read_state,
    replaced,
)
from streamproof.engines.spark.positions import note_of, refuse_lost, refuse_other_place
from streamproof.engines.spark.stream.wire import Emit, from_blobs, output_schema
from streamproof.errors import InputError
from streamproof.events import jsontext
from streamproof.events.bag import consolidate
from streamproof.events.encode import cti as one_cti
from streamproof.events.files.binary import with_metadata
from streamproof.events.files.writer import table_of
from streamproof.events.order import ints
from streamproof.events.schema import RE, Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING


@dataclass(frozen=True, slots=True)
class SinkContext:
    """What a sink must know about the query that it serves."""

    schema: Schema
    buckets: int
    run: str  # the checkpoint's name
    query: int = 0  # which of the queries that run together is the output
    layers: Mapping[int, int] = field(default_factory=dict)  # the stage of each query
    checkpoint: Path | None = None  # where Spark notes how far it is


@dataclass(frozen=True, slots=True)
class OutputBatch:
    """The output of one micro-batch: signed rows or physical events, and the CTI that holds after it."""

    number: int
    rows: pa.Table
    cti: int
    dead: bytes = b""
    counts: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[int, Mapping[str, int]] = field(default_factory=dict)  # counts, stage by stage


class Sink(Protocol):
    """Somewhere for output to go. ``emit`` is what it wants: physical events or signed rows."""

    emit: Emit

    def open(self, context: SinkContext) -> dict[int, int]:
        """Get ready; the CTI of each bucket after the last micro-batch that it has, if it knows."""
        ...

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        """Take the next micro-batch, or one that it has already."""
        ...


class Receiver:
    """What stands between Spark and a sink: it puts the outputs of the buckets together."""

    def __init__(self, sink: Sink, context: SinkContext) -> None:
        self.sink, self.context = sink, context
        self._frontiers = sink.open(context)

    def take(self, number: int, outputs: pa.Table) -> OutputBatch:
        """Hand a micro-batch to the sink. The CTI of the output is the least of all buckets."""
        counts, stages = _counts(outputs, self.context)
        dead = b"".join(outputs["dead"].drop_null().to_pylist())
        outputs = outputs.filter(pc.equal(outputs["query"], self.context.query))
        for bucket, cti in zip(outputs["bucket"].to_pylist(), outputs["cti"].to_pylist(), strict=True):
            self._frontiers[bucket] = max(cti, self._frontiers.get(bucket, BEGINNING))
        everywhere = len(self._frontiers) == self.context.buckets
        cti = min(self._frontiers.values()) if everywhere else BEGINNING
        order = outputs.sort_by("bucket")
        rows = from_blobs(order["rows"].drop_null().to_pylist(), output_schema(self.context.schema, self.sink.emit))
        batch = OutputBatch(number, rows, cti, dead, counts, stages)
        self.sink.write(batch, self._frontiers)
        return batch


def _counts(outputs: pa.Table, context: SinkContext) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """The counts of a micro-batch, and those of each stage. What went out went out of the last stage."""
    names = ("events", "outputs", "corrections", "dropped", "live", "state", "micros", "latest")
    columns = {name: ints(outputs[name]) for name in names}
    queries = ints(outputs["query"])
    own = queries == context.query
    counts = {name: int(columns[name][own if name in OF_OUTPUT else slice(None)].sum()) for name in names[:-1]}
    counts["latest"] = int(columns["latest"].max(initial=BEGINNING))
    stages = {}
    for layer in sorted(set(context.layers.values())):
        here = np.isin(queries, [query for query, of in context.layers.items() if of == layer])
        stages[layer] = {name: int(columns[name][here].sum()) for name in names[:-1]}
    return counts, stages


class CallSink:
    """Calls a function with each micro-batch. After a crash the last one may come again, with the same number."""

    def __init__(self, function: Callable[[OutputBatch], None], *, emit: Emit = "events") -> None:
        self.function, self.emit = function, emit

    def open(self, context: SinkContext) -> dict[int, int]:
        return {}

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        self.function(batch)


class FileSink:
    """A folder of Parquet or JSON lines files.

    ``events`` are inserts, retractions and CTIs; ``rows`` signed rows; ``cht`` is the canonical history, kept up to
    date: rows that can change no more in files that stay, the others in one that is replaced. Small files are merged,
    eight at a time, unless ``compact`` is off because somebody follows the folder file by file. ``on_step`` is told
    what was done last. Read it with `read_output`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        content: Content = "events",
        format: Format = "parquet",  # noqa: A002  # the word users know
        compact: bool = True,
        on_step: Callable[[Step, int], None] | None = None,
    ) -> None:
        for word, value, known in (
            ("content", content, ("events", "rows", "cht")),
            ("format", format, ("parquet", "jsonl")),
        ):
            if value not in known:
                raise InputError(f"unknown {word} {value!r}", fix=f"use one of {', '.join(known)}")
        self.folder, self.content, self.format, self.compact = Path(os.path.realpath(folder)), content, format, compact
        self.emit: Emit = "events" if content == "events" else "rows"
        self._on_step = on_step or (lambda _step, _number: None)

    def open(self, context: SinkContext) -> dict[int, int]:
        self._context = context
        self._folder = OutputFolder(self.folder, self._on_step)
        state = read_state(self.folder) if self.folder.is_dir() else None
        if state is not None:
            self._refuse_other(state)
        refuse_other_place(self.folder, state, context.checkpoint)
        if state is None:
            self._begin()
            return {}
        refuse_lost(self.folder, state)
        self._folder.remove(leftovers(self.folder, state))
        self._folder.remove_unfinished()
        return {int(bucket): cti for bucket, cti in state.frontiers.items()}

    def _begin(self) -> None:
        """Take an empty folder, before anything is written into it: a crash must not make it look like another's."""
        self.folder.mkdir(parents=True, exist_ok=True)
        strangers = sorted(p.name for p in self.folder.iterdir() if not p.name.startswith((".", "_")))
        if strangers:
            raise InputError(f"{self.folder} is not empty: {strangers[0]}", fix="give a new folder for the output")
        self._folder.remove_unfinished()
        self._folder.record(self._first())

    def _first(self) -> OutputState:
        schema = self._context.schema
        columns = tuple((name, str(kind)) for name, kind in schema)
        return OutputState(self._context.run, self.content, self.format, columns, schema.unit)

    def _refuse_other(self, state: OutputState) -> None:
        if state.run != self._context.run:
            raise InputError(
                "the folder holds the output of another run",
                at=str(self.folder),
                fix="use the checkpoint it was written with, or a new folder",
            )
        form = ("content", "format", "columns", "unit")
        before, now = ({name: plain(getattr(one, name)) for name in form} for one in (state, self._first()))
        refuse_other(before, now, saved="the output", running="this run", at=str(self.folder), fix=REBUILD)

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        before = read_state(self.folder)
        if before is None:
            raise InputError(f"{STATE} is gone from the output", at=str(self.folder), fix=REBUILD)
        if batch.number <= before.batch:
            return  # it is there already
        if batch.number > before.batch + 1:
            text = f"micro-batch {batch.number} comes, and the output ends with {before.batch}"
            raise InputError(text, at=str(self.folder), fix=REBUILD)
        made = self._history(batch, before) if self.content == "cht" else self._append(batch, before)
        if batch.dead:
            made["letters"] = self._put("letters", before.letters, batch.number, batch.dead)
        note = note_of(self._context.checkpoint, batch.number)
        ctis = {str(bucket): cti for bucket, cti in frontiers.items()}
        after = replace(before, batch=batch.number, note=note, cti=batch.cti, frontiers=ctis, **made)
        self._on_step("renamed", batch.number)
        self._folder.record(after)
        self._on_step("recorded", batch.number)
        for name in replaced(self._folder, before, after):
            self._folder.remove([name])
            self._on_step("removed", batch.number)
        self._folder.fresh.clear()

    def _append(self, batch: OutputBatch, before: OutputState) -> dict[str, Any]:
        table = batch.rows
        if self.content == "events" and batch.cti > before.cti:
            table = pa.concat_tables([table, one_cti(self._context.schema, batch.cti).rows])
        if not table.num_rows:
            return {}
        return {"files": self._put("batch", before.files, batch.number, self._bytes(table))}

    def _history(self, batch: OutputBatch, before: OutputState) -> dict[str, Any]:
        """Rows that end before the CTI can change no more."""
        schema = self._context.schema
        parts = [read_rows(content_of(self.folder, part), schema, self.format) for part in before.open]
        now = consolidate(pa.concat_tables([*parts, batch.rows]))
        sealed = ints(now[RE]) < batch.cti
        made: dict[str, Any] = {"open": ()}
        if sealed.any():
            made["files"] = self._put("sealed", before.files, batch.number, self._bytes(now.filter(pa.array(sealed))))
        if not sealed.all():
            made["open"] = (self._one("open", batch.number, self._bytes(now.filter(pa.array(~sealed)))),)
        return made

    def _one(self, stem: str, number: int, data: bytes) -> OutputFile:
        ending = "jsonl" if stem == "letters" else self.format
        return self._folder.put(name_of(stem, number, number, ending), number, data)

    def _put(self, stem: str, parts: OutputFiles, number: int, data: bytes) -> OutputFiles:
        """The parts with a new one; small ones are merged, and long lists are put aside."""
        together = (*parts, self._one(stem, number, data))
        if self.compact:
            together = merged(self._folder, stem, together, number)
        return put_aside(self._folder, "letters" if stem == "letters" else "files", together, number)

    def _bytes(self, table: pa.Table) -> bytes:
        schema = self._context.schema
        if self.format == "parquet":
            flat = table_of(PhysicalStream(schema, table)) if self.content == "events" else _flat(table, schema)
            out = io.BytesIO()
            pq.write_table(with_metadata(flat, schema), out)
            return out.getvalue()
        if self.content == "events":
            return "".join(PhysicalStream(schema, table).json_lines()).encode()
        return _json_rows(table, schema).encode()


def _flat(table: pa.Table, schema: Schema) -> pa.Table:
    return table.rename_columns(schema.arrow_rows.names)


def _json_rows(table: pa.Table, schema: Schema) -> str:
    columns = [table.column(n).combine_chunks() for n in range(3)]
    le, re = (jsontext.times(column) for column in columns[:2])
    payload = jsontext.payload(schema, table.select(range(3, table.num_columns)))
    texts = jsontext.objects([("le", le), ("re", re), ("w", columns[2].cast(pa.string())), ("payload", payload)])
    return "".join(text + "\n" for text in texts.to_pylist())
