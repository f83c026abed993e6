"""Reading a file in chunks, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from streamproof.errors import InputError
from streamproof.events.encode import cti
from streamproof.events.files.listing import FileSet, files_at
from streamproof.events.files.rejects import Reject, Rejects
from streamproof.events.history import History
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import FOREVER, Unit

FileState: TypeAlias = "tuple[tuple[Path, int, int, int, int], ...] | None"


def state_of(found: FileSet) -> FileState:
    """What changes when a file is written to, cut, replaced or added to a folder; nothing if one is gone."""
    try:
        about = [(path, path.stat()) for path in found.files]
    except FileNotFoundError:
        return None
    return tuple((path, at.st_dev, at.st_ino, at.st_size, at.st_mtime_ns) for path, at in about)


class EventFile(Protocol):
    """A file of one format, or several as one."""

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
        source: EventFile,
        found: FileSet,
        *,
        claim: Mapping[str, object],
        rejects: Path | None,
        on_rows: Callable[[int], None] | None,
        state: FileState = None,
    ) -> None:
        self._source = source
        self.claim = claim  # how the file is read, as far as its events depend on it
        self._found = found
        self._state = state  # of the files, before anything looked at them
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
    def files(self) -> tuple[Path, ...]:
        """The files that are read, in their order."""
        return self._found.files

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

    def continues(self) -> None:
        """Say that the file of rejects was made by the run that this one continues, so that it may be replaced."""
        self._rejects.ours = True

    @property
    def first_rejects(self) -> list[Reject]:
        """The first rows that could not be read, with the reasons."""
        return self._rejects.first

    def __iter__(self) -> Iterator[PhysicalStream]:
        self.rows_read = 0
        self._rejects = rejects = Rejects(self._rejects_path, word=self._source.word, ours=self._rejects.ours)
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
        self._refuse_changed()
        if rejects.count and not events:
            raise rejects.error(self._found.named)
        if self._source.complete:
            yield cti(self.schema, FOREVER)

    def read_elsewhere(self, rows: int, rejected: Iterable[tuple[int, Mapping[str, Any]]]) -> None:
        """Other processes have read the files, with readers like this: what they rejected is counted and written here.

        ``rejected`` has for each row the number of its file, and what a file of rejects says of it.
        """
        word = self._source.word
        self._rejects = rejects = Rejects(self._rejects_path, word=word, ours=self._rejects.ours)
        try:
            for number, one in rejected:
                rejects.file = self._found.name_of(self.files[number]) if self._found.several else None
                rejects.add(one[word], one["why"], one["row"])
        finally:
            rejects.close()
        self.rows_read = rows
        if self._on_rows is not None:
            self._on_rows(rows)
        self._refuse_changed()

    def _refuse_changed(self) -> None:
        if self._state is None:
            return
        path = self._found.named
        now = files_at(path) if self._found.several else self._found
        if state_of(now) != self._state:
            what = f"{path.name} changed while it was read"
            raise InputError(what, at=str(path), fix="read it when it is whole; or read a copy of it")

    def stream(self) -> PhysicalStream:
        """All events at once."""
        return PhysicalStream.concat(self, schema=self.schema)

    def history(self) -> History:
        """What the events add up to."""
        return to_history(self, schema=self.schema)
