"""Matchers: truths that say why. A match is as good as a Boolean, and reports show its reason.

>>> every([1, 2, -3], lambda v: v > 0)
no: 1 of 3 breaks it: -3
>>> bool(subset([1, 1], [1])), bool(subset([1, 1], [1], multiset=True))
(True, False)
>>> minus([1, 2, 3], [2])
[1, 3]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
SHOWN = 3


@dataclass(frozen=True)
class Match:
    """Whether something holds, and why, or why not."""

    holds: bool
    why: str

    def __bool__(self) -> bool:
        return self.holds

    def __and__(self, other: object) -> object:
        return NotImplemented if not isinstance(other, Match | bool) else other if self.holds else self

    def __or__(self, other: object) -> object:
        return NotImplemented if not isinstance(other, Match | bool) else self if self.holds else other

    def __invert__(self) -> Match:
        return Match(not self.holds, self.why)

    def __repr__(self) -> str:
        return f"{'yes' if self.holds else 'no'}: {self.why}"


def _some(values: list[Any]) -> str:
    shown = ", ".join(repr(value) for value in values[:SHOWN])
    return f"{shown}, … {len(values) - SHOWN} more" if len(values) > SHOWN else shown


def every(rows: Iterable[T], predicate: Callable[[T], object]) -> Match:
    """All rows satisfy the predicate. Of no rows, every predicate is true."""
    listed = list(rows)
    broken = [row for row in listed if not predicate(row)]
    if not broken:
        return Match(True, f"all {len(listed)} satisfy it")
    return Match(False, f"{len(broken)} of {len(listed)} break{'s' if len(broken) == 1 else ''} it: {_some(broken)}")


forall = every


def exists(rows: Iterable[T], predicate: Callable[[T], object] = lambda row: True) -> Match:
    """Some row satisfies the predicate."""
    listed = list(rows)
    for row in listed:
        if predicate(row):
            return Match(True, f"{row!r} satisfies it")
    return Match(False, f"none of {len(listed)} satisfies it{': ' + _some(listed) if listed else ''}")


def minus(left: Iterable[T], right: Iterable[Any], *, multiset: bool = False) -> list[T]:
    """What is in the left and not in the right: as sets, or counting how often.

    >>> minus([1, 1, 2], [1]), minus([1, 1, 2], [1], multiset=True)
    ([2], [1, 2])
    """
    left, right = list(left), list(right)
    if multiset:
        return list((_counted(left) - _counted(right)).elements())
    try:
        known: Container[Any] = set(right)
        hash(tuple(left))
    except TypeError:  # rows with lists or dictionaries inside
        known = right
    return [value for value in left if value not in known]


def _counted(values: list[Any]) -> Counter[Any]:
    try:
        return Counter(values)
    except TypeError:
        raise TypeError("multisets need values that can be hashed; take single columns of the rows") from None


def subset(left: Iterable[Any], right: Iterable[Any], *, multiset: bool = False) -> Match:
    """Everything in the left is in the right: as sets, or at least as often."""
    left, right = list(left), list(right)
    missing = minus(left, right, multiset=multiset)
    if not missing:
        return Match(True, f"all {len(left)} are among the {len(right)}")
    return Match(False, f"{len(missing)} of {len(left)} are missing: {_some(missing)}")


def same(left: Iterable[Any], right: Iterable[Any], *, multiset: bool = True) -> Match:
    """Both hold the same elements: equally often, or as sets."""
    left, right = list(left), list(right)
    only_left, only_right = minus(left, right, multiset=multiset), minus(right, left, multiset=multiset)
    if not only_left and not only_right:
        return Match(True, f"both have the same {len(left)}")
    sides = [f"only {side}: {_some(rest)}" for side, rest in (("left", only_left), ("right", only_right)) if rest]
    return Match(False, "; ".join(sides))


def has_count(rows: Iterable[Any], n: int) -> Match:
    """There are exactly n."""
    found = len(list(rows))
    return Match(found == n, f"{found} rows" if found == n else f"{found} rows, not {n}")


def empty(rows: Iterable[Any]) -> Match:
    """There are none."""
    listed = list(rows)
    return Match(not listed, f"{len(listed)} rows: {_some(listed)}" if listed else "no rows")


def nonempty(rows: Iterable[Any]) -> Match:
    """There are some."""
    return ~empty(rows)
