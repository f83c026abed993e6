"""Arithmetic and mathematics on columns of int64, float64 and decimals.

Whole numbers that leave int64 are the error ``overflow``; floats follow IEEE 754 in silence. The transcendental
functions are those of the C library, through Arrow: NumPy's own differ from it in the last bit.

>>> mod([pa.array([-7, 7, 7]), pa.array([3, -3, 0])], INT64).to_pylist()
[-1, 1, None]
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import RunError
from streamproof.events.order import Flags, Ints
from streamproof.events.schema import FLOAT64, INT64, Type
from streamproof.kernels.expressions import decimals
from streamproof.kernels.expressions.columns import (
    Datum,
    Values,
    blank,
    either,
    lost,
    null_flags,
    raw,
    row_at,
    rows_of,
    vector,
    with_nulls,
    without_nulls,
)
from streamproof.plan.expr import INT64_MAX, INT64_MIN

Args: TypeAlias = Sequence[Datum]
Kernel: TypeAlias = Callable[[Args, Type], Datum]
"""From arguments without null scalars, of which one at least is an array, to a column of the given type."""
_FIX: Final = "cast to float or decimal first, or keep the values smaller"


def overflow(shape: str, values: Sequence[Any], to: Type) -> RunError:
    """The error of a result that its type cannot hold.

    >>> overflow("{} + {}", [2**63 - 1, 1], INT64).what
    '9223372036854775807 + 1 does not fit into int64'
    """
    return RunError(f"{shape.format(*values)} does not fit into {to}", fix=_FIX, name="overflow")


# --- plus, minus, times -----------------------------------------------------------------------------------------------


def exact(
    shape: str,
    checked: Callable[..., Datum],
    silent: Callable[..., Datum],
    of_decimals: Callable[..., pa.Array],
    meaning: Callable[..., int],
) -> Kernel:
    """An operation that is exact on whole numbers and decimals. ``meaning`` is used to find the row that failed."""

    def run(args: Args, to: Type) -> Datum:
        if to == FLOAT64:
            return silent(*args)
        if to == INT64:
            return _checked(shape, checked, meaning, args)
        result = of_decimals(*args, to)
        row = lost(result, args)
        if row is not None:
            raise overflow(shape, row_at(args, row), to)
        return result

    return run


def _checked(shape: str, checked: Callable[..., Datum], meaning: Callable[..., int], args: Args) -> Datum:
    nulls = null_flags(*args)
    try:
        if nulls is None:
            return checked(*args)
        # Arrow is much faster where there are no nulls, and most often what lies under them does no harm
        return with_nulls(checked(*(without_nulls(arg) for arg in args)), nulls)
    except pa.ArrowInvalid:
        try:
            return checked(*args)
        except pa.ArrowInvalid:
            _name_overflow(shape, meaning, args)


def _name_overflow(shape: str, meaning: Callable[..., int], args: Args) -> NoReturn:
    rows = rows_of(args)
    columns = [arg.to_pylist() if isinstance(arg, pa.Array) else [arg.as_py()] * rows for arg in args]
    for values in zip(*columns, strict=True):
        if None not in values and not INT64_MIN <= meaning(*values) <= INT64_MAX:
            raise overflow(shape, values, INT64)
    raise AssertionError("Arrow reported an overflow that no row has")


add = exact("{} + {}", pc.add_checked, pc.add, decimals.add, operator.add)
sub = exact("{} - {}", pc.subtract_checked, pc.subtract, decimals.subtract, operator.sub)
mul = exact("{} * {}", pc.multiply_checked, pc.multiply, decimals.multiply, operator.mul)
neg = exact("-({})", pc.negate_checked, pc.negate, lambda a, to: pc.negate(a), operator.neg)
absolute = exact("abs({})", pc.abs_checked, pc.abs, lambda a, to: pc.abs(a), operator.abs)


# --- division ---------------------------------------------------------------------------------------------------------


def div(args: Args, to: Type) -> Datum:
    """Division of floats; null by zero."""
    a, b = args
    return blank(pc.divide(a, b), pc.equal(b, 0.0)) if _has_zero(b) else pc.divide(a, b)


def _has_zero(datum: Datum) -> bool:
    return not bool(raw(datum).all())


def floordiv(args: Args, to: Type) -> Datum:
    """The quotient rounded down; null by zero. The least int64 by -1 is an overflow."""
    if to == FLOAT64:
        return pc.floor(div(args, to))
    a, b = (raw(arg) for arg in args)
    nulls = null_flags(*args)
    zero, turn = b == 0, b == -1
    if turn.any():
        _refuse(args, (a == INT64_MIN) & turn, nulls, "{} // {}")
    with np.errstate(all="ignore"):  # what lies under nulls may overflow
        return vector(a // (np.where(zero, 1, b) if zero.any() else b), to.arrow, _nulls(a, zero, nulls))


def mod(args: Args, to: Type) -> Datum:
    """The remainder with the sign of the dividend; null by zero."""
    a, b = (raw(arg) for arg in args)
    zero = b == 0
    safe = b if to == FLOAT64 else np.where(zero, 1, b)
    with np.errstate(all="ignore"):
        return vector(np.fmod(a, safe), to.arrow, _nulls(a, zero, null_flags(*args)))


def _nulls(values: Values, zero: Flags, nulls: Flags | None) -> Flags | None:
    """The rows without a result, one flag per row even if the divisor is a scalar."""
    if not zero.any():
        return nulls
    return either(np.broadcast_to(zero, np.broadcast_shapes(values.shape, zero.shape)), nulls)


def _refuse(args: Args, failing: Flags, nulls: Flags | None, shape: str) -> None:
    failing = failing if nulls is None else failing & ~nulls
    if failing.any():
        raise overflow(shape, row_at(args, int(np.argmax(failing))), INT64)


# --- to whole numbers -------------------------------------------------------------------------------------------------

_TENS: Final = np.array([10.0**n for n in range(309)])
_TEN_POWERS: Final = np.array([10**n for n in range(20)], np.uint64)


def sign(args: Args, to: Type) -> Datum:
    """-1, 0 or 1; 0 for NaN."""
    (a,) = args
    if not pa.types.is_floating(a.type):
        return pc.cast(pc.sign(a), to.arrow)
    values = raw(a)
    return vector((values > 0).astype(np.int64) - (values < 0), to.arrow, null_flags(a))


def floor(args: Args, to: Type) -> Datum:
    (a,) = args
    return a if to == INT64 else pc.floor(a) if to == FLOAT64 else _fitted("floor({})", decimals.floor(a, to), a, to)


def ceil(args: Args, to: Type) -> Datum:
    (a,) = args
    return a if to == INT64 else pc.ceil(a) if to == FLOAT64 else _fitted("ceil({})", decimals.ceil(a, to), a, to)


def round_(args: Args, to: Type) -> Datum:
    """The nearest number with n digits after the point, halves away from zero."""
    a, digits = args[0], args[1] if len(args) > 1 else pa.scalar(0)
    if to == FLOAT64:
        return _round_floats(a, digits)
    if to == INT64:
        return a if len(args) == 1 else _round_ints(args)
    return _fitted("round({})", decimals.round_(a, to), a, to)


def _fitted(shape: str, result: pa.Array, a: Datum, to: Type) -> pa.Array:
    row = lost(result, [a])
    if row is not None:
        raise overflow(shape, row_at([a], row), to)
    return result


def _round_floats(a: Datum, digits: Datum) -> pa.Array:
    """|x| × 10^n (or ÷ 10^-n: only whole powers of ten are exact) to the nearest whole number, and back."""
    values, places = raw(a), raw(digits)
    unit = _TENS[np.minimum(np.abs(places), 308)]
    with np.errstate(all="ignore"):
        size = np.abs(values)
        scaled = _either_way(places >= 0, np.multiply, np.divide, size, unit)
        whole = np.floor(scaled)
        whole += scaled - whole >= 0.5
        rounded = _either_way(places >= 0, np.divide, np.multiply, whole, unit)
        special = ~np.isfinite(scaled) | (np.abs(places) > 308)
        if special.any():  # a number too large to have such digits stays itself, one too small for them is 0
            rounded = np.where(special, np.where((places < -308) & np.isfinite(size), 0.0, size), rounded)
    return vector(np.copysign(rounded, values), pa.float64(), null_flags(a, digits))


def _either_way(forward: Flags, one: np.ufunc, other: np.ufunc, a: Values, b: Values) -> Values:
    """One operation where ``forward`` holds, the other elsewhere; a constant decides for all rows at once."""
    if forward.ndim == 0:
        return np.asarray((one if forward else other)(a, b))
    return np.asarray(np.where(forward, one(a, b), other(a, b)))


def _round_ints(args: Args) -> pa.Array:
    values, places = (np.asarray(raw(arg)) for arg in args)
    nulls = null_flags(*args)
    unit = _TEN_POWERS[np.clip(-np.maximum(places, -20), 0, 19)]
    with np.errstate(all="ignore"):  # unsigned numbers wrap on purpose: -2^63 has a magnitude too
        magnitude = np.where(values < 0, -values.astype(np.uint64), values.astype(np.uint64))
        rounded = np.where(places < -19, np.uint64(0), (magnitude + unit // np.uint64(2)) // unit * unit)
        limit = np.where(values < 0, np.uint64(2**63), np.uint64(2**63 - 1))
        signed: Ints = np.where(values < 0, -rounded, rounded).view(np.int64)
    _refuse(args, rounded > limit, nulls, "round({}, {})")
    return vector(signed, pa.int64(), nulls)


# --- mathematics on floats --------------------------------------------------------------------------------------------


def sqrt(args: Args, to: Type) -> Datum:
    return _within(pc.sqrt, args[0], pc.less)


def ln(args: Args, to: Type) -> Datum:
    return _within(pc.ln, args[0], pc.less_equal)


def log10(args: Args, to: Type) -> Datum:
    return _within(pc.log10, args[0], pc.less_equal)


def _within(fn: Callable[[Datum], pa.Array], a: Datum, outside: Callable[[Datum, float], Datum]) -> pa.Array:
    """A function of the reals, null where the argument is outside of its domain."""
    return blank(fn(a), outside(a, 0.0))


def exp(args: Args, to: Type) -> Datum:
    return pc.exp(args[0])


def power(args: Args, to: Type) -> Datum:
    """a^b; null for a root of a negative number and for a negative power of zero."""
    a, b = args
    x, y = raw(a), raw(b)
    with np.errstate(all="ignore"):
        root = (x < 0) & np.isfinite(y) & (y != np.floor(y))
        pole = (x == 0) & (y < 0)
        unreal = np.broadcast_to(root | pole, rows_of(args))
    result = pc.power(a, b)
    return blank(result, pa.array(unreal)) if unreal.any() else result
