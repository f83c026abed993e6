"""Rows that could not be read: counted, the first ones remembered, all of them written to a file if there is one.

>>> rejects = Rejects()
>>> rejects.add(3, "the time is missing", '{"re": 5}')
>>> rejects.count, str(rejects.first[0])
(1, 'line 3: the time is missing')
"""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Final, NamedTuple, TextIO

from streamproof.errors import InputError
from streamproof.events.notation import write_json
from streamproof.events.order import Flags

KEPT: Final = 20


class Reject(NamedTuple):
    """A row that could not be read; ``line`` counts from 1."""

    line: int
    why: str
    row: object
    word: str = "line"
    file: str | None = None  # which of several

    @property
    def place(self) -> str:
        """Where the row stands."""
        return f"{self.file + ', ' if self.file else ''}{self.word} {self.line}"

    def __str__(self) -> str:
        return f"{self.place}: {self.why}"


def opened_anew(path: Path, *, ours: bool = False) -> TextIO:
    """A new file for text. What is there already stays as it is, and links are not followed.

    ``ours`` is a file that this run has made: it is written anew.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | (os.O_TRUNC if ours else os.O_EXCL)
    try:
        return os.fdopen(os.open(path, flags, 0o666), "w", encoding="utf-8", errors="backslashreplace")
    except FileExistsError:
        raise exists(path) from None


def exists(path: Path) -> InputError:
    """The error for a file that would hold what was left out, and is there already."""
    return InputError(
        f"{path} exists, and what is left out is never written over anything",
        at=str(path),
        fix="take it away, or name another file",
    )


def free_name(path: Path) -> Path:
    """The path, or if something is there, one with the first number that is free.

    >>> free_name(Path("no such folder/S.rejects.jsonl")).name
    'S.rejects.jsonl'
    """
    if not os.path.lexists(path):
        return path
    stem = path.name.removesuffix(path.suffix)
    names = (path.with_name(f"{stem}-{number}{path.suffix}") for number in count(2))
    return next(name for name in names if not os.path.lexists(name))


class Rejects:
    """Collects rejected rows; ``word`` says what is counted: lines of text, or rows of a binary file."""

    def __init__(self, path: Path | None = None, *, word: str = "line", ours: bool = False) -> None:
        self.count = 0
        self.first: list[Reject] = []
        self._path = path
        self._word = word
        self._file: TextIO | None = None
        self.ours = ours  # the file was made by this run
        self.file: str | None = None  # which of several files is read

    def add(self, line: int, why: str, row: object) -> None:
        self.count += 1
        if len(self.first) < KEPT:
            self.first.append(Reject(line, why, row, self._word, self.file))
        if self._path is not None:
            self._file = self._file or opened_anew(self._path, ours=self.ours)
            self.ours = True
            which = {} if self.file is None else {"file": self.file}
            self._file.write(write_json({**which, self._word: line, "why": why, "row": row}) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def error(self, path: Path) -> InputError:
        """The error for a file of which no row could be read."""
        first = self.first[0]
        return InputError(
            f"none of the {self.count} rows could be read; the first: {first.why}",
            at=f"{path.name}, {first.place}",
            fix=fix_for(first.why),
        )


class Faults:
    """Why rows of one block cannot be read: the first reason for each."""

    def __init__(self) -> None:
        self.why: dict[int, str] = {}

    def add(self, bad: Flags, why: str) -> None:
        for index in bad.nonzero()[0].tolist():
            self.why.setdefault(index, why)

    def put(self, index: int, why: str) -> None:
        self.why.setdefault(index, why)


def fix_for(why: str) -> str:
    """What to do about a reason that concerns a whole file."""
    if "no zone" in why:
        return 'say which zone is meant: ColumnMapping(…, assume_zone="UTC"), or --map assume_zone=UTC'
    if "never closed" in why:
        return "close the quote"
    if "the local time" in why:
        return 'write their zone, or decide: ColumnMapping(…, ambiguous="later"), or --map ambiguous=later'
    if "its unit?" in why:
        return 'say the unit that the numbers have: ColumnMapping(…, unit="ms"), or --map unit=ms'
    if "needs a unit" in why:
        return 'say how long a tick is: ColumnMapping(…, unit="s"), or --map unit=s'
    return "check the schema, the column mapping and the format; a rejects file holds the rows and the reasons"
