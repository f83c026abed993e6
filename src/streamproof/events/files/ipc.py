"""Arrow IPC, in the file or the stream format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamproof.events.files.damage import checked, readable, refusing_damage
from streamproof.events.files.metadata import read_metadata
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart, columns_of


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
