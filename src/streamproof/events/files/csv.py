"""CSV: an empty field is null, a quoted empty field is an empty text; everything else is quoted only if it must be.

Lines are numbered as an editor numbers them, though fields may contain line breaks.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from streamproof.errors import InputError
from streamproof.events.bag import take
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import Part, columns_of
from streamproof.events.order import Ints, one_array

MAX_HEADER: Final = 1 << 20  # bytes of the first line
BLOCK: Final = 1 << 23  # bytes that are read at once; no row is longer than two blocks
_NOT_DATA: Final = re.compile(r"[^\W\d]")  # a letter, which names of columns have
_ENDS: Final = re.compile(rb"[,\r\n]")
_CLOSED: Final = re.compile(rb'\n"\r?\n$')
_OTHERS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}


class CsvFile:
    """A CSV file with a header."""

    word = "line"
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path, *, block_bytes: int = BLOCK) -> None:
        self._path = path
        self._block_bytes = block_bytes
        names = _header(path)
        self.hint = _hint(names)
        try:
            columns_of(names)
        except InputError as error:
            error.fix = self.hint or error.fix
            raise error.located(path.name) from None
        self.fields = pa.schema([(name, pa.binary()) for name in names])
        self.blank = 0  # lines without anything

    def parts(self, rejects: Rejects) -> Iterator[Part]:
        """Blocks of rows as bytes."""
        self.blank = 0
        bad: list[pv.InvalidRow] = []
        numbering = _Numbering()
        last: Part | None = None  # held back, for its last row may be open
        try:
            for block in self._open(bad):
                if block.schema.names != self.fields.names:
                    raise InputError("the header cannot be read", at=self._path.name, fix="quote names only as a whole")
                if last is not None:
                    yield last
                part = numbering.number(pa.Table.from_batches([block]), bad, rejects)
                last = self._without_blank(part)
        except pa.ArrowInvalid as error:
            if last is not None:
                yield last
            raise self._unreadable(str(error), numbering.line) from None
        swallowed = bool(bad) and is_open(bad[-1].text.encode("utf-8", "surrogateescape"))
        numbering.number(self.fields.empty_table(), bad, rejects, final=True)
        if last is not None:
            yield last if swallowed else self._closed(last, numbering.line, rejects)

    def _unreadable(self, why: str, line: int) -> InputError:
        at = f"{self._path.name}, line {line}"
        if "straddl" in why:
            what = f"the row is longer than {self._block_bytes:,} bytes: perhaps a quote in it is never closed"
            return InputError(what, at=at, fix="close the quote", name="limit_exceeded")
        return InputError(f"not CSV: {why}", at=at, fix="check that the file is text, with commas between the fields")

    def _closed(self, part: Part, end: int, rejects: Rejects) -> Part:
        """The last rows of the file; if the very last is open at its end, it is rejected."""
        if not len(part.lines):
            return part
        line = int(part.lines[-1])
        values = [column[-1].as_py() or b"" for column in part.rows.columns]
        breaks = sum(value.count(b"\n") for value in values)
        if line + 1 + breaks != end:
            return part  # blank lines are the last
        text = _open_row(self._path, values[-1], breaks, 2 * self._block_bytes)
        if text is None:
            return part
        rejects.add(line, _open_at_the_end(text), text[:1000].decode("utf-8", "backslashreplace"))
        return Part(part.rows.slice(0, len(part.lines) - 1), part.lines[:-1])

    def _open(self, bad: list[pv.InvalidRow]) -> pv.CSVStreamingReader:
        def keep(row: pv.InvalidRow) -> str:
            bad.append(row)
            return "skip"

        return pv.open_csv(
            self._path,
            read_options=pv.ReadOptions(use_threads=False, block_size=self._block_bytes),
            parse_options=pv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False, invalid_row_handler=keep),
            convert_options=pv.ConvertOptions(
                check_utf8=False,
                column_types=self.fields,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _without_blank(self, part: Part) -> Part:
        absent = np.ones(part.rows.num_rows, np.bool_)
        for column in part.rows.columns:
            absent &= one_array(column).is_null().to_numpy(zero_copy_only=False)
        if not absent.any():
            return part
        self.blank += int(absent.sum())
        return Part(take(part.rows, np.flatnonzero(~absent)), part.lines[~absent])


class _Numbering:
    """Keeps track of lines: rows are numbered by Arrow, and some have more than one line."""

    def __init__(self) -> None:
        self._row = 2  # the number of the next row; the header is the first
        self.line = 2

    def number(self, rows: pa.Table, bad: list[pv.InvalidRow], rejects: Rejects, *, final: bool = False) -> Part:
        """The block with the number of each row's first line; rows that Arrow left out of it are rejected.

        Arrow reads ahead, so ``bad`` may have rows of later blocks; they stay in it.
        """
        breaks = _breaks(rows)
        numbers = _numbers(self._row, len(breaks), [row.number for row in bad])
        mine = [row for row in bad if final or (len(numbers) and row.number < numbers[-1])]
        bad[:] = bad[len(mine) :]
        if mine:
            return Part(rows, self._among(numbers, breaks, mine, rejects))
        starts = self.line + np.arange(len(breaks)) + np.cumsum(breaks) - breaks
        self._row, self.line = self._row + len(breaks), self.line + len(breaks) + int(breaks.sum())
        return Part(rows, starts)

    def _among(self, numbers: Ints, breaks: Ints, bad: list[pv.InvalidRow], rejects: Rejects) -> Ints:
        """The lines of rows that have rejected rows between them."""
        left_out = {row.number: row for row in bad}
        extra = dict(zip(numbers.tolist(), breaks.tolist(), strict=True))
        starts = []
        for number in sorted([*extra, *left_out]):
            if number in left_out:
                text = left_out[number].text
                rejects.add(self.line, _why(left_out[number]), text)
                self.line += 1 + text.count("\n")
            else:
                starts.append(self.line)
                self.line += 1 + extra[number]
            self._row = number + 1
        return np.array(starts, np.int64)


def _numbers(first: int, count: int, left_out: list[int]) -> Ints:
    """The numbers of the rows of a block, given which were left out.

    >>> _numbers(2, 3, [3]).tolist()
    [2, 4, 5]
    """
    all_numbers = np.arange(first, first + count + len(left_out))
    return all_numbers[~np.isin(all_numbers, left_out)][:count]


def _why(row: pv.InvalidRow) -> str:
    text = row.text.encode("utf-8", "surrogateescape")
    if is_open(text):
        return _open_at_the_end(text)
    return f"{row.actual_columns} fields instead of {row.expected_columns}"


def _open_at_the_end(text: bytes) -> str:
    lines = text.rstrip(b"\r\n").count(b"\n")
    swallowed = "the line after it is" if lines == 1 else f"the {lines:,} lines after it are"
    rest = f"{swallowed} part of it" if lines else "the file may be cut off"
    return f"a quote that opens in this row is never closed: {rest}"


def is_open(row: bytes) -> bool:
    """Whether a row of CSV ends within quotes.

    >>> is_open(b'1,"a""b",c'), is_open(b'1,5"'), is_open(b'1,"a""'), is_open(b'1,"a,b')
    (False, False, True, True)
    """
    place = 0
    while place < len(row):
        if row[place : place + 1] == b'"':
            place = _closing(row, place + 1)
            if place < 0:
                return True
        found = _ENDS.search(row, place)
        if found is None:
            return False
        place = found.end()
    return False


def _closing(row: bytes, place: int) -> int:
    """Where the next quote is that is not doubled; −1 if there is none."""
    while True:
        place = row.find(b'"', place)
        if place < 0 or row[place + 1 : place + 2] != b'"':
            return place
        place += 2


def _open_row(path: Path, value: bytes, breaks: int, most: int) -> bytes | None:
    """The last row of a file, if it is open: then the rest of the file is in it, up to the last line break.

    ``value`` is the last of its fields, ``breaks`` the number of line breaks in them all.
    """
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - most))
        text = file.read()
    if text.endswith(b"\n") and (not value.endswith(b"\n") or _CLOSED.search(text[-4:])):
        return None
    place = len(text)
    for _ in range(breaks + 1):
        place = text.rfind(b"\n", 0, max(place, 0))
    return text[place + 1 :] if is_open(text[place + 1 :]) else None


def _breaks(rows: pa.Table) -> Ints:
    """How many line breaks the fields of each row contain."""
    total = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        array = one_array(column)
        data = array.buffers()[2]
        if data is not None and b"\n" in memoryview(data).tobytes():
            total += pc.fill_null(pc.count_substring(array, "\n"), 0).to_numpy(zero_copy_only=False)
    return total


_MAGIC: Final = {
    b"\xff\xfe": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    b"\xfe\xff": ("UTF-16", "convert it: iconv -f UTF-16 -t UTF-8"),
    b"\x1f\x8b": ("compressed (gzip)", "unpack it first: gunzip"),
    b"\x28\xb5\x2f\xfd": ("compressed (zstd)", "unpack it first: unzstd"),
    b"PK\x03\x04": ("a zip archive, or a workbook", "unpack it, or save the sheet as CSV"),
    b"PAR1": ("Parquet", "call it *.parquet"),
    b"ARROW1": ("Arrow IPC", "call it *.arrow"),
}


def refuse_other_kinds(start: bytes, path: Path) -> None:
    """Refuse what is no text of UTF-8 but, by its first bytes, something else."""
    for magic, (kind, fix) in _MAGIC.items():
        if start.startswith(magic):
            raise InputError(f"the file is not text but {kind}", at=str(path), fix=fix)
    if b"\0" in start.partition(b"\n")[0]:
        raise InputError(
            "the first line has NUL bytes: the file is not text", at=str(path), fix="convert the file to UTF-8"
        )


def _header(path: Path) -> list[str]:
    with path.open("rb") as file:
        start = file.read(MAX_HEADER)
    refuse_other_kinds(start, path)
    if not start.strip():
        raise InputError("the file is empty", at=str(path), fix="the first line names the columns")
    if not start.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip():
        raise InputError("the first line is blank", at=str(path), fix="the first line names the columns")
    if b"\r" in start and b"\n" not in start:
        raise InputError("its lines end in CR alone", at=str(path), fix=r"convert them: tr '\r' '\n' < FILE")
    try:
        return next(csv.reader(line.decode("utf-8-sig") for line in start.splitlines(keepends=True)))
    except UnicodeDecodeError:
        raise InputError("the header is not UTF-8", at=path.name, fix="convert the file to UTF-8") from None
    except (csv.Error, StopIteration) as error:
        why = "a name is longer than 131,072 characters" if "limit" in str(error) else str(error)
        fix = "the first line names the columns"
        raise InputError(f"the header cannot be read: {why}", at=f"{path.name}, line 1", fix=fix) from None


def _hint(names: list[str]) -> str | None:
    """What to do, if it seems that the header is none, or not one of commas."""
    for separator, word in _OTHERS.items():
        if len(names) == 1 and separator in names[0]:
            return f"the columns seem to be separated by {word}: put commas between them"
    if (
        names
        and not any(_NOT_DATA.search(name.rstrip("Zz").replace("T", "")) for name in names[:1])
        and any(name[:1].isdigit() for name in names)
    ):
        return "the first line looks like data: put a line before it that names the columns"
    return None
