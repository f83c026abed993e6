"""Comparisons of two columns of one type: NaN equals NaN and is above all numbers, −0.0 equals 0.0.

Strings compare by code point: that is the order of their UTF-8 bytes, which Arrow compares.

>>> equal(pa.array([float("nan"), 0.0]), pa.array([float("nan"), -0.0])).to_pylist()
[True, True]
>>> less(pa.array([1.0, None]), pa.scalar(float("nan"))).to_pylist()
[True, None]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.kernels.expressions.columns import Datum, raw


def equal(a: Datum, b: Datum) -> Datum:
    if has_nan(a) and has_nan(b):
        return pc.or_(pc.equal(a, b), pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return pc.equal(a, b)


def not_equal(a: Datum, b: Datum) -> Datum:
    return pc.invert(equal(a, b)) if has_nan(a) and has_nan(b) else pc.not_equal(a, b)


def less(a: Datum, b: Datum) -> Datum:
    plain = pc.less(a, b)
    # with NaN every comparison of IEEE 754 is false, but only a NaN on the left is not below one on the right
    return pc.or_(plain, pc.and_(pc.is_nan(b), pc.invert(pc.is_nan(a)))) if has_nan(b) else plain


def less_equal(a: Datum, b: Datum) -> Datum:
    return pc.invert(less(b, a)) if has_nan(a) or has_nan(b) else pc.less_equal(a, b)


def greater(a: Datum, b: Datum) -> Datum:
    return less(b, a)


def greater_equal(a: Datum, b: Datum) -> Datum:
    return less_equal(b, a)


def same(a: Datum, b: Datum) -> Datum:
    """Equality where null equals null; never null."""
    both = pc.and_(pc.is_null(a), pc.is_null(b))
    return pc.or_(pc.fill_null(equal(a, b), False), both)


def least(a: Datum, b: Datum) -> Datum:
    """The lesser of two, or the one that is not null; of equals the first."""
    return _first_unless(less(b, a), a, b)


def greatest(a: Datum, b: Datum) -> Datum:
    return _first_unless(less(a, b), a, b)


def _first_unless(better: Datum, a: Datum, b: Datum) -> Datum:
    # the comparison is null where one of them is: then b stands in for an a that is null
    return pc.if_else(pc.fill_null(better, False), b, pc.coalesce(a, b))


def has_nan(datum: Datum) -> bool:
    """Whether a column may hold NaN: one look at the values, so that columns without it compare at full speed."""
    if not pa.types.is_floating(datum.type):
        return False
    if isinstance(datum, pa.Scalar):
        return bool(datum.is_valid and np.isnan(datum.as_py()))
    with np.errstate(all="ignore"):
        return bool(len(datum) and np.isnan(raw(datum).min()))


COMPARE: dict[str, Callable[[Datum, Datum], Datum]] = {
    "eq": equal,
    "ne": not_equal,
    "lt": less,
    "lte": less_equal,
    "gt": greater,
    "gte": greater_equal,
}
