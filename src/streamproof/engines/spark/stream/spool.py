"""Files that Spark does not read as our own readers do, written by those as Parquet in our own layout: the spool.

Spark reads the Parquet files of which it gives the same times and values (`spark_reads`). It knows fewer types: it has
no unsigned numbers of 64 bits, no nanoseconds and no times of day, and takes a length of time for a number. And where a
schema is declared it would cast what our readers reject.

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
from streamproof.engines.spark.stream.ledger import FileLedger, FileRecord, SpooledFile, digest_of_file
from streamproof.errors import InputError
from streamproof.events.files import ColumnMapping, Reader, read
from streamproof.events.files.binary import with_metadata
from streamproof.events.files.mapping import layout_of
from streamproof.events.files.writer import table_of
from streamproof.events.schema import FLOAT64, INT64, NULL, STRING, Schema, type_of_arrow
from streamproof.events.stream import CONTROL, PhysicalStream
from streamproof.events.time import FOREVER
from streamproof.thresholds import SPOOLED

LONGEST: Final = 200  # bytes of a name that another one is made of
_FIRST_TIME: Final = 1e9  # seconds; Spark takes files in the order of their times
_PART: Final = re.compile(r"[0-9]{6,}-[0-9a-f]{12}-[0-9]{6,}\.parquet")


def spool(
    ledger: FileLedger, files: Sequence[Path], mapping: ColumnMapping | None, schema: Schema | None = None
) -> None:
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


def refuse_damaged(ledger: FileLedger, already_read: int) -> None:
    """Refuse parts that are not as they were written, among those that are still read: the first tells the columns."""
    first = [part for entry in ledger.entries for part in entry.parts][:1]
    for parts in (first, *(entry.parts for entry in ledger.entries[already_read:])):
        for part in parts:
            place = ledger.folder / part.name
            if not place.is_file():
                raise InputError("the checkpoint has lost a file of its spool", at=str(place), fix=ANEW)
            if place.stat().st_size != part.size or digest_of_file(place) != part.digest:
                raise InputError("a file of the checkpoint's spool is damaged", at=str(place), fix=ANEW)


def _remove_unfinished(ledger: FileLedger) -> None:
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
    entry: FileRecord,
    mapping: ColumnMapping | None,
    schema: Schema | None,
    *,
    needs_part: bool,
) -> FileRecord:
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
        parts.append(SpooledFile(target.name, target.stat().st_size, digest_of_file(target)))
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


def _schema_of(entry: FileRecord) -> Schema:
    """The schema of what is spooled already, so that all files of a folder have one."""
    with fitting("file record"):
        return Schema.of(list(entry.schema), unit=entry.unit)  # type: ignore[arg-type]  # one of the units


def _refuse_other_types(file: Path, mapping: ColumnMapping | None, first: FileRecord) -> None:
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


# --- which files Spark reads ------------------------------------------------------------------------------------------


def spark_reads(file: Path, mapping: ColumnMapping | None, declared: Schema | None) -> bool:
    """Whether Spark gives the rows of a file the times and values that our own reader gives them."""
    with pq.ParquetFile(file) as opened:
        fields, columns = opened.schema_arrow, opened.schema
        old = {column.path for column in map(columns.column, range(len(columns))) if column.physical_type == "INT96"}
    layout = mapping or layout_of(fields.names)
    zone = layout.assume_zone
    for name in _times(layout, fields.names):
        if not (_is_whole(fields.field(name).type) or _is_instant(fields.field(name), old, zone)):
            return False
    for role, name in layout.roles(fields.names).items():
        if role == "duration" and not _is_whole(fields.field(name).type):
            return False
    return all(
        _is_known(fields.field(column), old, zone) and _is_as_declared(fields.field(column).type, name, declared)
        for name, column in layout.payload_columns(fields.names).items()
        if declared is None or name in declared
    )


def _times(layout: ColumnMapping, names: list[str]) -> Iterator[str]:
    for role, name in layout.roles(names).items():
        if role in ("start", "end", "new_end", "cti"):
            yield name


def _is_whole(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) and not pa.types.is_uint64(kind)


def _is_instant(field: pa.Field, old: set[str], zone: str | None) -> bool:
    kind = field.type
    if not pa.types.is_timestamp(kind):
        return False
    if field.name in old:  # Spark wrote them so for long, and knows that they are instants
        return zone is None
    return kind.unit in ("ms", "us") and (kind.tz is not None or zone is not None)


def _is_known(field: pa.Field, old: set[str], zone: str | None) -> bool:
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    plain = (
        pa.types.is_boolean, pa.types.is_float32, pa.types.is_float64, pa.types.is_string, pa.types.is_large_string,
        pa.types.is_date32, pa.types.is_decimal128,
    )  # fmt: skip
    return _is_whole(kind) or _is_instant(field, old, zone) or any(is_one(kind) for is_one in plain)


def _is_as_declared(kind: pa.DataType, name: str, declared: Schema | None) -> bool:
    try:
        return declared is None or type_of_arrow(kind) == declared[name]
    except InputError:  # e.g. of local times
        return False
