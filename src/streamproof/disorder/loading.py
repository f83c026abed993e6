"""A source as times on a shelf: read piece by piece, with what could not be read counted and kept."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from streamproof.disorder.config import SourceConfig
from streamproof.disorder.layout import PIECE_BYTES, Layout, Piece, pieces_of, plan_layout
from streamproof.disorder.records import LOWEST
from streamproof.disorder.rows import Scanned, scan_piece
from streamproof.disorder.runner import Runner
from streamproof.disorder.shelf import Shelf
from streamproof.errors import InputError
from streamproof.events.files.rejects import opened_anew


@dataclass(frozen=True)
class Loaded:
    """A source that has been read once."""

    layout: Layout
    pieces: Sequence[Piece]
    scans: Sequence[Scanned]
    shelf: Shelf

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
        before = np.maximum.accumulate([LOWEST, *(scan.highest for scan in self.scans)])
        return [int(value) for value in before[:-1]]

    def reject_lines(self) -> list[str]:
        """The rejected rows as JSON lines, each with its line in its file."""
        lines: list[str] = []
        base, file = 0, -1
        for number, (piece, scan) in enumerate(zip(self.pieces, self.scans, strict=True)):
            if piece.file != file:
                base, file = 1 + self.layout.has_header, piece.file
            if scan.rejected:
                text = np.asarray(self.shelf.get(f"rejects/{number}")).tobytes().decode()
                lines += [self._numbered(line, base, piece) for line in text.split("\n") if line]
            base += scan.lines
        return lines

    def _numbered(self, line: str, base: int, piece: Piece) -> str:
        document = json.loads(line)
        document["line"] += base
        if len(self.layout.files) > 1:
            document = {"file": piece.path.name, **document}
        return json.dumps(document, ensure_ascii=False)

    def write_rejects(self, path: Path, *, overwrite: bool = False) -> None:
        """Write the rejected rows, if there are any, to a new file."""
        if self.rejected:
            with opened_anew(path, ours=overwrite) as file:
                file.writelines(f"{line}\n" for line in self.reject_lines())


def load(
    source: SourceConfig, runner: Runner, work: Path, shelf: Shelf, *, arrival: int | str | None = None,
    hashes: bool = False, most_bytes: int = PIECE_BYTES,
) -> Loaded:  # fmt: skip
    """Read a source; where quoted fields seem to contain line breaks, whichever reading rejects fewer rows."""
    layout = plan_layout(source, arrival=arrival, work=work)
    found = _scan(layout, runner, shelf, hashes, most_bytes)
    open_quotes = sum(scan.reasons.get("quote", 0) for scan in found.scans)
    if open_quotes and source.multiline is None:
        other = _scan(replace(layout, multiline=True), runner, shelf, hashes, most_bytes)
        found = other if other.rejected < found.rejected else _scan(layout, runner, shelf, hashes, most_bytes)
    if not found.rows:
        raise _nothing(found)
    return found


def _scan(layout: Layout, runner: Runner, shelf: Shelf, hashes: bool, most_bytes: int) -> Loaded:
    pieces = pieces_of(layout, at_least=runner.width, most_bytes=most_bytes)
    calls = [(shelf, number, layout, piece, hashes) for number, piece in enumerate(pieces)]
    return Loaded(layout, pieces, runner.each(_scan_piece, calls), shelf)


def _scan_piece(shelf: Shelf, number: int, layout: Layout, piece: Piece, hashes: bool) -> Scanned:
    return scan_piece(shelf, number, layout, piece, hashes=hashes)


def _nothing(found: Loaded) -> InputError:
    lines = found.reject_lines()
    if not lines:
        return InputError(
            "the source holds no events", at=str(found.layout.named), fix="give a file with at least one event"
        )
    first = json.loads(lines[0])
    fix = "check the time column, the separator and the header"
    if "finer than" in first["why"]:
        fix = "give a finer unit: --unit us, or sourceTimeUnit"
    return InputError(
        f"none of the {len(lines)} rows could be read; the first: {first['why']}",
        at=f"{found.layout.named.name}, line {first['line']}", fix=fix,
    )  # fmt: skip
