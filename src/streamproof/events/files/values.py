"""Payload columns of files: from text or Arrow to the types of a schema; what does not fit is a fault of its row."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import InputError
from streamproof.events.files.rejects import Faults
from streamproof.events.notation import column_of, read_value
from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Type

CANDIDATES: Final = (INT64, FLOAT64, BOOL, DATE, TIMESTAMP)
_PATTERNS: Final = {INT64: r"^-?[0-9]+$", FLOAT64: r"^[-+]?([0-9.]|nan|inf|NaN|Inf)", BOOL: r"^[a-zA-Z]"}


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
    """Which of the known types all texts of a column have.

    >>> possible_types(pa.array(["1", None, "2.5"]), CANDIDATES)
    (Type('float64'),)
    """
    return tuple(kind for kind in known if _fits(array, kind))


def _fits(array: pa.Array, kind: Type) -> bool:
    try:
        array.slice(0, 100).cast(kind.arrow)  # a cast that fails does so for every value: look at a few first
        array.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    pattern = _PATTERNS.get(kind)
    return pattern is None or pc.all(pc.match_substring_regex(array, pattern)).as_py() is not False


def typed_column(array: pa.Array, name: str, kind: Type, faults: Faults) -> pa.Array:
    """The column with the schema's type; values that do not fit are faults.

    >>> faults = Faults()
    >>> typed_column(pa.array(["7", "x"]), "v", INT64, faults).to_pylist(), faults.why
    ([7, None], {1: 'column "v": \\'x\\' is not of type int64'})
    """
    if array.type == kind.arrow:
        return array
    try:
        return array.cast(kind.arrow)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return column_of([_read(v, i, name, kind, faults) for i, v in enumerate(array.to_pylist())], kind)


def _read(value: object, index: int, name: str, kind: Type, faults: Faults) -> object:
    try:
        return read_value(_from_text(value, kind) if isinstance(value, str) else value, kind)
    except (InputError, ValueError):
        faults.put(index, f'column "{name}": {_shown(value)} is not of type {kind}')
        return None


def _from_text(text: str, kind: Type) -> object:
    if kind == INT64:
        return int(text.strip())
    if kind == FLOAT64:
        return float(text.strip())
    if kind == BOOL:
        return {"true": True, "false": False}.get(text.strip().lower(), text)
    return text if kind == STRING else text.strip()


def _shown(value: object) -> str:
    return repr(value) if not isinstance(value, date | datetime | Decimal) else str(value)


def narrowest(known: tuple[Type, ...], *, seen: bool) -> Type:
    """The type of a text column, given what all its values may be."""
    if not seen:
        return NULL
    return known[0] if known else STRING
