"""Writing a stream chunk by chunk: as long as you like, in the memory of one chunk.

>>> import tempfile
>>> from streamproof.events.files import read
>>> from streamproof.events.stream import Cti, Insert
>>> chunks = [PhysicalStream.from_events([event], schema=Schema()) for event in (Insert("a", 1, 5, {}), Cti(9))]
>>> with tempfile.TemporaryDirectory() as folder:
...     len(read(write_chunks(Schema(), chunks, Path(folder) / "s.parquet")).stream())
2

Law: the file reads back as `write` of all chunks together does.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.csv as pv
import pyarrow.parquet as pq

from streamproof.events.files import format_of, write
from streamproof.events.files.metadata import with_metadata
from streamproof.events.files.writer import replacing, table_for_csv, table_of
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream

Append: TypeAlias = Callable[[PhysicalStream], None]


def write_chunks(
    schema: Schema,
    chunks: Iterable[PhysicalStream],
    path: str | Path,
    *,
    format: str | None = None,  # noqa: A002  # the word users know
    overwrite: bool = False,
) -> Path:
    """Write the chunks of a stream; the file appears whole or not at all. Gives the path it was written to."""
    place = Path(os.path.realpath(path))
    kind = format_of(place, format, "sinks")
    if kind not in _APPENDING:  # a sink of another package takes the stream as a whole
        return write(PhysicalStream.concat(chunks, schema=schema), path, format=format, overwrite=overwrite)
    with replacing(place, overwrite=overwrite) as temporary, _APPENDING[kind](temporary, schema) as append:
        for chunk in chunks:
            append(chunk)
    return place


@contextmanager
def _jsonl(path: Path, schema: Schema) -> Iterator[Append]:
    with path.open("w", encoding="utf-8") as file:
        yield lambda chunk: file.writelines(chunk.json_lines())


@contextmanager
def _csv(path: Path, schema: Schema) -> Iterator[Append]:
    with path.open("wb") as file:
        pv.write_csv(table_for_csv(PhysicalStream.empty(schema)), file)
        rows_only = pv.WriteOptions(include_header=False)
        yield lambda chunk: pv.write_csv(table_for_csv(chunk), file, rows_only)


@contextmanager
def _parquet(path: Path, schema: Schema) -> Iterator[Append]:
    with pq.ParquetWriter(path, _table(PhysicalStream.empty(schema)).schema, write_page_checksum=True) as writer:
        yield lambda chunk: writer.write_table(_table(chunk))


@contextmanager
def _ipc(path: Path, schema: Schema) -> Iterator[Append]:
    with pa.ipc.new_file(str(path), _table(PhysicalStream.empty(schema)).schema) as writer:
        yield lambda chunk: writer.write_table(_table(chunk), max_chunksize=1 << 16)


def _table(chunk: PhysicalStream) -> pa.Table:
    return with_metadata(table_of(chunk), chunk.schema)


_APPENDING: Final[dict[str, Callable[[Path, Schema], AbstractContextManager[Append]]]] = {
    "jsonl": _jsonl,
    "csv": _csv,
    "parquet": _parquet,
    "ipc": _ipc,
}
