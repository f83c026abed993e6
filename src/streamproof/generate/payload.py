"""Payloads by index: every value is a function of the seed, the column and the event.

>>> schema = Schema.of({"k": "string", "v": "int64"})
>>> Payload.of(schema, Facets(keys=3, nulls=0.5), 4, seed=7).columns(np.arange(4))[0].to_pylist()
['k0', None, 'k2', None]

A value is drawn as a *code* below the number of keys, and each type writes codes in its own way; so columns of any type
have as many different values as the facet says, as far as the type has them.

Values at which programs break are of every type:

>>> from streamproof.events.schema import parse_type
>>> boundary_values(parse_type("decimal(3, 1)")).to_pylist()[:2]
[Decimal('99.9'), Decimal('-99.9')]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import isqrt
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from streamproof.errors import PlanError, did_you_mean
from streamproof.events.order import Ints, Words
from streamproof.events.schema import Kind, Schema, Type
from streamproof.generate.draws import below, exactly, key_of, part_of, words
from streamproof.generate.facets import LONGEST_TABLE, Facets, ValueNumbers

_BOUNDARIES: Final[dict[Kind, list[Any]]] = {
    "int64": [
        2**63 - 1, -(2**63), 0, -1, 1, 2**31, 2**31 - 1, -(2**31), -(2**31) - 1, 2**53 + 1, -(2**53) - 1, 10**18, 127,
    ],
    "float64": [
        float("nan"), float("inf"), float("-inf"), -0.0, 0.0, 5e-324, -5e-324, 2.2250738585072014e-308,
        1.7976931348623157e308, -1.7976931348623157e308, 9007199254740993.0, 0.1, -1.0, 1e22, 1.0000000000000002,
    ],
    "string": [
        "", " ", "null", "NULL", "NaN", "inf", "0", "-0", "true", "\\N", "a,b", 'say "so"', "it's", "tab\there",
        "two\nlines", "cr\rhere", "é", "e\u0301", "ß", "İ", "日本語", "\U0001f600", "\u200b", "=1+1", "<b>", "%s",
        "a\\b", "x" * 300,
    ],
    "bool": [True, False],
    "date": [
        date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), date(1969, 12, 31), date(2000, 2, 29), date(1900, 2, 28),
        date(1582, 10, 15), date(2024, 12, 31),
    ],
    "timestamp": [
        datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC), datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2000, 2, 29, 12, tzinfo=UTC), datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC), datetime(2038, 1, 19, 3, 14, 8, tzinfo=UTC),
    ],
}  # fmt: skip


@lru_cache(maxsize=64)
def boundary_values(kind: Type) -> Any:
    """The boundary values of a type, as an Arrow array of it."""
    if kind.kind != "decimal":
        return pa.array(_BOUNDARIES[kind.kind], kind.arrow, from_pandas=False)
    digits = (10**kind.precision - 1, -(10**kind.precision) + 1, 0, 1, -1, 10 ** (kind.precision - 1))
    return pa.array([_scaled(number, kind.scale) for number in digits], kind.arrow)


def _scaled(digits: int, scale: int) -> Decimal:
    """``digits / 10^scale``, exactly: arithmetic on decimals would round to the context's precision."""
    return Decimal((int(digits < 0), tuple(map(int, str(abs(digits)))), -scale))


_DAY: Final = 18262  # 2020-01-01, in days since 1970
_LAST_DAY: Final = 2932896  # 9999-12-31
_SECOND: Final = 1_000_000  # timestamps count microseconds


@dataclass(frozen=True, slots=True)
class Payload:
    """The payload columns of a stream's events."""

    made: tuple[_PayloadColumn, ...]

    @staticmethod
    def of(schema: Schema, facets: Facets, count: int, *, seed: int, guessed: bool = False) -> Payload:
        """The payloads of events, or those that are believed before."""
        for name in facets.columns:
            if name not in schema:
                fix = did_you_mean(name, schema.names)
                raise PlanError(
                    f'the facets speak of a column "{name}"', at=str(facets), fix=fix, name="unknown_column"
                )
        purpose = "guess" if guessed else "value"
        return Payload(
            tuple(
                _PayloadColumn(
                    kind, facets.values(name), count, tuple(key_of(seed, purpose, part, name) for part in _PARTS)
                )
                for name, kind in schema
            )
        )

    def columns(self, index: Ints) -> list[pa.Array]:
        """The values of these events, column by column."""
        return [column.values(index) for column in self.made]


_PARTS: Final = ("code", "nulls", "boundary", "which")


@dataclass(frozen=True, slots=True)
class _PayloadColumn:
    kind: Type
    numbers: ValueNumbers
    count: int
    keys: tuple[int, ...]  # one for each of `_PARTS`

    def values(self, index: Ints) -> pa.Array:
        if self.kind.kind == "null":
            return pa.nulls(len(index))
        values = _WRITERS[self.kind.kind](self._codes(index), self.kind, self.numbers.keys)
        return self._with_nulls(self._with_boundaries(values, index), index)

    def _codes(self, index: Ints) -> Ints:
        keys = self.numbers.keys
        if keys is None:
            return index
        draw = words(self.keys[0], index)
        if not self.numbers.skew:
            return below(draw, keys)
        return np.searchsorted(frequencies(keys, self.numbers.skew), draw, side="right")

    def _with_boundaries(self, values: pa.Array, index: Ints) -> pa.Array:
        chosen = exactly(self.keys[2], index, self.count, part_of(self.count, self.numbers.boundary))
        if not chosen.any():
            return values
        known = boundary_values(self.kind)
        places = below(words(self.keys[3], index[chosen]), len(known))
        return pc.replace_with_mask(values, pa.array(chosen), known.take(pa.array(places)))

    def _with_nulls(self, values: pa.Array, index: Ints) -> pa.Array:
        chosen = exactly(self.keys[1], index, self.count, part_of(self.count, self.numbers.nulls))
        return pc.if_else(pa.array(chosen), pa.scalar(None, values.type), values) if chosen.any() else values


@lru_cache(maxsize=32)
def frequencies(keys: int, skew: Fraction) -> Words:
    """Where each code's share of all words ends, except the last: code ``n`` is as frequent as ``1 / (n + 1)^skew``.

    Whole-number arithmetic throughout, so that no machine rounds differently.

    >>> [round(end / 2**64, 3) for end in frequencies(3, Fraction(1)).tolist()]
    [0.545, 0.818]
    """
    twice = int(2 * skew)
    weights = [isqrt((1 << 120) // n**twice) for n in range(1, keys + 1)]
    total, ends, sum_ = sum(weights), [], 0
    for weight in weights[:-1]:
        sum_ += weight
        ends.append((sum_ << 64) // total)
    return np.array(ends, np.uint64)


def _signed(codes: Ints) -> Ints:
    """0, −1, 1, −2, 2 …: small numbers of both signs."""
    return (codes >> 1) ^ -(codes & 1)


def _ints(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    return pa.array(_signed(codes))


def _floats(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    return pa.array(_signed(codes) / 4.0)  # quarters are exact


def _strings(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    if keys is not None and keys <= LONGEST_TABLE:
        return _names(keys).take(pa.array(codes))
    return pc.binary_join_element_wise("k", pa.array(codes).cast(pa.string()), "")


@lru_cache(maxsize=32)
def _names(keys: int) -> Any:
    return pa.array([f"k{code}" for code in range(keys)], pa.string())


def _bools(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    return pa.array((codes & 1).astype(np.bool_))


def _decimals(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    """Codes as the digits of decimals: 128-bit integers in two halves."""
    digits = _signed(codes % (2 * 10 ** min(kind.precision, 17)))
    halves = np.stack([digits, digits >> 63], axis=1).astype("<i8")
    return pa.Array.from_buffers(kind.arrow, len(codes), [None, pa.py_buffer(halves.tobytes())])


def _dates(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    return pa.array(((codes + _DAY) % (_LAST_DAY + 1)).astype(np.int32)).cast(kind.arrow)


def _timestamps(codes: Ints, kind: Type, keys: int | None) -> pa.Array:
    return pa.array((codes + _DAY * 86400) * _SECOND).cast(kind.arrow)


_WRITERS: Final[dict[str, Callable[[Ints, Type, int | None], pa.Array]]] = {
    "int64": _ints,
    "float64": _floats,
    "string": _strings,
    "bool": _bools,
    "decimal": _decimals,
    "date": _dates,
    "timestamp": _timestamps,
}
