"""Are two lists of rows the same bag? Typed; floats may differ in their last bits.

>>> difference([(1, 5, {"v": 1.0})], [(1, 5, {"v": 1.0 + 1e-13})]) is None
True
>>> print(difference([(1, 5, {"v": 1})], []))
missing: [1, 5) {'v': 1}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from streamproof.events.time import show_tick
from streamproof.workbench.evaluator.values import Row, order, same_value

RELATIVE, ABSOLUTE = 1e-9, 1e-12


def difference(expected: Sequence[Row], actual: Sequence[Row]) -> str | None:
    """The first difference in words, or nothing."""
    missing, surplus = unmatched(expected, actual)
    lines = [f"missing: {show(row)}" for row in missing[:5]] + [f"surplus: {show(row)}" for row in surplus[:5]]
    return "\n".join(lines) or None


def unmatched(expected: Sequence[Row], actual: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """What only one of the bags has."""
    left, right = sorted(expected, key=_sort_key), sorted(actual, key=_sort_key)
    if len(left) == len(right) and all(same_row(a, b) for a, b in zip(left, right, strict=True)):
        return [], []
    missing = []
    for row in left:
        twin = next((n for n, other in enumerate(right) if same_row(row, other)), None)
        if twin is None:
            missing.append(row)
        else:
            del right[twin]
    return missing, right


def same_row(a: Row, b: Row) -> bool:
    return a[:2] == b[:2] and a[2].keys() == b[2].keys() and all(near(a[2][name], b[2][name]) for name in a[2])


def near(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and math.isfinite(a) and math.isfinite(b):
        return math.isclose(a, b, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    return same_value(a, b)


def _sort_key(row: Row) -> tuple[Any, ...]:
    return (row[0], row[1], *((name, order(row[2][name])) for name in sorted(row[2])))


def show(row: Row) -> str:
    return f"[{show_tick(row[0])}, {show_tick(row[1])}) {row[2]}"
