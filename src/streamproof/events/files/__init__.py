"""Streams and histories in files: JSON lines, CSV, Parquet and Arrow IPC.

>>> import tempfile
>>> from streamproof.events.history import History
>>> history = History.from_rows(Schema.of({"v": "int64"}), [(1, 5, {"v": 7})])
>>> with tempfile.TemporaryDirectory() as folder:
...     written = write(history, Path(folder) / "h.parquet")
...     read(written).history() == history
True

Law: what is written reads back equal; CSV and JSON lines need the schema for types that their text does not show.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, Literal, TypeAlias, get_args

from streamproof import extensions
from streamproof.arguments import door
from streamproof.documents import existing
from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.ipc import IpcFile
from streamproof.events.files.jsonl import JsonLines
from streamproof.events.files.mapping import ColumnMapping
from streamproof.events.files.parquet import ParquetFile
from streamproof.events.files.reader import Reader, Source, state_of
from streamproof.events.files.records import RecordsFile
from streamproof.events.files.rejects import Reject, Rejects
from streamproof.events.files.tabular import Rows, Tabular
from streamproof.events.files.writer import WRITERS, replacing
from streamproof.events.history import History
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import Unit

__all__ = ["FORMATS", "ColumnMapping", "Format", "Reader", "Reject", "Rejects", "read", "write"]

Format: TypeAlias = Literal["jsonl", "csv", "parquet", "ipc"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)
_ENDINGS: Final[dict[str, Format]] = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "ipc", ".ipc": "ipc", ".feather": "ipc", ".arrows": "ipc",
}  # fmt: skip
_PACKED: Final = {".gz": "gunzip", ".bz2": "bunzip2", ".xz": "unxz", ".zst": "unzstd", ".zip": "unzip"}


@door
def read(
    path: str | Path,
    *,
    mapping: ColumnMapping | None = None,
    schema: Schema | None = None,
    unit: Unit | None = None,
    format: str | None = None,  # noqa: A002  # the word users know
    rejects: str | Path | None = None,
    chunk_rows: int = 1 << 18,
    on_rows: Callable[[int], None] | None = None,
) -> Reader:
    """The events of a file.

    Files in one of our own layouts need nothing more; any other needs a ``mapping``. Rows that cannot be read are
    counted, and written to ``rejects`` with their line and the reason. ``on_rows`` is told how many rows were read.
    """
    place = _existing(path)
    kind = format_of(place, format, "sources")
    state = state_of(place)
    source: Source
    if kind == "jsonl" and mapping is None:
        source = JsonLines(place, schema=schema, unit=unit)
    else:
        source = Tabular(_rows(place, kind, chunk_rows), mapping=mapping, schema=schema, unit=unit)
    claim = {"format": kind, "mapping": None if mapping is None else asdict(mapping)}
    return Reader(source, place, claim=claim, rejects=_target(rejects, place), on_rows=on_rows, state=state)


@door
def write(
    content: PhysicalStream | History,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    overwrite: bool = False,
) -> Path:
    """Write a stream or a history; the file appears whole or not at all. Gives the path it was written to."""
    place = Path(os.path.realpath(path))
    kind = format_of(place, format, "sinks")
    writer = WRITERS[kind] if kind in WRITERS else extensions.load("sinks", kind)
    with replacing(place, overwrite=overwrite) as temporary:
        writer(content, temporary)
    return place


def format_of(path: Path, given: str | None, point: Literal["sources", "sinks"]) -> str:
    """The format that is given, or that the file's name ends with: one of ours, or of an installed package.

    >>> format_of(Path("quakes.CSV"), None, "sources")
    'csv'
    """
    known = [*FORMATS, *extensions.names(point)]
    if given is not None:
        if given not in known:
            raise InputError(f"unknown format {given!r}", fix=did_you_mean(given, known))
        return given
    ending = path.suffix.lower()
    found = _ENDINGS.get(ending, ending.removeprefix("."))
    if found not in known:
        raise InputError(
            f"cannot tell the format of {path.name!r} by its name",
            at=str(path),
            fix=_way_out(ending, known),
        )
    return found


def _way_out(ending: str, known: Sequence[str]) -> str:
    """What to do about a name that does not end in a format."""
    if ending in _PACKED:
        return f"unpack the file first: {_PACKED[ending]}"
    endings = ", ".join(f".{kind}" for kind in known if kind != "ipc")
    return f'give it a name that ends in {endings} or .arrow; in Python format="csv" says it too'


def _rows(path: Path, kind: str, chunk_rows: int) -> Rows:
    match kind:
        case "jsonl":
            return RecordsFile(path)
        case "csv":
            return CsvFile(path)
        case "parquet":
            return ParquetFile(path, chunk_rows=chunk_rows)
        case "ipc":
            return IpcFile(path)
    rows: Rows = extensions.load("sources", kind)(path)
    return rows


def _existing(path: str | Path) -> Path:
    """The file itself, symbolic links followed."""
    return existing(Path(path))


def _target(rejects: str | Path | None, source: Path) -> Path | None:
    if rejects is None:
        return None
    place = Path(rejects).absolute()  # links stay as they are, and are refused
    is_read = os.path.realpath(place) == os.path.realpath(source)
    if is_read or not place.parent.is_dir():
        what = "is the file that is read" if is_read else "is in a folder that does not exist"
        raise InputError(f"the rejects file {rejects} {what}", at=str(place), fix="choose another path")
    return place
