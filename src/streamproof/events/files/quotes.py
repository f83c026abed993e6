"""Quotes in CSV: rows that are open at the end of the file, and text after a quote that closes.

Arrow reads ``"x"y`` as xy, without a word. So the bytes are watched on their way to it:

    file ──► Watched.read ──► Arrow ──► blocks of rows
                  │
                  └─► the lines of rows that are malformed

A quote opens only where a field starts; within a field without quotes it is a character like the others, as
in ``5" pipe``.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from streamproof.events.order import Ints

SHOWN: Final = 1000  # bytes of a row, for the rejects
AFTER_A_QUOTE: Final = 'text after a closing quote: a quote within a quoted field is written twice, as in "say ""no"""'


class MalformedRow(NamedTuple):
    """A row with text after a closing quote; ``line`` is its first."""

    line: int
    text: str


class Watched:
    """A file of CSV as Arrow reads it, block by block; ``malformed`` has rows of all that was read so far.

    The rows that are whole are checked; the last one, ``_rest``, waits for the next block. A header that is alone
    gets its line end, which Arrow asks for.
    """

    def __init__(self, file: BinaryIO, separator: str, *, header: bool) -> None:
        self._file, self._header = file, header
        self.closed = False
        self.malformed: list[MalformedRow] = []
        self._row = row_pattern(separator)
        self._rest = b""
        self._line = 1  # of the rest
        self._beside = np.frombuffer(f'{separator}\r\n"'.encode(), np.uint8)  # a quote that opens or closes
        self._opening = [f'{before}"'.encode() for before in (separator, "\r", "\n")]

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the file."""
        block = self._block(size)
        if self._header and self._line == 1 and self._rest:
            block += self._block(size) or self._ended()
        if not block and self._rest:
            self._ended()
        return block

    def _block(self, size: int) -> bytes:
        block = self._file.read(size)
        while block.endswith(b"\r") and (more := self._file.read(1)):  # Arrow loses an LF at the start of a block
            block += more
        self._see(block.removeprefix(b"\xef\xbb\xbf") if self._line == 1 and not self._rest else block)
        return block

    def _ended(self) -> bytes:
        self._see(b"\n")
        self._rest = b""
        return b"\n"

    def close(self) -> None:
        self.closed = True

    def _see(self, block: bytes) -> None:
        text = self._rest + block
        cut = self._regular(text)
        if cut is None:
            cut = self._row_by_row(text)
        else:
            self._line += text.count(b"\n", 0, cut)
        self._rest = text[cut:]

    def _regular(self, text: bytes) -> int | None:
        """Where the last row begins, if quotes open and close in turn, beside separators alone; else None.

            1,"say ""no"" to it",5
              └────┘└──┘└───────┘      every second quote opens: before it is a separator, or the quote that just closed

        Then no row is malformed.
        """
        if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
            return None
        opens = b'"' in text and (text.startswith(b'"') or any(opening in text for opening in self._opening))
        if not opens:
            return text.rfind(b"\n") + 1
        codes = np.frombuffer(text, np.uint8)
        quotes = np.flatnonzero(codes == ord('"'))
        before, after = quotes[::2] - 1, quotes[1::2] + 1
        if not (self._fit(codes, before[before >= 0]) and self._fit(codes, after[after < len(codes)])):
            return None
        place = text.rfind(b"\n")
        while (count := int(np.searchsorted(quotes, place))) % 2:  # within quotes
            place = text.rfind(b"\n", 0, int(quotes[count - 1]))
        return place + 1

    def _fit(self, codes: npt.NDArray[np.uint8], places: Ints) -> bool:
        beside = codes.take(places)
        fits = beside == self._beside[0]
        for code in self._beside[1:]:
            fits |= beside == code
        return bool(fits.all())

    def _row_by_row(self, text: bytes) -> int:
        place = 0
        while row := self._row.match(text, place):
            if row.lastgroup == "malformed":
                self.malformed.append(MalformedRow(self._line, row[0][:SHOWN].decode("utf-8", "backslashreplace")))
            self._line += 1 + row[0].count(b"\n") - row[0].endswith(b"\n")
            place = row.end()
        return place


def row_pattern(separator: str) -> re.Pattern[bytes]:
    r"""The pattern of a row with its line end: well formed, or malformed, which is then its ``lastgroup``.

    >>> [row_pattern(",").match(text).lastgroup for text in (b'1,"a"\n', b'1,a"b"\n', b'1,"a"b\n')]
    [None, None, 'malformed']

    A row that is open does not match, nor one whose line end may go on.
    """
    other = rf"[^{re.escape(separator)}\r\n]"
    quoted = '"[^"]*+(?:""[^"]*+)*+"'
    plain = rf'(?!"){other}*+'
    strict, lenient = (rf"(?:{quoted}{after}|{plain})" for after in ("", f"{other}*+"))
    end = r"(?:\r\n|\n|\r(?=[^\n]))"
    rows = (rf"{field}(?:{re.escape(separator)}{field})*+{end}" for field in (strict, lenient))
    return re.compile("{}|(?P<malformed>{})".format(*rows).encode())


def is_open(row: bytes, separator: str = ",") -> bool:
    """Whether a row of CSV ends within quotes.

    >>> is_open(b'1,"a""b",c'), is_open(b'1,5"'), is_open(b'1,"a""'), is_open(b'1,"a,b')
    (False, False, True, True)
    """
    ends = re.compile(b"[" + re.escape(separator.encode()) + rb"\r\n]")
    place = 0
    while place < len(row):
        if row[place : place + 1] == b'"':
            place = _closing(row, place + 1)
            if place < 0:
                return True
        found = ends.search(row, place)
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
