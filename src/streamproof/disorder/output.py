"""What a made stream looks like: its format, its header, the names of its columns."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from streamproof.disorder.layout import OFFSET_BITS, Layout
from streamproof.disorder.shelf import Shelf
from streamproof.events.order import Ints

INGESTION: Final = "ingestion_time"
EVENT: Final = "event_time"
ADDED: Final = (INGESTION, EVENT)


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


def by_file(ids: Ints) -> list[tuple[int, Ints]]:
    """Which rows come from which file."""
    files = ids >> OFFSET_BITS
    return [(int(file), np.flatnonzero(files == file)) for file in np.unique(files)]


def parts_of(cuts: tuple[Sequence[int], Sequence[int]]) -> list[tuple[int, int, int]]:
    return [(p, a, b) for p, (a, b) in enumerate(zip(*cuts, strict=True)) if b > a]


def put_times(shelf: Shelf, number: int, parts: Sequence[tuple[int, int, int]], order: Ints) -> int:
    """Keep the event times in their new order, so that the result can be measured."""
    times = np.concatenate([shelf.get(f"run/t/{p}")[a:b] for p, a, b in parts])[order]
    shelf.put(f"out/t/{number}", times)
    return int(times.max())
