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
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

from streamproof import extensions
from streamproof.arguments import door
from streamproof.errors import InputError
from streamproof.events.files.binary import IpcFile, ParquetFile
from streamproof.events.files.csv import CsvFile
from streamproof.events.files.jsonl import JsonLines
from streamproof.events.files.listing import FORMATS, FileSet, Format, files_at, format_of_all, read_separator
from streamproof.events.files.mapping import ColumnMapping
from streamproof.events.files.reader import EventFile, Reader, state_of
from streamproof.events.files.records import RecordsFile
from streamproof.events.files.rejects import Reject, Rejects
from streamproof.events.files.several import SeveralStreams, SeveralTables, agreed
from streamproof.events.files.tabular import RowsFile, TabularFile
from streamproof.events.files.writer import write
from streamproof.events.schema import Schema
from streamproof.events.time import Unit

__all__ = ["FORMATS", "ColumnMapping", "Format", "Reader", "Reject", "Rejects", "read", "write"]


@door
def read(
    path: str | Path,
    *,
    mapping: ColumnMapping | None = None,
    schema: Schema | None = None,
    unit: Unit | None = None,
    format: str | None = None,  # noqa: A002  # the word users know
    separator: str = ",",
    header: bool = True,
    rejects: str | Path | None = None,
    chunk_rows: int = 1 << 18,
    on_rows: Callable[[int], None] | None = None,
) -> Reader:
    """The events of a file, of all files in a folder, or of those that match a pattern like ``data/*.csv.gz``.

    Files in one of our own layouts need nothing more; any other needs a ``mapping``. Several files are read as one, in
    the order of their names, and must agree in columns and types. CSV may have another ``separator`` and no ``header``:
    its columns then are c0, c1 and so on. Rows that cannot be read are counted, and written to ``rejects`` with their
    line and the reason. ``on_rows`` is called with the number of rows read so far.
    """
    found = files_at(Path(path))
    kind = format_of_all(found, format)
    text = CsvText(read_separator(separator, "separator"), header)
    _refuse_settings(kind, text, found)
    state = state_of(found)
    source: EventFile
    if kind == "jsonl" and mapping is None:
        source = _streams(found, schema, unit)
    else:
        source = TabularFile(_tables(found, kind, chunk_rows, text), mapping=mapping, schema=schema, unit=unit)
    claim = {"format": kind, "mapping": None if mapping is None else asdict(mapping)}
    claim |= {} if text == CsvText() else text._asdict()
    return Reader(source, found, claim=claim, rejects=_target(rejects, found), on_rows=on_rows, state=state)


class CsvText(NamedTuple):
    """How the text of a CSV file is meant."""

    separator: str = ","
    header: bool = True


def _refuse_settings(kind: str, text: CsvText, found: FileSet) -> None:
    if kind != "csv" and text != CsvText():
        what = f"a separator, or no header, is of CSV files, and {found.named.name} is {kind}"
        raise InputError(what, at=str(found.named), fix="leave them out")


def _streams(found: FileSet, schema: Schema | None, unit: Unit | None) -> EventFile:
    if not found.several:
        return JsonLines(found.files[0], schema=schema, unit=unit)
    files = [
        JsonLines(path, schema=schema, unit=unit, prefix=f"{number}.") for number, path in enumerate(found.files, 1)
    ]
    return SeveralStreams(found, files if schema else agreed(found, files))


def _tables(found: FileSet, kind: str, chunk_rows: int, text: CsvText) -> RowsFile:
    if not found.several:
        return _table(found.files[0], kind, chunk_rows, text)
    if kind == "jsonl":
        return SeveralTables(found, agreed(found, [RecordsFile(path) for path in found.files]))
    return SeveralTables(found, [_table(path, kind, chunk_rows, text) for path in found.files])


def _table(path: Path, kind: str, chunk_rows: int, text: CsvText) -> RowsFile:
    match kind:
        case "jsonl":
            return RecordsFile(path)
        case "csv":
            return CsvFile(path, separator=text.separator, header=text.header)
        case "parquet":
            return ParquetFile(path, chunk_rows=chunk_rows)
        case "ipc":
            return IpcFile(path)
    rows: RowsFile = extensions.load("sources", kind)(path)
    return rows


def _target(rejects: str | Path | None, found: FileSet) -> Path | None:
    if rejects is None:
        return None
    place = Path(rejects).absolute()  # links stay as they are, and are refused
    is_read = Path(os.path.realpath(place)) in found.files
    if is_read or not place.parent.is_dir():
        what = "is the file that is read" if is_read else "is in a folder that does not exist"
        raise InputError(f"the rejects file {rejects} {what}", at=str(place), fix="choose another path")
    return place
