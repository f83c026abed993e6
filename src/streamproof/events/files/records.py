"""JSON lines of your own: one flat object per line, its keys are the columns.

A block of lines is parsed by Arrow; if anything in it is unusual, line by line instead, so that every bad line is known
by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from streamproof.errors import InputError, StreamproofError
from streamproof.events.files.columns import JsonColumns, json_type, literally, with_written
from streamproof.events.files.jsonl import IN_JSON, Block, arrow_rows, blocks, document_of
from streamproof.events.files.listing import open_text
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart
from streamproof.events.files.values import lossy_in_json
from streamproof.events.notation import merge_types, show_value, type_of_value
from streamproof.events.schema import FLOAT64, NULL

Record = dict[str, Any]


class RecordsFile:
    """A file of flat JSON objects, one per line."""

    word = "line"
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path, *, block_bytes: int = 1 << 23) -> None:
        self._path = path
        self._block_bytes = block_bytes
        self.columns, rejects = JsonColumns(), Rejects()
        for block in blocks(path, block_bytes):
            if not _see_fast(block, self.columns):
                _see_slow(block, self.columns, rejects)
        if not self.columns.types:
            raise _no_objects(path, rejects)
        self.settle(self.columns)

    def settle(self, columns: JsonColumns) -> None:
        """Read the file with these columns: its own, or those that it shares with others."""
        self._written = columns.written
        self.fields = pa.schema([(name, IN_JSON.get(kind, pa.string())) for name, kind in columns.types.items()])

    def parts(self, rejects: Rejects) -> Iterator[FilePart]:
        for block in blocks(self._path, self._block_bytes):
            yield self._fast(block) or self._slow(block, rejects)

    def _fast(self, block: Block) -> FilePart | None:
        if self._written:
            return None
        options = pj.ParseOptions(explicit_schema=self.fields, unexpected_field_behavior="error")
        try:
            rows = arrow_rows(block.data, options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if rows.num_rows != block.data.count(b"\n") or rows.schema != self.fields:
            return None  # blank lines shift the numbers
        return FilePart(rows, np.arange(block.line, block.line + rows.num_rows))

    def _slow(self, block: Block, rejects: Rejects) -> FilePart:
        records, lines = [], []
        for number, line in _lines(block):
            try:
                records.append(self._typed(_record(line, self._written)))
                lines.append(number)
            except StreamproofError as error:
                rejects.add(number, error.what, line.decode("utf-8", "backslashreplace"))
        return FilePart(pa.Table.from_pylist(records, schema=self.fields), np.array(lines, np.int64))

    def _typed(self, record: Record) -> Record:
        """The record with every value as its column's type, or an error that names the column."""
        for name, value in record.items():
            wanted = self.fields.field(name).type
            kind = type_of_value(value)
            if kind == NULL or IN_JSON.get(kind, pa.string()) == wanted:
                continue
            if wanted == pa.float64() and merge_types(kind, FLOAT64) == FLOAT64:
                record[name] = float(value)
                continue
            raise InputError(f'{show_value(value)} in column "{name}" is not of type {wanted}', name="type_mismatch")
        return record


def _lines(block: Block) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(block.data.split(b"\n")[:-1], start=block.line):
        if line.strip():
            yield number, line


def _record(line: bytes, written: frozenset[str] = frozenset()) -> Record:
    document = document_of(line)
    if not isinstance(document, dict):
        raise InputError(f"not an object: {show_value(document)}")
    for name, value in document.items():
        if isinstance(value, dict | list):
            raise InputError(f'the column "{name}" is nested', fix="flatten it first")
    return with_written(document, literally(line), written) if written else document


def _see_fast(block: Block, columns: JsonColumns) -> bool:
    """See the columns of a block, if Arrow can read it as we mean it; else none is seen."""
    try:
        rows = arrow_rows(block.data)
        types = {field.name: json_type(field.type) for field in rows.schema}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
        return False
    if lossy_in_json(block.data, {name for name, kind in types.items() if kind == FLOAT64}):
        return False
    for name in types:
        columns.see_all(name, rows[name])
    return True


def _see_slow(block: Block, columns: JsonColumns, rejects: Rejects) -> None:
    """See the columns of the good lines of a block."""
    for number, line in _lines(block):
        try:
            for name, value in _record(line).items():
                columns.see(name, value)
        except StreamproofError as error:
            rejects.add(number, error.what, None)


def _no_objects(path: Path, rejects: Rejects) -> InputError:
    """The error for a file without a line that can be read."""
    if not rejects.count:
        return InputError("the file has no rows", at=str(path), fix="write one JSON object per line")
    with open_text(path) as file:
        start = file.read(1 << 12).lstrip(b"\xef\xbb\xbf \t\r\n")
    if start.startswith(b"["):
        return InputError("the file is a JSON array", at=str(path), fix="write one object per line: jq -c '.[]' FILE")
    first = rejects.first[0]
    if "nested" in first.why:
        fix = "flatten it first: columns are numbers, text and booleans"
        return InputError(f"every line has a nested column; {first}", at=str(path), fix=fix)
    return InputError(f"no line is a JSON object; {first}", at=str(path), fix="write one flat object per line")
