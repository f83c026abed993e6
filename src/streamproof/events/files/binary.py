"""Binary files, Parquet and Arrow IPC: checked before anything looks into them, with what we wrote beside the rows.

What is damaged, or made to do harm, is refused in words:

>>> with refusing_damage("Arrow", Path("x.arrow")):
...     raise pa.ArrowInvalid("no magic")
Traceback (most recent call last):
    ...
streamproof.errors.InputError: not an Arrow file, or damaged: no magic
  at: x.arrow
  fix: check its format; if it was whole once, fetch or write it again
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.errors import InputError
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart, columns_of
from streamproof.events.schema import Schema


@contextmanager
def refusing_damage(kind: str, path: Path, where: str = "") -> Iterator[None]:
    """Whatever Arrow says about bytes that it cannot read, as one error. Trouble with the disk is not among it."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        if error.errno is not None:
            raise
        raise _damaged(kind, path, where, error) from None
    except (pa.ArrowException, ValueError, OverflowError, MemoryError) as error:
        raise _damaged(kind, path, where, error) from None


def _damaged(kind: str, path: Path, where: str, error: Exception) -> InputError:
    article = "an" if kind[0] in "AEIOU" else "a"
    first = (str(error).strip().partition("\n")[0] or type(error).__name__)[:200]
    shown = "".join(letter if letter.isprintable() else "·" for letter in first)
    return InputError(
        f"not {article} {kind} file, or damaged: {shown}",
        at=f"{path}{where and f', {where}'}",
        fix="check its format; if it was whole once, fetch or write it again",
    )


def readable(fields: pa.Schema) -> pa.Schema:
    """The columns, if their names and zones are text."""
    for field in fields:
        kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
        _ = field.name, str(kind), kind.tz if pa.types.is_timestamp(kind) else None
    return fields


Rows = TypeVar("Rows", pa.RecordBatch, pa.Table)


def checked(rows: Rows) -> Rows:
    """The rows, if their offsets, lengths, codes and texts are in order; kernels rely on that."""
    rows.validate(full=True)
    return rows


VERSION: Final = "1"
_PREFIX: Final = "streamproof."


def with_metadata(table: pa.Table, schema: Schema) -> pa.Table:
    """The table with the version of its format and the unit of its ticks."""
    return table.replace_schema_metadata({f"{_PREFIX}version": VERSION, f"{_PREFIX}unit": schema.unit or ""})


def read_metadata(fields: pa.Schema, path: Path) -> Mapping[str, str]:
    """What we wrote into the file, nothing for a foreign one; an unknown version is refused."""
    raw = {
        key.decode("utf-8", "replace"): value.decode("utf-8", "replace")
        for key, value in (fields.metadata or {}).items()
        if key.startswith(_PREFIX.encode())
    }
    known = {key.removeprefix(_PREFIX): value for key, value in raw.items()}
    if known and known.get("version") != VERSION:
        raise InputError(
            f"the file has format version {known.get('version')!r}, this program reads version {VERSION}",
            at=str(path),
            fix="read it with the version of streamproof that wrote it, or a newer one",
        )
    return known


BUFFER: Final = 1 << 18  # bytes of a column


class ParquetFile:
    """A Parquet file."""

    word = "row"

    def __init__(self, path: Path, *, chunk_rows: int) -> None:
        self._path = path
        self._chunk_rows = chunk_rows
        with refusing_damage("Parquet", path), self._open() as file:
            self.fields = readable(file.schema_arrow)
            columns_of(self.fields.names)
            self.metadata = read_metadata(self.fields, path)

    def _open(self) -> pq.ParquetFile:
        # what it reads ahead, it would keep until the end; and a column of a row group it would read at once
        return pq.ParquetFile(self._path, pre_buffer=False, buffer_size=BUFFER, page_checksum_verification=True)

    def parts(self, rejects: Rejects) -> Iterator[FilePart]:
        row = 1
        with refusing_damage("Parquet", self._path):
            file = self._open()
        with file:
            batches = file.iter_batches(batch_size=self._chunk_rows)
            while True:
                with refusing_damage("Parquet", self._path, f"after row {row - 1}"):
                    batch = next(batches, None)
                    if batch is None:
                        return
                    checked(batch)
                yield FilePart(pa.Table.from_batches([batch]), np.arange(row, row + batch.num_rows))
                row += batch.num_rows


class IpcFile:
    """An Arrow IPC file."""

    word = "row"

    def __init__(self, path: Path) -> None:
        self._path = path
        with refusing_damage("Arrow", path):
            self.fields = readable(next(self._batches()))
            columns_of(self.fields.names)
            self.metadata = read_metadata(self.fields, path)

    def _batches(self) -> Iterator[pa.Schema | pa.RecordBatch]:
        """The schema, then the batches. They are copies: the file may change while they are looked at."""
        with pa.OSFile(str(self._path)) as file:
            magic = file.read(6)
            file.seek(0)
            if magic == b"ARROW1":
                reader = pa.ipc.open_file(file)
                yield reader.schema
                yield from (checked(reader.get_batch(i)) for i in range(reader.num_record_batches))
            else:
                stream = pa.ipc.open_stream(file)
                yield stream.schema
                yield from map(checked, stream)

    def parts(self, rejects: Rejects) -> Iterator[FilePart]:
        row = 1
        batches = self._batches()
        while True:
            with refusing_damage("Arrow", self._path, f"after row {row - 1}"):
                batch = next(batches, None)
            if batch is None:
                return
            if isinstance(batch, pa.RecordBatch):
                yield FilePart(pa.Table.from_batches([batch]), np.arange(row, row + batch.num_rows))
                row += batch.num_rows
