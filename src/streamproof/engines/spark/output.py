"""A folder of output: which files it is made of, how far it is, and how it is written, merged and read.

One small sealed file, `STATE`, says everything: a file counts because it is named there, with its size and its digest.
Whatever else has a name of ours was left by a run that was killed, or is a stranger.

    batch-000000000000-000000000063   batch-…64-…71   batch-…72   batch-…73        _streamproof.json: batch 73
    └───────── merged twice ────────┘ └─ merged once ┘

Files are merged like the digits of a number that counts up: eight of one level become one of the next, so there are
few, and a row is written again once per level. Large files stay as they are.

A micro-batch is in the folder exactly once, wherever a run is killed:

    1 write and rename the new files     killed here: they are not named in STATE, and the next run removes them
    2 replace STATE, which names them    ── the micro-batch counts from here on; brought again, it is left out
    3 remove the files they replace      killed here: they are named no more, and the next run removes them
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from streamproof.arguments import door
from streamproof.engines.sealed import digest_of, fitting, opened_json, sealed_json, write_atomically
from streamproof.errors import InputError
from streamproof.events.batch import Batch
from streamproof.events.history import History
from streamproof.events.physical import to_history
from streamproof.events.schema import Schema
from streamproof.events.stream import PhysicalStream
from streamproof.events.time import BEGINNING
from streamproof.thresholds import LISTED_FILES, MERGED_BYTES

Content: TypeAlias = Literal["events", "rows", "cht"]
Format: TypeAlias = Literal["parquet", "jsonl"]
Step: TypeAlias = Literal["written", "renamed", "recorded", "removed"]
FANOUT: Final = 8  # files of one level that are merged
STATE: Final = "_streamproof.json"
LETTERS: Final = "_dead_letters"
LISTS: Final = "_files"
KIND: Final = "output"
VERSION: Final = 2
REBUILD: Final = "to rebuild the output, run over the same input with a new checkpoint and a new folder"
_NAME: Final = re.compile(
    rf"(?:(?P<stem>batch|sealed|open)-|{LETTERS}/|{LISTS}/(?P<list>files|letters)-)"
    r"(?P<first>[0-9]{12})(?:-(?P<last>[0-9]{12}))?\.(?P<ending>parquet|jsonl|json)"
)
_STEMS: Final[Mapping[Content, str]] = {"events": "batch", "rows": "batch", "cht": "sealed"}
_ATTEMPTS: Final = 20  # how often a reader tries again while a run writes


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of the output."""

    name: str
    size: int
    digest: str
    level: int = 0  # how often its rows were merged

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last micro-batch in it."""
        return _span(self.name)


OutputFiles: TypeAlias = tuple[OutputFile, ...]


@dataclass(frozen=True, slots=True)
class OutputState:
    """How far a folder is, and what it is made of."""

    run: str
    content: Content
    format: Format
    columns: tuple[tuple[str, str], ...]
    unit: str | None
    batch: int = -1  # the last micro-batch in it
    note: str = ""  # a digest of what Spark noted of that micro-batch
    cti: int = BEGINNING
    frontiers: Mapping[str, int] = field(default_factory=dict)  # the CTI of each bucket
    files: OutputFiles = ()  # in their order; lists of files come first
    open: OutputFiles = ()  # of a history: what may still change
    letters: OutputFiles = ()

    @property
    def schema(self) -> Schema:
        """The schema of the rows."""
        return Schema.of(list(self.columns), unit=self.unit)  # type: ignore[arg-type]  # one of the units

    def as_dict(self) -> dict[str, Any]:
        """The state as plain data."""
        return asdict(self)

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> OutputState:
        """The inverse of `as_dict`; names and numbers that no run writes are refused."""
        given = {name: document[name] for name in OutputState.__dataclass_fields__}
        parts = {name: tuple(OutputFile(**part) for part in given[name]) for name in ("files", "open", "letters")}
        state = OutputState(**{**given, **parts, "columns": tuple((name, kind) for name, kind in given["columns"])})
        _check_names(state)
        return state


def read_state(folder: Path) -> OutputState | None:
    """How far a folder of output is; None if nothing says so."""
    file = folder / STATE
    if not file.exists():
        return None
    document = opened_json(file.read_bytes(), kind=KIND, version=VERSION, at=str(file), fix=REBUILD)
    with fitting(KIND, at=str(file)):
        return OutputState.from_dict(document)


def _check_names(state: OutputState) -> None:
    stem = _STEMS[state.content]
    for kind, parts in (("files", state.files), ("open", state.open), ("letters", state.letters)):
        last = -1
        for part in parts:
            found = _NAME.fullmatch(part.name)
            wanted = {"files": stem, "open": "open", "letters": None}[kind]
            if found is None or (found["list"] != kind and (found["stem"] != wanted or found["list"])):
                raise InputError(f"{part.name!r} is no name of a file of its own", fix=REBUILD)
            first, end = _span(part.name)
            if not last < first <= end <= state.batch:
                raise InputError(f"{part.name!r} is out of order", fix=REBUILD)
            last = end


def _span(name: str) -> tuple[int, int]:
    found = _NAME.fullmatch(name)
    assert found is not None, "names are checked where they are read"
    return int(found["first"]), int(found["last"] or found["first"])


def name_of(stem: str, first: int, last: int, ending: str) -> str:
    """The name of a file: ``stem`` is batch, sealed, open or letters, or that of a list."""
    numbers = f"{first:012}" if first == last else f"{first:012}-{last:012}"
    start = f"{LETTERS}/" if stem == "letters" else f"{stem}-"
    return f"{start}{numbers}.{ending}"


def place_of(folder: Path, name: str) -> Path:
    """Where a file of the output lies: in the folder, and nowhere else."""
    if _NAME.fullmatch(name) is None:
        raise InputError(f"{name!r} is no name of a file of the output", at=str(folder), fix=REBUILD)
    place = folder / name
    if place.parent != folder and place.parent.is_symlink():
        raise InputError(f"{place.parent} leads elsewhere", fix="put a folder into its place")
    return place


def content_of(folder: Path, part: OutputFile) -> bytes:
    """A file as it was written, or an error that names it."""
    place = place_of(folder, part.name)
    if not place.is_file():
        raise InputError("a file of the output is missing", at=str(place), fix=REBUILD)
    data = place.read_bytes()
    if len(data) != part.size or digest_of(data) != part.digest:
        raise InputError("a file of the output is not as it was written", at=str(place), fix=REBUILD)
    return data


def expanded(folder: Path, parts: Sequence[OutputFile]) -> Iterator[OutputFile]:
    """All files, those in lists too."""
    for part in parts:
        if part.name.startswith(f"{LISTS}/"):
            document = json.loads(content_of(folder, part))
            yield from (OutputFile(**one) for one in document)
        else:
            yield part


def _all(folder: Path, state: OutputState) -> tuple[OutputFile, ...]:
    return (*expanded(folder, state.files), *state.open, *expanded(folder, state.letters))


def changed(folder: Path, state: OutputState) -> list[str]:
    """The names of files that are younger than the record of them, and not as it says."""
    moment = (folder / STATE).stat().st_mtime_ns
    younger = [part for part in _all(folder, state) if place_of(folder, part.name).stat().st_mtime_ns > moment]
    return [part.name for part in younger if digest_of(place_of(folder, part.name).read_bytes()) != part.digest]


def missing(folder: Path, state: OutputState) -> list[str]:
    """The names of files that are not there, or have another size, as far as a look at the folder tells."""
    found = []
    for part in _all(folder, state):
        place = place_of(folder, part.name)
        if not place.is_file() or place.stat().st_size != part.size:
            found.append(part.name)
    return found


def leftovers(folder: Path, state: OutputState) -> list[str]:
    """The files with names of ours that do not count: what a run that was killed had written or not yet removed.

    Any other file with such a name, or with the ending of the output, is a stranger and refused.
    """
    known = {part.name for part in (*_all(folder, state), *state.files, *state.letters)}
    merged = {kind: [part.span for part in expanded(folder, getattr(state, kind)) if part.level] for kind in _KINDS}
    found = []
    for name in _names(folder, state.format):
        if name not in known:
            if not _is_ours(name, state, merged):
                text = "the folder of the output holds a file that no run recorded"
                raise InputError(text, at=str(folder / name), fix="take it away, if it is not yours; or " + REBUILD)
            found.append(name)
    return found


_KINDS: Final = ("files", "letters")


def _names(folder: Path, ending: str) -> Iterator[str]:
    """The files that could be taken for output."""
    for place in sorted(folder.iterdir()):
        if place.name.startswith((".", "_")):
            continue
        if _NAME.fullmatch(place.name) or place.suffix == f".{ending}":
            yield place.name
    for inner in (LETTERS, LISTS):
        if (folder / inner).is_dir():
            yield from sorted(f"{inner}/{p.name}" for p in (folder / inner).iterdir() if not p.name.startswith("."))


def _is_ours(name: str, state: OutputState, merged: Mapping[str, list[tuple[int, int]]]) -> bool:
    found = _NAME.fullmatch(name)
    if found is None:
        return False
    first, last = _span(name)
    if last == state.batch + 1 or found["list"]:
        return True  # not recorded yet
    if found["stem"] == "open":
        return last <= state.batch
    spans = merged["letters" if name.startswith(LETTERS) else "files"]
    return any(start <= first and last <= end for start, end in spans)


@door
def read_output(folder: str | Path) -> History:
    """What the output in a folder adds up to. A file of it that is missing or altered is an error that names it.

    While a run writes, it is what the run had recorded at some moment.
    """
    place = Path(os.path.realpath(folder))
    for _ in range(_ATTEMPTS):
        state = _state(place, folder)
        try:
            with fitting(KIND, at=str(place)):
                return _added_up(place, state)
        except InputError:
            if _state(place, folder) == state:  # else a run has gone on meanwhile
                raise
    raise InputError(f"{folder} changes faster than it can be read", fix="read it when the run has ended")


def _state(place: Path, folder: str | Path) -> OutputState:
    state = read_state(place) if place.is_dir() else None
    if state is None:
        raise InputError(f"{folder} holds no output of a streaming run", fix="give the folder that a run wrote to")
    return state


def _added_up(place: Path, state: OutputState) -> History:
    lost = missing(place, state)
    if lost:
        more = f" and {len(lost) - 3} more" if len(lost) > 3 else ""
        text = f"files of the output are missing, or not as they were written: {', '.join(lost[:3])}{more}"
        raise InputError(text, at=str(place), fix=REBUILD)
    leftovers(place, state)
    for part in expanded(place, state.letters):
        content_of(place, part)
    schema, parts = state.schema, (*expanded(place, state.files), *state.open)
    if state.content == "events":
        return to_history((_read_events(place, part, schema) for part in parts), schema=schema)
    tables = (read_rows(content_of(place, part), schema, state.format) for part in parts)
    return History.from_batches(schema, (Batch(schema, table) for table in tables))


def read_rows(data: bytes, schema: Schema, kind: Format) -> pa.Table:
    """Signed rows from the bytes of a file."""
    if kind == "parquet":
        table = pq.read_table(pa.BufferReader(data))
        return pa.Table.from_arrays(table.columns, schema=schema.arrow_rows)
    from streamproof.events.event import read_event, typed  # noqa: PLC0415

    documents = [json.loads(line) for line in data.decode().split("\n") if line]
    weights = [document.pop("w") for document in documents]
    events = [typed(read_event(document, n), schema) for n, document in enumerate(documents)]
    rows = [(e.le, e.re, w, e.payload) for e, w in zip(events, weights, strict=True)]  # type: ignore[union-attr]
    return Batch.from_rows(schema, rows).rows


def _read_events(folder: Path, part: OutputFile, schema: Schema) -> PhysicalStream:
    from streamproof.events.files import read  # noqa: PLC0415

    content_of(folder, part)
    path = place_of(folder, part.name)
    return read(path, schema=schema, format="parquet" if path.suffix == ".parquet" else "jsonl").stream()


def joined(contents: Iterable[bytes], ending: str) -> bytes:
    """Files as one: their rows, one after the other."""
    if ending != "parquet":
        return b"".join(contents)
    tables = [pq.read_table(pa.BufferReader(data)) for data in contents]
    out = io.BytesIO()
    pq.write_table(pa.concat_tables(tables), out)
    return out.getvalue()


class OutputFolder:
    """The files of an output."""

    def __init__(self, place: Path, on_step: Callable[[Step, int], None]) -> None:
        self.place, self._on_step = place, on_step
        self.fresh: set[str] = set()  # what was put here since the last time that something was removed

    def put(self, name: str, number: int, data: bytes, level: int = 0) -> OutputFile:
        """Write a file aside, and rename it: it is there whole or not at all, and does not count yet."""
        place = place_of(self.place, name)
        place.parent.mkdir(exist_ok=True)
        temporary = place.with_name(f".{place.name}.{os.getpid()}.part")
        with temporary.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        self._on_step("written", number)
        temporary.replace(place)
        self.fresh.add(name)
        return OutputFile(name, len(data), digest_of(data), level)

    def record(self, state: OutputState) -> None:
        """Say how far the folder is: the step that makes a micro-batch count."""
        write_atomically(self.place / STATE, sealed_json(state.as_dict(), kind=KIND, version=VERSION))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files of the output. Any other name is refused."""
        for name in names:
            place_of(self.place, name).unlink(missing_ok=True)

    def remove_unfinished(self) -> None:
        """Remove what a run that was killed was about to write."""
        for left in self.place.rglob(".*.part"):
            left.unlink(missing_ok=True)


def merged(folder: OutputFolder, stem: str, parts: OutputFiles, number: int) -> OutputFiles:
    """The parts with the last ones merged, as long as there are enough of one level.

    Law: what they hold, in their order, does not change.
    """
    while len(parts) >= FANOUT:
        last = parts[-FANOUT:]
        level, ending = last[0].level, last[0].name.rpartition(".")[2]
        if any(part.level != level for part in last) or sum(part.size for part in last) > MERGED_BYTES.now:
            break
        data = joined((content_of(folder.place, part) for part in last), ending)
        name = name_of(stem, last[0].span[0], last[-1].span[1], ending)
        parts = (*parts[:-FANOUT], folder.put(name, number, data, level + 1))
    return parts


def put_aside(folder: OutputFolder, kind: str, parts: OutputFiles, number: int) -> OutputFiles:
    """The parts, with the first ones in a list of their own if there are many."""
    lists = sum(part.name.startswith(f"{LISTS}/") for part in parts)
    if len(parts) - lists < 2 * LISTED_FILES.now:
        return parts
    listed = parts[lists : lists + LISTED_FILES.now]
    name = name_of(f"{LISTS}/{kind}", listed[0].span[0], listed[-1].span[1], "json")
    document = [{"name": p.name, "size": p.size, "digest": p.digest, "level": p.level} for p in listed]
    aside = folder.put(name, number, json.dumps(document).encode())
    return (*parts[:lists], aside, *parts[lists + LISTED_FILES.now :])


def replaced(folder: OutputFolder, before: OutputState, after: OutputState) -> list[str]:
    """The files that do not count any more, in the order of their names."""
    lists = [part for part in (*after.files, *after.letters) if part.name in folder.fresh]
    kept = _named_in(after) | {part.name for part in expanded(folder.place, lists)}
    return sorted((_named_in(before) | folder.fresh) - kept)


def _named_in(state: OutputState) -> set[str]:
    return {part.name for part in (*state.files, *state.open, *state.letters)}


@door
def read_events(folder: str | Path) -> PhysicalStream:
    """The inserts, retractions and CTIs in a folder of events, in the order in which they came."""
    place = Path(os.path.realpath(folder))
    state = _state(place, folder)
    with fitting(KIND, at=str(place)):
        parts = (*expanded(place, state.files), *state.open)
        return PhysicalStream.concat([_read_events(place, part, state.schema) for part in parts], schema=state.schema)
