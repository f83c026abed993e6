"""Payload values in JSON: what JSON has no type for becomes text, and the schema reads it back.

>>> from streamproof.events.schema import parse_type
>>> write_value(Decimal("1.50")), write_value(date(2024, 5, 1)), write_value(datetime(2024, 5, 1, 12, tzinfo=UTC))
('1.50', '2024-05-01', '2024-05-01T12:00:00Z')
>>> read_value("1.50", parse_type("decimal(5, 2)"))
Decimal('1.50')

Law: ``read_value(write_value(x), type) == x`` for every value of the type.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime
from decimal import Decimal, InvalidOperation
from typing import Final

import pyarrow as pa

from streamproof.errors import InputError, StreamproofError
from streamproof.events.schema import BOOL, DATE, FLOAT64, INT64, NULL, STRING, TIMESTAMP, Type, decimal

_LONGEST_SHOWN: Final = 40
_NUMBER: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FINER: Final = re.compile(r"[.,][0-9]{6}[0-9]*[1-9]")  # than a microsecond
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode  # json.dumps would make one per call


def write_value(value: object) -> object:
    """A payload value as JSON writes it."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, date):
        return value.isoformat()
    return str(value) if isinstance(value, Decimal) else value


def write_json(document: object) -> str:
    """One line of JSON: unicode as it is, except what would move a terminal's cursor.

    >>> write_json({"k": "é\\x1b"})
    '{"k": "é\\\\u001b"}'
    """
    return _ENCODE(document)


def read_value(value: object, kind: Type) -> object:
    """The Python value of ``kind`` that a JSON value stands for; anything else is a ``type_mismatch``."""
    if value is None:
        return None
    try:
        return _READERS[kind.kind](value, kind)
    except (ValueError, TypeError, InvalidOperation, OverflowError):
        raise InputError(
            f"{show_value(value)} is not of type {kind}",
            fix=_FIXES.get(kind.kind, f"give a {kind}"),
            name="type_mismatch",
        ) from None


def _int(value: object, kind: Type) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not -(2**63) <= value < 2**63:
        raise TypeError
    return value


def _float(value: object, kind: Type) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError
    number = float(value)
    if math.isinf(number) and not isinstance(value, float):
        raise OverflowError
    return number


def _string(value: object, kind: Type) -> str:
    if not isinstance(value, str):
        raise TypeError
    value.encode()  # a lone surrogate is not text
    return value


def _bool(value: object, kind: Type) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _decimal(value: object, kind: Type) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise TypeError
    number = exact_number(value) if isinstance(value, str) else Decimal(str(value))
    exponent = number.as_tuple().exponent
    if not isinstance(exponent, int) or round(number, kind.scale) != number:
        raise ValueError
    if number and number.adjusted() >= kind.precision - kind.scale:
        raise ValueError
    return number


def _date(value: object, kind: Type) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        raise TypeError
    return date.fromisoformat(value)


def _timestamp(value: object, kind: Type) -> datetime:
    moment = value if isinstance(value, datetime) else exact_moment(_string(value, kind))
    if moment.tzinfo is None:
        raise ValueError
    return moment.astimezone(UTC)


def exact_moment(text: str) -> datetime:
    """An ISO time that is what it says: Python would cut off what is finer than a microsecond.

    >>> exact_moment("2024-05-01T12:00:00.1234567Z")
    Traceback (most recent call last):
    ...
    ValueError: finer than a microsecond: 2024-05-01T12:00:00.1234567Z
    """
    moment = datetime.fromisoformat(text)
    if _FINER.search(text):
        raise ValueError(f"finer than a microsecond: {text}")
    return moment


def exact_number(text: str) -> Decimal:
    """A number as people write it: Python would read ``1_0`` and the digits of other scripts too.

    >>> exact_number("1.50")
    Decimal('1.50')
    """
    if not _NUMBER.fullmatch(text):
        raise ValueError(f"not a number: {text}")
    return Decimal(text)


def _null(value: object, kind: Type) -> None:
    raise TypeError


_READERS: Final = {
    "int64": _int,
    "float64": _float,
    "string": _string,
    "bool": _bool,
    "decimal": _decimal,
    "date": _date,
    "timestamp": _timestamp,
    "null": _null,
}
_FIXES: Final = {
    "int64": "give a whole number within ±2^63, or declare the column float64",
    "decimal": "give a number as text that fits the precision and the scale",
    "date": 'give a date like "2024-05-01"',
    "timestamp": 'give an instant with a zone, like "2024-05-01T12:00:00Z"',
}


def type_of_value(value: object) -> Type:
    """The type of a Python payload value.

    >>> type_of_value(1), type_of_value(Decimal("12.50")), type_of_value(None)
    (Type('int64'), Type('decimal(4,2)'), Type('null'))
    """
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(f"the time {value.isoformat()} has no zone", fix='add one, e.g. tzinfo=UTC, or write "…Z"')
        return TIMESTAMP
    if isinstance(value, int) and not isinstance(value, bool) and not -(2**63) <= value < 2**63:
        raise InputError(f"{value} does not fit into int64", fix="write it as text or as 1.0e19", name="type_mismatch")
    if isinstance(value, Decimal):
        return _decimal_type(value)
    for python, kind in ((bool, BOOL), (int, INT64), (float, FLOAT64), (str, STRING), (date, DATE), (type(None), NULL)):
        if isinstance(value, python):
            return kind
    raise InputError(
        f"values of type {type(value).__name__} cannot be payload: {show_value(value)}",
        fix="payload values are numbers, text, booleans, decimals, dates, zoned datetimes and null",
        name="type_mismatch",
    )


def _decimal_type(value: Decimal) -> Type:
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise InputError(f"the decimal {value} is not a number", fix="use a float for NaN", name="type_mismatch")
    scale = max(0, -exponent)
    return decimal(max(1, scale, len(digits) + max(0, exponent)), scale)


def merge_types(a: Type, b: Type) -> Type | None:
    """The narrowest type that holds both, or none: numbers widen, null gives way to anything.

    >>> merge_types(INT64, FLOAT64), merge_types(NULL, STRING), merge_types(INT64, STRING)
    (Type('float64'), Type('string'), None)
    """
    if b in (a, NULL):
        return a
    if a == NULL:
        return b
    if not (a.is_numeric and b.is_numeric):
        return None
    if FLOAT64 in (a, b):
        return FLOAT64
    wide_a, wide_b = (decimal(19, 0) if kind == INT64 else kind for kind in (a, b))
    scale = max(wide_a.scale, wide_b.scale)
    whole = max(wide_a.precision - wide_a.scale, wide_b.precision - wide_b.scale)
    return decimal(min(38, whole + scale), scale)


def column_of(values: Iterable[object], kind: Type) -> pa.Array:
    """Python values as an Arrow column; numbers widen to the column's type."""
    known = list(values)
    if kind == FLOAT64:
        known = [float(v) if isinstance(v, int | Decimal) else v for v in known]
    elif kind.kind == "decimal":
        known = [Decimal(v) if isinstance(v, int) else v for v in known]
    try:
        return pa.array(known, kind.arrow, from_pandas=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        raise _first_bad(known, kind) from None


def _first_bad(values: list[object], kind: Type) -> StreamproofError:
    for value in values:
        try:
            read_value(value, kind)
        except InputError as error:
            return error
    return InputError(f"the values do not fit into {kind}", name="type_mismatch")


def show_value(value: object) -> str:
    """A value for people: short, on one line, without control characters.

    >>> show_value("a\\x1b[31m"), show_value(None), show_value(1.5), show_value("x" * 99)[-5:]
    ("'a\\\\x1b[31m'", 'null', '1.5', "xxx…'")
    """
    if value is None:
        return "null"
    if isinstance(value, str):
        text = repr(value)
        return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 2] + "…" + text[0]
    return str(write_value(value))


def show_payload(payload: Mapping[str, object]) -> str:
    """A payload for people.

    >>> show_payload({"k": "a", "v": 4})
    "k='a', v=4"
    """
    return ", ".join(f"{show_name(name)}={show_value(value)}" for name, value in payload.items()) or "(no columns)"


def show_name(name: str) -> str:
    return name if name.isprintable() else repr(name)
