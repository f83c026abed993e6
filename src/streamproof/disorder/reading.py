"""Reading single rows again, to show them."""

from __future__ import annotations

import json

import pyarrow.parquet as pq

from streamproof.disorder.layout import OFFSET_BITS, cells_of
from streamproof.disorder.loading import Loaded
from streamproof.disorder.rows import read_bytes


def key_of_row(loaded: Loaded, row: int, length: int) -> str:
    """The key of one row."""
    layout = loaded.layout
    assert layout.key is not None
    file, place = row >> OFFSET_BITS, row & ((1 << OFFSET_BITS) - 1)
    name = layout.names[layout.key]
    if layout.format == "parquet":
        return str(_parquet_value(loaded, file, place, name))
    with layout.files[file].open("rb") as source:
        source.seek(place)
        text = source.read(length).decode("utf-8", errors="backslashreplace").rstrip("\r\n")
    if layout.format == "jsonl":
        return str(json.loads(text).get(name))
    cells = cells_of(text, chr(layout.separator)) or text.split(chr(layout.separator))
    return cells[layout.key]


def place_of_row(loaded: Loaded | None, row: int) -> str:
    """Where a row stands, for people: its line, or its number in a table; and in which file, if there are several."""
    file, place = row >> OFFSET_BITS, row & ((1 << OFFSET_BITS) - 1)
    if loaded is None:
        return f"partition {file}, row {place}"
    layout = loaded.layout
    within = f"{layout.files[file].name}, " if len(layout.files) > 1 else ""
    if layout.format == "parquet":
        return f"{within}row {place}"
    return f"{within}line {_line(loaded, file, place):,}"


def _line(loaded: Loaded, file: int, place: int) -> int:
    """The line, counted from 1, that starts at a byte."""
    line = 1 + loaded.layout.has_header
    for piece, scan in zip(loaded.pieces, loaded.scans, strict=True):
        if piece.file != file:
            continue
        if place >= piece.end:
            line += scan.lines
        elif place >= piece.start:
            return line + int((read_bytes(piece._replace(end=place)) == 10).sum())
    return line


def _parquet_value(loaded: Loaded, file: int, place: int, name: str) -> object:
    pieces = [piece for piece in loaded.pieces if piece.file == file and piece.first_row <= place]
    last = pieces[-1]
    table = pq.ParquetFile(last.path).read_row_groups([last.start], columns=[name])
    return table.column(0)[place - last.first_row].as_py()
