"""What a source looks like, found out before it is read: its files, its columns, its header, and its pieces.

A *piece* is a stretch of one file that holds whole rows: bytes of a text file, row groups of a Parquet file. Pieces
follow each other in arrival order; their number never changes a result.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from streamproof.disorder.config import FORMATS, SourceConfig
from streamproof.disorder.scanning import GOOD, NO_TIME, NUMBER, row_ends, times_of
from streamproof.disorder.units import TimeUnit
from streamproof.errors import InputError, did_you_mean
from streamproof.events.files.listing import differing, files_at, is_packed, read_separator, suffix_of, unpack
from streamproof.events.files.times import zone_called

PIECE_BYTES: Final = 32 << 20
HEAD_BYTES: Final = 1 << 20
OFFSET_BITS: Final = 44  # a row id is the file's ordinal and the row's place in it
_ENDINGS: Final = {
    ".csv": "csv", ".tsv": "csv", ".txt": "csv", ".log": "csv", ".data": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl",
    ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_BOM: Final = b"\xef\xbb\xbf"


class FilePiece(NamedTuple):
    """A stretch of a file: bytes from ``start`` to ``end``, or row groups from ``start`` to ``end``."""

    file: int
    path: Path
    start: int
    end: int
    first_row: int = 0  # of row groups


@dataclass(frozen=True, kw_only=True)
class SourceLayout:
    """A source, ready to be read."""

    files: tuple[Path, ...]
    named: Path  # what the user called it
    shown: tuple[str, ...] = ()  # what its files are called in messages
    format: str
    separator: int
    names: tuple[str, ...]
    has_header: bool
    header: bytes  # as it stands, with its line break
    time: int
    arrival: int | None
    key: int | None
    unit: TimeUnit
    zone: str | None
    quote: bool
    multiline: bool

    @property
    def wanted(self) -> list[int]:
        return [place for place in (self.time, self.arrival, self.key) if place is not None]


def plan_layout(source: SourceConfig, *, arrival: int | str | None = None, work: Path) -> SourceLayout:
    """Look at the beginning of a source; packed files are unpacked into ``work`` first."""
    if source.zone is not None:
        zone_called(source.zone, "zone")
    found = files_at(source.file)
    kind = _format(source, found.files)
    files = tuple(_whole(path, work, number) for number, path in enumerate(found.files))
    return replace(_layout(source, files, kind, arrival), shown=tuple(map(found.name_of, found.files)))


def _layout(source: SourceConfig, files: tuple[Path, ...], kind: str, arrival: int | str | None) -> SourceLayout:
    if kind == "parquet":
        return _parquet_layout(source, files, arrival)
    head = _first_bytes(files)
    if kind == "jsonl":
        names = tuple(str(name) for name in (source.time_index, arrival, source.key) if name is not None)
        return _made(source, files, arrival, kind, names, b"", unit=_text_unit(source, None, None))
    return _csv_layout(source, files, arrival, head)


def _format(source: SourceConfig, files: Sequence[Path]) -> str:
    if source.format not in (None, "gz", *FORMATS):
        fix = f"allowed: {', '.join(FORMATS)}"
        raise InputError(f"there is no format {source.format!r}", at="format", fix=fix)
    kinds = {_ENDINGS.get(suffix_of(file), "csv") for file in files}
    if source.format not in (None, "gz"):
        return str(source.format)
    if len(kinds) > 1:
        raise InputError(
            f"the files are of several formats: {', '.join(sorted(kinds))}",
            at=str(source.file),
            fix="say which one is meant",
        )
    return kinds.pop()


def _whole(path: Path, work: Path, number: int) -> Path:
    """The file itself, or what is in it if it is packed: pieces start anywhere, which packed bytes do not allow."""
    return unpack(path, work / f"unpacked-{number}") if is_packed(path) else path


def _first_bytes(files: Sequence[Path]) -> bytes:
    for path in files:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES).removeprefix(_BOM)
        if head.strip():
            return head
    raise InputError("the source is empty", at=str(files[0]), fix="give a file with at least one event")


def _csv_layout(source: SourceConfig, files: tuple[Path, ...], arrival: int | str | None, head: bytes) -> SourceLayout:
    separator = ord(read_separator(source.separator, "separator"))
    lines = head.split(b"\n")
    first = lines[0]
    columns = _cells(first, source)
    source, arrival = _numbered(source, arrival, columns)
    named = any(isinstance(name, str) for name in (source.time_index, arrival, source.key))
    has_header = source.header
    if has_header is None:
        has_header = named or _looks_like_header(source, lines)
    if named and not has_header:
        raise InputError(
            "columns are named, but the file has no header",
            at=str(source.file),
            fix="give columns by number, counted from 0",
        )
    if not has_header:
        counts = Counter(len(_cells(line, source)) for line in lines[:1000] if line.strip())
        width = counts.most_common(1)[0][0] if counts else len(columns)
        columns = [f"c{n}" for n in range(width)]
    header = first + b"\n" if has_header else b""
    place = _place(source.time_index, columns, source.file)
    unit = _text_unit(source, lines[has_header : has_header + 1000], place)
    return _made(
        source, files, arrival, "csv", tuple(columns), header, unit=unit, separator=separator, has_header=has_header
    )


def _numbered(
    source: SourceConfig, arrival: int | str | None, columns: Sequence[str]
) -> tuple[SourceConfig, int | str | None]:
    """Columns that are given as digits are numbers, unless there is a header for sure and one has that name."""

    def number(column: int | str | None) -> int | str | None:
        named = source.header is True and column in columns
        return column if column is None or named else by_number(column)

    time = number(source.time_index)
    assert time is not None
    return replace(source, time_index=time, key=number(source.key)), number(arrival)


def by_number(column: int | str) -> int | str:
    """A column by its number, if that is how it is given.

    >>> by_number("2"), by_number("v"), by_number("²")
    (2, 'v', '²')
    """
    return int(column) if isinstance(column, str) and re.fullmatch("[0-9]{1,18}", column) else column


def _cells(line: bytes, source: SourceConfig) -> list[str]:
    text = line.rstrip(b"\r\n").decode("utf-8", errors="replace")
    return cells_of(text, source.separator if source.quote else None) or text.split(source.separator)


def cells_of(text: str, separator: str | None) -> list[str]:
    """The fields of one line as Python's csv reads them; none where it refuses, e.g. fields that are too long."""
    try:
        return next(csv.reader([text], delimiter=separator), [""]) if separator else []
    except csv.Error:
        return []


def _looks_like_header(source: SourceConfig, lines: Sequence[bytes]) -> bool:
    """Whether the first line has no time where a later one has one."""
    if not isinstance(source.time_index, int):
        return True
    first, *others = ([*_cells(line, source)] for line in (lines[0], *lines[1:20]))
    return not _is_time(first, source.time_index) and any(_is_time(cells, source.time_index) for cells in others)


def _is_time(cells: Sequence[str], place: int) -> bool:
    return 0 <= place < len(cells) and _kind_of(cells[place]) is not None


def _kind_of(text: str) -> int | None:
    """What kind of time a text is, or None."""
    data = np.frombuffer(text.encode() + b" ", np.uint8)
    status = np.zeros(1, np.uint8)
    _, kinds = times_of(data, status, np.zeros(1, np.int64), np.array([len(data) - 1]), 10**12)
    return int(kinds[0]) if status[0] == GOOD or (status[0] != NO_TIME and kinds[0] != NUMBER) else None


def _text_unit(source: SourceConfig, lines: Sequence[bytes] | None, place: int | None) -> TimeUnit:
    """The unit of the source; instants are counted in microseconds unless it says something else."""
    return source.unit or "us" if lines is None or place is None else source.unit or _guessed(source, lines, place)


def _guessed(source: SourceConfig, lines: Sequence[bytes], place: int) -> TimeUnit:
    kinds = [_kind_of(cells[place]) for cells in (_cells(line, source) for line in lines) if place < len(cells)]
    if all(kind in (NUMBER, None) for kind in kinds) and NUMBER in kinds:
        raise InputError(
            "the times are numbers, and nothing says how long a tick is", at=str(source.file),
            fix='say so: --unit s, or "sourceTimeUnit": "s" (ps, ns, us, ms, s)',
        )  # fmt: skip
    return "us"


def _made(  # noqa: PLR0917
    source: SourceConfig, files: tuple[Path, ...], arrival: int | str | None, kind: str, names: tuple[str, ...],
    header: bytes, *, unit: TimeUnit, separator: int = 0, has_header: bool = False,
) -> SourceLayout:  # fmt: skip
    return SourceLayout(
        files=files, named=source.file, format=kind, separator=separator, names=names, has_header=has_header,
        header=header,
        time=_place(source.time_index, names, source.file),
        arrival=None if arrival is None else _place(arrival, names, source.file),
        key=None if source.key is None else _place(source.key, names, source.file),
        unit=unit, zone=source.zone, quote=source.quote, multiline=bool(source.multiline),
    )  # fmt: skip


def _place(column: int | str, names: Sequence[str], file: Path) -> int:
    if isinstance(column, str) and column in names:
        return list(names).index(column)
    column = by_number(column)
    if isinstance(column, int) and 0 <= column < len(names):
        return column
    if isinstance(column, int):
        raise InputError(f"there is no column {column}", at=str(file), fix=f"the columns are 0 to {len(names) - 1}")
    raise InputError(
        f'there is no column "{column}"', at=str(file), fix=did_you_mean(column, names), name="unknown_column"
    )


def _parquet_layout(source: SourceConfig, files: tuple[Path, ...], arrival: int | str | None) -> SourceLayout:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        schema = pq.read_schema(files[0])
    except (OSError, pa.ArrowInvalid) as error:
        raise InputError(f"{files[0].name} is not Parquet: {error}", at=str(files[0]), fix="check the format") from None
    made = _made(source, files, arrival, "parquet", tuple(schema.names), b"", unit=source.unit or "us")
    kind = schema.field(made.time).type
    if source.unit is None and pa.types.is_timestamp(kind):
        return replace(made, unit=kind.unit)
    if source.unit is None and pa.types.is_integer(kind):
        raise InputError(
            "the times are numbers, and nothing says how long a tick is", at=str(source.file),
            fix='say so: --unit s, or "sourceTimeUnit": "s" (ps, ns, us, ms, s)',
        )  # fmt: skip
    return made


def pieces_of(layout: SourceLayout, *, at_least: int = 1, most_bytes: int = PIECE_BYTES) -> list[FilePiece]:
    """The pieces of all files, in order."""
    if layout.format == "parquet":
        return [piece for number, path in enumerate(layout.files) for piece in _row_groups(number, path)]
    total = sum(path.stat().st_size for path in layout.files)
    size = max(1, min(most_bytes, -(-total // max(1, at_least))))
    return [piece for number, path in enumerate(layout.files) for piece in _stretches(layout, number, path, size)]


def _row_groups(number: int, path: Path) -> Iterator[FilePiece]:
    import pyarrow.parquet as pq  # noqa: PLC0415

    metadata, row = pq.read_metadata(path), 0
    for group in range(metadata.num_row_groups):
        yield FilePiece(number, path, group, group + 1, row)
        row += metadata.row_group(group).num_rows


def _stretches(layout: SourceLayout, number: int, path: Path, size: int) -> Iterator[FilePiece]:
    length = path.stat().st_size
    with path.open("rb") as file:
        first = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(first)
        if layout.has_header:
            line = file.readline()
            if line.strip(b"\r\n") != layout.header.strip(b"\r\n") and line.strip():
                raise differing(Path(layout.shown[number]), Path(layout.shown[0]), "it has another header")
        start = file.tell()
    ends = _quoted_ends(layout, path, start, size) if layout.multiline else _line_ends(path, start, size, length)
    for end in ends:
        yield FilePiece(number, path, start, end)
        start = end


def _line_ends(path: Path, start: int, size: int, length: int) -> Iterator[int]:
    """Where stretches of about ``size`` bytes end, each behind a line break."""
    with path.open("rb") as file:
        while start < length:
            file.seek(min(start + size, length) - 1)
            while (block := file.readline(1 << 20)) and not block.endswith(b"\n"):
                pass
            start = file.tell()
            yield start


def _quoted_ends(layout: SourceLayout, path: Path, start: int, size: int) -> Iterator[int]:
    """The same where line breaks may stand inside quotes, which only reading from the beginning can tell."""
    rest = b""
    with path.open("rb") as file:
        file.seek(start)
        while block := file.read(size):
            data = np.frombuffer(rest + block, np.uint8)
            ends = row_ends(data, 0, len(data), layout.separator)
            done = int(ends[-1]) if len(ends) else 0
            rest = data[done:].tobytes()
            if done:
                start += done
                yield start
    if rest:
        yield start + len(rest)
