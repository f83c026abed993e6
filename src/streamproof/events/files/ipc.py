"""Arrow IPC, in the file or the stream format."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from streamproof.errors import InputError
from streamproof.events.files.metadata import read_metadata
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import Part, columns_of


class IpcFile:
    """An Arrow IPC file."""

    word = "row"

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fields = next(self._batches(), None) or pa.schema([])
        columns_of(self.fields.names)
        self.metadata = read_metadata(self.fields, path)

    def _batches(self) -> Iterator[pa.Schema | pa.RecordBatch]:
        """The schema, then the batches."""
        try:
            with pa.memory_map(str(self._path)) as file:
                if file.read(6) == b"ARROW1":
                    file.seek(0)
                    reader = pa.ipc.open_file(file)
                    yield reader.schema
                    yield from (reader.get_batch(i) for i in range(reader.num_record_batches))
                else:
                    file.seek(0)
                    stream = pa.ipc.open_stream(file)
                    yield stream.schema
                    yield from stream
        except pa.ArrowInvalid as error:
            raise InputError(f"not an Arrow file: {error}", at=str(self._path), fix="check its format") from None

    def parts(self, rejects: Rejects) -> Iterator[Part]:
        row = 1
        for batch in self._batches():
            if isinstance(batch, pa.RecordBatch):
                yield Part(pa.Table.from_batches([batch]), np.arange(row, row + batch.num_rows))
                row += batch.num_rows
