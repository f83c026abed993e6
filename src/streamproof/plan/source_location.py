"""Where in a text something is wrong: line, column, and the line itself with a caret below it.

>>> print(pointed("SELECT avg(temp)\\nFROM Rom EVERY 5s", 22))
line 2, column 6
    FROM Rom EVERY 5s
         ^
"""

from __future__ import annotations

import re

from streamproof.errors import PlanError, StreamproofError

MOST_SHOWN = 160  # characters of a line


def pointed(text: str, offset: int) -> str:
    """The place of an offset, for people."""
    offset = min(max(offset, 0), len(text))
    start = text.rfind("\n", 0, offset) + 1
    end = text.find("\n", offset)
    line = text[start : len(text) if end < 0 else end]
    column = offset - start
    shift = max(0, column - MOST_SHOWN + 20)
    shown = "".join(c if c.isprintable() else " " for c in line[shift : shift + MOST_SHOWN])
    caret = " " * (column - shift) + "^"
    return f"line {text.count(chr(10), 0, offset) + 1}, column {column + 1}\n    {shown}\n    {caret}"


def at_place(error: StreamproofError, text: str | None, offset: int | None) -> StreamproofError:
    """The error with its place in the text, if it was written as text."""
    if text is not None and offset is not None:
        error.at = pointed(text, offset)
    return error


def word_offset(text: str | None, word: str, offset: int | None) -> int | None:
    """Where a word first stands in a text from an offset on; the offset itself if it does not.

    >>> word_offset("temp > tmp", "tmp", 0)
    7
    """
    if text is None or offset is None:
        return offset
    found = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)").search(text, offset)
    return offset if found is None else found.start()


def refuse(what: str, text: str | None, offset: int | None, *, fix: str, name: str = "bad_plan") -> StreamproofError:
    """An error about a place of a text."""
    return at_place(PlanError(what, fix=fix, name=name), text, offset)  # type: ignore[arg-type]  # names are checked


_SIGNS = {"eq": "=", "ne": "<>", "lt": "<", "lte": "<=", "gt": ">", "gte": ">=", "in": "in"}


def with_sign(error: StreamproofError) -> StreamproofError:
    """An error about a comparison, with the sign that people write.

    >>> with_sign(PlanError("gt takes values of one type, got int64, string")).what
    '> takes values of one type, got int64, string'
    """
    fn, _, rest = error.what.partition(" takes values of one type")
    if rest and fn in _SIGNS:
        error.what = f"{_SIGNS[fn]} takes values of one type{rest}"
        error.fix = "compare a number with a number and text with text, or cast one of them"
    return error
