"""Where the output of a streaming run goes, so that a restart after any crash leaves it as if nothing had happened.

A micro-batch becomes files whose names carry its number. They are written aside, renamed, and then a small file that
says how far the folder is takes its new content in one step. A micro-batch that comes again after a crash is written
over, or left out if the folder has it already.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.engines.spark.metrics import OF_OUTPUT
from streamproof.engines.spark.stream.blobs import from_blobs
from streamproof.engines.spark.stream.checkpoint import write_atomically
from streamproof.engines.spark.stream.wire import Emit, answer_schema
from streamproof.errors import InputError
from streamproof.events import jsontext
from streamproof.events.bag import consolidate
from streamproof.events.batch import Batch
from streamproof.events.encode import cti as one_cti
from streamproof.events.files.metadata import with_metadata
from streamproof.events.files.writer import table_of
from streamproof.events.history import History
from streamproof.events.order import ints
from streamproof.events.physical import to_history
from streamproof.events.schema import RE, Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING

Content: TypeAlias = Literal["events", "rows", "cht"]
Format: TypeAlias = Literal["parquet", "jsonl"]
Step: TypeAlias = Literal["written", "renamed", "recorded"]
STATE: Final = "_streamproof.json"
LETTERS: Final = "_dead_letters"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Output:
    """What a sink must know about the query that it serves."""

    schema: Schema
    buckets: int
    run: str  # the checkpoint's name
    query: int = 0  # which of the queries in the answers is the output
    layers: Mapping[int, int] = field(default_factory=dict)  # the stage of each query


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

    def open(self, output: Output) -> dict[int, int]:
        """Get ready; the CTI of each bucket after the last micro-batch that it has, if it knows."""
        ...

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        """Take the next micro-batch, or one that it has already."""
        ...


class Receiver:
    """What stands between Spark and a sink: it puts the answers of the buckets together."""

    def __init__(self, sink: Sink, output: Output) -> None:
        self.sink, self.output = sink, output
        self._frontiers = sink.open(output)

    def take(self, number: int, answers: pa.Table) -> OutputBatch:
        """Hand a micro-batch to the sink. The CTI of the output is the least of all buckets."""
        counts, stages = _counts(answers, self.output)
        dead = b"".join(answers["dead"].drop_null().to_pylist())
        answers = answers.filter(pc.equal(answers["query"], self.output.query))
        for bucket, cti in zip(answers["bucket"].to_pylist(), answers["cti"].to_pylist(), strict=True):
            self._frontiers[bucket] = max(cti, self._frontiers.get(bucket, BEGINNING))
        everywhere = len(self._frontiers) == self.output.buckets
        cti = min(self._frontiers.values()) if everywhere else BEGINNING
        order = answers.sort_by("bucket")
        rows = from_blobs(order["rows"].drop_null().to_pylist(), answer_schema(self.output.schema, self.sink.emit))
        batch = OutputBatch(number, rows, cti, dead, counts, stages)
        self.sink.write(batch, self._frontiers)
        return batch


def _counts(answers: pa.Table, output: Output) -> tuple[dict[str, int], dict[int, dict[str, int]]]:
    """The counts of a micro-batch, and those of each stage. What went out went out of the last stage."""
    names = ("events", "outputs", "corrections", "dropped", "live", "state", "micros", "latest")
    columns = {name: ints(answers[name]) for name in names}
    queries = ints(answers["query"])
    own = queries == output.query
    counts = {name: int(columns[name][own if name in OF_OUTPUT else slice(None)].sum()) for name in names[:-1]}
    counts["latest"] = int(columns["latest"].max(initial=BEGINNING))
    stages = {}
    for layer in sorted(set(output.layers.values())):
        here = np.isin(queries, [query for query, of in output.layers.items() if of == layer])
        stages[layer] = {name: int(columns[name][here].sum()) for name in names[:-1]}
    return counts, stages


class CallSink:
    """Calls a function with each micro-batch. After a crash the last one may come again, with the same number."""

    def __init__(self, function: Callable[[OutputBatch], None], *, emit: Emit = "events") -> None:
        self.function, self.emit = function, emit

    def open(self, output: Output) -> dict[int, int]:
        return {}

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        self.function(batch)


class FileSink:
    """A folder of Parquet or JSON lines files.

    ``events`` are inserts, retractions and CTIs; ``rows`` signed rows; ``cht`` is the canonical history, kept up to
    date: rows that can change no more in files that stay, the others in one that is replaced. ``on_step`` is told what
    was done last. Read it with `read_output`.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        content: Content = "events",
        format: Format = "parquet",  # noqa: A002  # the word users know
        on_step: Callable[[Step, int], None] | None = None,
    ) -> None:
        for word, value, known in (
            ("content", content, ("events", "rows", "cht")),
            ("format", format, ("parquet", "jsonl")),
        ):
            if value not in known:
                raise InputError(f"unknown {word} {value!r}", fix=f"use one of {', '.join(known)}")
        self.folder, self.content, self.format = Path(folder).resolve(), content, format
        self.emit: Emit = "events" if content == "events" else "rows"
        self._on_step = on_step or (lambda _step, _number: None)

    def open(self, output: Output) -> dict[int, int]:
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*.part"):  # by a run that was killed
            left.unlink(missing_ok=True)
        self._output = output
        found = read_state(self.folder)
        if not found:
            self._begin()
            return {}
        if found["run"] != output.run or found["content"] != self.content or found["format"] != self.format:
            raise InputError(
                "the folder holds the output of another run",
                at=str(self.folder),
                fix="use the checkpoint it was written with, or a new folder",
            )
        return {int(bucket): cti for bucket, cti in found["frontiers"].items()}

    def _begin(self) -> None:
        """Take an empty folder, before anything is written into it: a crash must not make it look like another's."""
        strangers = sorted(p.name for p in self.folder.iterdir() if not p.name.startswith((".", "_")))
        if strangers:
            raise InputError(f"{self.folder} is not empty: {strangers[0]}", fix="give a new folder for the output")
        self._record(-1, BEGINNING, {}, {})

    def _record(self, number: int, cti: int, frontiers: Mapping[int, int], made: Mapping[str, Any]) -> None:
        """Say how far the folder is: the step that makes a micro-batch count."""
        state = {
            "version": VERSION, "run": self._output.run, "content": self.content, "format": self.format,
            "batch": number, "cti": cti, "unit": self._output.schema.unit,
            "columns": [[name, str(kind)] for name, kind in self._output.schema],
            "frontiers": {str(bucket): cti for bucket, cti in frontiers.items()}, "open": [], "sealed": [], **made,
        }  # fmt: skip
        write_atomically(self.folder / STATE, json.dumps(state).encode())

    def write(self, batch: OutputBatch, frontiers: Mapping[int, int]) -> None:
        before = read_state(self.folder)
        if batch.number <= before["batch"]:
            return  # it is there already
        made = self._history(batch, before) if self.content == "cht" else self._append(batch, before)
        if batch.dead:
            (self.folder / LETTERS).mkdir(exist_ok=True)
            place = self.folder / LETTERS / f"{batch.number:012}.jsonl"
            self._put(place, batch.number, lambda path: path.write_bytes(batch.dead))
        self._on_step("renamed", batch.number)
        self._record(batch.number, batch.cti, frontiers, made)
        self._on_step("recorded", batch.number)
        for name in set(before["open"]) - set(made.get("open", ())):
            (self.folder / name).unlink(missing_ok=True)

    def _append(self, batch: OutputBatch, before: Mapping[str, Any]) -> dict[str, Any]:
        table = batch.rows
        schema = self._output.schema
        if self.content == "events" and batch.cti > before["cti"]:
            table = pa.concat_tables([table, one_cti(schema, batch.cti).rows])
        if table.num_rows:
            self._file("batch", batch.number, table)
        return {}

    def _history(self, batch: OutputBatch, before: Mapping[str, Any]) -> dict[str, Any]:
        """Rows that end before the CTI can change no more."""
        schema = self._output.schema
        parts = [_read_rows(self.folder / name, schema, self.format) for name in before["open"]]
        now = consolidate(pa.concat_tables([*parts, batch.rows]))
        sealed = ints(now[RE]) < batch.cti
        made: dict[str, Any] = {"open": [], "sealed": list(before["sealed"])}
        for kind, keep in (("sealed", sealed), ("open", ~sealed)):
            if keep.any():
                made[kind].append(self._file(kind, batch.number, now.filter(pa.array(keep))))
        return made

    def _file(self, stem: str, number: int, table: pa.Table) -> str:
        place = self.folder / f"{stem}-{number:012}.{self.format}"
        self._put(place, number, lambda path: _write_table(table, self._output.schema, self.content, path))
        return place.name

    def _put(self, place: Path, number: int, write: Callable[[Path], Any]) -> None:
        temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
        write(temporary)
        with temporary.open("rb") as written:
            os.fsync(written.fileno())
        self._on_step("written", number)
        temporary.replace(place)


def read_state(folder: Path) -> dict[str, Any]:
    """How far a folder of output is; nothing if it has not begun."""
    file = folder / STATE
    if not file.exists():
        return {}
    state: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if state.get("version") != VERSION:
        raise InputError(
            f"the output has version {state.get('version')}, this program reads {VERSION}",
            at=str(file),
            fix="use the version of streamproof that wrote it",
        )
    return state


def read_output(folder: str | Path) -> History:
    """What the output in a folder adds up to."""
    place = Path(folder).resolve()
    state = read_state(place)
    if not state:
        raise InputError(f"{folder} holds no output of a streaming run", fix="give the folder that a run wrote to")
    schema = Schema.of([(name, kind) for name, kind in state["columns"]], unit=state["unit"])
    if state["content"] == "cht":
        names = [*state["sealed"], *state["open"]]
    else:
        stems = (f"batch-{number:012}" for number in range(state["batch"] + 1))
        names = [name for stem in stems if (place / (name := f"{stem}.{state['format']}")).exists()]
    if state["content"] == "events":
        return to_history((_read_events(place / name, schema) for name in names), schema=schema)
    rows = (_read_rows(place / name, schema, state["format"]) for name in names)
    return History.from_batches(schema, (Batch(schema, table) for table in rows))


def _write_table(table: pa.Table, schema: Schema, content: Content, path: Path) -> None:
    if path.name.endswith(".part") and ".parquet." in path.name:
        flat = table_of(PhysicalStream(schema, table)) if content == "events" else _flat(table, schema)
        pq.write_table(with_metadata(flat, schema), path)
        return
    with path.open("w", encoding="utf-8") as out:
        if content == "events":
            out.writelines(PhysicalStream(schema, table).json_lines())
        else:
            out.write(_json_rows(table, schema))


def _flat(table: pa.Table, schema: Schema) -> pa.Table:
    return table.rename_columns(schema.arrow_rows.names)


def _json_rows(table: pa.Table, schema: Schema) -> str:
    columns = [table.column(n).combine_chunks() for n in range(3)]
    le, re = (jsontext.times(column) for column in columns[:2])
    payload = jsontext.payload(schema, table.select(range(3, table.num_columns)))
    texts = jsontext.objects([("le", le), ("re", re), ("w", columns[2].cast(pa.string())), ("payload", payload)])
    return "".join(text + "\n" for text in texts.to_pylist())


def _read_rows(path: Path, schema: Schema, kind: Format) -> pa.Table:
    if kind == "parquet":
        table = pq.read_table(path)
        return pa.Table.from_arrays(table.columns, schema=schema.arrow_rows)
    from streamproof.events.event import read_event, typed  # noqa: PLC0415

    documents = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    weights = [document.pop("w") for document in documents]
    events = [typed(read_event(document, n), schema) for n, document in enumerate(documents)]
    rows = [(e.le, e.re, w, e.payload) for e, w in zip(events, weights, strict=True)]  # type: ignore[union-attr]
    return Batch.from_rows(schema, rows).rows


def _read_events(path: Path, schema: Schema) -> PhysicalStream:
    from streamproof.events.files import read  # noqa: PLC0415

    return read(path, schema=schema, format="parquet" if path.suffix == ".parquet" else "jsonl").stream()
