"""What a made stream looks like: its format, its header, the names of its columns, and rows that change their format.

Rows that keep their format keep their bytes; `writing` copies them. Others go through Arrow tables, piece by piece.
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

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.external_sort import Cuts, Parts, merged_order, parts_in, parts_of
from streamproof.disorder.hashing import Bytes
from streamproof.disorder.layout import OFFSET_BITS, FilePiece, SourceLayout
from streamproof.events.order import Ints

INGESTION: Final = "ingestion_time"
EVENT: Final = "event_time"
ADDED: Final = (INGESTION, EVENT)


@dataclass(frozen=True, kw_only=True)
class StreamOutput:
    """What the rows become: ``raw`` rows keep their bytes, others go through tables."""

    layout: SourceLayout
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


def renamed_columns(layout: SourceLayout, sample: bytes) -> dict[str, str]:
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


def by_file(ids: Ints) -> list[tuple[int, Ints]]:
    """Which rows come from which file."""
    files = ids >> OFFSET_BITS
    return [(int(file), np.flatnonzero(files == file)) for file in np.unique(files)]


def put_times(store: ArrayStore, number: int, parts: Parts, order: Ints) -> int:
    """Keep the event times in their new order, so that the result can be measured."""
    times = parts_in(store, "run/t", parts)[order]
    store.put(f"out/t/{number}", times)
    return int(times.max())


def table_of(output: StreamOutput, pieces: Sequence[FilePiece], ids: Ints, lengths: Any) -> pa.Table:
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


def _text_rows(output: StreamOutput, text: bytes) -> pa.Table:
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


def _parquet_rows(path: Path, pieces: Sequence[FilePiece], file: int, rows: Ints) -> pa.Table:
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


def merge_tables(store: ArrayStore, number: int, output: StreamOutput, cuts: Cuts) -> int:
    """Merge one stretch of all runs into a table of its own; the highest time in it."""
    parts = parts_of(cuts)
    order = merged_order(store, "run/key", parts)
    tables = []
    for p, a, b in parts:
        with pa.memory_map(str(output.work / f"run-{p}.arrow")) as file:
            tables.append(pa.ipc.open_file(file).read_all().slice(a, b - a))
    whole = pa.concat_tables(tables, promote_options="permissive").take(pa.array(order))
    with pa.ipc.new_file(str(output.work / f"slice-{number}.arrow"), whole.schema) as target:
        target.write_table(whole)
    return put_times(store, number, parts, order)


def join_tables(output: StreamOutput, path: Path, slices: int) -> None:
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


def _slice(output: StreamOutput, number: int) -> pa.Table:
    return pa.ipc.open_file(str(output.work / f"slice-{number}.arrow")).read_all()


def _csv_text(output: StreamOutput, table: pa.Table) -> bytes:
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
