"""Parquet, read row group by row group."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.events.files.damage import checked, readable, refusing_damage
from streamproof.events.files.metadata import read_metadata
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart, columns_of

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
