"""Where physical events go as they come out of a running query: a file of any format, or standard output.

A file appears whole at the end, and not at all where the run fails.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

from streamproof.cli.screen import print_blocks
from streamproof.errors import InputError
from streamproof.events.files import format_of
from streamproof.events.files.metadata import with_metadata
from streamproof.events.files.rejects import opened_anew
from streamproof.events.files.writer import replacing, table_of, times_in
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER

Write: TypeAlias = Callable[[PhysicalStream], None]


@contextmanager
def event_sink(path: Path | None, schema: Schema, *, overwrite: bool) -> Iterator[Write]:
    """What writes events piece by piece; to standard output where there is no path."""
    if path is None:
        yield lambda stream: print_blocks(stream.json_lines())
        return
    place = Path(os.path.realpath(path))
    kind = format_of(place, None, "sinks")
    if kind not in _OPENERS:
        raise InputError(f"events cannot be written to {kind} piece by piece", fix=f"use {', '.join(_OPENERS)}")
    with replacing(place, overwrite=overwrite) as temporary, _OPENERS[kind](temporary, schema) as write:
        yield write


@contextmanager
def _jsonl(path: Path, schema: Schema) -> Iterator[Write]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda stream: file.writelines(stream.json_lines())


@contextmanager
def _csv(path: Path, schema: Schema) -> Iterator[Write]:
    empty = _csv_table(PhysicalStream.empty(schema))
    with pv.CSVWriter(path, empty.schema) as writer:
        yield lambda stream: writer.write_table(_csv_table(stream))


def _csv_table(stream: PhysicalStream) -> pa.Table:
    """Times as text: an infinity needs a word, and which pieces have one is not known before."""
    table, times = table_of(stream), times_in(stream)
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if index in times:
            text = pc.if_else(pc.equal(column, FOREVER), "inf", column.cast(pa.string()))
            text = pc.if_else(pc.equal(column, BEGINNING), "-inf", text)
            table = table.set_column(index, field.name, text)
        elif pa.types.is_null(field.type):
            table = table.set_column(index, field.name, column.cast(pa.string()))
    return table


@contextmanager
def _parquet(path: Path, schema: Schema) -> Iterator[Write]:
    empty = with_metadata(table_of(PhysicalStream.empty(schema)), schema)
    with pq.ParquetWriter(path, empty.schema, write_page_checksum=True) as writer:
        yield lambda stream: writer.write_table(with_metadata(table_of(stream), schema))


@contextmanager
def _ipc(path: Path, schema: Schema) -> Iterator[Write]:
    with pa.ipc.new_file(str(path), with_metadata(table_of(PhysicalStream.empty(schema)), schema).schema) as writer:
        yield lambda stream: writer.write_table(with_metadata(table_of(stream), schema))


_OPENERS: dict[str, Any] = {"jsonl": _jsonl, "csv": _csv, "parquet": _parquet, "ipc": _ipc}


class LettersFile:
    """Events or failures that were left out, as JSON lines; the file comes into being with the first of them."""

    def __init__(self, path: Path | None, *, after: int | None = None) -> None:
        """``after``: the run goes on, and so many bytes of the file were written before it stopped."""
        self.path, self.count = path, 0
        self.size = 0  # bytes of it that are ours
        if path is not None and after:
            self._go_on(path, after)

    def _go_on(self, path: Path, after: int) -> None:
        """What was written later, by a run that came to nothing, is written again."""
        if not path.is_file() or path.stat().st_size < after:
            text = f"{path} is gone, or shorter than when the run was interrupted"
            raise InputError(text, at=str(path), fix="bring it back, or name another file for what is left out now")
        os.truncate(path, after)
        self.size = after

    def events(self, source: str, stream: PhysicalStream) -> None:
        self._write({"source": source, **document} for document in stream.to_dicts())

    def documents(self, documents: list[dict[str, Any]]) -> None:
        self._write(iter(documents))

    def _write(self, documents: Iterator[dict[str, Any]]) -> None:
        lines = [json.dumps(document, ensure_ascii=False, default=str) for document in documents]
        self.count += len(lines)
        if self.path is None or not lines:
            return
        data = "".join(f"{line}\n" for line in lines)
        with self.path.open("a", encoding="utf-8") if self.size else opened_anew(self.path) as file:
            file.write(data)
        self.size += len(data.encode())
