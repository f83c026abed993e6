"""Reading single rows again, to show them."""

from __future__ import annotations

import csv
import json

import pyarrow.parquet as pq

from streamproof.disorder.layout import OFFSET_BITS
from streamproof.disorder.loading import Loaded


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
    return next(csv.reader([text], delimiter=chr(layout.separator)))[layout.key]


def _parquet_value(loaded: Loaded, file: int, place: int, name: str) -> object:
    pieces = [piece for piece in loaded.pieces if piece.file == file and piece.first_row <= place]
    last = pieces[-1]
    table = pq.ParquetFile(last.path).read_row_groups([last.start], columns=[name])
    return table.column(0)[place - last.first_row].as_py()
