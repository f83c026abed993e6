"""The rows of a stream in a new order: the bytes of text files as they stand, tables for everything else.

Each piece becomes a sorted run of finished rows; the stream is cut at exact ranks, and each cut is merged from the runs
straight into its place in the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numba import njit

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.external_sort import Cuts, in_order, merged_order, parts_in, parts_of
from streamproof.disorder.ingestion import DelayChoice, arrivals_in
from streamproof.disorder.layout import OFFSET_BITS, FilePiece, SourceLayout
from streamproof.disorder.output import ADDED, EVENT, INGESTION, StreamOutput, by_file, put_times, table_of
from streamproof.disorder.records import Records
from streamproof.events.order import Flags, Ints

_CSV, _JSON = 0, 1


def make_run(
    records: Records, piece: int, choice: DelayChoice, output: StreamOutput, pieces: Sequence[FilePiece]
) -> tuple[int, int]:
    """Sort the rows of a piece by arrival, finished as they will be written; returns the numbers of rows and bytes."""
    store = records.store
    arrivals, delayed = arrivals_in(records, piece, choice)
    keys = 2 * arrivals + delayed
    order = in_order(keys)
    times: Ints = np.asarray(store.get(f"t/{piece}"))[order]
    ids: Ints = np.asarray(store.get(f"id/{piece}"))[order]
    store.put(f"run/key/{piece}", keys[order])
    store.put(f"run/t/{piece}", times)
    lengths = np.asarray(store.get(f"length/{piece}"))[order]
    if output.raw:
        size = _raw_run(store, piece, output.layout, (arrivals[order], times, ids, lengths))
        return len(times), size
    table = table_of(output, pieces, ids, lengths)
    columns = [pa.array(arrivals[order]), pa.array(times), *table.columns]
    names = [*ADDED, *(output.renamed.get(name, name) for name in table.column_names)]
    with pa.ipc.new_file(str(output.work / f"run-{piece}.arrow"), pa.schema(_fields(columns, names))) as file:
        file.write_table(pa.Table.from_arrays(columns, names=names))
    return len(times), 0


def _fields(columns: Sequence[Any], names: Sequence[str]) -> list[pa.Field]:
    return [pa.field(name, column.type) for name, column in zip(names, columns, strict=True)]


def _raw_run(store: ArrayStore, piece: int, layout: SourceLayout, rows: tuple[Ints, Ints, Ints, Any]) -> int:
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
    store.put(f"run/bytes/{piece}", out)
    store.put(f"run/at/{piece}", offsets)
    store.put(f"run/used/{piece}", used)
    return int(used.sum())


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


def merge_raw(store: ArrayStore, number: int, path: Path, at: int, cuts: Cuts) -> int:
    """Merge one stretch of all runs and write it to its place; the highest time in it."""
    parts = parts_of(cuts)
    order = merged_order(store, "run/key", parts)
    starts, pieces, base = [], [], 0
    for p, a, b in parts:
        offsets = store.get(f"run/at/{p}")[a : b + 1]
        pieces.append(np.asarray(store.get(f"run/bytes/{p}")[offsets[0] : offsets[-1]]))
        starts.append(np.asarray(offsets[:-1]) - offsets[0] + base)
        base += int(offsets[-1] - offsets[0])
    sizes = parts_in(store, "run/used", parts)
    target = np.empty(int(sizes.sum()), np.uint8)
    gathered(target, 0, order, np.concatenate(pieces), np.concatenate(starts), sizes)
    with path.open("r+b", buffering=0) as file:
        file.seek(at)
        view = memoryview(target.data)
        while view:
            view = view[file.write(view) :]
    return put_times(store, number, parts, order)


def count_late(store: ArrayStore, number: int, carry: int) -> int:
    """How many events of a slice of the output are out of order."""
    times: Ints = np.asarray(store.get(f"out/t/{number}"))
    highest = np.maximum(np.maximum.accumulate(times), carry)
    before = np.concatenate([[carry], highest[:-1]])
    flags: Flags = times < before
    return int(flags.sum())
