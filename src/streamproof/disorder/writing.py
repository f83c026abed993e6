"""The rows of a stream in a new order: the bytes of text files as they stand, tables for everything else.

Each piece becomes a sorted run of finished rows; the stream is cut at exact ranks, and each cut is merged from the runs
straight into its place in the output.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.json as pj
import pyarrow.parquet as pq
from numba import njit

from streamproof.disorder.hashing import Bytes
from streamproof.disorder.ingestion import Choice, arrivals_in
from streamproof.disorder.layout import OFFSET_BITS, Layout, Piece
from streamproof.disorder.records import Records
from streamproof.disorder.shelf import Shelf
from streamproof.events.order import Flags, Ints
from streamproof.kernels.sorting import order_by

INGESTION: Final = "ingestion_time"
EVENT: Final = "event_time"
ADDED: Final = (INGESTION, EVENT)
_CSV, _JSON = 0, 1


@dataclass(frozen=True, kw_only=True)
class Output:
    """What the rows become: ``raw`` rows keep their bytes, others go through tables."""

    layout: Layout
    format: str
    work: Path
    renamed: dict[str, str]

    @property
    def raw(self) -> bool:
        return self.format == self.layout.format and self.format != "parquet" and not self._rewritten

    @property
    def _rewritten(self) -> bool:
        return self.format == "jsonl" and bool(self.renamed)

    def header(self) -> bytes:
        """The first line of a CSV file whose source has one."""
        if self.format != "csv" or not (self.layout.has_header or not self.raw):
            return b""
        separator = chr(self.layout.separator or ord(","))
        names = [self.renamed.get(name, name) for name in self.layout.names]
        if self.raw and not self.renamed:
            return separator.join(ADDED).encode() + separator.encode() + self.layout.header
        line = io.StringIO()
        csv.writer(line, delimiter=separator, lineterminator="\n").writerow([*ADDED, *names])
        return line.getvalue().encode()


def renamed_columns(layout: Layout, sample: bytes) -> dict[str, str]:
    """Columns of the source that are called as the added ones: they get another name."""
    names = set(layout.names) if layout.format != "jsonl" else {*layout.names, *_members(sample)}
    if layout.format == "csv" and not layout.has_header:
        return {}
    return {name: f"source_{name}" for name in ADDED if name in names}


def _members(sample: bytes) -> set[str]:
    found: set[str] = set()
    for line in sample.splitlines()[:-1][:1000] or sample.splitlines():
        try:
            document = json.loads(line)
        except ValueError:
            continue
        found |= set(document) if isinstance(document, dict) else set()
    return found


def make_run(records: Records, piece: int, choice: Choice, output: Output, pieces: Sequence[Piece]) -> tuple[int, int]:
    """Sort the rows of a piece by arrival, finished as they will be written; how many rows and bytes."""
    shelf = records.shelf
    arrivals, delayed = arrivals_in(records, piece, choice)
    keys = 2 * arrivals + delayed
    order = order_by(keys, np.zeros_like(keys))
    times: Ints = np.asarray(shelf.get(f"t/{piece}"))[order]
    ids: Ints = np.asarray(shelf.get(f"id/{piece}"))[order]
    shelf.put(f"run/key/{piece}", keys[order])
    shelf.put(f"run/t/{piece}", times)
    lengths = np.asarray(shelf.get(f"length/{piece}"))[order]
    if output.raw:
        size = _raw_run(shelf, piece, output.layout, (arrivals[order], times, ids, lengths))
        return len(times), size
    table = _table_of(output, pieces, ids, lengths)
    columns = [pa.array(arrivals[order]), pa.array(times), *table.columns]
    names = [*ADDED, *(output.renamed.get(name, name) for name in table.column_names)]
    with pa.ipc.new_file(str(output.work / f"run-{piece}.arrow"), pa.schema(_fields(columns, names))) as file:
        file.write_table(pa.Table.from_arrays(columns, names=names))
    return len(times), 0


def _fields(columns: Sequence[Any], names: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]


def _raw_run(shelf: Shelf, piece: int, layout: Layout, rows: tuple[Ints, Ints, Ints, Any]) -> int:
    arrivals, times, ids, lengths = rows
    mode = _CSV if layout.format == "csv" else _JSON
    offsets = _sizes(arrivals, times, lengths, mode)
    out = np.empty(int(offsets[-1]), np.uint8)
    words = np.frombuffer(f'{{"{INGESTION}":,"{EVENT}":,'.encode(), np.uint8)
    for file, mine in by_file(ids):
        data = np.memmap(layout.files[file], np.uint8, "r")
        starts = ids[mine] & ((1 << OFFSET_BITS) - 1)
        _fill(out, offsets, mine, arrivals, times, data, starts, lengths, mode, layout.separator, words)
    used = _closed(out, offsets)
    shelf.put(f"run/bytes/{piece}", out)
    shelf.put(f"run/at/{piece}", offsets)
    shelf.put(f"run/used/{piece}", used)
    return int(used.sum())


def by_file(ids: Ints) -> list[tuple[int, Ints]]:
    """Which rows come from which file."""
    files = ids >> OFFSET_BITS
    return [(int(file), np.flatnonzero(files == file)) for file in np.unique(files)]


@njit(cache=True)
def _width(value):  # type: ignore[no-untyped-def]
    size = 1
    if value < 0:
        size, value = 2, -value
    while value >= 10:
        value //= 10
        size += 1
    return size


@njit(cache=True)
def _sizes(arrivals, times, lengths, mode):  # type: ignore[no-untyped-def]
    """Where each finished row starts; one byte more than needed for a line break that may be missing."""
    out = np.zeros(len(times) + 1, np.int64)
    extra = 3 if mode == 0 else 34
    for i in range(len(times)):
        out[i + 1] = out[i] + _width(arrivals[i]) + _width(times[i]) + lengths[i] + extra
    return out


@njit(cache=True)
def _put_number(out, at, value):  # type: ignore[no-untyped-def]
    end = at + _width(value)
    if value < 0:
        out[at] = 45
        value = -value
    place = end
    while True:
        place -= 1
        out[place] = 48 + value % 10
        value //= 10
        if value == 0:
            break
    return end


@njit(cache=True)
def _fill(out, offsets, rows, arrivals, times, data, starts, lengths, mode, separator, words):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Write rows: the two times, then the bytes of the source; unused room at the end of a row is zero."""
    for n in range(len(rows)):
        i = rows[n]
        at, begin, stop = offsets[i], starts[n], starts[n] + lengths[i]
        if mode == 0:
            at = _put_number(out, at, arrivals[i])
            out[at] = separator
            at = _put_number(out, at + 1, times[i])
            out[at] = separator
            at += 1
        else:
            while data[begin] != 123:
                begin += 1
            begin += 1
            while data[begin] == 32:
                begin += 1
            for k in range(18):
                out[at + k] = words[k]
            at = _put_number(out, at + 18, arrivals[i])
            for k in range(14):
                out[at + k] = words[18 + k]
            at = _put_number(out, at + 14, times[i])
            out[at] = 44
            at += 1
        for k in range(begin, stop):
            out[at] = data[k]
            at += 1
        if data[stop - 1] != 10:
            out[at] = 10
            at += 1
        out[at : offsets[i + 1]] = 0


@njit(cache=True)
def _closed(out, offsets):  # type: ignore[no-untyped-def]
    """How many bytes of each row are used: all up to its last line break."""
    used = np.empty(len(offsets) - 1, np.int32)
    for i in range(len(used)):
        end = offsets[i + 1]
        while out[end - 1] == 0:
            end -= 1
        used[i] = end - offsets[i]
    return used


@njit(cache=True)
def gathered(target, at, order, sources, starts, sizes):  # type: ignore[no-untyped-def]  # noqa: PLR0917
    """Copy rows in their final order."""
    for i in order:
        for k in range(starts[i], starts[i] + sizes[i]):
            target[at] = sources[k]
            at += 1
    return at


def merge_raw(shelf: Shelf, number: int, path: Path, at: int, cuts: tuple[Sequence[int], Sequence[int]]) -> int:
    """Merge one stretch of all runs and write it to its place; the highest time in it."""
    parts = _parts(cuts)
    keys = np.concatenate([shelf.get(f"run/key/{p}")[a:b] for p, a, b in parts])
    order = order_by(keys, np.zeros_like(keys))
    starts, pieces, base = [], [], 0
    for p, a, b in parts:
        offsets = shelf.get(f"run/at/{p}")[a : b + 1]
        pieces.append(np.asarray(shelf.get(f"run/bytes/{p}")[offsets[0] : offsets[-1]]))
        starts.append(np.asarray(offsets[:-1]) - offsets[0] + base)
        base += int(offsets[-1] - offsets[0])
    sizes = np.concatenate([shelf.get(f"run/used/{p}")[a:b] for p, a, b in parts])
    target = np.empty(int(sizes.sum()), np.uint8)
    gathered(target, 0, order, np.concatenate(pieces), np.concatenate(starts), sizes)
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        view = memoryview(target.data)
        while view:
            view = view[file.write(view) :]
    return _put_times(shelf, number, parts, order)


def _parts(cuts: tuple[Sequence[int], Sequence[int]]) -> list[tuple[int, int, int]]:
    return [(p, a, b) for p, (a, b) in enumerate(zip(*cuts, strict=True)) if b > a]


def _put_times(shelf: Shelf, number: int, parts: Sequence[tuple[int, int, int]], order: Ints) -> int:
    """Keep the event times in their new order, so that the result can be measured."""
    times = np.concatenate([shelf.get(f"run/t/{p}")[a:b] for p, a, b in parts])[order]
    shelf.put(f"out/t/{number}", times)
    return int(times.max())


def _table_of(output: Output, pieces: Sequence[Piece], ids: Ints, lengths: Any) -> pa.Table:
    """The rows of the source, in the order of ``ids``, as a table."""
    layout = output.layout
    found: list[pa.Table] = []
    places: list[Ints] = []
    for file, mine in by_file(ids):
        rows = ids[mine] & ((1 << OFFSET_BITS) - 1)
        if layout.format == "parquet":
            found.append(_parquet_rows(layout.files[file], pieces, file, rows))
        else:
            data = np.memmap(layout.files[file], np.uint8, "r")
            found.append(_text_rows(output, _lines(data, rows, lengths[mine])))
        places.append(mine)
    if not found:
        return pa.table({name: pa.array([], pa.string()) for name in layout.names})
    table = found[0] if len(found) == 1 else pa.concat_tables(found, promote_options="permissive")
    back = np.empty(len(ids), np.int64)
    back[np.concatenate(places)] = np.arange(len(ids))
    return table.take(pa.array(back)) if len(found) > 1 else table


def _lines(data: Bytes, starts: Ints, lengths: Any) -> bytes:
    sizes = lengths.astype(np.int64)
    target = np.empty(int(sizes.sum()) + len(sizes), np.uint8)
    end = _copied_lines(target, data, starts, sizes)
    return target[:end].tobytes()


@njit(cache=True)
def _copied_lines(target, data, starts, sizes):  # type: ignore[no-untyped-def]
    at = 0
    for i in range(len(starts)):
        for k in range(starts[i], starts[i] + sizes[i]):
            target[at] = data[k]
            at += 1
        if data[starts[i] + sizes[i] - 1] != 10:
            target[at] = 10
            at += 1
    return at


def _text_rows(output: Output, text: bytes) -> pa.Table:
    layout = output.layout
    if layout.format == "jsonl":
        return pj.read_json(pa.BufferReader(text), read_options=pj.ReadOptions(block_size=max(1 << 20, len(text) + 1)))
    return pv.read_csv(
        pa.BufferReader(text),
        read_options=pv.ReadOptions(column_names=list(_distinct(layout.names)), block_size=max(1 << 20, len(text) + 1)),
        parse_options=pv.ParseOptions(
            delimiter=chr(layout.separator),
            quote_char='"' if layout.quote else False,
            newlines_in_values=layout.multiline,
        ),
        convert_options=pv.ConvertOptions(
            column_types=dict.fromkeys(_distinct(layout.names), pa.string()), strings_can_be_null=False, check_utf8=True
        ),
    )


def _distinct(names: Sequence[str]) -> list[str]:
    """Names as they are, a second one of the same name with a number."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return found


def _parquet_rows(path: Path, pieces: Sequence[Piece], file: int, rows: Ints) -> pa.Table:
    """Rows of a Parquet file by number: the row groups that hold them are read, no others."""
    groups = [piece for piece in pieces if piece.file == file]
    firsts = np.array([piece.first_row for piece in groups])
    holders = np.searchsorted(firsts, rows, side="right") - 1
    wanted = np.unique(holders)
    source = pq.ParquetFile(path)
    table = source.read_row_groups([groups[n].start for n in wanted.tolist()])
    sizes = [source.metadata.row_group(groups[n].start).num_rows for n in wanted.tolist()]
    bases = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    places = bases[np.searchsorted(wanted, holders)] + rows - firsts[holders]
    return table.take(pa.array(places))


def merge_tables(shelf: Shelf, number: int, output: Output, cuts: tuple[Sequence[int], Sequence[int]]) -> int:
    """Merge one stretch of all runs into a table of its own; the highest time in it."""
    parts = _parts(cuts)
    keys = np.concatenate([shelf.get(f"run/key/{p}")[a:b] for p, a, b in parts])
    order = order_by(keys, np.zeros_like(keys))
    tables = []
    for p, a, b in parts:
        with pa.memory_map(str(output.work / f"run-{p}.arrow")) as file:
            tables.append(pa.ipc.open_file(file).read_all().slice(a, b - a))
    whole = pa.concat_tables(tables, promote_options="permissive").take(pa.array(order))
    with pa.ipc.new_file(str(output.work / f"slice-{number}.arrow"), whole.schema) as target:
        target.write_table(whole)
    return _put_times(shelf, number, parts, order)


def join_tables(output: Output, path: Path, slices: int) -> None:
    """Write the slices one after the other into one file."""
    schema = pa.unify_schemas([_slice(output, number).schema for number in range(slices)], promote_options="permissive")
    if output.format == "parquet":
        with pq.ParquetWriter(path, schema) as writer:
            for number in range(slices):
                writer.write_table(_slice(output, number).cast(schema))
        return
    with path.open("wb") as file:
        file.write(output.header())
        for number in range(slices):
            table = _slice(output, number)
            file.write(_csv_text(output, table) if output.format == "csv" else _json_text(table))


def _slice(output: Output, number: int) -> pa.Table:
    return pa.ipc.open_file(str(output.work / f"slice-{number}.arrow")).read_all()


def _csv_text(output: Output, table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    separator = chr(output.layout.separator or ord(","))
    for place, column in enumerate(table.columns):
        if pa.types.is_nested(column.type):  # CSV has no such thing: as JSON
            text = [None if value is None else json.dumps(value, default=str) for value in column.to_pylist()]
            table = table.set_column(place, table.column_names[place], pa.array(text, pa.string()))
    pv.write_csv(table, sink, pv.WriteOptions(include_header=False, delimiter=separator, quoting_style="needed"))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]  # pyarrow has no types


def _json_text(table: pa.Table) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in table.to_pylist())
    return "".join(f"{line}\n" for line in lines).encode()


def count_late(shelf: Shelf, number: int, carry: int) -> int:
    """How many events of a slice of the output are out of order."""
    times: Ints = np.asarray(shelf.get(f"out/t/{number}"))
    highest = np.maximum(np.maximum.accumulate(times), carry)
    before = np.concatenate([[carry], highest[:-1]])
    flags: Flags = times < before
    return int(flags.sum())
