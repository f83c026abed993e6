"""Exact decimals: computed with 76 digits, then fitted into their declared type.

What does not fit becomes null here; the callers make it the error ``overflow`` where they must.

>>> from streamproof.events.schema import decimal
>>> fit(wide(pa.array([Decimal("9.6")], pa.decimal128(2, 1)), 0), decimal(1, 0)).to_pylist()
[None]
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_UP, Context, Decimal
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.events.schema import MAX_PRECISION, Type
from streamproof.kernels.expressions.columns import Datum, blank, null_flags, relabel, rows_of, spread, vector

EXACT: Final = Context(prec=2000, Emin=MIN_EMIN, Emax=MAX_EMAX, traps=[])  # any float has fewer digits
EXACT_POWERS: Final = 22  # 10^22 is the last power of ten that a float holds exactly


def rounded(value: Decimal, scale: int) -> Decimal:
    """One decimal with this many digits after the point, halves away from zero.

    >>> rounded(Decimal("-2.5"), 0)
    Decimal('-3')
    """
    return value.quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP, EXACT)


def wide(datum: Datum, scale: int) -> Datum:
    """A whole number or decimal as decimal256 with this scale; digits beyond it round, halves away from zero.

    >>> wide(pa.array([Decimal("2.25")], pa.decimal128(3, 2)), 1).to_pylist()
    [Decimal('2.3')]
    """
    if not pa.types.is_decimal(datum.type):
        datum = pc.cast(datum, pa.decimal128(19, 0))
    precision, have = datum.type.precision, datum.type.scale
    if scale >= have:
        return pc.cast(datum, pa.decimal256(precision + scale - have, scale))
    roomy = pc.cast(datum, pa.decimal256(precision + 1, have))  # 9.9 rounds up to 10
    return pc.cast(
        pc.round(roomy, ndigits=scale, round_mode="half_towards_infinity"), pa.decimal256(precision + 1, scale)
    )


def fit(values: pa.Array, to: Type) -> pa.Array:
    """Wide decimals of the right scale as their declared type; null where they have too many digits."""
    try:
        return pc.cast(values, to.arrow)
    except pa.ArrowInvalid:
        bound = pa.scalar(Decimal(10) ** (to.precision - to.scale), pa.decimal256(to.precision + 1, to.scale))
        return pc.cast(blank(values, pc.greater_equal(pc.abs(values), bound)), to.arrow)


def add(a: Datum, b: Datum, to: Type) -> pa.Array:
    return _sum(pc.add, a, b, to)


def subtract(a: Datum, b: Datum, to: Type) -> pa.Array:
    return _sum(pc.subtract, a, b, to)


def _sum(operation: Callable[[Datum, Datum], pa.Array], a: Datum, b: Datum, to: Type) -> pa.Array:
    """Of numbers of one type: with a digit more, every sum fits."""
    if a.type.precision < to.precision:
        return operation(a, b)
    return fit(operation(wide(a, to.scale), wide(b, to.scale)), to)


def multiply(a: Datum, b: Datum, to: Type) -> pa.Array:
    rows = rows_of([a, b])
    x, y = (spread(factor, rows) for factor in (a, b))
    if x.type.precision + y.type.precision < MAX_PRECISION:
        return relabel(pc.multiply(x, y), to.arrow)
    return fit(pc.multiply(_factor(x), _factor(y)), to)


def _factor(array: pa.Array) -> pa.Array:
    """A factor for Arrow, which wants p + q < 76; the product of two numbers with 38 digits has 76 and fits."""
    factor = wide(array, array.type.scale)
    return relabel(factor, pa.decimal256(min(factor.type.precision, 37), array.type.scale))


def floor(array: pa.Array, to: Type) -> pa.Array:
    return _whole(pc.floor(_roomy(array)), to)


def ceil(array: pa.Array, to: Type) -> pa.Array:
    return _whole(pc.ceil(_roomy(array)), to)


def _roomy(array: pa.Array) -> pa.Array:
    return pc.cast(array, pa.decimal256(array.type.precision + 1, array.type.scale))


def _whole(array: pa.Array, to: Type) -> pa.Array:
    return fit(pc.cast(array, pa.decimal256(array.type.precision, 0)), to)


def round_(array: pa.Array, to: Type) -> pa.Array:
    """To whole numbers, halves away from zero."""
    return fit(wide(array, to.scale), to)


def rescale(array: pa.Array, to: Type) -> pa.Array:
    """Whole numbers or decimals as another decimal type, halves away from zero."""
    precision, scale = (array.type.precision, array.type.scale) if pa.types.is_decimal(array.type) else (19, 0)
    if to.scale >= scale and to.precision - to.scale >= precision - scale:
        return pc.cast(array, to.arrow)  # every value fits
    return fit(wide(array, to.scale), to)


def to_int(array: pa.Array, to: Type) -> pa.Array:
    """The nearest whole number, halves away from zero; null outside of int64."""
    whole = wide(array, 0)
    low, high = (pa.scalar(Decimal(bound), pa.decimal256(19, 0)) for bound in (-(2**63), 2**63 - 1))
    return pc.cast(blank(whole, pc.or_(pc.less(whole, low), pc.greater(whole, high))), to.arrow)


def to_float(array: pa.Array, to: Type) -> pa.Array:
    """The nearest float. Numbers with 53 bits divide exactly rounded; longer ones are read from their text."""
    words = np.frombuffer(array.buffers()[1] or b"", np.int64).reshape(-1, 2)[array.offset :][: len(array)]
    low, high = words[:, 0], words[:, 1]
    small = (high == low >> 63) & (low > -(2**53)) & (low < 2**53)
    nulls = null_flags(array)
    if array.type.scale <= EXACT_POWERS and bool((small if nulls is None else small | nulls).all()):
        return vector(low / 10.0**array.type.scale, to.arrow, nulls)
    return pc.cast(pc.cast(array, pa.string()), to.arrow)
