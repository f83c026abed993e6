"""CSV: an empty field is null, a quoted empty field is an empty text; everything else is quoted only if it must be.

Lines are numbered as an editor numbers them, though fields may contain line breaks.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pv

from streamproof.errors import InputError
from streamproof.events.bag import take
from streamproof.events.files.rejects import Rejects
from streamproof.events.files.tabular import Part, columns_of
from streamproof.events.order import Ints, one_array


class CsvFile:
    """A CSV file with a header."""

    word = "line"
    metadata: Mapping[str, str] = {}

    def __init__(self, path: Path, *, block_bytes: int = 1 << 23) -> None:
        self._path = path
        self._block_bytes = block_bytes
        names = _header(path)
        columns_of(names)
        self.fields = pa.schema([(name, pa.binary()) for name in names])
        self.blank = 0  # lines without anything

    def parts(self, rejects: Rejects) -> Iterator[Part]:
        """Blocks of rows as bytes."""
        self.blank = 0
        bad: list[pv.InvalidRow] = []
        numbering = _Numbering()
        try:
            for block in self._open(bad):
                part = numbering.number(pa.Table.from_batches([block]), bad, rejects)
                yield self._without_blank(part)
        except pa.ArrowInvalid as error:
            raise InputError(f"not CSV: {error}", at=f"{self._path.name}, after line {numbering.line}") from None
        numbering.number(self.fields.empty_table(), bad, rejects, final=True)

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
        bad[:] = [row for row in bad if row not in mine]
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
    return f"{row.actual_columns} fields instead of {row.expected_columns}"


def _breaks(rows: pa.Table) -> Ints:
    """How many line breaks the fields of each row contain."""
    total = np.zeros(rows.num_rows, np.int64)
    for column in rows.columns:
        array = one_array(column)
        data = array.buffers()[2]
        if data is not None and b"\n" in memoryview(data).tobytes():
            total += pc.fill_null(pc.count_substring(array, "\n"), 0).to_numpy(zero_copy_only=False)
    return total


def _header(path: Path) -> list[str]:
    try:
        with path.open("rb") as file:
            return next(csv.reader(line.decode("utf-8-sig") for line in file), [])
    except UnicodeDecodeError:
        raise InputError("the header is not UTF-8", at=path.name, fix="convert the file to UTF-8") from None
