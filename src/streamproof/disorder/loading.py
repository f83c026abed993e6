"""A source as times in an array store: read piece by piece, with what could not be read counted and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from streamproof.disorder.array_store import ArrayStore
from streamproof.disorder.config import SourceConfig
from streamproof.disorder.layout import (
    OFFSET_BITS,
    PIECE_BYTES,
    FilePiece,
    SourceLayout,
    cells_of,
    pieces_of,
    plan_layout,
)
from streamproof.disorder.records import prefix_maxima
from streamproof.disorder.rows import Scanned, read_bytes, scan_piece
from streamproof.disorder.runner import Runner
from streamproof.errors import InputError
from streamproof.events.files.rejects import Rejects


@dataclass(frozen=True)
class LoadedSource:
    """A source that has been read once."""

    layout: SourceLayout
    pieces: Sequence[FilePiece]
    scans: Sequence[Scanned]
    store: ArrayStore

    @property
    def rows(self) -> int:
        return sum(scan.rows for scan in self.scans)

    @property
    def rejected(self) -> int:
        return sum(scan.rejected for scan in self.scans)

    @property
    def naive(self) -> int:
        return sum(scan.naive for scan in self.scans)

    @property
    def nulls(self) -> int:
        return sum(scan.nulls for scan in self.scans)

    def carries(self) -> list[int]:
        """The latest time before each piece."""
        return prefix_maxima([scan.highest for scan in self.scans])

    def tell_rejects(self, rejects: Rejects) -> None:
        """Add the rows that could not be read, each with its line in its file."""
        base, file = 0, -1
        for number, (piece, scan) in enumerate(zip(self.pieces, self.scans, strict=True)):
            if piece.file != file:
                base, file = 1 + self.layout.has_header, piece.file
            if scan.rejected:
                rejects.file = self.layout.shown[file] if len(self.layout.files) > 1 else None
                text = np.asarray(self.store.get(f"rejects/{number}")).tobytes().decode()
                for line in text.split("\n")[:-1]:
                    found = json.loads(line)
                    rejects.add(base + found["line"], found["why"], found["row"])
            base += scan.lines

    def write_rejects(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the rejected rows, if there are any, to a new file."""
        rejects = Rejects(path, ours=overwrite)
        try:
            self.tell_rejects(rejects)
        finally:
            rejects.close()


def load(
    source: SourceConfig, runner: Runner, work: Path, store: ArrayStore, *, arrival: int | str | None = None,
    hashes: bool = False, most_bytes: int = PIECE_BYTES,
) -> LoadedSource:  # fmt: skip
    """Read a source; where quoted fields seem to contain line breaks, whichever reading rejects fewer rows."""
    layout = plan_layout(source, arrival=arrival, work=work)
    found = _scan(layout, runner, store, hashes, most_bytes)
    open_quotes = sum(scan.reasons.get("quote", 0) for scan in found.scans)
    if open_quotes and source.multiline is None:
        other = _scan(replace(layout, multiline=True), runner, store, hashes, most_bytes)
        found = other if other.rejected < found.rejected else _scan(layout, runner, store, hashes, most_bytes)
    if not found.rows:
        raise _nothing(found)
    return found


def _scan(layout: SourceLayout, runner: Runner, store: ArrayStore, hashes: bool, most_bytes: int) -> LoadedSource:
    pieces = pieces_of(layout, at_least=runner.width, most_bytes=most_bytes)
    calls = [(store, number, layout, piece, hashes) for number, piece in enumerate(pieces)]
    return LoadedSource(layout, pieces, runner.each(_scan_piece, calls), store)


def _scan_piece(store: ArrayStore, number: int, layout: SourceLayout, piece: FilePiece, hashes: bool) -> Scanned:
    return scan_piece(store, number, layout, piece, hashes=hashes)


def _nothing(found: LoadedSource) -> InputError:
    rejects = Rejects()
    found.tell_rejects(rejects)
    if not rejects.count:
        return InputError(
            "the source holds no events", at=str(found.layout.named), fix="give a file with at least one event"
        )
    error = rejects.error(found.layout.named)
    error.fix = "check the time column, the separator and the header"
    if "finer than" in rejects.first[0].why:
        error.fix = "give a finer unit: --unit us, or sourceTimeUnit"
    return error


def key_of_row(loaded: LoadedSource, row: int, length: int) -> str:
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


def place_of_row(loaded: LoadedSource | None, row: int) -> str:
    """Where a row stands, for people: its line, or its number in a table; and in which file, if there are several."""
    file, place = row >> OFFSET_BITS, row & ((1 << OFFSET_BITS) - 1)
    if loaded is None:
        return f"partition {file}, row {place}"
    layout = loaded.layout
    within = f"{layout.shown[file]}, " if len(layout.files) > 1 else ""
    if layout.format == "parquet":
        return f"{within}row {place}"
    return f"{within}line {_line(loaded, file, place):,}"


def _line(loaded: LoadedSource, file: int, place: int) -> int:
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


def _parquet_value(loaded: LoadedSource, file: int, place: int, name: str) -> object:
    pieces = [piece for piece in loaded.pieces if piece.file == file and piece.first_row <= place]
    last = pieces[-1]
    table = pq.ParquetFile(last.path).read_row_groups([last.start], columns=[name])
    return table.column(0)[place - last.first_row].as_py()
