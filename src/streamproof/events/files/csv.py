"""CSV: an empty field is null, a quoted empty field is an empty text; everything else is quoted only if it must be.

Lines are numbered as an editor numbers them, though fields may contain line breaks.
"""

from __future__ import annotations

import csv
import io
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
from streamproof.events.files.listing import open_text
from streamproof.events.files.quotes import AFTER_A_QUOTE, Watched, is_open, row_pattern
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import FilePart, columns_of
from streamproof.events.order import Ints, one_array

MAX_HEADER: Final = 1 << 20  # bytes of the first line
BLOCK: Final = 1 << 23  # bytes that are read at once; no row is longer than two blocks
_NOT_DATA: Final = re.compile(r"[^\W\d]")  # a letter, which names of columns have
_CLOSED: Final = re.compile(rb'\n"\r?\n$')
_SEPARATORS: Final = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}


class CsvFile:
    """A CSV file; without a header its columns are called c0, c1 and so on."""

    word = "line"
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path, *, separator: str = ",", header: bool = True, block_bytes: int = BLOCK) -> None:
        self._path, self._separator, self._header = path, separator, header
        self._block_bytes = block_bytes
        names = _first_row(path, separator, header=header)
        names = names if header else [f"c{number}" for number in range(len(names))]
        self.hint = _hint(names, separator, header=header)
        try:
            columns_of(names)
        except InputError as error:
            error.fix = self.hint or error.fix
            raise error.located(path.name) from None
        self.fields = pa.schema([(name, pa.binary()) for name in names])

    def parts(self, rejects: Rejects) -> Iterator[FilePart]:
        """Blocks of rows as bytes."""
        with open_text(self._path) as file:
            yield from self._parts(Watched(file, self._separator, header=self._header), rejects)

    def _parts(self, file: Watched, rejects: Rejects) -> Iterator[FilePart]:
        bad: list[pv.InvalidRow] = []
        numbering = _Numbering(self._separator, first=1 + self._header)
        last: FilePart | None = None  # held back, for its last row may be open
        try:
            for block in self._blocks(file, bad):
                if block.schema.names != self.fields.names:
                    raise InputError("the header cannot be read", at=self._path.name, fix="quote names only as a whole")
                if last is not None:
                    yield last
                part = numbering.number(pa.Table.from_batches([block]), bad, rejects)
                last = self._without_blank(_well_formed(part, file, rejects))
        except pa.ArrowInvalid as error:
            if last is not None:
                yield last
            raise self._unreadable(str(error), numbering.line) from None
        swallowed = bool(bad) and is_open(bad[-1].text.encode("utf-8", "surrogateescape"), self._separator)
        numbering.number(self.fields.empty_table(), bad, rejects, final=True)
        if last is not None:
            yield last if swallowed else self._closed(last, numbering.line, rejects)

    def _unreadable(self, why: str, line: int) -> InputError:
        at = f"{self._path.name}, line {line}"
        if "straddl" in why:
            what = f"the row is longer than {self._block_bytes:,} bytes: perhaps a quote in it is never closed"
            return InputError(what, at=at, fix="close the quote", name="limit_exceeded")
        return InputError(
            f"not CSV: {why}", at=at, fix=f"check that the file is text, with {self._separator!r} between the fields"
        )

    def _closed(self, part: FilePart, end: int, rejects: Rejects) -> FilePart:
        """The last rows of the file; if the very last is open at its end, it is rejected."""
        if not len(part.lines):
            return part
        line = int(part.lines[-1])
        values = [column[-1].as_py() or b"" for column in part.rows.columns]
        breaks = sum(value.count(b"\n") for value in values)
        if line + 1 + breaks != end:
            return part  # blank lines are the last
        text = self._open_row(values[-1], breaks)
        if text is None:
            return part
        rejects.add(line, _open_at_the_end(text), text[:1000].decode("utf-8", "backslashreplace"))
        return FilePart(part.rows.slice(0, len(part.lines) - 1), part.lines[:-1])

    def _open_row(self, value: bytes, breaks: int) -> bytes | None:
        """The last row of the file, if it is open: then the rest of the file is in it, up to the last line break.

        ``value`` is the last of its fields, ``breaks`` the number of line breaks in them all.
        """
        text = self._last_bytes(2 * self._block_bytes)
        if text.endswith(b"\n") and (not value.endswith(b"\n") or _CLOSED.search(text[-4:])):
            return None
        place = len(text)
        for _ in range(breaks + 1):
            place = text.rfind(b"\n", 0, max(place, 0))
        return text[place + 1 :] if is_open(text[place + 1 :], self._separator) else None

    def _last_bytes(self, most: int) -> bytes:
        with open_text(self._path) as file:
            if isinstance(file, io.BufferedReader):
                file.seek(max(0, file.seek(0, 2) - most))
                return file.read()
            last = b""
            while block := file.read(most):  # what is packed has to be read through
                last = (last + block)[-most:]
            return last

    def _blocks(self, file: Watched, bad: list[pv.InvalidRow]) -> Iterator[pa.RecordBatch]:
        def keep(row: pv.InvalidRow) -> str:
            bad.append(row)
            return "skip"

        yield from pv.open_csv(
            file,
            read_options=pv.ReadOptions(
                use_threads=False,
                block_size=self._block_bytes,
                column_names=None if self._header else self.fields.names,
            ),
            parse_options=pv.ParseOptions(
                delimiter=self._separator,
                newlines_in_values=True,
                ignore_empty_lines=False,
                invalid_row_handler=keep,
            ),
            convert_options=pv.ConvertOptions(
                check_utf8=False,
                column_types=self.fields,
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )

    def _without_blank(self, part: FilePart) -> FilePart:
        absent = np.ones(part.rows.num_rows, np.bool_)
        for column in part.rows.columns:
            absent &= one_array(column).is_null().to_numpy(zero_copy_only=False)
        if not absent.any():
            return part
        return FilePart(take(part.rows, np.flatnonzero(~absent)), part.lines[~absent])


def _well_formed(part: FilePart, file: Watched, rejects: Rejects) -> FilePart:
    """The rows without those that have text after a closing quote, which are rejected; the file is read ahead."""
    if not file.malformed or not len(part.lines):
        return part
    mine = {row.line: row.text for row in file.malformed if row.line <= part.lines[-1]}
    file.malformed[:] = file.malformed[len(mine) :]
    bad = np.isin(part.lines, list(mine))
    for line in part.lines[bad].tolist():  # others have too many fields, or too few: they are rejected already
        rejects.add(line, AFTER_A_QUOTE, mine[line])
    return FilePart(take(part.rows, np.flatnonzero(~bad)), part.lines[~bad])


class _Numbering:
    """Keeps track of lines: rows are numbered by Arrow, and some have more than one line."""

    def __init__(self, separator: str, *, first: int) -> None:
        self._separator = separator
        self._row = self.line = first  # the numbers of the next row and its line; a header is the first

    def number(self, rows: pa.Table, bad: list[pv.InvalidRow], rejects: Rejects, *, final: bool = False) -> FilePart:
        """The block with the number of each row's first line; rows that Arrow left out of it are rejected.

        Arrow reads ahead, so ``bad`` may have rows of later blocks; they stay in it.
        """
        breaks = _breaks(rows)
        numbers = _numbers(self._row, len(breaks), [row.number for row in bad])
        mine = [row for row in bad if final or (len(numbers) and row.number < numbers[-1])]
        bad[:] = bad[len(mine) :]
        if mine:
            return FilePart(rows, self._among(numbers, breaks, mine, rejects))
        starts = self.line + np.arange(len(breaks)) + np.cumsum(breaks) - breaks
        self._row, self.line = self._row + len(breaks), self.line + len(breaks) + int(breaks.sum())
        return FilePart(rows, starts)

    def _among(self, numbers: Ints, breaks: Ints, bad: list[pv.InvalidRow], rejects: Rejects) -> Ints:
        """The lines of rows that have rejected rows between them."""
        left_out = {row.number: row for row in bad}
        extra = dict(zip(numbers.tolist(), breaks.tolist(), strict=True))
        starts = []
        for number in sorted([*extra, *left_out]):
            if number in left_out:
                text = left_out[number].text
                rejects.add(self.line, _why(left_out[number], self._separator), text)
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


def _why(row: pv.InvalidRow, separator: str) -> str:
    text = row.text.encode("utf-8", "surrogateescape")
    if is_open(text, separator):
        return _open_at_the_end(text)
    if (found := row_pattern(separator).match(text + b"\n")) and found.lastgroup:
        return AFTER_A_QUOTE
    return f"{row.actual_columns} fields instead of {row.expected_columns}"


def _open_at_the_end(text: bytes) -> str:
    lines = text.rstrip(b"\r\n").count(b"\n")
    swallowed = "the line after it is" if lines == 1 else f"the {lines:,} lines after it are"
    rest = f"{swallowed} part of it" if lines else "the file may be cut off"
    return f"a quote that opens in this row is never closed: {rest}"


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
    b"\x1f\x8b": ("compressed (gzip)", "call it *.gz, or unpack it first: gunzip"),
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


def _first_row(path: Path, separator: str, *, header: bool) -> list[str]:
    """The fields of the first row."""
    fix = "the first line names the columns" if header else "give a file with at least one row"
    with open_text(path) as file:
        start = file.read(MAX_HEADER)
    refuse_other_kinds(start, path)
    if not start.strip():
        raise InputError("the file is empty", at=str(path), fix=fix)
    if not start.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].strip():
        raise InputError("the first line is blank", at=str(path), fix=fix)
    if b"\r" in start and b"\n" not in start:
        raise InputError("its lines end in CR alone", at=str(path), fix=r"convert them: tr '\r' '\n' < FILE")
    lines = (line.decode("utf-8-sig") for line in start.splitlines(keepends=True))
    try:
        return next(csv.reader(lines, delimiter=separator, strict=header))
    except UnicodeDecodeError:
        what = "the header is not UTF-8" if header else "the first row is not UTF-8"
        raise InputError(what, at=path.name, fix="convert the file to UTF-8") from None
    except (csv.Error, StopIteration) as error:
        why = "a name is longer than 131,072 characters" if "limit" in str(error) else str(error)
        raise InputError(f"the header cannot be read: {why}", at=f"{path.name}, line 1", fix=fix) from None


def _hint(names: list[str], separator: str, *, header: bool) -> str | None:
    """What to do, if it seems that fields are separated otherwise, or that the header is none."""
    for other, word in _SEPARATORS.items():
        if len(names) == 1 and other in names[0] and other != separator:
            said = {"\t": "tab"}.get(other, other)
            return (
                f"the columns seem to be separated by {word}: read(…, separator={other!r}), or --map separator={said}"
            )
    if (
        header
        and names
        and not any(_NOT_DATA.search(name.rstrip("Zz").replace("T", "")) for name in names[:1])
        and any(name[:1].isdigit() for name in names)
    ):
        return (
            "the first line looks like data: put a line before it that names the columns, "
            "or say that there is none: read(…, header=False), or --map header=no"
        )
    return None
