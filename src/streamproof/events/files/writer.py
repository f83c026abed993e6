"""Writing streams and histories: all or nothing, never over a file that you did not say may go, and chunk by chunk.

>>> import tempfile
>>> from streamproof.events.event import Cti, Insert
>>> from streamproof.events.files import read
>>> chunks = [PhysicalStream.from_events([event], schema=Schema()) for event in (Insert("a", 1, 5, {}), Cti(9))]
>>> with tempfile.TemporaryDirectory() as folder:
...     len(read(write_chunks(Schema(), chunks, Path(folder) / "s.parquet")).stream())
2

Law: the file reads back as `write` of all chunks together does.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv
import pyarrow.parquet as pq

from streamproof import extensions
from streamproof.arguments import door
from streamproof.documents import check_name
from streamproof.errors import InfrastructureError, InputError
from streamproof.events.files.binary import with_metadata
from streamproof.events.files.listing import format_of
from streamproof.events.history import History
from streamproof.events.schema import LE, RE, Schema, W, beside, column_name
from streamproof.events.stream import CONTROL, KIND_WORDS, PhysicalStream
from streamproof.events.time import BEGINNING, FOREVER


@contextmanager
def replacing(path: Path, *, overwrite: bool) -> Iterator[Path]:
    """A path to write to; at the end it becomes ``path`` in one step, or nothing happened, whenever a crash comes."""
    check_target(path, overwrite=overwrite)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    except OSError as error:
        what = f"cannot write {path.name}: {error.strerror or error}"
        raise InputError(what, at=str(path), fix="give the path of a file in a folder that can be written to") from None
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        on_disk(temporary)
        if not overwrite:
            check_target(path, overwrite=False)  # it may have come in the meantime
        temporary.replace(path)
        on_disk(path.parent)
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        raise _unwritable(path, _NO_ROOM[error.errno]) from None
    finally:
        temporary.unlink(missing_ok=True)


_NO_ROOM: Final = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your quota is used up",
    errno.EFBIG: "files may not be as large",
    errno.EROFS: "the disk can only be read",
}


def _unwritable(path: Path, why: str) -> InfrastructureError:
    return InfrastructureError(
        f"{path.name} cannot be written: {why}", at=str(path), fix="make room, or choose another place"
    )


def check_target(path: Path, *, overwrite: bool) -> None:
    """Refuse a path that nothing could, or should, be written to: before the work, rather than after it."""
    check_name(path)
    if path.is_dir() or not path.parent.is_dir():
        what = "is a folder" if path.is_dir() else "is in a folder that does not exist"
        raise InputError(f"{path} {what}", at=str(path), fix="give the path of a file in an existing folder")
    if path.exists() and not path.is_file():
        what = f"{path} is a device, a pipe or a socket"
        raise InputError(what, at=str(path), fix="write to a file; without one, results go to standard output")
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists", at=str(path), fix="choose another path, or say overwrite=True (--overwrite)")


def on_disk(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk: a crash now leaves the old file or the new one."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def table_of(content: PhysicalStream | History) -> pa.Table:
    """The rows as a flat table: le, re, w and the payload of a history, or the control columns and the payload."""
    if isinstance(content, History):
        return content.rows if np.any(content.rows[W].to_numpy() != 1) else content.rows.remove_column(W)
    words = pa.array(KIND_WORDS).take(pa.array(content.kinds))
    payload = content.schema.names
    names = [*beside(CONTROL.names, payload), *map(column_name, payload)]
    return content.rows.set_column(0, "kind", words).rename_columns(names)


def write_jsonl(content: PhysicalStream | History, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(content.json_lines())


def write_csv(content: PhysicalStream | History, path: Path) -> None:
    pv.write_csv(table_for_csv(content), path)


def times_in(content: PhysicalStream | History) -> tuple[int, ...]:
    """The places of the columns that hold times, in the flat table."""
    return (LE, RE) if isinstance(content, History) else tuple(map(CONTROL.names.index, ("le", "re", "re_new")))


def table_for_csv(content: PhysicalStream | History) -> pa.Table:
    """The rows as a flat table of what CSV can hold."""
    table, times = table_of(content), times_in(content)
    for index, field in enumerate(table.schema):
        column = table.column(index)
        if index in times:
            table = table.set_column(index, field.name, _times_in_text(column))
        elif pa.types.is_null(field.type):
            table = table.set_column(index, field.name, column.cast(pa.string()))
    # for an empty stretch between others, Arrow would write the memory that it happens to have
    torn = any(not len(part) for column in table.columns for part in column.chunks)
    return table.combine_chunks() if torn else table


def _times_in_text(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers, unless an infinity needs a word."""
    if not pc.any(pc.or_(pc.equal(column, FOREVER), pc.equal(column, BEGINNING))).as_py():
        return column
    text = column.cast(pa.string())
    text = pc.if_else(pc.equal(column, FOREVER), "inf", text)
    return pc.if_else(pc.equal(column, BEGINNING), "-inf", text)


def write_parquet(content: PhysicalStream | History, path: Path) -> None:
    pq.write_table(with_metadata(table_of(content), content.schema), path, write_page_checksum=True)


def write_ipc(content: PhysicalStream | History, path: Path) -> None:
    table = with_metadata(table_of(content), content.schema)
    with pa.ipc.new_file(str(path), table.schema) as file:
        file.write_table(table, max_chunksize=1 << 16)


WRITERS: Final[dict[str, Callable[[PhysicalStream | History, Path], None]]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
    "ipc": write_ipc,
}


Content: TypeAlias = PhysicalStream | History
Append: TypeAlias = Callable[[Content], None]


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


def write_chunks(
    schema: Schema,
    chunks: Iterable[PhysicalStream],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    overwrite: bool = False,
) -> Path:
    """Write the chunks of a stream; the file appears whole or not at all. Gives the path it was written to."""
    if format_of(Path(path), format, "sinks") not in APPENDING:
        # a sink of another package takes the stream as a whole
        return write(PhysicalStream.concat(chunks, schema=schema), path, format=format, overwrite=overwrite)
    with appending(schema, path, format=format, overwrite=overwrite) as append:
        for chunk in chunks:
            append(chunk)
    return Path(os.path.realpath(path))


@contextmanager
def appending(
    schema: Schema,
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    overwrite: bool = False,
) -> Iterator[Append]:
    """What writes chunk after chunk; the file appears at the end, and not at all where something fails."""
    place = Path(os.path.realpath(path))
    kind = format_of(place, format, "sinks")
    if kind not in APPENDING:
        raise InputError(f"events cannot be written to {kind} chunk by chunk", fix=f"use {', '.join(APPENDING)}")
    empty = PhysicalStream.empty(schema)
    with replacing(place, overwrite=overwrite) as temporary, APPENDING[kind](temporary, empty) as append:
        yield append


@contextmanager
def _jsonl(path: Path, empty: Content) -> Iterator[Append]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda chunk: file.writelines(chunk.json_lines())


@contextmanager
def _csv(path: Path, empty: Content) -> Iterator[Append]:
    with path.open("wb") as file:
        pv.write_csv(table_for_csv(empty), file)
        rows_only = pv.WriteOptions(include_header=False)

        def append(chunk: Content) -> None:
            if len(chunk):
                pv.write_csv(table_for_csv(chunk), file, rows_only)

        yield append


@contextmanager
def _parquet(path: Path, empty: Content) -> Iterator[Append]:
    with pq.ParquetWriter(path, _table(empty).schema, write_page_checksum=True) as writer:
        yield lambda chunk: writer.write_table(_table(chunk))


@contextmanager
def _ipc(path: Path, empty: Content) -> Iterator[Append]:
    with pa.ipc.new_file(str(path), _table(empty).schema) as writer:
        yield lambda chunk: writer.write_table(_table(chunk), max_chunksize=1 << 16)


def _table(chunk: Content) -> pa.Table:
    return with_metadata(table_of(chunk), chunk.schema)


APPENDING: Final[dict[str, Callable[[Path, Content], AbstractContextManager[Append]]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "ipc": _ipc,
}
"""What writes chunks to a new file, by format; it takes an empty chunk, which has the columns."""
