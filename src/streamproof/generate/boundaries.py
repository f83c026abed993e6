"""The values at which programs break, for every type.

>>> boundary_values(parse_type("decimal(3, 1)")).to_pylist()[:2]
[Decimal('99.9'), Decimal('-99.9')]
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa

from streamproof.events.schema import Kind, Type, parse_type

__all__ = ["boundary_values", "parse_type"]

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
