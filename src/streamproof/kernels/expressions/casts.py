"""Casts: one conversion per pair of types, which gives null where it fails; a strict cast makes that an error.

>>> cast(pa.array([2.5, 3.5, float("nan")]), INT64, strict=False).to_pylist()
[3, 4, None]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import RunError
from streamproof.events.notation import show_value
from streamproof.events.schema import FLOAT64, INT64, NULL, STRING, Type, type_of_arrow
from streamproof.kernels.expressions import decimals, text, times
from streamproof.kernels.expressions.columns import Datum, either, lost, null_flags, raw, relabel, vector
from streamproof.plan.rules import entry

Convert = Callable[[pa.Array, Type], pa.Array]


def cast(datum: Datum, to: Type, *, strict: bool = True) -> Datum:
    """Values as another type. A number out of range is ``overflow``, text that cannot be read ``bad_input``."""
    source = type_of_arrow(datum.type)
    if source == to:
        return datum
    if source == NULL or isinstance(datum, pa.Scalar):
        return _of_constant(datum, to, strict=strict)
    result = entry(CONVERSIONS, (source.kind, to.kind), "local")(datum, to)
    row = lost(result, [datum]) if strict else None
    if row is not None:
        raise _failed(datum[row], source, to)
    return result


def widen(datum: Datum, to: Type) -> Datum:
    """Values as a type that common arguments share: integers as decimals or floats, decimals as floats, null as any."""
    return datum if datum.type == to.arrow else cast(datum, to)


def _of_constant(datum: Datum, to: Type, *, strict: bool) -> Datum:
    if isinstance(datum, pa.Array):
        return pa.nulls(len(datum), to.arrow)
    if not datum.is_valid:
        return pa.scalar(None, to.arrow)
    return cast(pa.array([datum]), to, strict=strict)[0]


def _failed(value: pa.Scalar, source: Type, to: Type) -> RunError:
    shown = show_value(value.as_py())
    if source.kind == "string":
        return RunError(f"{shown} is not a {to}", fix="use try_cast, which gives null instead", name="bad_input")
    what = f"{shown} does not fit into {to}"
    return RunError(what, fix="use try_cast, which gives null instead, or a wider type", name="overflow")


def _to_bool(array: pa.Array, to: Type) -> pa.Array:
    return pc.not_equal(array, pa.scalar(0, array.type))


def _float_to_int(array: pa.Array, to: Type) -> pa.Array:
    """The nearest whole number, halves away from zero."""
    values = raw(array)
    with np.errstate(all="ignore"):
        whole = np.trunc(values)
        rounded = whole + np.copysign(np.abs(values - whole) >= 0.5, values)
        fits = (rounded >= -(2.0**63)) & (rounded < 2.0**63)
        whole = np.where(fits, rounded, 0.0).astype(np.int64)
    return vector(whole, to.arrow, either(null_flags(array), ~fits))


def _float_to_decimal(array: pa.Array, to: Type) -> pa.Array:
    """The number that a float's shortest digits say, halves away from zero: 2.675 with two digits is 2.68.

    Scaled floats that are clearly not near a half round the same way without looking at digits.
    """
    values = raw(array)
    with np.errstate(all="ignore"):
        scaled = np.abs(values) * 10.0**to.scale
        clear = np.abs(scaled - np.floor(scaled) - 0.5) > 4 * np.spacing(scaled)
        clear &= (scaled < 2.0**51) & (to.scale <= decimals.EXACT_POWERS)
        whole = np.copysign(np.rint(np.where(clear, scaled, 0.0)), values).astype(np.int64)
    unscaled = decimals.wide(vector(whole, INT64.arrow, either(null_flags(array), ~clear)), 0)
    found = decimals.fit(relabel(unscaled, pa.decimal256(76, to.scale)), to)
    if clear.all():
        return found
    rest = text.read_decimal(text.write_float(pc.filter(array, pa.array(~clear)), STRING), to)
    return pc.replace_with_mask(found, pa.array(~clear), rest)


def _plain(array: pa.Array, to: Type) -> pa.Array:
    return pc.cast(array, to.arrow, safe=False)  # an int64 beyond 2^53 becomes the nearest float


def _bool_to_float(array: pa.Array, to: Type) -> pa.Array:
    return pc.cast(pc.cast(array, INT64.arrow), FLOAT64.arrow)


CONVERSIONS: Final[dict[tuple[str, str], Convert]] = {
    ("int64", "float64"): _plain,
    ("int64", "decimal"): decimals.rescale,
    ("int64", "string"): text.write_plain,
    ("int64", "bool"): _to_bool,
    ("float64", "int64"): _float_to_int,
    ("float64", "decimal"): _float_to_decimal,
    ("float64", "string"): text.write_float,
    ("float64", "bool"): _to_bool,
    ("decimal", "int64"): decimals.to_int,
    ("decimal", "float64"): decimals.to_float,
    ("decimal", "decimal"): decimals.rescale,
    ("decimal", "string"): text.write_decimal,
    ("string", "int64"): text.read_int,
    ("string", "float64"): text.read_float,
    ("string", "decimal"): text.read_decimal,
    ("string", "bool"): text.read_bool,
    ("string", "date"): text.read_date,
    ("string", "timestamp"): text.read_timestamp,
    ("bool", "int64"): _plain,
    ("bool", "float64"): _bool_to_float,
    ("bool", "string"): text.write_plain,
    ("date", "timestamp"): times.date_to_timestamp,
    ("date", "string"): text.write_plain,
    ("timestamp", "date"): times.timestamp_to_date,
    ("timestamp", "string"): text.write_timestamp,
}
