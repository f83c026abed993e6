"""JSON lines of your own: one flat object per line, its keys are the columns.

A block of lines is parsed by Arrow; if anything in it is unusual, line by line instead, so that every bad line is known
by its number.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.json as pj

from streamproof.errors import InputError, StreamproofError
from streamproof.events.files.jsonl import IN_JSON, Block, blocks, document_of, json_type, one_block
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import Part
from streamproof.events.notation import merge_types, show_value, type_of_value
from streamproof.events.schema import FLOAT64, NULL, Type

Record = dict[str, Any]


class RecordsFile:
    """A file of flat JSON objects, one per line."""

    word = "line"
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path, *, block_bytes: int = 1 << 23) -> None:
        self._path = path
        self._block_bytes = block_bytes
        types: dict[str, Type] = {}
        for block in blocks(path, block_bytes):
            for name, kind in (_types_fast(block) or _types_slow(block)).items():
                types[name] = merge_types(types.get(name, NULL), kind) or types[name]
        if not types:
            raise InputError("no line holds a JSON object with columns", at=str(path), fix="write one object per line")
        self.fields = pa.schema([(name, IN_JSON.get(kind, pa.string())) for name, kind in types.items()])

    def parts(self, rejects: Rejects) -> Iterator[Part]:
        for block in blocks(self._path, self._block_bytes):
            yield self._fast(block) or self._slow(block, rejects)

    def _fast(self, block: Block) -> Part | None:
        options = pj.ParseOptions(explicit_schema=self.fields, unexpected_field_behavior="error")
        try:
            rows = pj.read_json(BytesIO(block.data), read_options=one_block(len(block.data)), parse_options=options)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if rows.num_rows != block.data.count(b"\n") or rows.schema != self.fields:
            return None  # blank lines shift the numbers
        return Part(rows, np.arange(block.line, block.line + rows.num_rows))

    def _slow(self, block: Block, rejects: Rejects) -> Part:
        records, lines = [], []
        for number, line in _lines(block):
            try:
                records.append(self._typed(_record(line)))
                lines.append(number)
            except StreamproofError as error:
                rejects.add(number, error.what, line.decode("utf-8", "backslashreplace"))
        return Part(pa.Table.from_pylist(records, schema=self.fields), np.array(lines, np.int64))

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


def _record(line: bytes) -> Record:
    document = document_of(line)
    if not isinstance(document, dict):
        raise InputError(f"not an object: {show_value(document)}")
    for name, value in document.items():
        if isinstance(value, dict | list):
            raise InputError(f'the column "{name}" is nested', fix="flatten it first")
    return document


def _types_fast(block: Block) -> dict[str, Type] | None:
    try:
        rows = pj.read_json(BytesIO(block.data), read_options=one_block(len(block.data)))
        return {field.name: json_type(field.type) for field in rows.schema}
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
        return None


def _types_slow(block: Block) -> dict[str, Type]:
    """The types that the good lines of a block have; where two do not agree the first one wins."""
    types: dict[str, Type] = {}
    for _, line in _lines(block):
        try:
            kinds = {name: type_of_value(value) for name, value in _record(line).items()}
        except StreamproofError:
            continue
        for name, kind in kinds.items():
            types[name] = merge_types(types.get(name, NULL), kind) or types[name]
    return types
