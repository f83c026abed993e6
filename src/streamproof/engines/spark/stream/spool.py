"""Files that Spark cannot read as events, written as Parquet in our own layout, by our own readers.

A folder is taken file by file, in the order in which the files were written (by time, then by name). Files that come
later are taken when the folder is looked at again. Parts carry the digest of the file that they are made of, and count
when its record is in the ledger: what a crash left unfinished is removed and done again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from streamproof.engines.sealed import fitting
from streamproof.engines.spark.stream.checkpoint import ANEW
from streamproof.engines.spark.stream.ledger import Entry, Ledger, Part, digest_of_file
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.metadata import with_metadata
from streamproof.events.files.writer import table_of
from streamproof.events.schema import FLOAT64, INT64, NULL, STRING, Schema
from streamproof.events.stream import CONTROL, PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.thresholds import SPOOLED

LONGEST: Final = 200  # bytes of a name that another one is made of
_FIRST_TIME: Final = 1e9  # seconds; Spark takes files in the order of their times
_PART: Final = re.compile(r"[0-9]{6,}-[0-9a-f]{12}-[0-9]{6,}\.parquet")


def spool(ledger: Ledger, files: Sequence[Path], mapping: ColumnMapping | None, schema: Schema | None = None) -> None:
    """The events of new files as Parquet files.

    Without a schema, that of the first file with rows is the one of all. With one, files need not have events: a part
    without rows tells Spark the columns. Rows that cannot be read are in `rejected`.
    """
    ledger.folder.mkdir(parents=True, exist_ok=True)
    _remove_unfinished(ledger)
    for file in files:
        entry = ledger.entry_of(file)
        first = next((entry for entry in ledger.entries if entry.parts), None)
        if schema is None and first is not None:
            _refuse_other_types(file, mapping, first)
        known = _schema_of(first) if schema is None and first is not None else schema
        needs_part = schema is not None and first is None
        ledger.add(_spooled(file, ledger.folder, entry, mapping, known, needs_part=needs_part))
    if not any(entry.parts for entry in ledger.entries):
        name = ledger.entries[0].name if ledger.entries else "it"
        raise InputError(f"there are no events in {name}", at=str(ledger.folder), fix="give files with events")


def rejected(folder: Path) -> dict[Path, int]:
    """The files of rows that could not be read, and how many rows they hold."""
    found = {file: len(file.read_bytes().splitlines()) for file in sorted(folder.glob("*/_*.rejects.jsonl"))}
    return {file: count for file, count in found.items() if count}


def refuse_damaged(ledger: Ledger, already_read: int) -> None:
    """Refuse parts that are not as they were written, among those that are still read: the first tells the columns."""
    first = [part for entry in ledger.entries for part in entry.parts][:1]
    for parts in (first, *(entry.parts for entry in ledger.entries[already_read:])):
        for part in parts:
            place = ledger.folder / part.name
            if not place.is_file():
                raise InputError("the checkpoint has lost a file of its spool", at=str(place), fix=ANEW)
            if place.stat().st_size != part.size or digest_of_file(place) != part.digest:
                raise InputError("a file of the checkpoint's spool is damaged", at=str(place), fix=ANEW)


def _remove_unfinished(ledger: Ledger) -> None:
    """Remove parts of files that are not in the ledger. Had Spark read them, the ledger would have lost a record."""
    known = {part.name for entry in ledger.entries for part in entry.parts}
    left = [file for file in ledger.folder.glob("*.parquet") if file.name not in known]
    for file in left:
        if not _PART.fullmatch(file.name):
            raise InputError("the checkpoint's spool holds a strange file", at=str(file), fix="take it away")
    read_by_spark = _names_in_log(ledger.folder.parents[1] / "sources") if left else ""
    for file in left:
        if file.name in read_by_spark:
            raise InputError("the checkpoint has lost the record of a file that was read", at=str(file), fix=ANEW)
        file.unlink()
    for file in ledger.folder.glob(".*.part"):
        file.unlink()


def _names_in_log(folder: Path) -> str:
    """All that Spark notes of the files that it has read."""
    files = [file for file in folder.rglob("*") if file.is_file() and not file.name.startswith(".")]
    return "\n".join(file.read_text(encoding="utf-8", errors="replace") for file in files)


def _spooled(
    file: Path,
    folder: Path,
    entry: Entry,
    mapping: ColumnMapping | None,
    schema: Schema | None,
    *,
    needs_part: bool,
) -> Entry:
    name = file.name if len(file.name.encode()) <= LONGEST else f"{entry.number:06}"
    rejects = folder / f"_{name}.rejects.jsonl"
    rejects.unlink(missing_ok=True)
    reader = read(file, mapping=mapping, schema=schema, chunk_rows=SPOOLED.now, rejects=rejects)
    tables = _tables(reader)
    if reader.makes_ids:
        tables = (_apart(table, entry.number) for table in tables)
    parts = []
    if needs_part:
        tables = _at_least_one(tables, reader.schema)
    for number, table in enumerate(tables):
        target = folder / f"{entry.number:06}-{entry.digest[:12]}-{number:06}.parquet"
        write_whole(with_metadata(table, reader.schema), target)
        parts.append(Part(target.name, target.stat().st_size, digest_of_file(target)))
        moment = _FIRST_TIME + 1000 * entry.number + number / 1000
        os.utime(target, (moment, moment))
    if digest_of_file(file) != entry.digest:
        raise InputError(f"{file.name} changed while it was read", at=str(file), fix="give it when it is whole")
    columns = tuple((name, str(kind)) for name, kind in reader.schema) if parts else ()
    return replace(entry, schema=columns, unit=reader.schema.unit, parts=tuple(parts), rejects=rejects.name)


def _tables(reader: Reader) -> Iterator[pa.Table]:
    for chunk in reader:
        if chunk.kinds.tolist() == [2] and chunk.rows["le"][0].as_py() == FOREVER:
            continue  # the reader adds it to files without CTIs; the end is told when all sources are read
        yield _without_nulls(table_of(chunk))


def _at_least_one(tables: Iterator[pa.Table], schema: Schema) -> Iterator[pa.Table]:
    first = next(tables, None)
    yield _without_nulls(table_of(PhysicalStream.from_events([], schema=schema))) if first is None else first
    yield from tables


def _schema_of(entry: Entry) -> Schema:
    """The schema of what is spooled already, so that all files of a folder have one."""
    with fitting("file record"):
        return Schema.of(list(entry.schema), unit=entry.unit)  # type: ignore[arg-type]  # one of the units


def _refuse_other_types(file: Path, mapping: ColumnMapping | None, first: Entry) -> None:
    """Refuse a file in which a column that no schema declares is of another type: values would change, or be lost."""
    known = _schema_of(first)
    for name, kind in read(file, mapping=mapping).schema:
        if name in known and kind not in (NULL, known[name]) and (kind, known[name]) != (INT64, FLOAT64):
            raise InputError(
                f'the column "{name}" is {kind} in {file.name} and {known[name]} in {first.name}',
                at=str(file),
                fix=f'declare its type with the source: source("S", {{"{name}": "{STRING}", …}})',
                name="type_mismatch",
            )


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


def write_whole(table: pa.Table, file: Path) -> None:
    """A Parquet file that is there whole or not at all."""
    temporary = file.with_name(f".{file.name}.part")
    pq.write_table(table, temporary)
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(file)
