"""Files that Spark cannot read as events, written as Parquet in our own layout, by our own readers.

A folder is taken file by file, in the order in which the files were written (by time, then by name). Files that come
later are taken when the folder is looked at again; one that is there already is never taken twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.metadata import with_metadata
from streamproof.events.files.writer import table_of
from streamproof.events.schema import Schema
from streamproof.events.stream import CONTROL
from streamproof.events.time import FOREVER
from streamproof.thresholds import SPOOLED

ENDINGS: Final = (".jsonl", ".ndjson", ".json", ".csv", ".arrow", ".ipc", ".feather", ".arrows")
_FIRST_TIME: Final = 1e9  # seconds; Spark takes files in the order of their times


def readable(folder: Path) -> list[Path]:
    """The files of a folder that can be spooled, in the order in which they were written."""
    files = [
        file for file in folder.iterdir() if file.suffix.lower() in ENDINGS and not file.name.startswith((".", "_"))
    ]
    return sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))


def spool(place: Path, folder: Path, mapping: ColumnMapping | None, schema: Schema | None = None) -> None:
    """The events of a file, or of a folder of files, as Parquet files. What a crash left unfinished is done again.

    Without a schema, that of the first file is the one of all. Rows that cannot be read are in `rejected`.
    """
    files = readable(place) if place.is_dir() else [place]
    if not files:
        raise InputError(f"there are no files of events in {place}", fix="give Parquet, CSV or JSON lines")
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        done = folder / f"_{file.name}.done"
        if not done.exists():
            schema = schema or _schema_of(folder)
            number = len(list(folder.glob("_*.done")))
            schema = _spool_one(file, folder, number, mapping, schema)
            done.touch()


def rejected(folder: Path) -> dict[Path, int]:
    """The files of rows that could not be read, and how many rows they hold."""
    found = {file: len(file.read_bytes().splitlines()) for file in sorted(folder.glob("*/_*.rejects.jsonl"))}
    return {file: count for file, count in found.items() if count}


def _spool_one(file: Path, folder: Path, number: int, mapping: ColumnMapping | None, schema: Schema | None) -> Schema:
    rejects = folder / f"_{file.name}.rejects.jsonl"
    reader = read(file, mapping=mapping, schema=schema, chunk_rows=SPOOLED.now, rejects=rejects)
    tables = _tables(reader)
    if reader.makes_ids:
        tables = (_apart(table, number) for table in tables)
    for part, table in enumerate(tables):
        target = folder / f"{number:06}-{part:06}.parquet"
        write_atomically(with_metadata(table, reader.schema), target)
        moment = _FIRST_TIME + 1000 * number + part / 1000
        os.utime(target, (moment, moment))
    return reader.schema


def _tables(reader: Reader) -> Iterator[pa.Table]:
    for chunk in reader:
        if chunk.kinds.tolist() == [2] and chunk.rows["le"][0].as_py() == FOREVER:
            continue  # the reader adds it to files without CTIs; the end is told when all sources are read
        yield _without_nulls(table_of(chunk))


def _schema_of(folder: Path) -> Schema | None:
    """The schema of what is spooled already, so that all files of a folder have one."""
    first = min(folder.glob("*.parquet"), default=None)
    return None if first is None else read(first).schema


def _apart(table: pa.Table, number: int) -> pa.Table:
    """Ids that a reader gave count within one file; with its number they are good for all."""
    place = CONTROL.names.index("id")
    ids = pc.binary_join_element_wise(pa.scalar(str(number)), table[place], ".")
    return table.set_column(place, table.schema.field(place), ids)


def _without_nulls(table: pa.Table) -> pa.Table:
    """Parquet has no columns of nothing but nulls for Spark; they go as strings."""
    for n, field in enumerate(table.schema):
        if pa.types.is_null(field.type):
            table = table.set_column(n, field.name, pa.nulls(table.num_rows, pa.string()))
    return table


def write_atomically(table: pa.Table, file: Path) -> None:
    """A Parquet file that is there whole or not at all."""
    temporary = file.with_name(f".{file.name}.part")
    pq.write_table(table, temporary)
    temporary.replace(file)
