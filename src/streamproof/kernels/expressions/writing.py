"""Values as text, in one spelling: floats as Python writes them, instants in ISO 8601 with Z, decimals with all digits.

>>> from streamproof.events.schema import STRING
>>> write_float(pa.array([1.0, 1e16, 1e-5, float("nan")]), STRING).to_pylist()
['1.0', '1e+16', '1e-05', 'nan']
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.schema import Type
from streamproof.kernels.expressions.vectors import blank, raw, relabel

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
