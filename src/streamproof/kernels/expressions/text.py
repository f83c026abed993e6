"""Values from text, and values as text.

Reading ignores blanks around a value; text that does not say a value of the type becomes null. Writing has one
spelling: floats as Python writes them, instants in ISO 8601 with Z, decimals with all digits.

>>> read_int(pa.array([" +007", "1.0", "9223372036854775808"]), INT64).to_pylist()
[7, None, None]
>>> from streamproof.events.schema import STRING, TIMESTAMP
>>> read_timestamp(pa.array(["2024-05-01 12:00:00.5+02:00", "2024-05-01T12:00:00"]), TIMESTAMP).is_valid().to_pylist()
[True, False]
>>> write_float(pa.array([1.0, 1e16, 1e-5, float("nan")]), STRING).to_pylist()
['1.0', '1e+16', '1e-05', 'nan']
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.order import Flags, Ints
from streamproof.events.schema import INT64, MAX_PRECISION, Type
from streamproof.kernels.expressions.columns import blank, keep, raw, relabel, vector
from streamproof.kernels.expressions.decimals import EXACT, rescale, rounded, to_int
from streamproof.kernels.expressions.times import DAY, FIRST_DAY, LAST_DAY, SECOND, days_from_civil, is_date

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


_TEXT: Final = np.dtypes.StringDType()


def write_plain(array: pa.Array, to: Type) -> pa.Array:
    """Whole numbers, booleans and dates: Arrow's spelling is ours."""
    return pc.cast(array, to.arrow)


def write_float(array: pa.Array, to: Type) -> pa.Array:
    """The shortest digits that read back as the same float, with an exponent from 1e16 on and below 1e-4.

    −0.0 equals 0.0, so it is written like it.
    """
    array = pc.add(array, 0.0)
    values = raw(array)
    with np.errstate(all="ignore"):
        size = np.abs(values)
        whole = (size < 2.0**53) & (values == np.floor(values))
        # Arrow has the same digits, but its exponents begin elsewhere
        otherwise = ~whole & (((size >= 1e10) & (size < 1e16)) | ((size > 1e-10) & (size < 1e-4)))
        integers = pa.array(np.where(whole, values, 0.0).astype(np.int64))
    text = pc.binary_join_element_wise(pc.cast(integers, to.arrow), ".0", "")
    text = pc.if_else(pa.array(whole), text, pc.cast(array, to.arrow))
    if otherwise.any():
        text = pc.replace_with_mask(text, pa.array(otherwise), pa.array(values[otherwise].astype(_TEXT), to.arrow))
    return blank(text, pc.is_null(array))


def write_decimal(array: pa.Array, to: Type) -> pa.Array:
    """All digits of the scale, never an exponent.

    >>> from decimal import Decimal
    >>> from streamproof.events.schema import STRING
    >>> write_decimal(pa.array([Decimal("-0.00000001")], pa.decimal128(9, 8)), STRING).to_pylist()
    ['-0.00000001']
    """
    scale = array.type.scale
    digits = pc.cast(relabel(array, pa.decimal128(array.type.precision, 0)), to.arrow)
    if not scale:
        return digits
    sign = pc.if_else(pc.starts_with(digits, "-"), "-", "")
    padded = pc.utf8_lpad(pc.ascii_ltrim(digits, "-"), scale + 1, "0")
    whole, part = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
    return pc.binary_join_element_wise(sign, whole, ".", part, "")


def write_timestamp(array: pa.Array, to: Type) -> pa.Array:
    """ISO 8601 in UTC; the fraction has six digits, or is left out where it is zero.

    >>> from streamproof.events.schema import STRING
    >>> write_timestamp(pa.array([0, 1]).cast(pa.timestamp("us", "UTC")), STRING).to_pylist()
    ['1970-01-01T00:00:00Z', '1970-01-01T00:00:00.000001Z']
    """
    text = pc.cast(relabel(array, pa.timestamp("us")), to.arrow)
    text = pc.replace_substring(text, " ", "T")
    whole = pc.ends_with(text, ".000000")
    text = pc.if_else(whole, pc.utf8_slice_codeunits(text, 0, -7), text)
    return pc.binary_join_element_wise(text, "Z", "")
