"""JSON lines: the physical notation (kind, id, le, re, re_new, payload, t) or the history notation (le, re, payload).

A block of lines is parsed by Arrow; if anything in it is unusual, it is parsed line by line instead, so that every bad
line is known by its number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from streamproof.errors import InputError, StreamproofError
from streamproof.events.event import Cti, Event, read_event, typed
from streamproof.events.files.binary import checked
from streamproof.events.files.columns import JsonColumns, json_type, literally, with_written
from streamproof.events.files.listing import open_text
from streamproof.events.files.rejects import Faults, Rejects
from streamproof.events.files.values import lossy_in_json, number, typed_column, whole_number
from streamproof.events.notation import show_value
from streamproof.events.order import Flags, ints, one_array
from streamproof.events.schema import BOOL, FLOAT64, INT64, NULL, STRING, Schema, Type
from streamproof.events.stream import CTI, INSERT, KIND_WORDS, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER, Unit, one_unit

_TIMES: Final = ("le", "re", "re_new", "t")
_INF: Final = re.compile(rb'("(?:le|re|re_new)"\s*:\s*)"(-?)inf"')
_CTI_INF: Final = re.compile(rb'^(\s*\{\s*"kind"\s*:\s*"cti"\s*,\s*"t"\s*:\s*)"(-?)inf"', re.MULTILINE)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ODD: Final = re.compile(rb"\n[ \t\r\xef\xbb\xbf]*[\nn]")  # a line that is blank, or null
IN_JSON: Final = {INT64: pa.int64(), FLOAT64: pa.float64(), STRING: pa.string(), BOOL: pa.bool_(), NULL: pa.null()}


class _Unusual(Exception):
    """A block that Arrow cannot parse as we mean it."""


class Block(NamedTuple):
    """Whole lines, and the number of the first."""

    data: bytes
    line: int


class JsonLines:
    """A file of JSON lines."""

    word = "line"

    def __init__(
        self, path: Path, *, schema: Schema | None, unit: Unit | None, prefix: str = "", block_bytes: int = 1 << 23
    ) -> None:
        self._path = path
        self._prefix = prefix  # of the ids that are made for lines: it says which of several files
        self._block_bytes = block_bytes
        self._declared = schema
        self._unit = one_unit({"the source": schema.unit if schema else None, "read()": unit})
        self.columns = JsonColumns()
        has_kind = has_id = False
        for block in self._blocks():
            has_id |= b'"id"' in block.data or b"\\u" in block.data  # also where a column is called that
            kinds = _see_fast(block, self.columns)
            has_kind |= _see_slow(block, self.columns) if kinds is None else kinds
        self.makes_ids = not has_kind and not has_id  # whether every event is an insert with an id that is made here
        self.complete = not has_kind  # the file is a history
        self.settle(self.columns)

    def settle(self, columns: JsonColumns) -> None:
        """Read the file with its own columns, or those that it shares with others, unless the schema is declared."""
        self._written = frozenset[str]() if self._declared else columns.written
        self.schema = Schema(self._declared.columns if self._declared else tuple(columns.types.items()), self._unit)

    def chunks(self, rejects: Rejects) -> Iterator[tuple[PhysicalStream, int]]:
        """The events of each block, and of how many good lines they are."""
        for block in self._blocks():
            try:
                if self._written:
                    raise _Unusual
                stream = _parse(block, self.schema, self._prefix)
                yield stream, len(stream)
            except (_Unusual, pa.ArrowInvalid, pa.ArrowNotImplementedError):
                stream = PhysicalStream.from_events(self._lines(block, rejects), schema=self.schema)
                yield stream, len(stream)

    def _lines(self, block: Block, rejects: Rejects) -> Iterator[Event]:
        for place, line in enumerate(block.data.split(b"\n")[:-1], start=block.line):
            if not line.strip():
                continue
            try:
                yield typed(_event(line, f"{self._prefix}{place}", self._written), self.schema)
            except StreamproofError as error:
                rejects.add(place, error.what, line.decode("utf-8", "backslashreplace"))

    def _blocks(self) -> Iterator[Block]:
        return blocks(self._path, self._block_bytes)


def blocks(path: Path, size: int) -> Iterator[Block]:
    """The file in blocks of whole lines, each of about ``size`` bytes."""
    number = 1
    with open_text(path) as file:
        while data := file.read(size):
            data += file.readline()
            if number == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            data = data if data.endswith(b"\n") else data + b"\n"
            yield Block(data, number)
            number += data.count(b"\n")


def document_of(line: bytes) -> object:
    """What one line says, or an error that says what is wrong with it."""
    try:
        document = json.loads(
            line.decode("utf-8"), parse_int=whole_number, parse_float=number, object_pairs_hook=_unique
        )
        if _SURROGATE.search(line):
            json.dumps(document, ensure_ascii=False, default=str).encode()
        return document
    except UnicodeEncodeError:
        raise InputError("half of a surrogate pair is no character") from None
    except UnicodeDecodeError as error:
        raise InputError(f"not UTF-8: byte {error.start} is {line[error.start]:#04x}") from None
    except json.JSONDecodeError as error:
        raise InputError(f"not JSON: {error.msg} at column {error.colno}") from None
    except RecursionError:
        raise InputError("not an event: nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise InputError(f'the key "{twice}" is there twice')
    return document


def _event(line: bytes, number: int | str, written: frozenset[str] = frozenset()) -> Event:
    document = document_of(line)
    if not isinstance(document, dict):
        raise InputError(f"not an event: {show_value(document)}", fix='write {"kind": …, "id": …, "le": …, "re": …}')
    if written and isinstance(document.get("payload"), dict):
        document["payload"] = with_written(document["payload"], literally(line)["payload"], written)
    return read_event(document, number)


def _see_slow(block: Block, columns: JsonColumns) -> bool:
    """See the columns of the good lines of a block; whether any line has a kind."""
    has_kind = False
    for place, line in enumerate(block.data.split(b"\n")[:-1], start=block.line):
        try:
            event = _event(line, place)
            payload = {} if isinstance(event, Cti) else event.payload
            if any(isinstance(value, dict | list) for value in payload.values()):
                continue
        except StreamproofError:
            continue
        has_kind |= b'"kind"' in line and "kind" in json.loads(line)
        for name, value in payload.items():
            columns.see(name, value)
    return has_kind


def _see_fast(block: Block, columns: JsonColumns) -> bool | None:
    """The same if Arrow can read the block as we mean it; else nothing, and no column was seen."""
    try:
        table = _table(block, None)
        types = {field.name: json_type(field.type) for field in _payload_type(table)}
    except (_Unusual, pa.ArrowInvalid, pa.ArrowNotImplementedError, InputError):
        return None
    if lossy_in_json(block.data, {name for name, kind in types.items() if kind == FLOAT64}):
        return None
    if types:
        flat = pa.Table.from_struct_array(table["payload"])
        for name in types:
            columns.see_all(name, flat[name])
    return bool(table["kind"].null_count < table.num_rows)


def _table(block: Block, payload: pa.Schema | None) -> pa.Table:
    """The lines as a table of the fields of an event."""
    data = _INF.sub(_infinity, block.data) if b'inf"' in block.data else block.data
    data = _CTI_INF.sub(_infinity, data) if b'inf"' in data else data
    fields = [("kind", pa.string()), ("id", pa.string()), *((name, pa.int64()) for name in _TIMES)]
    if payload is not None:
        fields.append(("payload", pa.struct(list(payload))))
    options = pj.ParseOptions(explicit_schema=pa.schema(fields), unexpected_field_behavior="infer")
    table = arrow_rows(data, options)
    if table.num_rows != data.count(b"\n") or len(table.schema) > len(fields) + (payload is None):
        raise _Unusual
    if {"t", "re_new"} & {field.name for field in _payload_type(table)}:
        raise _Unusual  # the replacement of "inf" could have hit the payload
    return table


def arrow_rows(data: bytes, options: pj.ParseOptions | None = None) -> pa.Table:
    """A row for each line, as Arrow reads them; not where one is `null`: Arrow makes a row of it, or dies."""
    if _ODD.search(b"\n" + data):
        raise pa.ArrowInvalid("a line without an object")
    once = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
    try:
        data.decode()  # Arrow does not look at names
    except UnicodeDecodeError:
        raise pa.ArrowInvalid("not UTF-8") from None
    return checked(pj.read_json(BytesIO(data), read_options=once, parse_options=options))


def _infinity(match: re.Match[bytes]) -> bytes:
    return match.group(1) + match.group(2) + str(FOREVER).encode()


def _payload_type(table: pa.Table) -> pa.StructType | list[pa.Field]:
    if "payload" not in table.schema.names:
        return []
    kind = table.schema.field("payload").type
    if not pa.types.is_struct(kind) and not pa.types.is_null(kind):
        raise _Unusual
    return kind if pa.types.is_struct(kind) else []


def _parse(block: Block, schema: Schema, prefix: str = "") -> PhysicalStream:
    """The block as Arrow parses it; `_Unusual` if any line needs a closer look."""
    if any(kind.kind == "null" for _, kind in schema):
        raise _Unusual  # Arrow would take any value for null
    wanted = pa.schema([(name, IN_JSON.get(kind, pa.string())) for name, kind in schema])
    table = _table(block, wanted)
    if len(_payload_type(table)) != len(wanted):
        raise _Unusual
    kind = _kinds(table)
    _check(table, kind)
    payload = _payload(table, schema)
    le = pc.if_else(pa.array(kind == CTI), table["t"], table["le"])
    numbers = pa.array(np.arange(block.line, block.line + table.num_rows)).cast(pa.string())
    made = pc.binary_join_element_wise(f"#{prefix}", numbers, "")
    ids = pc.if_else(pa.array(kind == INSERT), pc.coalesce(table["id"], made), table["id"])
    columns = [pa.array(kind), ids, le, table["re"], table["re_new"], *payload]
    return PhysicalStream(schema, pa.Table.from_arrays(columns, schema=PhysicalStream.arrow_schema(schema)))


def _kinds(table: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    words = pc.fill_null(table["kind"], "insert")
    codes = pc.index_in(words, value_set=pa.array(KIND_WORDS))
    if codes.null_count:
        raise _Unusual
    return ints(codes).astype(np.int8)


def _check(table: pa.Table, kind: np.ndarray[tuple[int], np.dtype[np.int8]]) -> None:
    """Every kind has its own fields, and times are within bounds."""
    needed = {"le": kind != CTI, "re": kind != CTI, "t": kind == CTI, "re_new": kind == 1}
    for name, where in needed.items():
        if not np.array_equal(_valid(table[name]), where):
            raise _Unusual
        values = ints(table[name])
        if np.any((values < BEGINNING) | (values > FOREVER)):
            raise _Unusual
    ids = _valid(table["id"])
    if np.any(ids & (kind == CTI)) or np.any(~ids & (kind == 1)):
        raise _Unusual
    if "payload" in table.schema.names and np.any(_valid(table["payload"]) == (kind == CTI)):
        raise _Unusual


def _valid(column: pa.ChunkedArray) -> Flags:
    flags: Flags = column.is_valid().to_numpy()
    return flags


def _payload(table: pa.Table, schema: Schema) -> list[pa.ChunkedArray]:
    if not schema.columns:
        return []
    flat = pa.Table.from_struct_array(table["payload"])
    if any(kind == FLOAT64 and pc.any(pc.is_inf(flat[name])).as_py() for name, kind in schema):
        raise _Unusual  # the word, or a number beyond all doubles
    return [_typed(flat[name], kind) for name, kind in schema]


def _typed(column: pa.ChunkedArray, kind: Type) -> pa.ChunkedArray:
    faults = Faults()
    found = typed_column(one_array(column), "", kind, faults)
    if faults.why:
        raise _Unusual
    return found
