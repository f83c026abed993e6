"""Reading a file in chunks, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from streamproof.events.encode import cti
from streamproof.events.files.rejects import Reject, Rejects
from streamproof.events.history import History
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER, Unit


class Source(Protocol):
    """A file of one format."""

    word: str  # what its rows are called: line or row
    schema: Schema
    complete: bool  # it has no CTIs of its own: everything is known once it is read

    def chunks(self, rejects: Rejects) -> Iterator[tuple[PhysicalStream, int]]:
        """The events in order, and of how many good rows each chunk is."""


class Reader:
    """The events of a file, chunk by chunk; it can be read more than once.

    Rows that cannot be read are counted in ``rejected`` and kept out. A file of which no row can be read is an error.
    """

    def __init__(
        self,
        source: Source,
        path: Path,
        *,
        claim: Mapping[str, object],
        rejects: Path | None,
        on_rows: Callable[[int], None] | None,
    ) -> None:
        self._source = source
        self.claim = claim  # how the file is read, as far as its events depend on it
        self._path = path
        self._rejects_path = rejects
        self._rejects = Rejects()
        self._on_rows = on_rows
        self.rows_read = 0  # rows of the file so far, with the rejected ones

    @property
    def schema(self) -> Schema:
        return self._source.schema

    @property
    def unit(self) -> Unit | None:
        """How long a tick is."""
        return self._source.schema.unit

    @property
    def makes_ids(self) -> bool:
        """Whether every event is an insert with an id of the reader's own making."""
        return bool(getattr(self._source, "makes_ids", False))

    @property
    def rejected(self) -> int:
        """How many rows could not be read, in the last or the running pass."""
        return self._rejects.count

    @property
    def rejects(self) -> Path | None:
        """Where the rows that could not be read are written."""
        return self._rejects_path

    @property
    def first_rejects(self) -> list[Reject]:
        """The first rows that could not be read, with the reasons."""
        return self._rejects.first

    def __iter__(self) -> Iterator[PhysicalStream]:
        self.rows_read = 0
        self._rejects = rejects = Rejects(self._rejects_path, word=self._source.word)
        good, events = 0, 0
        try:
            for chunk, rows in self._source.chunks(rejects):
                good, events = good + rows, events + len(chunk)
                self.rows_read = good + rejects.count
                if self._on_rows is not None:
                    self._on_rows(self.rows_read)
                if len(chunk):
                    yield chunk
        finally:
            rejects.close()
        self.rows_read = good + rejects.count
        if rejects.count and not events:
            raise rejects.error(self._path)
        if self._source.complete:
            yield cti(self.schema, FOREVER)

    def stream(self) -> PhysicalStream:
        """All events at once."""
        return PhysicalStream.concat(self, schema=self.schema)

    def history(self) -> History:
        """What the events add up to."""
        return to_history(self, schema=self.schema)
