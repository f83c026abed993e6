"""Payload columns of files: from text or Arrow to the types of a schema; what does not fit is a fault of its row.

No number changes on the way in: a double keeps a number if it is that number, or if its shortest text names it.

>>> kept("0.1"), kept("9007199254740993"), kept("1e400")
(True, False, False)
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError
from streamproof.events.files.rejects import Faults
from streamproof.events.notation import column_of, read_value
from streamproof.events.order import Ints
from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Type

MAX_DIGITS: Final = 1000  # characters of a number in JSON
_LONGEST_KEPT: Final = 800  # no double needs more characters
_RISKY: Final = r"[0-9][0-9.]{15}|[eE][-+]?[0-9]{3}"  # up to 15 digits are kept wherever doubles have them
_INTEGER: Final = re.compile(r"-?[0-9]+")
_LONG_IN_JSON: Final = re.compile(rb":\s*(-?[0-9](?:[0-9.eE+-]{15,}|[0-9.]*[eE][-+]?[0-9]{3,}))")


def kept(text: str) -> bool:
    """Whether the double that is nearest to a number keeps it; whole numbers beyond int64 are never left to doubles."""
    if len(text) > _LONGEST_KEPT or (_INTEGER.fullmatch(text) and not -(2**63) <= int(text) < 2**63):
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


CANDIDATES: Final = (INT64, FLOAT64, BOOL, DATE, TIMESTAMP)
_WHOLE: Final = r"0|-?[1-9][0-9]*"  # neither zeros nor a plus in front: those are codes rather than numbers
_NUMBER: Final = r"-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|nan|NaN|-?inf|-?Inf|-?Infinity"
_PATTERNS: Final = {INT64: rf"^(?:{_WHOLE})$", FLOAT64: rf"^(?:{_NUMBER})$", BOOL: r"^[a-zA-Z]"}
_DECLARED: Final = {
    "int64": re.compile(r"[-+]?[0-9]+"),
    "float64": re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[-+]?(?:nan|inf|infinity)", re.I),
    "decimal": re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"),
}
_BOOLS: Final = {"true": True, "false": False, "1": True, "0": False}
_KEEPING: Final[dict[str, tuple[str, ...]]] = {  # what Arrow casts without changing a value, or refuses
    "int64": ("integer",),
    "float64": ("integer", "floating"),
    "decimal": ("integer", "decimal"),
    "string": ("integer", "decimal"),
    "date": ("date",),
    "timestamp": ("zoned",),
    "bool": (),
    "null": (),
}
_LONGEST_SHOWN: Final = 100
_EPOCH: Final = date(1970, 1, 1).toordinal()
_DAYS: Final = date.min.toordinal() - _EPOCH, date.max.toordinal() - _EPOCH  # of the years 1 to 9999


def text_of(array: pa.Array, name: str, faults: Faults) -> pa.Array:
    """Bytes as text; bytes that are not UTF-8 are a fault."""
    if not pa.types.is_binary(array.type):
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        return pa.array([_decoded(v, i, name, faults) for i, v in enumerate(array.to_pylist())], pa.string())


def _decoded(value: bytes | None, index: int, name: str, faults: Faults) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        faults.put(index, f'column "{name}" is not UTF-8')
        return None


def possible_types(array: pa.Array, known: tuple[Type, ...]) -> tuple[Type, ...]:
    """Which of the known types all texts of a column have, and keep.

    >>> possible_types(pa.array(["1", None, "2.5"]), CANDIDATES)
    (Type('float64'),)
    >>> possible_types(pa.array(["9007199254740993", "2.5"]), CANDIDATES), possible_types(pa.array(["007"]), CANDIDATES)
    ((), ())
    """
    return tuple(kind for kind in known if _fits(array, kind))


def _fits(array: pa.Array, kind: Type) -> bool:
    try:
        array.slice(0, 100).cast(kind.arrow)  # a cast that fails does so for every value: look at a few first
        typed = array.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    pattern = _PATTERNS.get(kind) if _is_text(array.type) else None
    if pattern is not None and pc.all(pc.match_substring_regex(array, pattern)).as_py() is False:
        return False
    if kind == FLOAT64:
        return all_kept(array)
    return not len(_outside_years(typed))


def typed_column(array: pa.Array, name: str, kind: Type, faults: Faults) -> pa.Array:
    """The column with the schema's type; values that do not fit are faults.

    >>> faults = Faults()
    >>> typed_column(pa.array(["7", "x"]), "v", INT64, faults).to_pylist(), faults.why
    ([7, None], {1: 'column "v": \\'x\\' is not of type int64'})

    Law: whether a value fits, and as what, does not depend on the others.
    """
    typed = array if array.type == kind.arrow else _cast(array, kind)
    if typed is None:
        return column_of([_read(v, i, name, kind, faults) for i, v in enumerate(items(array))], kind)
    outside = _outside_years(typed)
    if not len(outside):
        return typed
    for index in outside.tolist():
        faults.put(index, f'column "{name}": {typed[index].cast(pa.string())} is not within the years 1 to 9999')
    within = np.ones(len(typed), np.bool_)
    within[outside] = False
    return pc.if_else(pa.array(within), typed, pa.scalar(None, typed.type))


def _cast(array: pa.Array, kind: Type) -> pa.Array | None:
    """All values at once, if that changes none of them."""
    text = _is_text(array.type)
    if not (text or pa.types.is_null(array.type) or _family(array.type) in _KEEPING[kind.kind]):
        return None
    if text and kind == INT64 and pc.any(pc.match_substring(array, "x", ignore_case=True)).as_py():
        return None  # what Arrow would take for hexadecimal
    try:
        typed = array.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if text and kind == FLOAT64 and pc.any(pc.is_inf(typed)).as_py():
        return None  # the word, or a number beyond all doubles
    return typed


def _is_text(arrow: pa.DataType) -> bool:
    return bool(pa.types.is_string(arrow) or pa.types.is_large_string(arrow) or pa.types.is_string_view(arrow))


def _family(arrow: pa.DataType) -> str:
    if pa.types.is_timestamp(arrow):
        return "zoned" if arrow.tz else "naive"
    for word in ("integer", "floating", "decimal", "date"):
        if getattr(pa.types, f"is_{word}")(arrow):
            return word
    return "other"


def _outside_years(array: pa.Array) -> Ints:
    """Where a column has dates or instants that no calendar of ours names."""
    if not pa.types.is_temporal(array.type):
        return np.zeros(0, np.int64)
    per_day = 1 if pa.types.is_date32(array.type) else 86_400 * 10**6
    values = array.cast(pa.int32() if per_day == 1 else pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    outside: Ints = np.flatnonzero((values < _DAYS[0] * per_day) | (values >= (_DAYS[1] + 1) * per_day))
    return outside


class Odd:
    """A value that Python has no type for, as text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def items(array: pa.Array) -> list[object]:
    """The values of a column."""
    try:
        found: list[object] = array.to_pylist()
    except (ValueError, OverflowError, LookupError, pa.ArrowException):  # e.g. nanoseconds, the year 10000, odd zones
        return [_item(value) for value in array]
    return [_micros(value) if hasattr(value, "nanosecond") else value for value in found]


def _micros(moment: Any) -> object:
    """An instant of pandas, which knows nanoseconds."""
    return Odd(str(moment)) if moment.nanosecond else moment.to_pydatetime()


def _item(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except (ValueError, OverflowError, LookupError, pa.ArrowException):
        return Odd(str(value.cast(pa.string())))


def _read(value: object, index: int, name: str, kind: Type, faults: Faults) -> object:
    try:
        return read_value(_from_text(value, kind) if isinstance(value, str) else value, kind)
    except (InputError, ValueError, OverflowError):
        faults.put(index, f'column "{name}": {_shown(value)} is not of type {kind}')
        return None


def _from_text(text: str, kind: Type) -> object:
    if kind == STRING:
        return text
    text = text.strip()
    if kind.kind in _DECLARED and not _DECLARED[kind.kind].fullmatch(text):
        raise ValueError
    if kind == INT64:
        return int(text)
    if kind == FLOAT64:
        return _float(text)
    return _BOOLS.get(text.lower(), text) if kind == BOOL else text


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")) and text[-1:].isdigit():
        raise ValueError
    return number


def _shown(value: object) -> str:
    if isinstance(value, str) and len(value) > _LONGEST_SHOWN:
        return repr(value[:_LONGEST_SHOWN]) + "…"
    return repr(value) if not isinstance(value, date | datetime | Decimal) else str(value)


def narrowest(known: tuple[Type, ...], *, seen: bool) -> Type:
    """The type of a text column, given what all its values may be."""
    if not seen:
        return NULL
    return known[0] if known else STRING
