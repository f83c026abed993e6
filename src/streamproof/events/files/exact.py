"""Numbers in text: which of them a double keeps, so that none changes on the way in.

>>> kept("0.1"), kept("9007199254740993"), kept("1e400")
(True, False, False)

A double keeps a number if it is that number, or if its shortest text names that number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from decimal import Decimal, InvalidOperation
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError
from streamproof.events.order import Ints

MAX_DIGITS: Final = 1000  # characters of a number in JSON
_LONGEST_KEPT: Final = 800  # no double needs more characters
_RISKY: Final = r"[0-9][0-9.]{15}|[eE][-+]?[0-9]{3}"  # up to 15 digits are kept wherever doubles have them
_WHOLE: Final = re.compile(r"-?[0-9]+")
_LONG_IN_JSON: Final = re.compile(rb":\s*(-?[0-9](?:[0-9.eE+-]{15,}|[0-9.]*[eE][-+]?[0-9]{3,}))")


def kept(text: str) -> bool:
    """Whether the double that is nearest to a number keeps it; whole numbers beyond int64 are never left to doubles."""
    if len(text) > _LONGEST_KEPT or (_WHOLE.fullmatch(text) and not -(2**63) <= int(text) < 2**63):
        return False
    try:
        number, known = Decimal(text), float(text)
        return math.isfinite(known) and number in (Decimal(repr(known)), Decimal(known))
    except (InvalidOperation, OverflowError):
        return False


def all_kept(texts: pa.Array) -> bool:
    """Whether doubles keep all numbers of a column of text."""
    risky = texts.filter(pc.fill_null(pc.match_substring_regex(texts, _RISKY), False)).unique()
    plain = risky.cast(pa.float64()).cast(pa.string())
    return all(map(kept, risky.filter(pc.not_equal(risky, plain)).to_pylist()))


def whole_kept(values: Ints) -> bool:
    """Whether doubles keep whole numbers.

    >>> whole_kept(np.array([2**53, -(2**60)])), whole_kept(np.array([2**53 + 1]))
    (True, False)
    """
    large = values[(values > 2**53) | (values < -(2**53))]
    rounded = large.astype(np.float64)
    return bool(np.all(rounded < 2.0**63) and np.array_equal(rounded.astype(np.int64), large))


def lossy_in_json(data: bytes, columns: Collection[str]) -> bool:
    """Whether lines of JSON have a number, in one of the columns, that a double does not keep.

    >>> lossy_in_json(b'{"t": 1714557603123456789, "v": 0.5}', {"v"})
    False
    >>> lossy_in_json(b'{"t": 1714557603123456789, "v": 12345678901234567890}', {"v"})
    True
    """
    for match in _LONG_IN_JSON.finditer(data) if columns else ():
        end = data.rfind(b'"', 0, match.start())
        name = data[data.rfind(b'"', 0, max(end, 0)) + 1 : end]
        if (b"\\" in name or name.decode("utf-8", "replace") in columns) and not kept(match.group(1).decode()):
            return True
    return False


def whole_number(text: str) -> int:
    """A whole number of JSON, as it is."""
    _refuse_long(text)
    return int(text)


def number(text: str) -> float | Decimal:
    """A number of JSON with a point or an exponent: a double if that keeps it, else a decimal."""
    _refuse_long(text)
    try:
        return float(text) if kept(text) else Decimal(text)
    except InvalidOperation:  # an exponent of more digits than decimals have
        raise InputError(f"the number {text[:24]} is beyond all types", fix="write it as text") from None


def _refuse_long(text: str) -> None:
    if len(text) > MAX_DIGITS:
        raise InputError(
            f"a number of {len(text):,} characters, the limit is {MAX_DIGITS:,}: {text[:12]}…",
            fix="write it as text",
            name="limit_exceeded",
        )
