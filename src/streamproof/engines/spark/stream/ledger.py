"""The files of a source that a checkpoint has taken: what each was then, in one small sealed file for each.

A file is known by its name. One that is new is taken, whatever its time says; one that is no longer what it was is
refused, because what was read of it cannot be told from what was not.
"""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from streamproof.engines.claims import Claim, refuse_other
from streamproof.engines.sealed import fitting, opened_json, sealed_json, write_atomically
from streamproof.engines.spark.stream.checkpoint import ANEW, SAME
from streamproof.errors import InputError

KIND: Final = "file record"
VERSION: Final = 1
PARQUET: Final = (".parquet", ".pq")
LINES: Final = (".jsonl", ".ndjson", ".json", ".csv")
SPOOLED: Final = (*LINES, ".arrow", ".ipc", ".feather", ".arrows")
COMPRESSED: Final = (".gz", ".bz2", ".zst", ".xz", ".lz4", ".snappy", ".zip", ".tar", ".tgz")
RENAME: Final = "write a file under another name (.part), and rename it when it is whole"
_RECORD: Final = re.compile(r"_([0-9]{6,})\.json")
_BLOCK: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SpooledFile:
    """A Parquet file that was made of a source's file."""

    name: str
    size: int
    digest: str


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A file that was taken."""

    number: int
    name: str
    size: int
    time: int  # when it was written, in ns
    digest: str
    read_as: Mapping[str, Any]  # the place and the mapping that were given
    columns: tuple[str, ...]  # its columns, with their types where the format has types
    schema: tuple[tuple[str, str], ...] = ()  # of its events, where it was spooled and has any
    unit: str | None = None
    parts: tuple[SpooledFile, ...] = ()
    rejects: str = ""  # the file of rows that could not be read


@dataclass(frozen=True, slots=True)
class Listing:
    """What lies in a place: files of events in the order in which they were written, and what is none."""

    files: tuple[Path, ...]
    skipped: tuple[Path, ...] = ()

    @property
    def is_parquet(self) -> bool:
        return bool(self.files) and self.files[0].suffix in PARQUET

    @staticmethod
    def of(place: Path) -> Listing:
        """The files of a folder, or a file. What would be left out though it may hold events is refused."""
        if not place.exists():
            raise InputError(f"{place} does not exist", fix="check the path of the input")
        if not place.is_dir():
            _refuse_odd(place)
            return Listing((place,))
        files, skipped = [], []
        for file in place.iterdir():
            if file.is_dir() and not file.name.startswith((".", "_")):
                raise InputError("folders in a folder are not read", at=str(file), fix="give each a source of its own")
            if file.name.startswith((".", "_")) or (file.is_file() and not _holds_events(file)):
                skipped.append(file)
            else:
                files.append(file)
        if not files:
            more = f"; not read: {', '.join(sorted(file.name for file in skipped)[:3])}" if skipped else ""
            raise InputError(f"there are no files of events in {place}{more}", fix="give Parquet, CSV or JSON lines")
        kinds = {file.suffix in PARQUET: file.name for file in sorted(files)}
        if len(kinds) > 1:
            text = f"the folder holds Parquet files and others: {kinds[True]} and {kinds[False]}"
            raise InputError(text, at=str(place), fix="give files of one kind; streamproof convert makes them")
        order = sorted(files, key=lambda file: (file.stat().st_mtime_ns, file.name))
        return Listing(tuple(order), tuple(sorted(skipped)))


def _holds_events(file: Path) -> bool:
    """Whether a file is one of events. One without content is not there yet; others may be no business of ours."""
    if file.suffix.lower() in COMPRESSED:
        raise InputError("compressed files are not read", at=str(file), fix="unpack it, or take it out of the folder")
    known = file.suffix.lower() in (*PARQUET, *SPOOLED)
    if known:
        _refuse_odd(file)
    return known and file.stat().st_size > 0


def _refuse_odd(file: Path) -> None:
    if file.suffix.lower() in PARQUET and file.suffix not in PARQUET:
        raise InputError("the ending of a Parquet file is written in small letters", at=str(file), fix="rename it")


class FileLedger:
    """The files of one source that were taken, in the folder that a checkpoint has for it."""

    def __init__(self, folder: Path, read_as: Claim) -> None:
        self.folder, self._read_as = folder, read_as
        self.entries = list(_entries(folder)) if folder.is_dir() else []
        for entry in self.entries[:1]:
            at = str(folder)
            refuse_other(entry.read_as, read_as, saved="the checkpoint", running="this run", at=at, fix=SAME)

    def add(self, entry: FileRecord) -> None:
        """Note that a file is taken: the step that makes it count."""
        self.folder.mkdir(parents=True, exist_ok=True)
        data = sealed_json(asdict(entry), kind=KIND, version=VERSION)
        write_atomically(self.folder / f"_{entry.number:06}.json", data)
        self.entries.append(entry)

    def new(self, listing: Listing) -> list[Path]:
        """The files that were not taken yet; one that is not what it was is an error."""
        known = {entry.name: entry for entry in self.entries}
        for file in listing.files:
            if file.name in known:
                _refuse_changed(file, known[file.name])
        return [file for file in listing.files if file.name not in known]

    def entry_of(self, file: Path) -> FileRecord:
        """What there is to note of a new file. It has the columns of the others, or is refused."""
        about, digest = file.stat(), digest_of_file(file)
        self._refuse_renamed(file, digest)
        place = (file.name, about.st_size, about.st_mtime_ns, digest)
        entry = FileRecord(len(self.entries), *place, self._read_as, columns_of(file))
        if self.entries:
            _refuse_other_columns(file, self.entries[0], entry)
        return entry

    def _refuse_renamed(self, file: Path, digest: str) -> None:
        """Refuse what was read under a name that is gone; a file without events may well be like another."""
        for entry in self.entries:
            is_some = bool(entry.parts) or file.suffix in PARQUET
            if is_some and entry.digest == digest and not (file.parent / entry.name).exists():
                raise InputError(
                    f"{file.name} was read before, as {entry.name}: with a new name it would be read again",
                    at=str(file),
                    fix=f"give it its name again, or take it away; or {ANEW}",
                )


def _entries(folder: Path) -> Iterator[FileRecord]:
    names = sorted(file.name for file in folder.iterdir() if _RECORD.fullmatch(file.name))
    for number, name in enumerate(names):
        file = folder / name
        document = opened_json(file.read_bytes(), kind=KIND, version=VERSION, at=str(file), fix=ANEW)
        with fitting(KIND, at=str(file)):
            entry = _entry(document)
        if entry.number != number or name != f"_{number:06}.json":
            raise InputError(f"the checkpoint has lost the record of file {number}", at=str(folder), fix=ANEW)
        yield entry


def _entry(document: dict[str, Any]) -> FileRecord:
    given = {name: document[name] for name in FileRecord.__dataclass_fields__}
    pairs = tuple((name, kind) for name, kind in given["schema"])
    parts = tuple(SpooledFile(**part) for part in given["parts"])
    return FileRecord(**{**given, "columns": tuple(given["columns"]), "schema": pairs, "parts": parts})


def _refuse_changed(file: Path, entry: FileRecord) -> None:
    about = file.stat()
    if (about.st_size, about.st_mtime_ns) == (entry.size, entry.time):
        return
    if about.st_size == entry.size and digest_of_file(file) == entry.digest:
        return  # it was touched, or replaced by its like
    how = "was replaced"
    if about.st_size > entry.size and digest_of_file(file, entry.size) == entry.digest:
        how = f"has grown from {entry.size:,} to {about.st_size:,} bytes"
    elif about.st_size < entry.size:
        how = f"has shrunk from {entry.size:,} to {about.st_size:,} bytes"
    raise InputError(
        f"{file.name} {how} since it was read",
        at=str(file),
        fix=f"put back what it was, and give what is new as a new file; or {ANEW}",
    )


def refuse_unfinished(file: Path) -> None:
    """Refuse lines of text of which the last has no end: in a folder that grows, somebody may still be writing it.

    A JSON object that is whole needs no end of line.
    """
    if file.suffix.lower() not in LINES:
        return
    with file.open("rb") as lines:
        lines.seek(-min(_BLOCK, file.stat().st_size), os.SEEK_END)
        last = lines.read().rpartition(b"\n")[2]
    if not last.strip(b"\0\r") or (file.suffix.lower() != ".csv" and _is_json(last)):
        return
    text = f"{file.name} ends within a line, and its folder is one that grows"
    raise InputError(text, at=str(file), fix=f"end its last line; or, if it is still being written, {RENAME}")


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def digest_of_file(file: Path, length: int | None = None) -> str:
    """The digest of a file, or of its first bytes."""
    state, left = blake2b(digest_size=16), length
    with file.open("rb") as opened_file:
        while block := opened_file.read(_BLOCK if left is None else min(_BLOCK, left)):
            state.update(block)
            left = None if left is None else left - len(block)
    return state.hexdigest()


def columns_of(file: Path) -> tuple[str, ...]:
    """The columns of a file in the order of their names; of JSON lines, which have none of their own, nothing."""
    ending = file.suffix.lower()
    if ending in PARQUET:
        return _typed(parquet_schema(file))
    if ending in (".arrow", ".ipc", ".feather", ".arrows"):
        try:
            with pa.OSFile(str(file)) as source:
                kind = pa.ipc.open_stream if ending == ".arrows" else pa.ipc.open_file
                return _typed(kind(source).schema)
        except (pa.ArrowException, OSError):
            return ()  # our reader says what is wrong with it
    if ending == ".csv":
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
            return tuple(sorted(next(csv.reader([lines.readline(1 << 16)]), [])))
    return ()


def parquet_schema(file: Path) -> pa.Schema:
    """The columns of a Parquet file, if it is one."""
    try:
        return pq.read_schema(file)
    except (pa.ArrowException, OSError) as error:
        text = f"{file.name} is no whole Parquet file: {str(error).splitlines()[0][:200]}"
        raise InputError(text, at=str(file), fix=f"take it away, or {RENAME}") from None


def _typed(schema: pa.Schema) -> tuple[str, ...]:
    return tuple(sorted(f"{field.name} {field.type}" for field in schema))


def _refuse_other_columns(file: Path, first: FileRecord, entry: FileRecord) -> None:
    if entry.columns == first.columns:
        return
    more = [name for name in entry.columns if name not in first.columns]
    less = [name for name in first.columns if name not in entry.columns]
    has = [f"{word} {_shown(names)}" for word, names in (("has", more), ("has no", less)) if names]
    raise InputError(
        f"{file.name} has other columns than {first.name}: it {' and '.join(has)}",
        at=str(file),
        fix="give all files of a source the same columns, in any order",
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
