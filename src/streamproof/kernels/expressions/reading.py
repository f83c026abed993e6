"""Values from text: blanks around it are ignored, and text that does not say a value of the type becomes null.

>>> read_int(pa.array([" +007", "1.0", "9223372036854775808"]), INT64).to_pylist()
[7, None, None]
>>> from streamproof.events.schema import TIMESTAMP
>>> read_timestamp(pa.array(["2024-05-01 12:00:00.5+02:00", "2024-05-01T12:00:00"]), TIMESTAMP).is_valid().to_pylist()
[True, False]
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.order import Flags, Ints
from streamproof.events.schema import INT64, MAX_PRECISION, Type
from streamproof.kernels.expressions.columns import keep
from streamproof.kernels.expressions.decimals import EXACT, rescale, rounded, to_int
from streamproof.kernels.expressions.times import DAY, FIRST_DAY, LAST_DAY, SECOND, days_from_civil, is_date
from streamproof.kernels.expressions.vectors import blank, vector

_PLAIN_INT: Final = "^-?[0-9]{1,18}$"
_INT: Final = "^(?P<sign>[+-]?)0*(?P<digits>[0-9]{1,19})$"
_FLOAT: Final = r"^(?i:[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|[+-]?(inf|infinity)|nan)$"
_PLAIN_DECIMAL: Final = r"^(?P<sign>[+-]?)0*(?P<whole>[0-9]*)(?:\.(?P<part>[0-9]*))?$"
_DATE: Final = "(?P<year>[0-9]{4})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})"
_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2})(?::(?P<second>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,6}))?)?"
_ZONE: Final = "(?:Z|(?P<side>[+-])(?P<zone_hour>[0-9]{2})(?::?(?P<zone_minute>[0-9]{2}))?)"


def _trimmed(array: pa.Array) -> pa.Array:
    return pc.ascii_trim(array, " ")


def _matching(array: pa.Array, pattern: str) -> pa.Array:
    """The texts that match, null for the others."""
    return blank(array, pc.invert(pc.match_substring_regex(array, pattern)))


def read_int(array: pa.Array, to: Type) -> pa.Array:
    text = _trimmed(array)
    if pc.all(pc.match_substring_regex(text, _PLAIN_INT), min_count=0).as_py():
        return pc.cast(text, to.arrow)
    parts = pc.extract_regex(text, _INT)
    sign, digits = (_field(parts, name) for name in ("sign", "digits"))
    return to_int(pc.cast(pc.binary_join_element_wise(sign, digits, ""), pa.decimal128(19, 0)), INT64)


def read_float(array: pa.Array, to: Type) -> pa.Array:
    return pc.cast(_matching(_trimmed(array), _FLOAT), to.arrow)


def read_bool(array: pa.Array, to: Type) -> pa.Array:
    word = pc.ascii_lower(_trimmed(array))
    true, false = pc.equal(word, "true"), pc.equal(word, "false")
    return blank(true, pc.invert(pc.or_(true, false)))


def read_decimal(array: pa.Array, to: Type) -> pa.Array:
    """Exactly, then rounded to the scale, halves to even."""
    text = _matching(_trimmed(array), _FLOAT)
    parts = pc.extract_regex(text, _PLAIN_DECIMAL)
    sign, whole, part = (_field(parts, name) for name in ("sign", "whole", "part"))
    whole = blank(whole, pc.greater(pc.utf8_length(whole), to.precision - to.scale))
    near = pc.utf8_rpad(pc.utf8_slice_codeunits(part, start=0, stop=to.scale + 1), to.scale + 1, "0")
    far = pc.ascii_trim(pc.utf8_slice_codeunits(part, start=to.scale + 1), "0")
    rest = pc.if_else(pc.equal(far, ""), "0", "1")  # one digit tells whether anything follows a half
    short = pc.binary_join_element_wise(sign, "0", whole, ".", near, rest, "")
    result = rescale(pc.cast(short, pa.decimal256(to.precision + 2, to.scale + 2)), to)
    return _with_exponents(result, text, parts, to)


def _with_exponents(result: pa.Array, text: pa.Array, parts: pa.Array, to: Type) -> pa.Array:
    """The numbers written with an exponent, one by one."""
    special = keep(pc.and_(pc.is_null(parts), pc.is_valid(text)))
    if not special.any():
        return result
    found = [_exact(word, to) for word in pc.filter(text, pa.array(special)).to_pylist()]
    return pc.replace_with_mask(result, pa.array(special), pa.array(found, to.arrow))


def _exact(word: str, to: Type) -> Decimal | None:
    number = EXACT.create_decimal(word)
    if not number.is_finite() or (number and number.adjusted() > MAX_PRECISION):
        return None
    found = rounded(number, to.scale)
    return found if not found or found.adjusted() < to.precision - to.scale else None


def read_date(array: pa.Array, to: Type) -> pa.Array:
    parts = pc.extract_regex(_trimmed(array), f"^{_DATE}$")
    days, exists = _days(parts)
    return vector(days.astype(np.int32), to.arrow, ~exists)


def read_timestamp(array: pa.Array, to: Type) -> pa.Array:
    """ISO 8601 with a zone; T or a blank before the time, at most six digits of a second."""
    parts = pc.extract_regex(_trimmed(array), f"^{_DATE}[T ]{_TIME}{_ZONE}$")
    days, exists = _days(parts)
    hour, minute, second = (_number(parts, name) for name in ("hour", "minute", "second"))
    ahead, ahead_minutes = _number(parts, "zone_hour"), _number(parts, "zone_minute")
    exists &= (hour < 24) & (minute < 60) & (second < 60) & (ahead < 24) & (ahead_minutes < 60)
    west = keep(pc.equal(_field(parts, "side"), "-"))
    zone = np.where(west, -1, 1) * (ahead * 3600 + ahead_minutes * 60)
    micros = days * DAY + (hour * 3600 + minute * 60 + second - zone) * SECOND + _micros(parts)
    exists &= (micros >= FIRST_DAY * DAY) & (micros < (LAST_DAY + 1) * DAY)
    return vector(micros, to.arrow, ~exists)


def _field(parts: pa.Array, name: str) -> pa.Array:
    """A group of a match, null where there was no match."""
    return blank(pc.struct_field(parts, name), pc.is_null(parts))


def _number(parts: pa.Array, name: str) -> Ints:
    """A group of digits as a number; 0 where it is absent."""
    text = pc.fill_null(_field(parts, name), "")
    padded = pc.binary_join_element_wise("0", text, "")
    numbers: Ints = pc.cast(padded, pa.int64()).to_numpy()
    return numbers


def _days(parts: pa.Array) -> tuple[Ints, Flags]:
    year, month, day = (_number(parts, name) for name in ("year", "month", "day"))
    exists = is_date(year, month, day)
    return np.where(exists, days_from_civil(year, month, day), 0), exists


def _micros(parts: pa.Array) -> Ints:
    text = pc.fill_null(_field(parts, "fraction"), "")
    micros: Ints = pc.cast(pc.utf8_rpad(text, 6, "0"), pa.int64()).to_numpy()
    return micros
